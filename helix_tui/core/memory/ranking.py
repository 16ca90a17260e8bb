"""Rank memories by helix's formula or by ``lift`` (docs/formats/memory.md §5).

Pure functions over arrays, one element per memory, so that a store of 50,000 and a simulation (bench/memory_sim.py) are
ranked by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]
Number = TypeVar("Number", float, Array)

RELEVANCE, EFFECTIVENESS, RECENCY = 0.5, 0.3, 0.2
"""Weights of helix's formula."""

HALF_LIFE_DAYS = 7.0

LIFT_RELEVANCE, LIFT_WORTH = 0.6, 0.4
"""Weights of ``lift`` (docs/formats/memory.md §5); it has no recency term."""

LIFT_SHRINKAGE = 12.0
"""Imagined trials without any lift: the variance of one outcome over that of the worth of memories. A task
passes or fails (± 0.5), a memory moves it by some ± 0.14: (0.5 / 0.14)².
"""

LIFT_SLOPE = 2.0
"""The worth of a lift of 1."""

USE_SHRINKAGE = 4.0
"""Imagined trials with the store's mean use."""


class RankingEvidence(Struct, frozen=True):
    """The data of the memories to rank: arrays of equal length."""

    relevance: Array
    helped: Array
    """With ``failed``: what each memory is judged by (`Memory.counted`)."""
    failed: Array
    age_days: Array
    """Days since the last use, else since creation; may be negative if clocks disagree."""
    trials: Array
    """Weighted verified trials, the ``n`` of docs/formats/memory.md §5."""
    residual: Array
    """Sum of weighted surprises, its ``res``."""
    injected: Array
    """Verified trials in which it was injected, its ``inj``."""
    used: Array
    """Those of them in which it was reported as used."""
    mean_use: float = 0.5
    """Share of reported use over the whole store, its ``u``."""


class Ranked(Struct, frozen=True):
    """A score for each memory, and its terms."""

    score: Array
    effectiveness: Array
    recency: Array
    terms: Mapping[str, Array] = {}


Ranker = Callable[[RankingEvidence], Ranked]


def effectiveness(helped: Array, failed: Array) -> Array:
    """``helped / (helped + failed)``, 0.5 without feedback."""
    uses = helped + failed
    share: Array = np.divide(helped, uses, out=np.full(uses.shape, 0.5), where=uses > 0)
    return share


def recency(age_days: Array) -> Array:
    """``2^(-days / 7)`` (ACT-R decay); a time in the future counts as now, an unreadable one (NaN) as 0.5."""
    fresh: Array = np.exp2(np.maximum(age_days, 0.0) / -HALF_LIFE_DAYS)
    return np.where(np.isnan(fresh), 0.5, fresh)


def rank_by_seed(evidence: RankingEvidence) -> Ranked:
    """``0.5·relevance + 0.3·effectiveness + 0.2·recency`` (docs/formats/memory.md §5)."""
    worth, fresh = effectiveness(evidence.helped, evidence.failed), recency(evidence.age_days)
    return Ranked(RELEVANCE * evidence.relevance + EFFECTIVENESS * worth + RECENCY * fresh, worth, fresh)


def rank_by_lift(evidence: RankingEvidence) -> Ranked:
    """``0.6·relevance + 0.4·clip(0.5 + 2·lift + 0.5·use, 0, 1)`` (docs/formats/memory.md §5)."""
    gain = lift(evidence.trials, evidence.residual)
    use = use_rate(evidence.injected, evidence.used, evidence.mean_use)
    worth: Array = np.clip(0.5 + LIFT_SLOPE * gain + 0.5 * use, 0.0, 1.0)
    score = LIFT_RELEVANCE * evidence.relevance + LIFT_WORTH * worth
    plain = effectiveness(evidence.helped, evidence.failed)
    return Ranked(score, plain, recency(evidence.age_days), {"lift": gain, "use": use, "worth": worth})


RANKERS: dict[str, Ranker] = {"seed": rank_by_seed, "lift": rank_by_lift}
"""Name -> ranker; the first is the default (docs/decisions/0015)."""


def lift(trials: Number, residual: Number) -> Number:
    """How much more often than expected tasks with this memory passed, shrunk towards 0."""
    return residual / (trials + LIFT_SHRINKAGE)


def use_rate(injected: Array, used: Array, mean_use: float) -> Array:
    """Share of reported use above the store's mean, shrunk towards it."""
    share: Array = (used + USE_SHRINKAGE * mean_use) / (injected + USE_SHRINKAGE) - mean_use
    return share


def mean_use(injected: float, used: float) -> float:
    """The store's share of reported use from its two sums, 0.5 if nothing is known."""
    return (used + 2.0) / (injected + 4.0)
