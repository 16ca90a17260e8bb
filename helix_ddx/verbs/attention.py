"""``bead needs-human``, ``operator-attention`` and ``human resolve``: what waits for a person at head."""

from __future__ import annotations

from typing import Any

from helix_ddx.base.go_format import instant_of, loads
from helix_ddx.base.refusal import Refused
from helix_ddx.base.stamps import second
from helix_ddx.store import events as history
from helix_ddx.store.call import VerbCall
from helix_ddx.store.changes import change_row
from helix_ddx.store.commits import writing
from helix_ddx.store.lifecycle import transition
from helix_ddx.store.rows import TrackerRow
from helix_ddx.store.tracker import Beads
from helix_ddx.verbs.close import close_by_hand, note
from helix_ddx.verbs.edges import edge
from helix_ddx.verbs.lists import say_ordered
from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.time import parse_instant

STUCK = frozenset({"route_resolution_timeout", "progress_watchdog", "consecutive_wedge"})
"""Reasons for which a worker gives a claim back because it hangs."""

_META = ("reason", "since", "source", "suggested-action", "summary")


def needs_human(call: VerbCall) -> None:
    """``bead needs-human``: proposed beads in queue order."""
    beads = call.store.read().beads.values()
    found = sorted((bead for bead in beads if bead.status == "proposed"), key=_queue_order)
    rows = [_human_row(bead) for bead in found]
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("No operator-attention beads.")
    for row in rows:
        detail = row.get("summary") or row.get("reason") or row.get("suggested_action") or ""
        call.say(f"{row['id']}  P{row['priority']}  {row['title']}{f'  {detail}' if detail else ''}")


def _queue_order(bead: Bead) -> tuple[int, bool, int, int, bytes]:
    rank = bead.queue_rank
    return bead.priority, rank is None, rank or 0, instant_of(bead.created_at), bead.id.encode()


def _human_row(bead: Bead) -> dict[str, Any]:
    row = TrackerRow.to_read(bead)
    shown: dict[str, Any] = {"id": bead.id, "priority": bead.priority, "title": bead.title}
    shown |= {
        name.replace("-", "_"): row.text(f"needs-human-{name}") for name in _META if row.text(f"needs-human-{name}")
    }
    return shown | ({"labels": list(bead.labels)} if bead.labels else {})


def released(call: VerbCall) -> None:
    """``bead operator-attention``: claims that a stuck worker gave up, oldest first."""
    beads = call.store.read()
    rows: list[dict[str, Any]] = []
    for bead in beads.beads.values():
        if b"operator_attention" not in bead.raw and not bead.events_attachment:
            continue
        rows += [
            _release_row(bead.id, event)
            for event in history.events_of(TrackerRow.to_read(bead), call.workspace.ddx)
            if event.get("kind") == "operator_attention" and event.get("summary") in STUCK
        ]
    rows.sort(key=lambda row: row.get("created_at", ""))
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("No wedge/timeout lease releases.")
    for row in rows:
        attempt, last = row.get("attempt_id") or "-", row.get("last_activity_at") or "-"
        call.say(
            f"{row['bead_id']}  attempt={attempt}  last_activity_at={last}  {row['reason']}  {row.get('diagnosis', '')}"
        )


def _release_row(bead_id: str, event: history.Event) -> dict[str, Any]:
    try:
        body = loads(str(event.get("body", "")))
    except (ValueError, RecursionError):
        body = None
    told = {name: text for name, text in body.items() if isinstance(text, str)} if isinstance(body, dict) else {}
    created = parse_instant(event.get("created_at"))
    row = {
        "bead_id": told.get("bead_id") or bead_id,
        "attempt_id": told.get("attempt_id", ""),
        "last_activity_at": told.get("last_activity_at", ""),
        "reason": str(event.get("summary", "")),
        "diagnosis": told.get("diagnosis", ""),
        "created_at": second(created) if created is not None else "",
    }
    return {name: text for name, text in row.items() if text or name in ("bead_id", "reason")}


def resolve(call: VerbCall) -> None:
    """``bead human resolve``: what a person decided about a proposed bead."""
    action, why = call.given.text("action").strip(), call.given.text("note").strip()
    if not why:
        raise Refused("--note is required")
    children = list(dict.fromkeys(child.strip() for child in call.given.all("children") if child.strip()))
    if action not in ("retry", "split", "obsolete", "defer"):
        raise Refused(f'unknown --action "{action}" (valid: retry, split, obsolete, defer)')
    if action == "split" and not children:
        raise Refused("--children is required when --action split")
    with writing(call, f"human resolve {call.id}") as beads:
        beads.bead(call.id)
        if action == "split":
            _wait_for(call, beads, children)
        if action in ("retry", "split"):
            change_row(call, beads, call.id, _accept)
        body = f"{why}\nchildren: {', '.join(children)}" if action == "split" else why
        source, actor = "ddx bead human resolve", call.assignee()
        summary, now = f"action={action}", call.clock()
        said = history.new_event("needs_human_resolved", now, summary=summary, body=body, actor=actor, source=source)
        note(call, beads, call.id, said)
        if action == "obsolete":
            close_by_hand(call, beads, call.id)


def _accept(row: TrackerRow) -> None:
    transition(row, "open")
    labels = [item for item in row.items("labels") if loads(item) != "needs_human"]
    row.put_list("labels", labels)
    row.drop(*(f"needs-human-{name}" for name in _META))


def _wait_for(call: VerbCall, beads: Beads, children: list[str]) -> None:
    """Let a split bead wait for its parts."""
    for child in children:
        if child == call.id:
            raise Refused(f"split child cannot be the parent bead: {child}")
        if child not in beads.beads:
            raise Refused(f"split child {child}: bead: not found: {child}")
    new = [child for child in children if child not in beads.bead(call.id).depends_on]

    def change(row: TrackerRow) -> None:
        added = [edge(call.id, child, call.clock()) for child in new]
        row.put_list("dependencies", row.items("dependencies") + added)

    change_row(call, beads, call.id, change)
