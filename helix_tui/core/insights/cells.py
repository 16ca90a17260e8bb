"""Tables of attempts: one row for each value of the dimensions asked for, with n and an interval.

The interval is Wilson's score interval at 95 % (Wilson 1927), which stays honest where n is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, count_headings, count_outcomes
from helix_tui.core.ddx.attempts.costs import AgentCall, Sums, sum_calls
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ground.shares import Share, share
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_day

UNKNOWN = "unknown"
"""The value of an unrecorded dimension."""

SMALL = 10
"""Attempts below which a row is marked as too small to compare."""


def shown_values(parts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The values of a cell as they are shown: ``sonnet · task``, ``model unknown · task``, ``model, kind unknown``.

    Of unrecorded ones only the first is named, so that a row never reads as if it were the whole of the others.
    """
    parts = tuple(parts)
    values = tuple(value for _, value in parts if value != UNKNOWN)
    if not values:
        return (f"{', '.join(name for name, _ in parts)} {UNKNOWN}",)
    name, first = parts[0]
    return (f"{name} {UNKNOWN}", *values) if first == UNKNOWN else values


def _area(attempt: Attempt, bead: Bead | None) -> str:
    if bead is None:
        return ""
    return next((label.removeprefix("area:") for label in bead.labels if label.startswith("area:")), "no area")


def _day(attempt: Attempt, bead: Bead | None) -> str:
    return format_day(attempt.at)


def _ratchet(attempt: Attempt) -> str:
    """Whether its measured values held."""
    if not attempt.ratchets:
        return "none measured"
    return "held" if all(ratchet.passed for ratchet in attempt.ratchets) else "got worse"


DIMENSIONS: Mapping[str, Callable[[Attempt, Bead | None], str]] = {
    "harness": lambda attempt, bead: attempt.harness,
    "model": lambda attempt, bead: attempt.model,
    "provider": lambda attempt, bead: attempt.provider,
    "kind": lambda attempt, bead: bead.issue_type if bead is not None else "",
    "area": _area,
    "priority": lambda attempt, bead: f"P{bead.priority}" if bead is not None else "",
    "status": lambda attempt, bead: attempt.status,
    "day": _day,
    "bead": lambda attempt, bead: attempt.bead_id,
    "parent": lambda attempt, bead: (bead.parent or "no parent") if bead is not None else "",
    "effort": lambda attempt, bead: attempt.effort,
    "prompt": lambda attempt, bead: attempt.prompt,
    "context": lambda attempt, bead: attempt.context,
    "memories": lambda attempt, bead: attempt.memories,
    "ratchet": lambda attempt, bead: _ratchet(attempt),
}
"""The dimensions of attempts. ``kind`` is the bead's type; days are local ones."""


class Cell(Struct, frozen=True, dict=True):
    """The attempts that share the values of ``key``."""

    key: tuple[tuple[str, str], ...]
    """(dimension, value) pairs; an unrecorded value is ``unknown``."""
    attempts: tuple[Attempt, ...]
    calls: tuple[AgentCall, ...] | None = None
    """Its cost, if not that of its attempts: a time span has the calls that ended in it."""

    @property
    def n(self) -> int:
        """Finished attempts."""
        return len(self.attempts)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Attempts by the headings of documents: landed, preserved, failed, no_changes, other."""
        return count_headings(self.attempts)

    @cached_property
    def outcomes(self) -> Mapping[Outcome, int]:
        """Attempts by their outcome; outcomes that none had are left out."""
        return count_outcomes(self.attempts)

    @cached_property
    def landed(self) -> Share:
        """The share of attempts that landed."""
        return share(self.counts["landed"], self.n)

    @property
    def small(self) -> bool:
        """Whether there are too few attempts to compare."""
        return self.n < SMALL

    @cached_property
    def beads(self) -> int:
        """Beads that were attempted."""
        return len({attempt.bead_id for attempt in self.attempts})

    @cached_property
    def beads_landed(self) -> int:
        """Beads of which an attempt landed."""
        return len({attempt.bead_id for attempt in self.attempts if attempt.landed})

    @cached_property
    def sums(self) -> Sums:
        """The cost of all agent calls: the work, reviews, checks and triage."""
        if self.calls is not None:
            return sum_calls(self.calls)
        return sum_calls(call for attempt in self.attempts for call in attempt.spent)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The known costs of whole attempts that called an agent, in dollars."""
        each = [attempt.sums for attempt in self.attempts]
        # an attempt that called no agent cost $0.00 for certain, and says nothing of what an attempt costs
        return tuple(sums.usd for sums in each if sums.whole.calls and sums.usd is not None)

    @property
    def cost(self) -> float | None:
        """Dollars known to have been spent; None if unknown, or if nothing was attempted."""
        return self.sums.usd if self.n or self.sums.whole.calls else None

    @property
    def cost_complete(self) -> bool:
        """Whether the cost of every call is known; else `cost` is a lower bound."""
        return self.sums.complete

    @property
    def cost_per_landed(self) -> float | None:
        """Known dollars for each bead that landed; None where nothing landed or no cost is known."""
        cost = self.cost
        # attempts that landed nothing are part of what a landed bead costs
        return cost / self.beads_landed if cost is not None and self.beads_landed else None

    @property
    def cost_per_attempt(self) -> float | None:
        """The mean of the known costs, in dollars."""
        return sum(self.costs) / len(self.costs) if self.costs else None

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """The known totals of tokens of the work, sorted; 0 is none: no agent answers without any."""
        return tuple(sorted(a.tokens.total for a in self.attempts if a.tokens.total))

    @property
    def tokens_total(self) -> int | None:
        """The sum of the known tokens of every call; None where none are."""
        return self.sums.tokens

    @cached_property
    def durations(self) -> tuple[int, ...]:
        """The known durations in ms, sorted; one of 0 is none: the attempt never began."""
        return tuple(sorted(a.duration_ms for a in self.attempts if a.duration_ms))

    @property
    def duration_ms(self) -> int | None:
        """The sum of the known durations; None where none are."""
        return sum(self.durations) if self.durations else None


def percentile(ordered: Sequence[int], part: float) -> int | None:
    """The value below which ``part`` (0–1) of the sorted values lie, by nearest rank; None of nothing."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


@lru_cache(maxsize=4096)
def _shown(value: str) -> str:
    """A displayable value, or ``unknown``."""
    return value if clean_line(value).strip() else UNKNOWN


def table(
    attempts: Iterable[Attempt], beads: Mapping[str, Bead], by: Sequence[str] = ("harness", "model", "kind")
) -> tuple[Cell, ...]:
    """One cell for each combination of values that occurs, the one with most attempts first.

    Attempts that have not ended belong to none.

    Raises:
        KeyError: a dimension that is not in `DIMENSIONS`.
    """
    readers = [(name, DIMENSIONS[name]) for name in by]
    grouped: dict[tuple[tuple[str, str], ...], list[Attempt]] = {}
    for attempt in attempts:
        if attempt.finished:
            bead = beads.get(attempt.bead_id)
            key = tuple([(name, _shown(read(attempt, bead))) for name, read in readers])
            grouped.setdefault(key, []).append(attempt)
    cells = [Cell(key, tuple(group)) for key, group in grouped.items()]
    return tuple(sorted(cells, key=lambda cell: (-cell.n, cell.key)))
