"""The one door to other programs, `start`; who its processes are, what they started, and how to end them.

A program is named by an absolute path, or by a name that `programs.program` finds on the person's PATH; there is no
shell. A Python program of ours is named by `programs.python_argv`.

A program of ours leads a session of its own : the whole session is ended with it. ddx puts a
coding agent into another process group but into the same session, and ddx of April leaves it there when it is
interrupted: a signal to the group misses it. A process that left the session too is known as a descendant if it was
seen while its parent was alive.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import IO

from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.programs import program
from helix_tui.core.ground.time import NS, format_instant

_LOOK_STEP_S = 0.02
_PS_TIMEOUT_S = 5.0
CLOCK_MARGIN = 5 * NS
"""Nanoseconds between a start and its record: times in files of ours are whole seconds."""


Process = subprocess.Popen[bytes]
DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
TimeoutExpired = subprocess.TimeoutExpired
Words = Sequence[str | os.PathLike[str]]
Stream = int | IO[bytes] | None


def start(
    argv: Words,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    own_session: bool = True,
    keep: Sequence[int] = (),
) -> Process:
    """Start a program and return at once.

    Args:
        cwd: its folder; `programs.NEUTRAL` unless it is meant to work in the current one.
        own_session: whether ``ctrl+c`` in this terminal and its closing do not reach it; an editor needs the terminal.
        keep: file descriptors that it inherits.

    Raises:
        OSError: there is no such program, or it does not start.
    """
    words = tuple(os.fspath(word) for word in argv)
    path = program(words[0], env)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "no such program in an absolute folder of PATH", words[0])
    return subprocess.Popen(
        words,
        executable=path,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=own_session,
        pass_fds=tuple(keep),
    )


class Member(Struct, frozen=True):
    """One process, distinguished from a later one with the same id."""

    pid: int
    born: int = 0
    """Start time in the kernel's ticks; 0 where the system does not report it."""

    @property
    def alive(self) -> bool:
        """Whether the process is still running; one that waits to be reaped is not."""
        row = _row(self.pid)
        return row is not None and row.born == self.born and not row.ended


class _Row(Struct, frozen=True):
    pid: int
    parent: int
    session: int
    born: int = 0
    ended: bool = False


def born_at(pid: int) -> int:
    """Start time of a process in the kernel's ticks since boot; 0 where the system does not report it."""
    row = _from_proc(pid)
    return row.born if row is not None else 0


def began_at(pid: int) -> int | None:
    """When a process started, in nanoseconds since the epoch; None where the system does not report it."""
    if ticks := born_at(pid):
        return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ticks * NS // os.sysconf("SC_CLK_TCK")
    return None


