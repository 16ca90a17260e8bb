"""The one place that decides whether anything may be written, and one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import make_folder
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.recent import Recent

POLL_S = 0.02

_last_held: Recent[str, float] = Recent(64)
"""Per lock file when this process last held it (monotonic seconds); a process has one or two of them."""


class WritesForbidden(HelixError):
    """The program was started with --read-only."""

    advice = "Start it without --read-only to make changes."

    def __init__(self) -> None:
        super().__init__("nothing was changed: started with --read-only")


class GateBusy(HelixError):
    """Another process of ours has been writing for too long."""


class GateBroken(HelixError, OSError):
    """The disk does not let anybody take the gate: it is full, or may not be written."""

    advice = "Free space or repair the folder, then retry."

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error.strerror or error}: .helix/curation.lock cannot be written; nothing was changed")


class WriteGate(Struct, frozen=True):
    """Every write of curation passes here: to the tracker, the journal, the queue's snapshot, the hooks."""

    project: Project
    read_only: bool = False
    patience_s: float = 120.0
    waits: Callable[[str], None] | None = None
    """Told who holds the gate, once the wait for it is long enough to be noticed."""
    noticed_s: float = 2.0

    def check(self) -> None:
        """Refuse if nothing may be written.

        Raises:
            WritesForbidden: --read-only.
        """
        if self.read_only:
            raise WritesForbidden

    @contextmanager
    def open(self) -> Iterator[int]:
        """Hold the gate alone; yields the file descriptor that holds the lock.

        The commands that are run meanwhile inherit it, so that the gate stays shut while one of them still
        works for a process that was killed.

        Raises:
            WritesForbidden: --read-only.
            GateBusy: another process holds it.
            GateBroken: the disk is full, or may not be written.
        """
        self.check()
        path = self.project.helix_dir / "curation.lock"
        with self._taken(str(path)) as descriptor:
            try:
                yield descriptor
            finally:
                _last_held[str(path)] = time.monotonic()

    @contextmanager
    def _taken(self, path: str) -> Iterator[int]:
        descriptor = -1
        try:
            try:
                make_folder(self.project.helix_dir)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                self._take(descriptor)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()} {time.time_ns()}".encode(), 0)
            except OSError as error:
                raise GateBroken(error) from None
            yield descriptor
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        """Wait for one's turn; whoever had the last one lets others go first.

        What is waited out is one holder's patience, not that of a queue which moves on.
        """
        path = str(self.project.helix_dir / "curation.lock")
        rest = _last_held.get(path, 0.0) + 2 * POLL_S - time.monotonic()
        if self.patience_s and rest > 0:
            time.sleep(min(rest, 2 * POLL_S))
        deadline, seen = time.monotonic() + self.patience_s, b""
        notice = time.monotonic() + self.noticed_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            now = os.pread(descriptor, 64, 0)
            if now != seen and self.patience_s:
                seen, deadline = now, time.monotonic() + self.patience_s
            if time.monotonic() >= deadline:
                raise GateBusy(
                    f"{_holder(now)} has been changing the queue for {self.patience_s:.0f} s; "
                    "see what it does, or end it, and try again"
                )
            if self.waits is not None and time.monotonic() >= notice:
                self.waits(_holder(now))
                notice = deadline + self.patience_s
            time.sleep(POLL_S)


def _holder(written: bytes) -> str:
    """Who holds the gate, by what the lock file says; a ddx goes on holding it for a process that died."""
    try:
        pid = int(written.split()[0])
    except (ValueError, IndexError):
        return "another process"
    from helix_tui.core.ground.pids import pid_alive  # only who waits long needs it

    if not pid_alive(pid):
        return f"a ddx that process {pid} started before it died"
    return f"process {pid}"
