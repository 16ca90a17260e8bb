"""Rank memories, and split texts into search words.

The rankers are helix's formula and ``lift`` (docs/formats/memory.md §5): pure functions over arrays, one element per
memory, so that a store of 50,000 and a simulation (bench/memory_sim.py) are ranked by the same code.

Words are the units of the keyword leg: identifiers split, English words reduced to their stems. ``parse_config`` is
found as ``parse``, as ``config`` and as itself; ``src/auth.py`` as each of its parts, as ``auth.py`` and as the whole.
SQLite's own tokenizers cannot do that, so the split words are indexed.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from helix_tui.core.ground.text import stem_english

Array = NDArray[np.float64]
Number = TypeVar("Number", float, Array)

RELEVANCE, EFFECTIVENESS, RECENCY = 0.5, 0.3, 0.2
"""Weights of helix's formula."""

HALF_LIFE_DAYS = 7.0

LIFT_RELEVANCE, LIFT_WORTH = 0.6, 0.4
"""Weights of ``lift`` (docs/formats/memory.md §5); it has no recency term."""

UNREPORTED = 0.8
"""The share of a trial counted for an injected memory that is not reported as used.

This and `LIFT_SLOPE` gave the best results in the simulation when self-reports are uninformative, at no cost when they
are informative (bench/memory_sim.py).
"""

LIFT_SHRINKAGE = 12.0
"""Imagined trials without any lift: the variance of one outcome over that of the worth of memories. A task
passes or fails (± 0.5), a memory moves it by some ± 0.14: (0.5 / 0.14)².
"""

LIFT_SLOPE = 2.0
"""The worth of a lift of 1."""

BASE_SHRINKAGE = 2.0
"""Imagined trials at the rate of the kind, for the outcomes of tasks with a memory."""

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


MAX_WORDS = 4_000
"""Maximum words read of one text."""

MAX_NAME = 50
"""Maximum characters of a memory's name."""

_SLUG = re.compile(r"[^a-z0-9]+")
_TOKEN = re.compile(r"\w+(?:[./:\\-]+\w+)*")
_STEP = re.compile(r"[/\\]+")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|\d[A-Za-z]|\w[_.:/\\]+\w")
_STOP_WORDS = """
a an and are as at be been but by can do does for from had has have how if in into is it its
let may no not of on or our so some such than that the their them then there these they this to
too up use used using was we were what when where which while who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A lower-case word without its English endings."""
    return stem_english(word)


def words(text: str) -> list[str]:
    """The search words of a text in order, with repetitions."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        found += _forms(token)
        if len(found) >= MAX_WORDS:
            break
    return found[:MAX_WORDS]


def telling(text: str) -> list[str]:
    """The distinctive words of a query, without stop words and duplicates."""
    return [word for word in dict.fromkeys(words(text)) if word not in _STOP]


def identifiers(text: str) -> list[str]:
    """The names of code in a query, each as one word: ``parse_config``, ``ImportError``, ``auth.py``."""
    found = [form for token in _TOKEN.findall(text) if _IDENTIFIER.search(token) for form in _wholes(token)]
    return list(dict.fromkeys(found))[:MAX_WORDS]


def key(text: str) -> str:
    """A key that is equal for texts differing only in case, punctuation and blanks."""
    return " ".join(_PART.findall(text.casefold()))


def likeness(left: str, right: str) -> float:
    """The similarity of two texts by words, 0 to 1 (Dice), used without an encoder."""
    one, other = set(telling(left)), set(telling(right))
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _forms(token: str) -> list[str]:
    pieces = [piece for part in _PART.findall(token) for piece in _CAMEL.findall(part)]
    # a stop word keeps its form: `telling` would not recognise its stem
    simple = [piece if (lower := piece.lower()) in _STOP else stem(lower) for piece in pieces]
    forms = [piece.lower() for piece in simple]
    if len(pieces) > 1:
        forms += [whole for whole in _wholes(token) if whole not in forms]
    return forms


def _wholes(token: str) -> list[str]:
    """The token as one word, and the last step of a path as one."""
    last = _STEP.split(token)[-1]
    return list(dict.fromkeys("".join(_PART.findall(text)).lower() for text in (token, last)))


def slug(text: str) -> str:
    """A name for a text: its whole first words in lower case, joined by dashes, at most 50 characters."""
    whole = dashed(text)
    cut = whole[:MAX_NAME]
    if whole[MAX_NAME : MAX_NAME + 1].strip("-"):
        # a word is whole or not there, as long as half a name is left
        fewer = cut.rpartition("-")[0]
        cut = fewer if len(fewer) >= MAX_NAME // 2 else cut
    return cut.strip("-")


def dashed(text: str) -> str:
    """A text in lower case, its words joined by dashes."""
    return _SLUG.sub("-", text.lower()).strip("-")
