"""Who a process is, what it started, and how all of it is ended; psutil reads the system's records.

A program of ours leads a session of its own: the whole session is ended with it. ddx puts a coding agent into another
process group but into the same session, and ddx of April leaves it there when it is interrupted: a signal to the group
misses it. A process that left the session too is known as a descendant if it was seen while its parent was alive.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePath

import psutil

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.time import NS, format_instant

_LOOK_STEP_S = 0.02
CLOCK_MARGIN = 5 * NS
"""Nanoseconds between a start and its record: times in files of ours are whole seconds."""

Member = psutil.Process
"""One process, distinguished from a later one with the same id by its start time."""

_STARTED_BY = "HELIX_STARTED_BY"


def began_at(pid: int) -> int | None:
    """When a process started, in nanoseconds since the epoch; None if it has ended."""
    with suppress(psutil.Error):
        return int(Member(pid).create_time() * NS)
    return None


def born_at(pid: int) -> int:
    """Start time of a process in ticks since boot, which no change of the clock alters; 0 if it has ended."""
    began = began_at(pid)
    return round((began / NS - psutil.boot_time()) * os.sysconf("SC_CLK_TCK")) if began is not None else 0


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty if it has ended or belongs to another user."""
    with suppress(psutil.Error):
        return Member(pid).cmdline()
    return []


def require_ours(pid: int, source: str, folders: Iterable[Path], command: str, *, since: int | None) -> None:
    """Require that the process which a file names is the one that the file means, before it is signalled.

    Args:
        source: what names it, for the message.
        folders: where it works: its folder, or a file that it has open, is in or below one of them.
        command: a pattern of its command line: program, or script or module of an interpreter, by name; each word
            ends in NUL.
        since: when it was running, by that file; None if the file's lock proves that it is.

    Raises:
        HelixError: one of them is not so, or it cannot be examined.
    """
    began, line, paths = began_at(pid) if pid > 0 else None, "", []
    seen = "has ended"
    if began is not None:
        seen = "belongs to another user"
        with suppress(psutil.Error):
            process = Member(pid)
            words = process.cmdline()
            paths = [process.cwd(), *(file.path for file in process.open_files())]
            line = "".join(f"{word}\0" for word in words)
            # a long path would hide the program
            shown = " ".join(PurePath(word).name for word in words if word)
            seen = f"is `{shown[:120]}` in {paths[0]}, started at {format_instant(began)}"
    is_named = re.match(
        rf"(([^\0]*/)?((python|pypy)[\d.]*|(ba|da|z)?sh)\0(-[^\0]*\0)*)?([^\0]*/)?{command}", line, re.DOTALL
    )
    is_here = any(PurePath(path).is_relative_to(os.path.realpath(folder)) for path in paths for folder in folders)
    is_timely = since is None or (began and began - CLOCK_MARGIN <= since <= time.time_ns() + CLOCK_MARGIN)
    if not (is_named and is_here and is_timely):
        raise HelixError(
            f"nothing was signalled: {source} names process {pid}, which {seen}; that does not agree with the record",
            f"If you know the process, end it with `kill -INT {pid}`. If not, remove the record.",
        )


def family(leader: int) -> tuple[Member, ...]:
    """The running processes of the session that a process leads, and all its descendants, the process itself first.

    The calling process is never among them.
    """
    members: dict[Member, None] = {}
    for pid in (leader, *psutil.pids()):
        with suppress(psutil.Error, OSError):  # it has ended meanwhile
            if pid == leader or os.getsid(pid) == leader:
                process = Member(pid)
                members |= dict.fromkeys((process, *process.children(recursive=True)))
    return tuple(member for member in alive(members) if member.pid != os.getpid())


def alive(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members that are still running; one that waits to be reaped is not."""
    return tuple(member for member in members if _runs(member))


def _runs(member: Member) -> bool:
    with suppress(psutil.NoSuchProcess):
        return member.is_running() and member.status() != psutil.STATUS_ZOMBIE
    return False


def end(members: Iterable[Member], *, signs: Iterable[tuple[signal.Signals, float]] = ()) -> tuple[Member, ...]:
    """End processes by each signal in turn, then by force; return those still running.

    Args:
        members: from `family`; one whose id belongs to another process by now is left alone.
        signs: (signal, seconds to wait) in order; by default SIGTERM and two seconds.
    """
    left = alive(members)
    for sign, seconds in (*(signs or ((signal.SIGTERM, 2.0),)), (signal.SIGKILL, 2.0)):
        if not left:
            break
        signal_all(left, sign)
        left = _wait(left, seconds)
    return left


def signal_all(members: Iterable[Member], sign: signal.Signals) -> None:
    """Send a signal to each member, skipping those that have ended or may not be signalled."""
    for member in members:
        with suppress(psutil.Error):
            member.send_signal(sign)


def interrupt(leader: int, patience: float) -> tuple[Member, ...]:
    """Interrupt a program as ctrl+c would and end the processes it leaves; return those still running.

    Args:
        leader: the program; its children get the signal only where they are in its process group.
        patience: seconds that it has to clean up.

    Raises:
        PermissionError: it belongs to another user.
    """
    # before the signal: once the program has ended, its children cannot be found through it
    before = family(leader)
    with suppress(ProcessLookupError):
        # a terminal sends ctrl+c to the whole group; a program that leads no group shares its shell's
        if os.getpgid(leader) == leader:
            os.killpg(leader, signal.SIGINT)
        else:
            os.kill(leader, signal.SIGINT)
    _wait(before[:1], patience)
    return end({*before, *family(leader)})


def mark_for(program: str) -> dict[str, str]:
    """An environment variable that marks a program started by the console: its starter and its kind."""
    return {_STARTED_BY: f"{os.getpid()}:{born_at(os.getpid())}:{program}"}


def left_behind(folder: Path) -> tuple[int, ...]:
    """Ids of marked programs running in a folder whose starter was killed, so that nothing else ends them.

    Processes that an agent left running inherit the mark but are other programs.
    """
    return tuple(pid for pid in psutil.pids() if _is_left(pid, folder))


def _is_left(pid: int, folder: Path) -> bool:
    with suppress(psutil.Error, OSError):  # it has ended, or is another user's
        process = Member(pid)
        if os.getsid(pid) != pid or process.cwd() != os.fspath(folder) or not _runs(process):
            return False
        starter, _, rest = process.environ().get(_STARTED_BY, "").partition(":")
        born, _, program = rest.partition(":")
        # for a script the interpreter comes first
        if starter.isdecimal() and born.isdecimal() and program in process.cmdline()[:3]:
            return not (pid_alive(int(starter)) and born_at(int(starter)) == int(born))
    return False


def _wait(members: Iterable[Member], seconds: float) -> tuple[Member, ...]:
    # not psutil's own: it would reap programs of ours, whose exit code `process` asks for
    deadline = time.monotonic() + seconds
    while left := alive(members):
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_STEP_S)
    return left
