"""The processes that a program of ours has brought about: its session, its descendants, and their end.

Whatever we start gets a session of its own. ddx puts a coding agent into another process group but into the
same session, and ddx of April leaves it there when it is interrupted: a signal to the group misses it. What
left the session too is known as a descendant, as long as one looked while its parent was there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from helix_tui.core.ground import log as logs

_STEP_S = 0.02
_PS_TIMEOUT_S = 5.0


class Member(Struct, frozen=True):
    """One process, told apart from a later one of the same number."""

    pid: int
    born: int = 0
    """When it began, in the kernel's ticks; 0 where the system does not tell."""

    @property
    def alive(self) -> bool:
        """Whether it is still there; a process that has ended and waits to be reaped is not."""
        row = _row(self.pid)
        return row is not None and row.born == self.born and not row.ended


class _Row(Struct, frozen=True):
    pid: int
    parent: int
    session: int
    born: int = 0
    ended: bool = False


def born_at(pid: int) -> int:
    """When a process began, in the kernel's ticks since the machine did; 0 where the system does not tell."""
    row = _from_proc(pid)
    return row.born if row is not None else 0


def family(leader: int) -> tuple[Member, ...]:
    """The living processes of the session that a process leads, and all its descendants; itself is the first.

    The process that asks is never among them.
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
    """Those that still live."""
    return tuple(each for each in members if each.alive)


def end(members: Iterable[Member], *, signs: Iterable[tuple[signal.Signals, float]] = ()) -> tuple[Member, ...]:
    """End processes: by each signal in turn, with the seconds that they get, then by force; who still lives.

    Args:
        members: as `family` found them; one whose number belongs to another process by now is left alone.
        signs: asked politely, by default with SIGTERM and two seconds.
    """
    left = alive(members)
    for sign, seconds in (*(signs or ((signal.SIGTERM, 2.0),)), (signal.SIGKILL, 2.0)):
        if not left:
            break
        signal_all(left, sign)
        left = _wait(left, seconds)
    return left


def signal_all(members: Iterable[Member], sign: signal.Signals) -> None:
    """Send a signal to each that may be signalled."""
    for each in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each.pid, sign)


def interrupt(leader: int, patience: float) -> tuple[Member, ...]:
    """Interrupt a program as ctrl+c in its terminal would, and end what it leaves behind; who still lives.

    Args:
        leader: the program; its children get the signal only where they are in its process group.
        patience: seconds that it has to put its things away.

    Raises:
        PermissionError: it belongs to somebody else.
    """
    before = family(leader)
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(leader) == leader:
            os.killpg(leader, signal.SIGINT)
        else:
            os.kill(leader, signal.SIGINT)
    _wait(before[:1], patience)
    return end({*before, *family(leader)})


def _wait(members: Iterable[Member], seconds: float) -> tuple[Member, ...]:
    deadline = time.monotonic() + seconds
    while left := alive(members):
        if time.monotonic() >= deadline:
            break
        time.sleep(_STEP_S)
    return left


def _rows() -> Iterator[_Row]:
    """Every process that can be seen, from ``/proc`` where there is one, else from ``ps``."""
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
            words = file.read(4096).rpartition(b")")[2].split()
        return _Row(pid, int(words[1]), int(words[3]), int(words[19]), words[0] in (b"Z", b"X"))
    except (OSError, ValueError, IndexError):
        return None


def _from_ps(*only: str) -> Iterator[_Row]:
    """Processes by ``ps`` as POSIX has it; which session each is in the kernel is asked."""
    words = ["ps", "-o", "pid=,ppid=,stat=", *(("-p", only[0]) if only else ("-A",))]
    try:
        begun = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PS_TIMEOUT_S)
        logs.program(words, f"rc {done.returncode}", time.monotonic() - begun)
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in done.stdout.splitlines():
        try:
            pid, parent, state = line.split(None, 2)
            yield _Row(int(pid), int(parent), os.getsid(int(pid)), 0, state.startswith("Z"))
        except (ValueError, OSError):
            continue
