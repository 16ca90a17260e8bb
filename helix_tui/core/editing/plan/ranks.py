"""Order inside one priority: ``bead queue`` and the ranks that it will write (head era).

A rank is sparse: the moved bead gets a number between its neighbours where there is room for one; else every
bead of the priority is numbered anew in tens (docs/formats/ddx.md §2).
"""

from __future__ import annotations

from typing import Any

from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder, called
from helix_tui.core.ground.time import NEVER, parse_instant

STEP = 10


def plan_rank(writing: PlanBuilder, operation: Operation) -> None:
    """``bead queue top | move --before/--after | clear``."""
    overlay, bead_id = writing.overlay, operation.bead_id
    if bead_id not in overlay:
        raise OperationRefused(f"there is no bead {called(bead_id)} in the tracker; look it up with `helix-tui queue`")
    if not writing.dialect.rank:
        raise OperationRefused("this ddx knows no order inside a priority; change the priority instead")
    before, after, top = (operation.values[name] for name in ("before", "after", "top"))
    if not (before or after or top):
        if _rank(overlay, bead_id) is not None:
            writing.add(("bead", "queue", "clear", bead_id), {bead_id: {"queue-rank": None}})
        return
    if top:
        _to_the_top(writing, bead_id)
        return
    bucket = _bucket(overlay, overlay.bead(bead_id).priority)
    others = [other for other in bucket if other != bead_id]
    other = before or after
    if other == bead_id:
        raise OperationRefused("a bead cannot be placed before or after itself; name another one")
    if other not in overlay:
        raise OperationRefused(f"there is no bead {called(other)} in the tracker; look it up with `helix-tui queue`")
    if other not in others:
        raise OperationRefused(f"{called(other)} has another priority than {called(bead_id)}; give both the same first")
    place = others.index(other) + (1 if after else 0)
    words = ("bead", "queue", "move", bead_id, "--before" if before else "--after", other)
    ripple = {moved: {"queue-rank": number} for moved, number in _ranks(overlay, others, bead_id, place).items()}
    writing.add(words, {}, watched=[(moved, "queue-rank") for moved in bucket], ripple=ripple)


def _to_the_top(writing: PlanBuilder, bead_id: str) -> None:
    """Before the lowest rank there is: only the bead's own row changes."""
    overlay = writing.overlay
    priority = overlay.bead(bead_id).priority
    ranks = [
        rank
        for other in _near(overlay, priority)
        if other != bead_id and (rank := overlay.bead(other).queue_rank) is not None
    ]
    ripple = {bead_id: {"queue-rank": min(ranks) - 1 if ranks else 0}}
    writing.add(("bead", "queue", "top", bead_id), {}, watched=[(bead_id, "queue-rank")], ripple=ripple)


def _ranks(overlay: Overlay, others: list[str], bead_id: str, place: int) -> dict[str, int]:
    """The numbers that ddx will write to put a bead at a place among the others."""
    numbers = [_rank(overlay, other) for other in others]
    if None not in numbers[:place]:
        low = numbers[place - 1] if place else None
        high = next((number for number in numbers[place:] if number is not None), None)
        if low is not None and (high is None or low + 1 < high):
            return {bead_id: low + 1}
        if low is None:
            return {bead_id: 0 if high is None else high - 1}
    order = [*others[:place], bead_id, *others[place:]]
    return {other: number * STEP for number, other in enumerate(order)}


def _rank(overlay: Overlay, bead_id: str) -> int | None:
    return overlay.bead(bead_id).queue_rank


def _bucket(overlay: Overlay, priority: int) -> list[str]:
    """Ids of one priority in ddx's order."""

    def key(bead_id: str) -> tuple[Any, ...]:
        bead = overlay.bead(bead_id)
        rank = bead.queue_rank
        return rank is None, rank or 0, parse_instant(bead.created_at) or NEVER, bead_id.encode()

    return sorted(_near(overlay, priority), key=key)


def _near(overlay: Overlay, priority: int) -> list[str]:
    """Ids of one priority."""
    here = [bead_id for bead_id, bead in overlay.queue.beads.items() if bead.priority == priority]
    both = dict.fromkeys((*here, *overlay.edits))
    return [bead_id for bead_id in both if overlay.bead(bead_id).priority == priority]
