"""What somebody changed in the meantime: shown with both versions, never written over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.contrast import apart
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.overlay import Edits, Overlay, canonical_absent, same
from helix_tui.core.editing.steps import CommandStep, called
from helix_tui.core.ground.errors import HelixError


class Unreadable(HelixError):
    """The tracker is not there or cannot be read: nothing may be planned on a guess."""


class NotUndoable(HelixError):
    """A change that no command takes back; the message says why."""

    def __init__(self, entry: JournalEntry, why: str) -> None:
        super().__init__(why)
        self.entry = entry


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody changed: what was expected there, and what stands there now."""

    bead_id: str
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        name = f"{called(self.bead_id)}: {called(self.field)}"
        ours, theirs = apart(self.field, self.ours, self.theirs)
        return f"{name} was {ours} and is {theirs} now"


class Conflict(HelixError):
    """Somebody changed since what is about to be changed; nothing was written over it.

    Attributes:
        differences: both versions, field by field.
        entry: the change that was to be taken back or done again, if it was one.
        ran: how many commands of the change had run before, and stay done.
        of: how many it has.
    """

    def __init__(
        self, differences: Sequence[Difference], entry: JournalEntry | None = None, *, ran: int = 0, of: int = 0
    ) -> None:
        super().__init__("; ".join(map(str, differences[:5])) or "the queue has changed")
        self.differences = tuple(differences)
        self.entry = entry
        self.ran, self.of = ran, of


class PlanChanged(Conflict):
    """What would run by now is not what was shown; nothing ran. The plan is to be shown again."""


def differences(
    expected: Edits | Mapping[str, Mapping[str, Any] | None], beads: Mapping[str, Bead]
) -> list[Difference]:
    """Where rows differ from what is expected of them; a bead that is gone differs in every field."""
    found = []
    for bead_id, fields in expected.items():
        bead = beads.get(bead_id)
        row = bead.document() if bead is not None else {}
        for name, value in (fields or {}).items():
            now = canonical_absent(name, row.get(name))
            if bead is None or not same(name, now, value):
                found.append(Difference(bead_id, name, value, now))
    return found


def differences_in(expected: Edits | Mapping[str, Mapping[str, Any] | None], overlay: Overlay) -> list[Difference]:
    """The same against rows as planned changes leave them."""
    return [
        Difference(bead_id, name, value, overlay.value(bead_id, name))
        for bead_id, fields in expected.items()
        for name, value in (fields or {}).items()
        if bead_id not in overlay or not same(name, overlay.value(bead_id, name), value)
    ]


def rests_on(steps: Sequence[CommandStep]) -> dict[str, dict[str, Any]]:
    """What rows must hold before the first of these steps for all of them to be right."""
    first: dict[str, dict[str, Any]] = {}
    for step in steps:
        for bead_id, fields in step.before.items():
            kept = first.setdefault(bead_id, {})
            for name, value in fields.items():
                kept.setdefault(name, value)
    made = {step.creates for step in steps if step.creates}
    return {bead_id: fields for bead_id, fields in first.items() if bead_id not in made}
