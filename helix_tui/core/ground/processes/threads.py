"""Check whether a process runs, keep threads working after defects, and limit the heaps that threads share.

Separate from `process`, so that readers of claims start fast. `give_back` returns freed memory to the system;
`keep_heaps_small` keeps less of it in the first place.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

FIRST_REST_S = 1.0
LONGEST_REST_S = 600.0
"""Seconds from a defect to the next try: after the first one, and after many in a row."""

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""glibc's ``mallopt`` parameters: the number of heaps, and the size from which a block is a mapping."""

LARGE = 128 * 1024
"""Size in bytes from which a freed block is returned to the system. This is glibc's initial value; unless it is set,
glibc raises it to the largest block freed so far, and a tracker's text then leaves holes in a heap.
"""


def keep_at(work: Callable[[], None], wait: Callable[[float], bool]) -> None:
    """Run a thread's work until it returns, starting again after a defect.

    Each defect is reported through ``threading.excepthook``, which the console logs and shows.

    Args:
        work: the thread's work.
        wait: waits for the given seconds; returns True if the thread was stopped.
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
        # a defect that recurs at once must neither fill the log nor occupy the processor
        rest = min(rest * 4, LONGEST_REST_S)


def _of_libc(name: str) -> Callable[..., int] | None:
    """A function of the C library, or None if there is none of that name."""
    import ctypes  # imported here: `pid_alive` does not need it

    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found


def give_back() -> None:
    """Return the memory that the C library keeps after it was freed: 3 to 5 MB after reading a large tracker.

    Takes a few milliseconds, so call it when nobody is waiting. Does nothing without glibc.
    """
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


def keep_heaps_small(arenas: int = 2) -> None:
    """Let threads share a few heaps and keep large blocks out of them: a console left open grows half as fast.

    Over 600,000 events beside 188 beads: 124 to 135 MB with glibc's own number of heaps, 124 to 129 MB with
    two. Over 500,000 beside 3,018: 135 to 155 MB with large blocks in heaps, 124 to 134 MB without.
    Call it before the first thread. Does nothing without glibc.
    """
    option = _of_libc("mallopt")
    if option is not None:
        option(_M_ARENA_MAX, arenas)
        option(_M_MMAP_THRESHOLD, LARGE)


def pid_alive(pid: int) -> bool:
    """Whether a process of this host is running; one that waits to be reaped is not."""
    if not 0 < pid < 1 << 31:
        return False
    try:
        # signal 0 only checks
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
    # the name before the state is in parentheses and may itself contain some
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]
