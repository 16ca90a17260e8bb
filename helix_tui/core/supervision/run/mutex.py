"""One run at a time: a lock that the kernel takes back from the dead, and a pid file that people can read.

``.helix/helix.pid`` holds ``<pid> <ISO 8601 time>`` (reference/helix.md §1a); the same file under
``.ddx``, of the shell that came before this program, is believed too. A pid that was given to another
process since is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from helix_tui.core.clock import NS, format_instant, now_ns, parse_instant
from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ddx.workers.claims import pid_alive
from helix_tui.core.errors import HelixError
from helix_tui.core.helix_folder import make_folder
from helix_tui.core.project import Project
from helix_tui.core.session import born_at
from helix_tui.core.supervision.replacing import replace_file

PID = "helix.pid"
LOCK = "run.lock"
_SLACK = 5 * NS


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs."""

    pid: int
    started_at: str
    path: Path
    live: bool
    born: int = 0
    """When the kernel says that the process began (`born_at`)."""


class AlreadyRunning(HelixError):
    """Another run is active."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(f"already running (pid={holder.pid}, started={holder.started_at or 'unknown'})")
        self.holder = holder


def pid_path(project: Project) -> Path:
    """Where a run says that it runs."""
    return project.helix_dir / PID


def read_holder(project: Project) -> Holder | None:
    """Who runs by the pid files: a live one before a dead one; None where no file tells."""
    lock = project.helix_dir / LOCK
    paths = (pid_path(project), project.ddx_dir / PID)
    found = [holder for path in paths if (holder := _read(path, lock))]
    return next((holder for holder in found if holder.live), found[0] if found else None)


@contextmanager
def sole_run(project: Project, *, now: str = "") -> Iterator[None]:
    """Be the only run of this project; a lock that a dead one left behind is taken over.

    Raises:
        AlreadyRunning: another one is.
        OSError: the folder cannot be written.
    """
    descriptor = os.open(make_folder(project.helix_dir) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        holder = read_holder(project)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(holder or Holder(0, "", pid_path(project), True)) from None
        if holder is not None and holder.live and holder.pid != os.getpid():
            raise AlreadyRunning(holder)
        replace_file(pid_path(project), f"{os.getpid()} {now or format_instant(now_ns())}\n".encode())
        try:
            yield
        finally:
            mine = _read(pid_path(project), project.helix_dir / LOCK)
            if mine is not None and mine.pid == os.getpid():
                with contextlib.suppress(OSError):
                    pid_path(project).unlink()
    finally:
        os.close(descriptor)


def process_lives(pid: int, started_at: str = "", born: int = 0) -> bool:
    """Whether a process lives and is the one that was there at that time, not a later one of its number.

    ``born`` (`born_at`, written down at that time) tells for certain; ``started_at``, where there is nothing
    better, as long as nobody sets the clock.
    """
    if pid <= 0 or not pid_alive(pid):
        return False
    if born and (now := born_at(pid)):
        return now == born
    began, said = _began(pid), parse_instant(started_at)
    return began is None or said is None or began <= said + _SLACK


def _read(path: Path, lock: Path) -> Holder | None:
    raw = read_bytes(path, 200)
    if raw is None:
        return None
    words = raw.decode("utf-8", "replace").split()
    if not words or not words[0].isdecimal():
        return None
    pid, started = int(words[0]), words[1] if len(words) > 1 else ""
    live = process_lives(pid, started) or (pid_alive(pid) and _locks(pid, lock))
    return Holder(pid, started, path, live, born_at(pid) if live else 0)


def _locks(pid: int, lock: Path) -> bool:
    """Whether the kernel knows the process as the holder of the lock, whatever the clock says."""
    try:
        inode = lock.stat().st_ino
    except OSError:
        return False
    rows = (line.split() for line in (read_bytes("/proc/locks", 1 << 20) or b"").split(b"\n"))
    return any(
        len(row) > 5 and row[1] == b"FLOCK" and row[4] == b"%d" % pid and row[5].endswith(b":%d" % inode)
        for row in rows
    )


def _began(pid: int) -> int | None:
    """When a process began, where the system tells."""
    ticks, boot = born_at(pid), read_bytes("/proc/stat", 1 << 20)
    if not ticks or boot is None:
        return None
    try:
        since = next(int(line.split()[1]) for line in boot.split(b"\n") if line.startswith(b"btime "))
        return since * NS + ticks * NS // os.sysconf("SC_CLK_TCK")
    except (ValueError, IndexError, StopIteration, OSError):
        return None
