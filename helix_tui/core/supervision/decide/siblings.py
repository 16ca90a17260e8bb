"""Work that belongs together: shown beside the next bead, never dispatched in one go (ddx takes one bead a
turn).

Rules: docs/formats/helix.md §3.5: the same parent or specification first; only
where that finds nothing, a shared ``area:`` label; three at most, the bead itself included.
"""

from __future__ import annotations

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import Bead

MOST = 3


def siblings(queue: Queue, bead_id: str) -> tuple[str, ...]:
    """The bead and the ready ones that belong to it, in the order in which ddx would pick them."""
    bead = queue.beads[bead_id]
    others = [queue.beads[each] for each in queue.ready if each != bead_id]
    others = [each for each in others if not looks_like_epic(each)]
    related = [each for each in others if _same(bead.parent, each.parent) or _same(bead.spec_id, each.spec_id)]
    if not related:
        areas = _areas(bead)
        related = [each for each in others if areas & _areas(each)]
    return (bead_id, *(each.id for each in related[: MOST - 1]))


def _same(one: str, other: str) -> bool:
    return bool(one) and one == other


def _areas(bead: Bead) -> frozenset[str]:
    return frozenset(label for label in bead.labels if label.startswith("area:"))
