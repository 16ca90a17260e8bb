"""Forecast how long a queue takes, from what really landed.

It draws possible futures out of the past in blocks (a circular block bootstrap, Politis and Romano 1992), with a fixed
seed, and tells the interval that they fall in.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ground.time import NS, format_age, parse_instant
from helix_tui.core.insights.cells import percentile

SHARE = 0.8
"""How often what comes should be in the interval."""

DAY_S = 86_400

WINDOWS = (14, 28, 56)
"""Number of past steps to draw from."""

BLOCK = 7
"""Steps in a row that are drawn together."""

FORTNIGHT = 14
ROUNDS = 300

FEWEST = 3
"""Minimum beads done for a forecast."""

USUAL_DRIFT = 0.8
"""How much the logarithm of the pace changes in a fortnight, where too little is known (DDx's own tracker: 0.8)."""

FARTHEST = 400
"""Steps beyond which the end is only called far."""

SHORTEST_STEP_S = 5.0


class Forecast(Struct, frozen=True):
    """How long draining takes, in seconds from now."""

    left: int
    """Beads that workers are still to do."""
    done: int
    """Beads that landed or were closed in the base period."""
    over_s: float
    """The base period."""
    added: int
    """Beads created in the base period."""
    chain: int = 0
    """Beads of the longest chain: they land one after the other, whatever the number of workers."""
    each_s: float | None = None
    """What a landed attempt takes, in the middle; None where nobody recorded any."""
    middle_s: float | None = None
    """None where too little landed."""
    low_s: float = 0.0
    high_s: float = 0.0
    far: bool = False
    """The interval is open at its end."""

    @property
    def per_day(self) -> float:
        """Beads done a day."""
        return self.done / self.over_s * DAY_S if self.over_s else 0.0

    @property
    def added_per_day(self) -> float:
        """Beads created a day."""
        return self.added / self.over_s * DAY_S if self.over_s else 0.0

    @property
    def at_least_s(self) -> float | None:
        """What the longest chain takes by itself; None where durations are unknown."""
        return None if self.each_s is None else self.each_s * self.chain

    def describe(self) -> str:
        """Describe the forecast in one or two sentences."""
        if not self.left:
            return "nothing left to do"
        if self.middle_s is None:
            done = f"{self.done} done" if self.done else "nothing was done"
            return f"no forecast for {self.left:,} left: {done} in the last {format_age(self.over_s)}"
        end = f"over {format_age(self.high_s)}" if self.far else format_age(self.high_s)
        span = f"{format_age(self.low_s)} – {end}, {SHARE:.0%}"
        said = f"{self.left:,} left: about {format_age(self.middle_s)} ({span})"
        said += " if none is added" if self.added else ""
        said += f"; {self._pace}"
        if self.added and self.added >= self.done:
            alike = _rate(self.added_per_day) == _rate(self.per_day)
            said += ": as much is added as done" if alike else ": more is added than done"
        floor = self.at_least_s
        if self.chain > 1 and floor is not None and floor > self.low_s:
            said += f"; its longest chain of {self.chain} takes {format_age(floor)}"
        return said

    @property
    def _pace(self) -> str:
        """How much is done and added: a day, or in all of a shorter history, which tells nothing about a whole day."""
        if self.over_s < DAY_S:
            added = f", {self.added:,} added" if self.added else ""
            return f"{self.done:,} done{added} in the last {format_age(self.over_s)}"
        added = f", {_rate(self.added_per_day)} added" if self.added else ""
        return f"{_rate(self.per_day)} done a day{added}"

    def record(self) -> dict[str, object]:
        """As JSON; null if unknown."""
        known = self.middle_s is not None
        return {
            "left": self.left,
            "done": self.done,
            "over_s": round(self.over_s, 3),
            "done_per_day": self.per_day,
            "added_per_day": self.added_per_day,
            "share": SHARE,
            "drained_in_s": self.middle_s,
            "low_s": self.low_s if known else None,
            "high_s": None if self.far or not known else self.high_s,
            "longest_chain": self.chain,
            "at_least_s": self.at_least_s,
        }


def forecast(
    attempts: Iterable[Attempt],
    beads: Mapping[str, Bead],
    graph: Graph,
    now: int,
    *,
    left: int,
    archive: Mapping[str, Bead] | None = None,
) -> Forecast:
    """When ``left`` beads are done, as of ``now`` (ns since the epoch).

    A bead is done when it landed first; one that is closed and never landed, when its record was last changed.
    """
    done: dict[str, int] = {}
    durations = []
    for attempt in attempts:
        at = attempt.finished_at or attempt.started_at
        if attempt.landed and at is not None and at <= now:
            # a bead that landed twice is done once, when it first landed
            done[attempt.bead_id] = min(at, done.get(attempt.bead_id, at))
            if attempt.duration_ms:
                durations.append(attempt.duration_ms)
    for bead in (*beads.values(), *(archive or {}).values()):
        # somebody may close a bead by hand; no record but the change of its row says when
        at = parse_instant(bead.updated_at) if bead.status == "closed" and bead.id not in done else None
        if at is not None and at <= now:
            done[bead.id] = at
    # where nothing depends on anything the longest chain is one bead
    chain = len(graph.chains.path) or min(left, 1)
    middle = percentile(sorted(durations), 0.5)
    each_s = None if middle is None else middle / 1_000
    ages = sorted((now - at) / NS for at in done.values())
    step, past = _steps(ages)
    # what is told of the pace, and whether there is one, rests on the last four weeks
    over_s = step * min(len(past), WINDOWS[1])
    recent = sum(past[-WINDOWS[1] :])
    created = (parse_instant(bead.created_at) for bead in beads.values())
    added = sum(1 for at in created if at is not None and 0 <= (now - at) / NS < over_s)
    known = Forecast(left, recent, over_s, added, chain, each_s)
    if not left or recent < FEWEST:
        return known
    drawn = draw(past, left)
    low, mid, high = (drawn[min(len(drawn) - 1, int(part * len(drawn)))] for part in (0.1, 0.5, 0.9))
    far = high >= FARTHEST
    return Forecast(left, recent, over_s, added, chain, each_s, mid * step, low * step, min(high, FARTHEST) * step, far)


def _steps(ages: Sequence[float]) -> tuple[float, list[int]]:
    """Seconds of a step, and how many landed in each, the oldest first; days, and less where all is younger."""
    if not ages:
        return float(DAY_S), [0] * WINDOWS[1]
    # a simulation lands all its beads within minutes: counted by days it would have one step
    step = float(DAY_S) if ages[-1] >= FORTNIGHT * DAY_S else max(SHORTEST_STEP_S, ages[-1] / FORTNIGHT)
    past = [0] * (int(ages[-1] // step) + 1)
    for age in ages:
        past[-1 - int(age // step)] += 1
    return step, past


def draw(past: Sequence[int], left: int) -> list[float]:
    """Steps until ``left`` more have landed, in `ROUNDS` possible futures, ascending."""
    rng = random.Random(left)
    drift = _drift(past)
    found = []
    for round_ in range(ROUNDS):
        # a third of the futures from each window, so that neither the newest pace nor an old one decides alone
        recent = past[-WINDOWS[round_ % len(WINDOWS)] :]
        steps = _drawn(recent, left, rng) if any(recent) else float(FARTHEST)
        found.append(min(float(FARTHEST), steps * math.exp(rng.gauss(0.0, drift))))
    return sorted(found)


def _drawn(recent: Sequence[int], left: int, rng: random.Random) -> float:
    steps, rest = 0, left
    while steps < FARTHEST:
        # a block bootstrap: days in a row stay together, and past the window's end come its first days
        start = rng.randrange(len(recent))
        for place in range(start, start + BLOCK):
            landed = recent[place % len(recent)]
            if landed >= rest:
                return steps + rest / landed
            rest -= landed
            steps += 1
    return float(FARTHEST)


def _drift(past: Sequence[int]) -> float:
    """How much the logarithm of the pace changed from one fortnight to the next."""
    # counted back from now: the fortnight that is cut short is the oldest one, and is left out
    fortnights = [sum(past[end - FORTNIGHT : end]) for end in range(len(past), FORTNIGHT - 1, -FORTNIGHT)]
    # half a bead more in each, for a fortnight without any has no logarithm
    changes = [math.log((one + 0.5) / (other + 0.5)) for one, other in pairwise(fortnights)]
    if len(changes) < 2:
        return USUAL_DRIFT
    return min(1.2, max(0.3, math.sqrt(sum(change * change for change in changes) / len(changes))))


def _rate(per_day: float) -> str:
    return f"{per_day:,.0f}" if per_day >= 10 else f"{per_day:.1f}"
