"""Processes and threads of this host: whether one is at work, whether it stays at it, and the heap that threads share.

Apart from `process`, so that readers of claims start fast. A thread stays at its work although a defect comes up in it;
`give_back` hands memory that was freed to the system; `keep_heaps_small` has less of it kept in the first place.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

FIRST_REST_S = 1.0
LONGEST_REST_S = 600.0
"""Seconds from a defect to the next try: the first time, and once it has come up again and again."""


def keep_at(work: Callable[[], None], wait: Callable[[float], bool]) -> None:
    """Do a thread's work until it returns, from the beginning again after a defect.

    Each defect is reported as if it had ended the thread: to ``threading.excepthook``, which the console logs
    and shows.

    Args:
        work: what the thread is for.
        wait: waits so many seconds; true where the thread has been stopped.
    """
    rest = FIRST_REST_S
    while True:
        try:
            work()
        except Exception:  # noqa: BLE001 - reported
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        else:
            return
        if wait(rest):
            return
        # a defect that comes up at once every time must neither fill the log nor the processor
        rest = min(rest * 4, LONGEST_REST_S)


def _of_libc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it has none of that name."""
    import ctypes  # whoever only asks for a process pays nothing for it

    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found


def give_back() -> None:
    """Hand back what the C library keeps of freed memory: 3 to 5 MB after a large tracker was read.

    A few milliseconds, for seconds in which nobody waits. Does nothing where there is no glibc.
    """
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""``mallopt``'s names for how many heaps there may be, and from what size on a block is a mapping (glibc)."""

LARGE = 128 * 1024
"""Bytes from which on a block goes back to the system as it is freed. It is glibc's own first value; without a fixed
one glibc raises it to the largest block that was freed, and the text of a tracker then leaves holes in a heap."""


def keep_heaps_small(arenas: int = 2) -> None:
    """Let threads share a few heaps, and keep large blocks out of them: a console left open grows half as fast.

    Over 600,000 events beside 188 beads: 124 to 135 MB with glibc's own number of heaps, 124 to 129 MB with
    two. Over 500,000 beside 3,018: 135 to 155 MB where large blocks lie in heaps, 124 to 134 MB where they do not.
    Call it before the first thread. Does nothing where there is no glibc.
    """
    option = _of_libc("mallopt")
    if option is not None:
        option(_M_ARENA_MAX, arenas)
        option(_M_MMAP_THRESHOLD, LARGE)


def pid_alive(pid: int) -> bool:
    """Whether a process of this host is at work; one that has ended and was not yet reaped is not."""
    if not 0 < pid < 1 << 31:
        return False
    try:
        # signal 0 asks only
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read(4096)
    except OSError:
        return True
    # the name before the state is in parentheses and may hold some itself
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]
