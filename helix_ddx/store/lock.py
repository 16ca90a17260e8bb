"""DDx's lock: a folder owned by the process that creates it, with the owner's pid and the time in it.

Rules: docs/formats/ddx.md §3. A folder whose owner is dead, or that is older than two hours, is broken by renaming it
away; breakers take turns with ``flock``, so that none of them takes away the lock of the one that was faster. An owner
that was killed before it could sign leaves an empty folder, which is broken soon.

`held` is for commands: if the lock is taken, they are refused in DDx's words.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from helix_ddx.files import Disk, second
from helix_ddx.flags import Refused, parse_duration, parse_float
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.time import NS, now_ns, parse_instant

RETRY_S = 0.05
TIMEOUT_S = 10.0
STALE_AFTER = 2 * 3600 * NS
UNSIGNED_S = 2.0
"""How long a folder without a pid may belong to a process that is about to sign it."""


class LockTimeout(RuntimeError):
    """Another process holds the tracker; the message is DDx's own."""


class FolderLock:
    """One lock folder.

    Args:
        folder: the folder itself; what it guards lies beside it.
        disk: the writer of the signature; its watchers hear of it.
        guard: whether breakers also take ddx's own advisory file, for a real ddx beside us.
        complaint: what `LockTimeout` says; ``{owner}`` stands for the owner's pid.
    """

    def __init__(
        self,
        folder: Path,
        *,
        disk: Disk | None = None,
        clock: Callable[[], int] = now_ns,
        guard: bool = False,
        complaint: str = "bead: lock timeout (owner pid: {owner})",
    ) -> None:
        self.folder = folder
        self.disk = disk or Disk()
        self.clock = clock
        self.guard = guard
        self.complaint = complaint

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            LockTimeout: it was held by a living process for the whole of ``DDX_BEAD_LOCK_TIMEOUT``.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._acquire(time.monotonic() + lock_timeout())
        try:
            self.disk.create(self.folder / "pid", str(os.getpid()))
            self.disk.create(self.folder / "acquired_at", second(self.clock()))
            self.disk.create(self.folder / "owner_token", os.urandom(32).hex())
            (self.folder / "owner_token").chmod(0o600)
            yield
        finally:
            # it may have been broken as stale and belong to another process by now
            if self._owner() in ("", str(os.getpid())):
                self.disk.delete_tree(self.folder)

    def _acquire(self, deadline: float) -> None:
        # from 6 ms up to the 50 ms after which ddx tries again
        wait = RETRY_S / 8
        while True:
            try:
                self.folder.mkdir()
                return
            except FileExistsError:
                if self._stale() and self._break():
                    continue
                if time.monotonic() >= deadline:
                    owner = self._owner() or "unknown"
                    raise LockTimeout(self.complaint.format(owner=owner)) from None
                time.sleep(wait)
                wait = min(wait * 1.5, RETRY_S)

    def _owner(self) -> str:
        try:
            return (self.folder / "pid").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def _stale(self) -> bool:
        owner = self._owner()
        try:
            acquired = parse_instant((self.folder / "acquired_at").read_text(encoding="utf-8").strip())
            if acquired is not None and self.clock() - acquired > STALE_AFTER:
                return True
        # not signed yet, or gone
        except (OSError, UnicodeDecodeError):
            acquired = None
        if owner.isdecimal():
            return not process_lives(int(owner))
        try:
            return not owner and time.time() - self.folder.stat().st_mtime > UNSIGNED_S
        except OSError:
            return False

    def _break(self) -> bool:
        """Remove a stale lock, unless another process did first; returns whether to try again at once."""
        with self._turn():
            # checked again: another process may have broken it first, and a third one taken it since
            if not self._stale():
                return not self.folder.exists()
            owner = self._owner()
            # renamed first: a lock that is half removed would look like one that is not signed yet
            tomb = self.folder.with_name(f"{self.folder.name}.tombstone.{os.getpid()}-{time.time_ns()}-0.lock")
            try:
                self.folder.rename(tomb)
            except OSError:
                return not self.folder.exists()
            shutil.rmtree(tomb, ignore_errors=True)
            _sweep(self.folder.parent, owner)
        return True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Be the only one that breaks; the folder itself is what we lock, so that nothing is left behind."""
        here = os.open(self.folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(here, fcntl.LOCK_EX)
            if self.guard:
                with open(self.folder.with_name(f"{self.folder.name}.stale-break.lock"), "ab") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    yield
            else:
                yield
        finally:
            os.close(here)


def lock_timeout() -> float:
    """``DDX_BEAD_LOCK_TIMEOUT`` in seconds: a number of them, or a duration as Go writes it."""
    text = os.environ.get("DDX_BEAD_LOCK_TIMEOUT", "")
    for read in (parse_float, parse_duration):
        try:
            wanted = read(text)
        except ValueError:
            continue
        return TIMEOUT_S if math.isnan(wanted) else wanted
    return TIMEOUT_S


def process_lives(pid: int) -> bool:
    """Whether a process with this id may be at work here; a number too large for one counts as such."""
    return not 0 < pid < 1 << 31 or pid_alive(pid)


def _sweep(folder: Path, owner: str) -> None:
    """Remove the half-written files of an owner that died while it wrote."""
    if owner.isdecimal():
        for left in folder.glob(f"*.tmp-{owner}-*"):
            left.unlink(missing_ok=True)


@contextmanager
def held(lock: FolderLock) -> Iterator[None]:
    """Hold a lock.

    Raises:
        Refused: another process holds it for too long, or its folder cannot be created.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.held())
        except LockTimeout as problem:
            raise Refused(str(problem)) from None
        except OSError as error:
            raise Refused(f"bead: lock dir: {error}") from None
        yield
