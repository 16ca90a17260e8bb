"""``bead cooldown`` and ``clear-cooldown``: the pause after an attempt that failed (reference/ddx.md §1)."""

from __future__ import annotations

from helix_tui.core.beads.record import Bead
from helix_tui.core.tracker.bead.call import Call
from helix_tui.core.tracker.bead.commits import writing
from helix_tui.core.tracker.bead.events import add_inline, new_event
from helix_tui.core.tracker.bead.listing import say_ordered
from helix_tui.core.tracker.bead.refusal import Refused
from helix_tui.core.tracker.bead.rows import Row
from helix_tui.core.tracker.bead.writing import change_row
from helix_tui.core.tracker.stamps import stamp

_FIELDS = ("work-retry-after", "work-last-status", "work-last-detail")


def show(call: Call) -> None:
    """``bead cooldown show``."""
    row = call.store.read().row(call.id)
    until, status, detail = (row.text(name) for name in _FIELDS)
    if call.given.on("json"):
        named = {"retry_after": until, "last_status": status, "last_detail": detail, "parked_until": until}
        say_ordered(call, {"bead_id": call.id} | {name: text for name, text in named.items() if text})
        return
    if not until:
        call.say(f"{call.id}: no cooldown set")
        return
    call.say(f"bead:        {call.id}")
    for label, text in (("retry_after", until), ("last_status", status), ("last_detail", detail)):
        if text:
            call.say(f"{label + ':':<13}{text}")


def clear(call: Call) -> None:
    """``bead cooldown clear``."""
    with writing(call, f"cooldown clear {call.id}") as beads:
        cleared = any(name in beads.row(call.id) for name in _FIELDS)
        change_row(call, beads, call.id, lambda row: row.drop(*_FIELDS))
    call.say(f"Cleared cooldown on {call.id}" if cleared else f"{call.id}: no cooldown set")


def clear_many(call: Call) -> None:
    """``bead clear-cooldown``: of every bead, or of those that failed in one way."""
    reason = call.given.text("reason")
    if not call.given.on("all") and not reason:
        raise Refused("requires --all or --reason <value>")

    def is_meant(bead: Bead) -> bool:
        return bool(bead.work_retry_after) and (not reason or bead.work_last_status == reason)

    def change(row: Row) -> None:
        row.drop(*_FIELDS, "work-cooldown-base-rev")
        source, now = "ddx work clear-cooldowns", call.clock()
        add_inline(row, new_event("cooldown-cleared", now, summary="operator-bulk-clear", source=source))

    with call.store.change() as beads:
        ids = [bead.id for bead in beads.beads.values() if is_meant(bead)]
        for bead_id in ids:
            row = beads.row(bead_id)
            change(row)
            row.put("updated_at", stamp(call.clock()))
            beads.put(row)
    call.say(f"{len(ids)} cooldowns cleared")
    for bead_id in ids:
        call.say(f"  {bead_id}")
