"""Fields that others changed between a plan and its execution, which makes the plan out of date (`PlanChanged`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.errors import HelixError

if TYPE_CHECKING:
    from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import CommandStep, called
from helix_tui.core.editing.values import Edits, apart, canonical_absent, same


class Difference(Struct, frozen=True):
    """A field that was changed by others: the expected and the current value."""

    bead_id: str
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        name = f"{called(self.bead_id)}: {called(self.field)}"
        ours, theirs = apart(self.field, self.ours, self.theirs)
        return f"{name} was {ours} and is {theirs} now"


class Conflict(HelixError):
    """The fields to change were changed by others meanwhile; nothing was overwritten.

    Attributes:
        differences: both versions, field by field.
        entry: the change to undo or redo, if it was one.
        ran: how many commands of the change had run, and stay in effect.
        of: the number of its commands.
    """

    def __init__(
        self, differences: Sequence[Difference], entry: JournalEntry | None = None, *, ran: int = 0, of: int = 0
    ) -> None:
        super().__init__("; ".join(map(str, differences[:5])) or "the queue has changed")
        self.differences = tuple(differences)
        self.entry = entry
        self.ran, self.of = ran, of


class PlanChanged(Conflict):
    """Other commands would run now than were confirmed; nothing ran. Show the plan again."""


def differences(
    expected: Edits | Mapping[str, Mapping[str, Any] | None], beads: Mapping[str, Bead]
) -> list[Difference]:
    """Where rows differ from expected values; a missing bead differs in every field."""
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
    """The same for rows after planned changes."""
    return [
        Difference(bead_id, name, value, overlay.value(bead_id, name))
        for bead_id, fields in expected.items()
        for name, value in (fields or {}).items()
        if bead_id not in overlay or not same(name, overlay.value(bead_id, name), value)
    ]


def preconditions(steps: Sequence[CommandStep]) -> dict[str, dict[str, Any]]:
    """The values that rows must have before the first of these steps."""
    first: dict[str, dict[str, Any]] = {}
    for step in steps:
        for bead_id, fields in step.before.items():
            kept = first.setdefault(bead_id, {})
            for name, value in fields.items():
                # a later step may depend on an earlier one's effect: the first value counts
                kept.setdefault(name, value)
    made = {step.creates for step in steps if step.creates}
    return {bead_id: fields for bead_id, fields in first.items() if bead_id not in made}
