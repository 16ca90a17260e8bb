"""Estimate what so many attempts would cost: an interval from what past ones cost.

Possible futures are drawn out of the past with a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import format_usd
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import format_span

RECENT = 400
"""Maximum past attempts of an estimate, the newest."""

MOST_LOOKED_AT = 4_000
"""Past attempts among which those by the model asked for are looked for."""

FEWEST_PRICED = 3
"""Minimum past attempts for an estimate."""

ENOUGH = 10
"""Attempts by the same harness and model from which the others are left out."""

DRAWS = 400

STRETCH = 25
"""Attempts in a row that are drawn together."""

ROUGH = 100
"""Past attempts below which the interval is called rough: it holds fewer than nine in ten."""

LOW, HIGH = 0.05, 0.95


class Interval(Struct, frozen=True):
    """An amount, and from where to where nine in ten fall."""

    middle: float
    low: float
    high: float
    n: int
    """Past attempts that it rests on."""


class Estimate(Struct, frozen=True):
    """What ``attempts`` attempts would cost."""

    attempts: int
    of_model: bool
    """Whether it is based on attempts by the requested harness and model, else on all."""
    past: int
    """Past attempts that were looked at."""
    priced: int = 0
    """Those of them that say what they cost."""
    usd: Interval | None = None
    """None if too few past attempts have a known cost."""
    tokens: Interval | None = None
    seconds: Interval | None = None

    def describe_usd(self) -> str:
        """``$4.10 ($2.20–$7.90)``; or why there is none."""
        if self.usd is None:
            return f"no estimate: {self._why_none}"
        return f"{format_usd(self.usd.middle)} ({format_usd(self.usd.low)}–{format_usd(self.usd.high)})"

    @property
    def _why_none(self) -> str:
        if not self.past:
            return "no attempt so far"
        if not self.priced:
            return "the cost of past attempts is unknown"
        return f"what it cost is known for {counted(self.priced, 'past attempt')}, and {FEWEST_PRICED} are needed"

    def describe_time(self) -> str:
        """``1h 20m (50m 00s–2h 10m)``; empty if unknown."""
        if self.seconds is None:
            return ""
        return f"{format_span(self.seconds.middle)} ({format_span(self.seconds.low)}–{format_span(self.seconds.high)})"

    @property
    def basis(self) -> str:
        """The basis of the estimate: ``9 in 10 such runs; from 148 past attempts of this model``."""
        known = self.usd.n if self.usd is not None else self.past
        whose = "of this model" if self.of_model else "of any model"
        others = self.past - known
        blind = f", {others:,} more without a full cost" if self.usd is not None and others else ""
        share = "9 in 10 such runs" if known >= ROUGH else "a rough interval"
        return f"{share}; from {counted(known, 'past attempt')} {whose}{blind}"


def estimate(attempts: Iterable[Attempt], count: int, *, harness: str = "", model: str = "") -> Estimate:
    """What ``count`` attempts by a harness and model would cost. Takes up to 0.1 s: call it from a worker.

    Args:
        attempts: past ones, newest first; those that have not ended, or never began, are passed over.
    """
    ended: list[Attempt] = []
    same: list[Attempt] = []
    for attempt in islice(attempts, MOST_LOOKED_AT):
        # with neither, the attempt never began: it would count as one that costs nothing
        if attempt.finished and (attempt.duration_ms or attempt.cost_usd):
            ended.append(attempt)
            if _is_by(attempt, harness, model):
                same.append(attempt)
                if len(same) == RECENT:
                    break
    # few attempts by the model say less than many by all; `basis` names which of the two it was
    of_model = bool(harness or model) and len(same) >= ENOUGH
    past = same if of_model else ended[:RECENT]
    priced = (sums for sums in (each.sums for each in past) if sums.whole.calls and sums.complete)
    costs = [sums.usd for sums in priced if sums.usd is not None]
    tokens = [sums.tokens for sums in (each.sums for each in past) if sums.tokens is not None]
    seconds = [each.duration_ms / 1000 for each in past if each.duration_ms]
    usd, used, took = (_sum_of(count, values) for values in (costs, tokens, seconds))
    return Estimate(count, of_model, len(past), len(costs), usd, used, took)


def _is_by(attempt: Attempt, harness: str, model: str) -> bool:
    return (not harness or attempt.harness == harness) and (not model or attempt.model == model)


def _sum_of(count: int, values: Sequence[float]) -> Interval | None:
    """The sum of ``count`` values like these; None of fewer than `FEWEST_PRICED`."""
    if len(values) < FEWEST_PRICED or count <= 0:
        return None
    # seeded, so that the same past says the same on every surface
    rng, past = random.Random(len(values)), len(values)
    # sums over the past twice in a row: a stretch may then run beyond its end, and costs one subtraction
    up_to = [0.0, *accumulate([*values, *values])]
    stretch = min(STRETCH, max(1, past // 4))  # a stretch as long as the past would always be its mean

    # a block bootstrap: what attempts in a row have in common stays together
    def drawn(left: int) -> float:
        total = 0.0
        while left:
            length, begin = min(stretch, left), rng.randrange(past)
            total += up_to[begin + length] - up_to[begin]
            left -= length
        return total

    mean = up_to[past] / past
    # how far the mean of so few may be off, for all of them alike, and how the attempts vary around it
    sums = sorted(max(0.0, drawn(count) + count * (drawn(past) / past - mean)) for _ in range(DRAWS))
    return Interval(mean * count, sums[round(LOW * (DRAWS - 1))], sums[round(HIGH * (DRAWS - 1))], past)
