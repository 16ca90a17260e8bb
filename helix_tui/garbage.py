"""When the console collects garbage: in seconds without a key press, as far as that can wait.

The reasons and what was measured: docs/decisions/0022.
"""

from __future__ import annotations

import gc
import sys
from time import thread_time

from helix_tui.core.ground.processes.threads import give_back

MAX_YOUNG_OBJECTS = 400_000
"""How many new objects allow a collection while a key is handled."""

DEEP_EVERY = 20
"""Seconds after which all generations are collected, in the next second without a key: objects that
survive a young collection would else stay (6 MB for each 1,000 changes on disk)."""

DEEP_AT_LATEST = 40
"""Seconds after which garbage is collected even if every second brought a key."""

YOUNG_BUSY = 20_000
"""How many new objects cause a young collection even in a second with keys (2 ms):
uncollected garbage grows the process, which does not shrink again."""

SETTLE_EVERY = 600
"""Seconds after which everything is collected, frozen objects included, in the next second without a key: else a
frozen widget that was removed would stay for good."""

FREEZE_FROM_S = 0.015
"""CPU seconds that a full collection may take. What survives then is frozen and not examined again:
at 10,000 beads, all screens visited, that took 26 to 44 ms each time, and afterwards none."""


def set_thresholds() -> None:
    """Allow a collection while a key is handled only after very many new objects."""
    # with Python's own thresholds one key in a hundred met a collection
    gc.set_threshold(MAX_YOUNG_OBJECTS, 50, 100)


class GarbageCollection:
    """Decides once a second what is collected."""

    def __init__(self) -> None:
        self._since_deep = self._since_settled = 0
        self._modules = len(sys.modules)

    def tick(self, busy: bool, *, freeze: bool) -> None:
        """Collect garbage: everything not frozen after code was imported, because a screen's first display leaves much.

        That waits for a second without a key, in which nobody waits for a frame.

        Args:
            busy: a key was pressed in this second.
            freeze: whether surviving objects may be frozen, so that they are not examined again.
        """
        shown_first = len(sys.modules) != self._modules
        self._since_deep += 1
        self._since_settled += 1
        if not busy and self._since_settled >= SETTLE_EVERY:
            self._since_deep = self._since_settled = 0
            settle_memory(freeze=freeze)
            give_back()
        elif shown_first and not busy:
            # a screen was shown for the first time, which leaves up to 8 MB of garbage. Frozen objects stay frozen:
            # examining them too took 130 ms with 20,000 attempts, while a key waits
            self._since_deep = 0
            gc.collect()
            if freeze:
                gc.freeze()
            give_back()
            self._modules = len(sys.modules)
        elif self._since_deep >= (DEEP_AT_LATEST if busy else DEEP_EVERY):
            self._since_deep = 0
            collect_all(freeze=freeze)
            give_back()
        elif not busy or (gc.get_count()[0] >= YOUNG_BUSY and not shown_first):
            gc.collect(0)


def settle_memory(*, freeze: bool = True) -> None:
    """Keep the collector out of the way of keys: objects that exist now are not examined again.

    A collection over 10,000 beads costs 30 ms in the middle of a key press (docs/decisions/0022); the
    rest is collected in seconds without one. ``freeze`` is for a process with one app, which is on a terminal:
    what is frozen for an app without one would outlive it.
    """
    # frozen objects that are garbage now must be collected before more is frozen, else they stay for good
    gc.unfreeze()
    gc.collect()
    if freeze:
        gc.freeze()


def collect_all(*, freeze: bool, limit_s: float = FREEZE_FROM_S) -> None:
    """Collect the garbage of all ages; with ``freeze`` keep the next time short, as `settle_memory` does."""
    begun = thread_time()
    gc.collect()
    # CPU time: a busy machine alone is no reason to freeze
    if freeze and thread_time() - begun > limit_s:
        settle_memory()