def require_ours(pid: int, source: str, folders: Iterable[Path], command: str, *, since: int | None) -> None:
    """Require that the process which a file names is the one that the file means, before it is signalled.

    Args:
        source: what names it, for the message.
        folders: where it works: its folder, or a file that it has open, is in or below one of them.
        command: a pattern of its command line: program, or script or module of an interpreter, by name; each word
            ends in NUL.
        since: when it was running, by that file; None if the file's lock proves that it is.

    Raises:
        HelixError: one of them is not so, or the system does not report it.
        PermissionError: it belongs to another user.
    """
    own, began, seen = f"/proc/{pid}", began_at(pid), "has ended, or cannot be examined on this system"
    words, paths = "", [""]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended, or there is no /proc
        words = os.fsdecode(Path(own, "cmdline").read_bytes())
        paths = [os.path.realpath(f"{own}/{link}") for link in ("cwd", *(f"fd/{fd}" for fd in os.listdir(f"{own}/fd")))]
        shown = " ".join(
            PurePath(word).name for word in words.split("\0") if word
        )  # a long path would hide the program
        seen = f"is `{shown[:120]}` in {paths[0]}, started at {format_instant(began or 0)}"
    is_named = re.match(
        rf"(([^\0]*/)?((python|pypy)[\d.]*|(ba|da|z)?sh)\0(-[^\0]*\0)*)?([^\0]*/)?{command}", words, re.DOTALL
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
    rows = {row.pid: row for row in _rows()}
    children: dict[int, list[int]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.pid)
    wanted = [leader, *(row.pid for row in rows.values() if row.session == leader)]
    found: dict[int, None] = {}
    while wanted:
        pid = wanted.pop(0)
        if pid not in found:
            found[pid] = None
            wanted += children.get(pid, ())
    me = os.getpid()
    return tuple(Member(pid, rows[pid].born) for pid in found if pid in rows and not rows[pid].ended and pid != me)


def alive(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members that are still running."""
    return tuple(each for each in members if each.alive)


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
    """Send a signal to each member, skipping those that may not be signalled."""
    for each in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each.pid, sign)


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
    with contextlib.suppress(ProcessLookupError):
        # a terminal sends ctrl+c to the whole group; a program that leads no group shares its shell's
        if os.getpgid(leader) == leader:
            os.killpg(leader, signal.SIGINT)
        else:
            os.kill(leader, signal.SIGINT)
    _wait(before[:1], patience)
    return end({*before, *family(leader)})


_STARTED_BY = "HELIX_STARTED_BY"


def mark_for(program: str) -> dict[str, str]:
    """An environment variable that marks a program started by the console: its starter and its kind."""
    return {_STARTED_BY: f"{os.getpid()}:{born_at(os.getpid())}:{program}"}


def left_behind(folder: Path) -> tuple[int, ...]:
    """Ids of marked programs running in a folder whose starter was killed, so that nothing else ends them.

    Processes that an agent left running inherit the mark but are other programs. Empty without ``/proc``.
    """
    return tuple(row.pid for row in _rows() if not row.ended and row.session == row.pid and _is_left(row.pid, folder))


def _is_left(pid: int, folder: Path) -> bool:
    own = Path(f"/proc/{pid}")
    try:
        if os.readlink(own / "cwd") != os.fspath(folder):
            return False
        entries = (own / "environ").read_bytes().split(b"\0")
        words = (own / "cmdline").read_bytes().split(b"\0")[:3]  # for a script the interpreter comes first
    except OSError:  # gone, another user's, or there is no /proc
        return False
    begin = f"{_STARTED_BY}=".encode()
    mark = next((os.fsdecode(entry.removeprefix(begin)) for entry in entries if entry.startswith(begin)), "")
    starter, _, rest = mark.partition(":")
    born, _, program = rest.partition(":")
    if not (starter.isdecimal() and born.isdecimal() and os.fsencode(program) in words):
        return False
    return not Member(int(starter), int(born)).alive


def _wait(members: Iterable[Member], seconds: float) -> tuple[Member, ...]:
    deadline = time.monotonic() + seconds
    while left := alive(members):
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_STEP_S)
    return left


def _rows() -> Iterator[_Row]:
    """Every visible process, from ``/proc`` where it exists, else from ``ps``."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        names = []
    if names:
        for name in names:
            if (row := _from_proc(int(name))) is not None:
                yield row
    else:
        yield from _from_ps()


def _row(pid: int) -> _Row | None:
    if os.path.exists("/proc/self/stat"):
        return _from_proc(pid)
    return next(_from_ps(str(pid)), None)


def _from_proc(pid: int) -> _Row | None:
    """One process by ``/proc/PID/stat`` (proc(5): 3 state, 4 parent, 6 session, 22 start in ticks)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the name is in parentheses and may itself contain blanks and parentheses
            words = file.read(4096).rpartition(b")")[2].split()
        return _Row(pid, int(words[1]), int(words[3]), int(words[19]), words[0] in (b"Z", b"X"))
    except (OSError, ValueError, IndexError):
        return None


def _from_ps(*only: str) -> Iterator[_Row]:
    """Processes from POSIX ``ps``; their sessions from the kernel."""
    words = ("ps", "-o", "pid=,ppid=,stat=", *(("-p", only[0]) if only else ("-A",)))
    try:
        with start(words, stdout=PIPE) as listing:
            try:
                out = listing.communicate(timeout=_PS_TIMEOUT_S)[0].decode("utf-8", "replace")
            except TimeoutExpired:
                listing.kill()
                return
    except OSError:
        return
    for line in out.splitlines():
        try:
            pid, parent, state = line.split(None, 2)
            yield _Row(int(pid), int(parent), os.getsid(int(pid)), 0, state.startswith("Z"))
        except (ValueError, OSError):
            continue
