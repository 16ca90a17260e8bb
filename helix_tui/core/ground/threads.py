"""Threads that stay at their work although a defect comes up in it."""

from __future__ import annotations

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
        rest = min(rest * 4, LONGEST_REST_S)
