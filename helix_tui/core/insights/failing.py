"""Beads on which money is spent without a landing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.insights.cells import Cell, table

TRIED = 2
"""Attempts without a landing from which a bead counts as one that keeps failing."""


class Failing(Struct, frozen=True):
    """A bead that was tried repeatedly and has not landed."""

    bead_id: str
    title: str
    cell: Cell
    last: Attempt
    """The newest attempt."""


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
