"""``bead cooldown`` and ``clear-cooldown``: the pause after an attempt that failed (docs/formats/ddx.md
§1)."""

from __future__ import annotations

from helix_ddx.base.refusal import Refused
from helix_ddx.base.stamps import stamp
from helix_ddx.store.call import VerbCall
from helix_ddx.store.changes import change_row
from helix_ddx.store.commits import writing
from helix_ddx.store.events import add_inline, new_event
from helix_ddx.verbs.lists import say_ordered
from helix_tui.core.beads.record import Bead

_FIELDS = ("work-retry-after", "work-last-status", "work-last-detail")


def show(call: VerbCall) -> None:
    """``bead cooldown show``."""
    row = call.store.read().shown(call.id)
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


def clear(call: VerbCall) -> None:
    """``bead cooldown clear``."""
    with writing(call, f"cooldown clear {call.id}") as beads:
        cleared = any(name in beads.row(call.id) for name in _FIELDS)
        change_row(call, beads, call.id, lambda row: row.drop(*_FIELDS))
    call.say(f"Cleared cooldown on {call.id}" if cleared else f"{call.id}: no cooldown set")


def clear_many(call: VerbCall) -> None:
    """``bead clear-cooldown``: of every bead, or of those that failed in one way."""
    reason = call.given.text("reason")
    if not call.given.on("all") and not reason:
        raise Refused("requires --all or --reason <value>")
    ids = _clear(call, reason)
    call.say(f"{len(ids)} cooldowns cleared")
    for bead_id in ids:
        call.say(f"  {bead_id}")


def clear_for_work(call: VerbCall) -> None:
    """``work clear-cooldowns``: the same, and it can be tried first."""
    status = call.given.text("status")
    if not call.given.on("all") and not status:
        raise Refused("requires --all or --status <value>")
    if call.given.on("dry-run"):
        count = sum(_is_meant(bead, status) for bead in call.store.read().beads.values())
        call.say(f"would clear {count} cooldown(s)")
    else:
        call.say(f"cleared {len(_clear(call, status))} cooldown(s)")


def _is_meant(bead: Bead, status: str) -> bool:
    return bool(bead.work_retry_after) and (not status or bead.work_last_status == status)


def _clear(call: VerbCall, status: str) -> list[str]:
    """End the pause of every bead, or of those with one last status; their ids."""
    with call.store.change() as beads:
        ids = [bead.id for bead in beads.beads.values() if _is_meant(bead, status)]
        for bead_id in ids:
            row, now = beads.row(bead_id), call.clock()
            row.drop(*_FIELDS, "work-cooldown-base-rev")
            source = "ddx work clear-cooldowns"
            add_inline(row, new_event("cooldown-cleared", now, summary="operator-bulk-clear", source=source))
            row.put("updated_at", stamp(now))
            beads.put(row)
    return ids
