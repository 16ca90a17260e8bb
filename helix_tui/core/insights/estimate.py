"""What some attempts would cost, from what past ones did: an amount with the interval that it falls in.

The interval holds what nine in ten runs of so many attempts cost, if they are like the past ones. Attempts in
a row are alike (the same epic, the same model), so stretches of the past are drawn and not single attempts
(circular block bootstrap, Politis & Romano 1992), and how far the mean of the past may be off is drawn with them.
On 419 attempts of DDx's own tracker with a known cost, intervals from 200 past attempts held 96, 96 and 88 in 100 of
runs of 1, 5 and 25 attempts, and of the time they took 92, 93 and 87; from 40 only 94, 81 and 56, from 10 only 89, 70
and 46: the past changes. An interval that rests on few is therefore called rough. The same past gives the same one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.sums import format_usd
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import format_span

RECENT = 400
"""Past attempts that an estimate rests on at most, the newest."""

MOST_LOOKED_AT = 4_000
"""Past attempts among which those by the model asked for are looked for."""

FEWEST = 3
"""Past attempts below which nothing is estimated."""

ENOUGH = 10
"""Attempts by the same harness and model from which the others are left out."""

ROUNDS = 400
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
    """It rests on attempts by the harness and model that are asked for; else on those by all."""
    past: int
    """Past attempts that were looked at."""
    priced: int = 0
    """Those of them that say what they cost."""
    usd: Interval | None = None
    """None where too few past attempts say what they cost."""
    tokens: Interval | None = None
    seconds: Interval | None = None

    def describe_usd(self) -> str:
        """``$4.10 ($2.20–$7.90)``; why there is none where there is none."""
        if self.usd is None:
            return f"no estimate: {self._why_none}"
        return f"{format_usd(self.usd.middle)} ({format_usd(self.usd.low)}–{format_usd(self.usd.high)})"

    @property
    def _why_none(self) -> str:
        if not self.past:
            return "no attempt so far"
        if not self.priced:
            return "the cost of past attempts is unknown"
        return f"what it cost is known of {counted(self.priced, 'past attempt')}, and {FEWEST} are needed"

    def describe_time(self) -> str:
        """``1h 20m (50m 00s–2h 10m)``; empty where it is not known."""
        if self.seconds is None:
            return ""
        return f"{format_span(self.seconds.middle)} ({format_span(self.seconds.low)}–{format_span(self.seconds.high)})"

    @property
    def basis(self) -> str:
        """What it rests on: ``9 in 10 such runs; from 148 past attempts of this model``."""
        known = self.usd.n if self.usd is not None else self.past
        whose = "of this model" if self.of_model else "of any model"
        blind = f", {self.past - known:,} more without a cost" if self.usd is not None and known < self.past else ""
        share = "9 in 10 such runs" if known >= ROUGH else "a rough interval"
        return f"{share}; from {counted(known, 'past attempt')} {whose}{blind}"


def estimate(attempts: Iterable[Attempt], count: int, *, harness: str = "", model: str = "") -> Estimate:
    """What ``count`` attempts by a harness and model would cost. Takes up to 0.1 s: call it from a worker.

    Args:
        attempts: past ones, newest first; those that have not ended, or never began, are passed over.
    """
    ended: list[Attempt] = []
    same: list[Attempt] = []
    for each in islice(attempts, MOST_LOOKED_AT):
        if each.finished and (each.duration_ms or each.cost_usd):
            ended.append(each)
            if _is_by(each, harness, model):
                same.append(each)
                if len(same) == RECENT:
                    break
    of_model = bool(harness or model) and len(same) >= ENOUGH
    past = same if of_model else ended[:RECENT]
    costs = [sums.usd for sums in (each.sums for each in past) if sums.whole.calls and sums.usd is not None]
    tokens = [sums.tokens for sums in (each.sums for each in past) if sums.tokens is not None]
    seconds = [each.duration_ms / 1000 for each in past if each.duration_ms]
    usd, used, took = (_sum_of(count, values) for values in (costs, tokens, seconds))
    return Estimate(count, of_model, len(past), len(costs), usd, used, took)


def _is_by(attempt: Attempt, harness: str, model: str) -> bool:
    return (not harness or attempt.harness == harness) and (not model or attempt.model == model)


def _sum_of(count: int, values: Sequence[float]) -> Interval | None:
    """The sum of ``count`` values like these; None of fewer than `FEWEST`."""
    if len(values) < FEWEST or count <= 0:
        return None
    rng, past = random.Random(len(values)), len(values)
    up_to = [0.0, *accumulate([*values, *values])]
    stretch = min(STRETCH, max(1, past // 4))  # a stretch as long as the past would always be its mean

    def drawn(left: int) -> float:
        total = 0.0
        while left:
            length, begin = min(stretch, left), rng.randrange(past)
            total += up_to[begin + length] - up_to[begin]
            left -= length
        return total

    mean = up_to[past] / past
    # how far the mean of so few may be off, for all of them alike, and how the attempts vary around it
    sums = sorted(max(0.0, drawn(count) + count * (drawn(past) / past - mean)) for _ in range(ROUNDS))
    return Interval(mean * count, sums[round(LOW * (ROUNDS - 1))], sums[round(HIGH * (ROUNDS - 1))], past)


def fits_in(limit: float, attempts: Estimate) -> int:
    """How many attempts of an estimate a limit in dollars pays for, by the mean; 0 where that is unknown."""
    if attempts.usd is None or attempts.usd.middle <= 0:
        return 0
    return int(limit / (attempts.usd.middle / attempts.attempts))
