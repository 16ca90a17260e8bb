"""``bead evidence``: events that a person or a tool leaves on a bead."""

from __future__ import annotations

from helix_ddx.base.go_format import second_text
from helix_ddx.store import events as history
from helix_ddx.store.call import VerbCall
from helix_ddx.verbs.close import note
from helix_ddx.verbs.lists import say_ordered


def add(call: VerbCall) -> None:
    """``bead evidence add``."""
    given = call.given
    event = history.new_event(
        given.text("kind") or "summary",
        call.clock(),
        summary=given.text("summary"),
        body=given.text("body"),
        actor=given.text("actor") or call.assignee(),
        source=given.text("source") or "ddx bead evidence add",
    )
    with call.store.change() as beads:
        note(call, beads, call.id, event)


def list_events(call: VerbCall) -> None:
    """``bead evidence list``: oldest first."""
    row = call.store.read().shown(call.id)
    events = history.events_of(row, call.workspace.ddx)
    if call.given.on("json"):
        say_ordered(call, [history.shown(event) for event in events])
        return
    for event in events:
        call.say(f"{second_text(event.get('created_at'))}  {event.get('kind', '')}  {event.get('summary', '')}")
