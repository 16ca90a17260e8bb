"""Would a cheaper model have done? Models compared on the same kind of bead, with their intervals.

CONTRACT-001's question for model routing (docs/formats/helix.md). Nothing is recommended where
too few attempts stand behind a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.insights.cells import UNKNOWN, Cell, table

Verdict = Literal["as good", "worse", "better", "unclear"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A dearer and a cheaper model on one kind of bead."""

    kind: str
    dearer: Cell
    cheaper: Cell
    rescued: int
    """Beads that the cheaper one failed on and the dearer one landed later."""

    @property
    def verdict(self) -> Verdict:
        """What the cheaper one is, by its share of landed attempts.

        ``as good`` where its share is above the lower half of what the dearer one's may be below its own;
        ``unclear`` where a row is too small, or the intervals overlap and say no more than that.
        """
        one, other = self.cheaper.landed, self.dearer.landed
        if self.cheaper.small or self.dearer.small or one.rate is None or other.rate is None:
            return "unclear"
        if not one.overlaps(other):
            return "better" if one.low > other.high else "worse"
        return "as good" if one.rate >= (other.low + other.rate) / 2 else "unclear"

    @property
    def saved(self) -> float | None:
        """Dollars saved on each landed bead; below 0 where the cheaper attempts land so rarely that they
        cost more. None where nothing landed or no cost is known."""
        one, other = self.cheaper.cost_per_landed, self.dearer.cost_per_landed
        return None if one is None or other is None else other - one


def compare_models(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[Comparison, ...]:
    """Every pair of models with known costs on each kind of bead, the most promising first."""
    cells = [
        cell
        for cell in table(attempts, beads, ("kind", "model"))
        if cell.cost_per_attempt is not None and UNKNOWN not in dict(cell.key).values()
    ]
    found = []
    for one, other in combinations(cells, 2):
        if one.key[0] == other.key[0]:
            cheaper, dearer = sorted((one, other), key=lambda cell: (cell.cost_per_attempt or 0.0, cell.key))
            found.append(Comparison(one.key[0][1], dearer, cheaper, _rescued(cheaper, dearer)))
    rank: dict[Verdict, int] = {"better": 0, "as good": 1, "unclear": 2, "worse": 3}
    return tuple(sorted(found, key=lambda each: (rank[each.verdict], -(each.saved or 0.0), each.kind, each.dearer.key)))


def _rescued(cheaper: Cell, dearer: Cell) -> int:
    landed: dict[str, int] = {}
    for attempt in dearer.attempts:
        if attempt.landed:
            landed[attempt.bead_id] = max(landed.get(attempt.bead_id, 0), attempt.started_at or 0)
    return len(
        {
            attempt.bead_id
            for attempt in cheaper.attempts
            if not attempt.landed and (attempt.started_at or 0) < landed.get(attempt.bead_id, 0)
        }
    )
