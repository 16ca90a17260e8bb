"""What was spent, by local day, and how much is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.states import GOING
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import AgentCall
from helix_tui.core.ground.time import NS, format_day
from helix_tui.core.insights.cells import Cell, table

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
