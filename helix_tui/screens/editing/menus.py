"""Menus: everything that can be done to a bead, and the ways in which it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.editing import operations
from helix_tui.keymap import BY_ID, KEYS, names, shown
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.editing.links import whom
from helix_tui.screens.editing.requests import request_for

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.screens.editing.keys import TargetScreen

_NOT_OFFERED = {"change.actions", "change.stop"}


class BeadAction(Struct, frozen=True):
    """Something that can be done to the bead under the cursor."""

    name: str
    help: str
    action: str
    key_id: str = ""
    """The key that does it, if one does."""


_KEYLESS = (
    BeadAction("edit in a form", "title, acceptance, description and notes, here", "edit_form"),
    BeadAction("rank first", "to the top of its priority", "rank('top')"),
    BeadAction("rank before", "before another bead of its priority", "rank('before')"),
    BeadAction("rank after", "after another bead of its priority", "rank('after')"),
    BeadAction("rank none", "by age again", "rank('clear')"),
)


def deeds() -> Iterator[BeadAction]:
    """Everything that can be done to beads, in the order of the registry."""
    for key in KEYS:
        if key.id.startswith("change.") and "beads" in key.scope.split(",") and key.id not in _NOT_OFFERED:
            yield BeadAction(key.label, key.help, key.action, key.id)
    yield from _KEYLESS


def actions(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Everything that can be done to the beads, each with its key."""
    if not beads:
        return
    keymap = screen.console.keymap
    choices = []
    for deed in deeds():
        key = BY_ID.get(deed.key_id)
        name = names(keymap.get(key.id, key.keys))[0] if key is not None else ""
        word = shown(key, keymap) if key is not None else ""
        do = partial(screen.call_later, screen.run_action, deed.action)
        choices.append(Choice(name, word, deed.name, deed.help, do))
    screen.console.push_screen(ChoiceSheet(whom(beads), choices))


def endings(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Close, cancel, or open again; what does not fit the state says so."""
    if not beads:
        return
    ended = [bead for bead in beads if bead.status in TERMINAL]
    closed = [bead for bead in beads if bead.status == "closed"]
    unfinished = len(ended) < len(beads)

    def close() -> None:
        screen.look_ahead(request_for([operations.close(bead.id) for bead in beads]))

    def cancel() -> None:
        screen.look_ahead(request_for([operations.cancel(bead.id) for bead in beads]))

    def reopen() -> None:
        def told(reason: str) -> None:
            screen.look_ahead(request_for([operations.reopen(bead.id, reason) for bead in closed]))

        screen.console.push_screen(LineSheet(f"why reopen {whom(closed)}?", "reason", told))

    choices = [
        Choice("x", "x", "close", "mark as done", close, "" if unfinished else "it is already finished"),
        Choice(
            "r",
            "r",
            "open again",
            "asks for the reason, which stays in its history",
            reopen,
            "" if closed else "it is not closed",
        ),
        Choice(
            "c",
            "c",
            "cancel",
            "cancel permanently",
            cancel,
            "" if unfinished else "it is already finished",
        ),
    ]
    screen.console.push_screen(ChoiceSheet(f"{whom(beads)}: close, reopen or cancel?", choices))
