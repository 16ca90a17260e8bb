"""``bead queue``: a bead's place among those of its priority, as sparse ranks (docs/formats/ddx.md §2)."""

from __future__ import annotations

from collections.abc import Sequence

from helix_ddx.base.flags import Refused
from helix_ddx.base.go_format import instant_of
from helix_ddx.store.call import VerbCall
from helix_ddx.store.commits import writing
from helix_ddx.store.holders import change_row
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import Beads
from helix_ddx.verbs.create_update import RANK_KEYS
from helix_tui.core.beads.record import Bead

STEP = 10
"""Distance between ranks where a whole priority is numbered anew."""


def top(call: VerbCall) -> None:
    """``bead queue top``: before all others of its priority."""
    with writing(call, f"queue top {call.id}") as beads:
        beads.bead(call.id)
        _place(call, beads, call.id, 0)


def move(call: VerbCall) -> None:
    """``bead queue move``: next to another bead of the same priority."""
    before, after = call.given.text("before"), call.given.text("after")
    if not before and not after:
        raise Refused("must specify exactly one of --before or --after")
    if before and after:
        raise Refused("cannot specify both --before and --after")
    with writing(call, f"queue move {call.id}") as beads:
        bead, other = beads.bead(call.id), beads.bead(before or after)
        if bead.priority != other.priority:
            raise Refused(
                f"bead: queue move limited to one priority bucket: {bead.id} (P{bead.priority}) "
                f"and {other.id} (P{other.priority})"
            )
        others = [each.id for each in _bucket(beads, bead.priority) if each.id != bead.id]
        if other.id not in others:
            raise Refused(f"bead: queue move limited to one priority bucket: {bead.id} and {other.id}")
        _place(call, beads, bead.id, others.index(other.id) + (not before))


def clear(call: VerbCall) -> None:
    """``bead queue clear``: back to the natural order."""
    with writing(call, f"queue clear {call.id}") as beads:
        change_row(call, beads, call.id, lambda row: row.drop(*RANK_KEYS))


def _bucket(beads: Beads, priority: int) -> list[Bead]:
    """Every bead of a priority, in queue order."""
    found = [bead for bead in beads.beads.values() if bead.priority == priority]
    return sorted(
        found,
        key=lambda bead: (
            bead.queue_rank is None,
            bead.queue_rank or 0,
            instant_of(bead.created_at),
            bead.id.encode(),
        ),
    )


def _place(call: VerbCall, beads: Beads, bead_id: str, place: int) -> None:
    bead = beads.bead(bead_id)
    others = [each for each in _bucket(beads, bead.priority) if each.id != bead_id]
    rank = _free_rank(others[:place], others[place:])
    if rank is not None:
        _rank(call, beads, bead_id, rank)
        return
    for number, each in enumerate([*others[:place], bead, *others[place:]]):
        _rank(call, beads, each.id, number * STEP)


def _free_rank(before: Sequence[Bead], after: Sequence[Bead]) -> int | None:
    """A rank that fits without touching any other bead, or None where none does."""
    if any(bead.queue_rank is None for bead in before):
        return None
    low = before[-1].queue_rank if before else None
    high = next((bead.queue_rank for bead in after if bead.queue_rank is not None), None)
    if low is None:
        return 0 if high is None else high - 1
    return low + 1 if high is None or low + 1 < high else None


def _rank(call: VerbCall, beads: Beads, bead_id: str, rank: int) -> None:
    def change(row: TrackerRow) -> None:
        row.drop(*RANK_KEYS)
        row.put("queue-rank", rank)

    change_row(call, beads, bead_id, change)
