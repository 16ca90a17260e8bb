"""Compute what the work costs and will cost, and forecast when a queue is drained.

Burn is what was spent, by local day; a failing bead is money spent without a landing. An estimate says what so many
attempts would cost, a forecast how long a queue takes, from what really landed. Both draw possible futures out of the
past in blocks (a circular block bootstrap, Politis and Romano 1992), with a fixed seed, and tell the interval that
they fall in.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from operator import attrgetter

from msgspec import Struct

from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import GOING
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import AgentCall, format_usd
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import NS, format_age, format_day, format_span, parse_instant
from helix_tui.core.insights.cells import Cell, percentile, table

DAY = 86_400 * NS

RECENT_DAYS = 7
"""Days that the burn rate and the forecast rest on."""


class Burn(Struct, frozen=True):
    """The spending up to now."""

    days: tuple[Cell, ...]
    """One cell a local day on which anything ended, the newest first."""
    last_day: Cell
    """The last 24 hours."""
    recent: Cell
    """The last `RECENT_DAYS` days."""
    open_beads: int
    """Number of beads left for workers: neither finished nor kept from them."""

    @property
    def per_day(self) -> float | None:
        """Known dollars a day over the recent days; None if no cost is known."""
        return None if self.recent.cost is None else self.recent.cost / RECENT_DAYS

    @property
    def left(self) -> float | None:
        """Estimated dollars for the open beads at the recent cost of a landed one; None if unknown."""
        each = self.recent.cost_per_landed
        return None if each is None else each * self.open_beads


def to_do(queue: Queue) -> int:
    """The number of beads left for workers, without those that wait for a person or are kept from workers."""
    return sum(
        queue.state(bead_id) in GOING and all(reason.kind in GOING for reason in queue.standing(bead_id).reasons)
        for bead_id in queue.beads
    )


def burn(
    attempts: Iterable[Attempt],
    beads: Mapping[str, Bead],
    now: int,
    *,
    left: int,
    other_calls: Sequence[AgentCall] = (),
) -> Burn:
    """Spending as of ``now`` (ns since the epoch); what is said to have ended later is none yet.

    A span has the attempts that ended in it and the calls that did, as line 1 and a budget count them: the
    review of an attempt may end on the day after.

    Args:
        left: how many beads are still to do.
        other_calls: calls of agents that belong to no attempt.
    """
    begun = list(attempts)
    # a wrong clock writes ends in the future: they are no spending yet
    ended = [attempt for attempt in begun if attempt.finished and attempt.counted_at <= now]
    spent = (call for attempt in begun for call in attempt.spent)
    calls = [call for call in (*spent, *other_calls) if call.at <= now]
    by_day: dict[str, list[AgentCall]] = {}
    for call in calls:
        by_day.setdefault(format_day(call.at), []).append(call)
    # attempts by the day of their end, but the cost by the day of each call: a review may end after midnight
    days = [
        Cell(cell.key, cell.attempts, tuple(by_day.get(cell.key[0][1], ()))) for cell in table(ended, beads, ("day",))
    ]
    return Burn(
        days=tuple(sorted(days, key=lambda cell: cell.key, reverse=True)),
        last_day=_since(ended, calls, now - DAY, "last 24 h"),
        recent=_since(ended, calls, now - RECENT_DAYS * DAY, f"last {RECENT_DAYS} days"),
        open_beads=left,
    )


def _since(attempts: Sequence[Attempt], calls: Sequence[AgentCall], begin: int, name: str) -> Cell:
    return Cell(
        (("span", name),),
        tuple(a for a in attempts if begin <= a.counted_at),
        tuple(call for call in calls if begin <= call.at),
    )


class Failing(Struct, frozen=True):
    """A bead that was tried repeatedly and has not landed."""

    bead_id: str
    title: str
    cell: Cell
    last: Attempt
    """The newest attempt."""


TRIED = 2
"""Attempts without a landing from which a bead counts as one that keeps failing."""


def failing(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[Failing, ...]:
    """Unfinished beads with `TRIED` attempts and more since they last landed, the dearest first.

    A bead that landed and was reopened counts from its last landing on. One that is closed or no longer in the tracker
    does not count.
    """
    found = []
    for cell in table(attempts, beads, ("bead",)):
        bead = beads.get(cell.key[0][1])
        if bead is None or bead.status in TERMINAL:
            continue
        newest_first = sorted(cell.attempts, key=attrgetter("counted_at"), reverse=True)
        lost = []
        # a bead that landed and was reopened starts anew: what it cost before did bring a landing
        for attempt in newest_first:
            if attempt.landed:
                break
            lost.append(attempt)
        if len(lost) >= TRIED:
            found.append(Failing(bead.id, bead.title, Cell(cell.key, tuple(lost)), lost[0]))
    return tuple(sorted(found, key=lambda each: (-(each.cell.cost or 0.0), -each.cell.n, each.bead_id)))


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
        # with neither, the attempt never began: it would count as one that costs nothing
        if each.finished and (each.duration_ms or each.cost_usd):
            ended.append(each)
            if _is_by(each, harness, model):
                same.append(each)
                if len(same) == RECENT:
                    break
    # few attempts by the model say less than many by all; `basis` names which of the two it was
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
            said += ": more is added than done" if self.added > self.done else ": as much is added as done"
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
