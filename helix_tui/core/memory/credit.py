"""Attribute an outcome to the memories that were shown, and to the task without them (docs/formats/memory.md §5)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from msgspec import Struct

from helix_tui.core.memory.ranking import lift

UNREPORTED = 0.8
"""The share of a trial counted for an injected memory that is not reported as used.

This and `LIFT_SLOPE` gave the best results in the simulation when self-reports are uninformative, at no cost when they
are informative (bench/memory_sim.py).
"""

BASE_SHRINKAGE = 2.0
"""Imagined trials at the rate of the kind, for the outcomes of tasks with a memory."""


class Tally(Struct, frozen=True):
    """The data of one memory before a task: as in `RankingEvidence`, plus the outcomes of tasks with it."""

    trials: float
    residual: float
    injected: float
    passed: float
    """Sum of the outcomes of those tasks without the lift of the memories shown."""

    @property
    def lift(self) -> float:
        """How much more often than expected tasks with it passed."""
        return lift(self.trials, self.residual)


def attribute(rate: float, outcome: float, shown: Mapping[int, Tally]) -> tuple[dict[int, float], float]:
    """Attribute an outcome to each memory shown, and to the task without them.

    A memory is judged relative to the others: the expected outcome is the rate of the topic plus their worth. Otherwise
    a harmful memory would cost helpful ones their lift, and a helpful one would have none once all memories shown are
    good. The rate of the topic is estimated from the tasks in which the others were shown, as they were found for the
    same topic, even if all tasks are of one kind: the median of those tasks' outcomes without any lift, each shrunk
    towards the rate of the kind.

    Args:
        rate: of the kind, before this task.
        outcome: 1 passed, 0 failed, or between.
        shown: the memories that were shown, before this task.
    """
    ease = {
        each: (tally.passed + BASE_SHRINKAGE * rate) / (tally.injected + BASE_SHRINKAGE)
        for each, tally in shown.items()
    }
    together = sum(tally.lift for tally in shown.values())
    surprises = {}
    for each, tally in shown.items():
        # not by its own tasks: it would be compared with itself
        beside = [value for other, value in ease.items() if other != each]
        expected = (statistics.median(beside) if beside else rate) + together - tally.lift
        surprises[each] = outcome - min(1.0, max(0.0, expected))
    return surprises, outcome - together


def base_rate(tried: float, passes: float) -> float:
    """The rate of a kind of task."""
    return (passes + 1.0) / (tried + 2.0)


def exposure(reported: bool) -> float:
    """The share of a trial that this counts as for an injected memory."""
    return 1.0 if reported else UNREPORTED
