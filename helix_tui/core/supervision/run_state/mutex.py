"""One run at a time: a lock that the kernel takes back from the dead, and a pid file that people can read.

``.helix/helix.pid`` holds ``<pid> <ISO 8601 time>`` (docs/formats/helix.md §1a); the same file under
``.ddx``, of the shell that came before this program, is believed too. A pid that was given to another
process since is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ddx.files import read_bytes, stamp_of
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import make_folder, replace_file
from helix_tui.core.ground.pids import pid_alive
from helix_tui.core.ground.process import born_at
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS, format_instant, now_ns, parse_instant

PID = "helix.pid"
LOCK = "run.lock"
# whole seconds on both sides: the boot time that the kernel tells, and the time in the pid file
_SLACK = 5 * NS
_TRIES, _STEP_S = 5, 0.02


class Holder(Struct, frozen=True):
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
    found = [
        holder
        for path, held in (
            (pid_path(project), _is_held(project.helix_dir / LOCK)),
            (project.ddx_dir / PID, None),  # the shell that came before this program takes no lock
        )
        if (holder := _read(path, held))
    ]
    return next((holder for holder in found if holder.live), found[0] if found else None)


def forget_dead(project: Project) -> Holder | None:
    """Remove the pid file of a run that is gone; whose it was, None where there is none.

    Raises:
        OSError: the file cannot be removed.
    """
    holder = read_holder(project)
    if holder is None or holder.live:
        return None
    holder.path.unlink(missing_ok=True)
    return holder


@contextmanager
def sole_run(project: Project, *, now: str = "") -> Iterator[None]:
    """Be the only run of this project; a lock that a dead one left behind is taken over.

    Raises:
        AlreadyRunning: another one is.
        OSError: the folder cannot be written.
    """
    holder = read_holder(project)  # before the lock's file is made: without one a pid file alone tells
    descriptor = os.open(make_folder(project.helix_dir) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _take(descriptor):
            raise AlreadyRunning(holder or Holder(0, "", pid_path(project), True))
        # with the lock in our hands, whoever lives by a pid file takes none: the older shell
        if holder is not None and holder.live and holder.pid != os.getpid():
            raise AlreadyRunning(holder)
        replace_file(pid_path(project), f"{os.getpid()} {now or format_instant(now_ns())}\n".encode())
        try:
            yield
        finally:
            mine = _read(pid_path(project), True)
            if mine is not None and mine.pid == os.getpid():
                with contextlib.suppress(OSError):
                    pid_path(project).unlink()
    finally:
        # the lock's file stays: of two runs one could lock a file that the other has removed, and both would run
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


def _read(path: Path, held: bool | None) -> Holder | None:
    """What a pid file says; ``held``: whether the kernel knows of a run, None where nobody asked it."""
    raw, stamp = read_bytes(path, 200), stamp_of(path)
    if raw is None or stamp is None:
        return None
    words = raw.decode("utf-8", "replace").split()
    if not words or not words[0].isdecimal():
        return None
    pid, started = int(words[0]), words[1] if len(words) > 1 else ""
    if parse_instant(started) is None:
        started = ""
    # the file was written when the run began, so its own time serves where its text names none
    written = started or format_instant(stamp[0])
    # where the kernel was asked, clocks and numbers that were given to another process do not count
    live = process_lives(pid, written) if held is None else held and pid_alive(pid)
    return Holder(pid, started, path, live, born_at(pid) if live else 0)


def _take(descriptor: int) -> bool:
    """Take the lock, unless a run has it; one who merely asks has it for a moment too."""
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_STEP_S)
    return False


def _is_held(lock: Path) -> bool | None:
    """Whether a run holds the lock, whatever pid files and clocks say; None where nobody ever took one."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # shared, so that two who ask at once do not take each other for a run
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


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
