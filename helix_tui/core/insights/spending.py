"""What the work costs: burn by day, what is left to spend, and money in beads that keep failing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.sums import AgentCall
from helix_tui.core.ground.time import NS, format_day
from helix_tui.core.insights.cells import Cell, table

DAY = 86_400 * NS

RECENT_DAYS = 7
"""Days that the burn rate and the forecast rest on."""


class Burn(Struct, frozen=True):
    """What was spent up to now."""

    days: tuple[Cell, ...]
    """One cell a local day on which anything ended, the newest first."""
    last_day: Cell
    """The last 24 hours."""
    recent: Cell
    """The last `RECENT_DAYS` days."""
    open_beads: int
    """Beads that workers are still to do: neither finished nor kept from them."""

    @property
    def per_day(self) -> float | None:
        """Known dollars a day over the recent days; None where no cost is known."""
        return None if self.recent.cost is None else self.recent.cost / RECENT_DAYS

    @property
    def left(self) -> float | None:
        """Dollars that the open beads cost if each costs what a landed one did lately; None where unknown."""
        each = self.recent.cost_per_landed
        return None if each is None else each * self.open_beads


_GOING = frozenset({"ready", "running", "claimed", "waiting_dependencies", "retry_cooldown"})
_KEPT_FROM_WORKERS = frozenset({"not_eligible", "superseded", "epic_container", "preserved_review_blocked"})


def to_do(queue: Queue) -> int:
    """How many beads workers are still to do: not those that wait for a person or are kept from workers."""
    return sum(
        queue.state(bead_id) in _GOING
        and not any(reason.kind in _KEPT_FROM_WORKERS for reason in queue.standing(bead_id).reasons)
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
    ended = [attempt for attempt in begun if attempt.finished and attempt.counted_at <= now]
    spent = (call for attempt in begun for call in attempt.spent)
    calls = [call for call in (*spent, *other_calls) if call.at <= now]
    by_day: dict[str, list[AgentCall]] = {}
    for call in calls:
        by_day.setdefault(format_day(call.at), []).append(call)
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
    """A bead that was tried again and again and has not landed."""

    bead_id: str
    title: str
    cell: Cell
    last: Attempt
    """The newest attempt."""


TRIED = 2
"""Attempts without a landing from which a bead counts as one that keeps failing."""


def failing(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[Failing, ...]:
    """Unfinished beads with `TRIED` attempts and more since they last landed, the dearest first.

    A bead that landed and was reopened counts from its last landing on. One that is closed, or that the
    tracker no longer holds, is nobody's worry any more.
    """
    found = []
    for cell in table(attempts, beads, ("bead",)):
        bead = beads.get(cell.key[0][1])
        if bead is None or bead.status in TERMINAL:
            continue
        newest_first = sorted(cell.attempts, key=attrgetter("counted_at"), reverse=True)
        lost = []
        for attempt in newest_first:
            if attempt.landed:
                break
            lost.append(attempt)
        if len(lost) >= TRIED:
            found.append(Failing(bead.id, bead.title, Cell(cell.key, tuple(lost)), lost[0]))
    return tuple(sorted(found, key=lambda each: (-(each.cell.cost or 0.0), -each.cell.n, each.bead_id)))
