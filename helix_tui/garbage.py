"""When the console collects garbage: in seconds in which nobody presses a key, as far as that can wait.

The reasons and what was measured: docs/decisions/0022.
"""

from __future__ import annotations

import gc
import sys
from time import thread_time

from helix_tui.core.ground.threads import give_back

YOUNG_MOST = 400_000
"""Objects made since the last collection from which one may come in the middle of a key."""

DEEP_EVERY = 20
"""Seconds after which all garbage is collected, not only the young, in the next that brings no key: what
outlived a young collection would else stay (6 MB for each 1,000 changes on disk)."""

DEEP_AT_LEAST = 40
"""Seconds after which it is collected even where every one of them brought a key."""

YOUNG_BUSY = 20_000
"""Objects made since the last collection from which the young are collected in a second with keys too (2 ms):
what waits as garbage makes room that the process does not give back."""

SETTLE_EVERY = 600
"""Seconds after which all is collected, what was frozen as well, in the next that brings no key: else a
widget that was frozen and went would stay for good."""

FREEZE_FROM_S = 0.015
"""Seconds of the processor that collecting all may take. What then still stands is not looked through again:
at 10,000 beads, all screens visited, that took 26 to 44 ms each time, and afterwards none."""


def set_thresholds() -> None:
    """Let the collector come in the middle of a key only after very much was made."""
    # with Python's own thresholds one key in a hundred met a collection
    gc.set_threshold(YOUNG_MOST, 50, 100)


class GarbageCollection:
    """Decides once a second what is collected."""

    def __init__(self) -> None:
        self._since_deep = self._since_settled = 0
        self._modules = len(sys.modules)

    def tick(self, busy: bool, *, freeze: bool) -> None:
        """Let garbage go: all that is not frozen after code was imported, for a screen's first showing leaves much.

        Args:
            busy: a key was pressed in this second.
            freeze: whether what stands may be kept from being looked through again.
        """
        imported, self._modules = len(sys.modules) != self._modules, len(sys.modules)
        self._since_deep += 1
        self._since_settled += 1
        if not busy and self._since_settled >= SETTLE_EVERY:
            self._since_deep = self._since_settled = 0
            settle_memory(freeze=freeze)
            give_back()
        elif imported:
            # a screen was shown for the first time, which leaves up to 8 MB of garbage. What is frozen stays so: to
            # look through that too took 130 ms beside 20,000 attempts, in which a key waits
            self._since_deep = 0
            gc.collect()
            if freeze:
                gc.freeze()
            give_back()
        elif self._since_deep >= (DEEP_AT_LEAST if busy else DEEP_EVERY):
            self._since_deep = 0
            collect_all(freeze=freeze)
            give_back()
        elif not busy or gc.get_count()[0] >= YOUNG_BUSY:
            gc.collect(0)


def settle_memory(*, freeze: bool = True) -> None:
    """Keep the collector off the way of keys: what stands now is not looked through again.

    A collection over 10,000 beads costs 30 ms in the middle of a key press (docs/decisions/0022); the
    rest is collected in seconds in which nobody presses one. For a process with one app that somebody looks
    at: what is frozen for an app without a screen would outlive it.
    """
    # what was frozen and has gone since must be collected before more is frozen, else it stays for good
    gc.unfreeze()
    gc.collect()
    if freeze:
        gc.freeze()


def collect_all(*, freeze: bool, limit_s: float = FREEZE_FROM_S) -> None:
    """Collect the garbage of all ages; with ``freeze`` keep the next time short, as `settle_memory` does."""
    begun = thread_time()
    gc.collect()
    # processor time: a busy machine alone is no reason to freeze
    if freeze and thread_time() - begun > limit_s:
        settle_memory()
