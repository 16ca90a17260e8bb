"""Undo and redo along the journal: the state of its entries, and the commands that would run.

Nothing here changes anything. Several steps are planned one on top of the other, so that the whole way back is shown
before its first command runs; it ends at the first step that is not possible. Changes by others are shown with both
versions (`Difference`), never overwritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.remarks import shut
from helix_tui.core.editing.differences import Difference, differences_in
from helix_tui.core.editing.journal import JournalEntry, JournalHistory
from helix_tui.core.editing.operations import Operation, Recorded
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import rewrites_remain, still_rewritten, way_back
from helix_tui.core.editing.steps import CommandStep, OperationRefused, PlanBuilder
from helix_tui.core.editing.values import canonical_absent, same
from helix_tui.core.ground.errors import HelixError

UNREADABLE = "the journal's record of it cannot be read by this release"


class Unreadable(HelixError):
    """The tracker is missing or cannot be read, so nothing can be planned."""


class NotUndoable(HelixError):
    """A change that no command undoes; the message says why."""

    def __init__(self, entry: JournalEntry, why: str) -> None:
        super().__init__(why)
        self.entry = entry


State = Literal["done", "undone", "conflicted", "partial", "final", "failed", "pending"]
"""The state of an entry; ``final``: it cannot be undone; ``partial``: it got half-way."""


class EntryStatus(Struct, frozen=True):
    """The state of one entry compared with the rows."""

    state: State
    why: str = ""
    """Details in one sentence, or empty."""
    differences: tuple[Difference, ...] = ()
    """Later changes that are not in the journal."""
    covered_by: str = ""
    """A later entry that changed the same fields and must be undone first."""


class EntryChecker:
    """Compares entries with rows; caches decoded rows."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Bead, dict[str, Any]]] = {}

    def marks(self, history: JournalHistory, beads: Mapping[str, Bead]) -> dict[str, EntryStatus]:
        """The state of every entry."""
        turned = history.turned()
        standing = [entry for entry in history.entries if entry.plain and entry.standing]
        # latest first: an entry must have left what the next one found, or the current value
        standing.sort(key=lambda entry: -turned.get(entry.id, entry.seq))
        expected: dict[tuple[str, str], tuple[Any, str]] = {}
        found = {entry.id: _plain_mark(entry) for entry in history.entries}
        for entry in standing:
            found[entry.id] = self._mark(entry, expected, beads)
            for bead_id, fields in entry.before.items():
                after = entry.after.get(bead_id) or {}
                for name in after:
                    expected[bead_id, name] = (fields or {}).get(name), entry.id
        for entry in history.entries:
            if entry.kind == "redo" and entry.of in found and not entry.undone_by:
                found[entry.id] = _as_its_root(found[entry.id], found[entry.of])
        return found

    def _mark(
        self, entry: JournalEntry, expected: Mapping[tuple[str, str], tuple[Any, str]], beads: Mapping[str, Bead]
    ) -> EntryStatus:
        differing, covered = [], ""
        for bead_id, fields in entry.after.items():
            for name, ours in (fields or {}).items():
                later = expected.get((bead_id, name))
                now = later[0] if later is not None else self._value(beads, bead_id, name)
                covered = covered or (later[1] if later is not None else "")
                if (later is None and bead_id not in beads) or not same(name, now, ours):
                    differing.append(Difference(bead_id, name, ours, now))
        mark = _plain_mark(entry)
        if differing:
            return EntryStatus("conflicted", "somebody changed it since", tuple(differing), covered)
        return EntryStatus(mark.state, mark.why, (), covered)

    def _value(self, beads: Mapping[str, Bead], bead_id: str, name: str) -> Any:
        bead = beads.get(bead_id)
        if bead is None:
            return None
        known = self._rows.get(bead_id)
        # an unchanged row keeps its object, and decoding is expensive
        if known is None or known[0] is not bead:
            known = self._rows[bead_id] = (bead, bead.document())
        return canonical_absent(name, known[1].get(name))


def _as_its_root(mark: EntryStatus, root: EntryStatus) -> EntryStatus:
    """A redo has the state of the change that it redid."""
    return root if mark.state in ("done", "partial") and root.state == "undone" else mark


def _plain_mark(entry: JournalEntry) -> EntryStatus:
    """The state by the journal alone."""
    if entry.result == "pending":
        return EntryStatus("pending", "it is still running, or its process died: the next change settles it")
    if entry.result in ("failed", "not_done"):
        return EntryStatus("failed", "nothing was changed")
    if entry.undone_by:
        return EntryStatus("undone", f"undone by {entry.undone_by}")
    if entry.result == "partial":
        return EntryStatus("partial", "some of its commands ran")
    if entry.plain and not entry.undoable:
        return EntryStatus("final", entry.why_not or "no command undoes it")
    return EntryStatus("done")


class UndoStep(Struct, frozen=True):
    """One entry to undo or redo."""

    entry: JournalEntry
    steps: tuple[CommandStep, ...] = ()
    traces: tuple[str, ...] = ()
    """What stays behind although the values are restored."""
    problem: str = ""
    """Why it is not possible; nothing after it is planned."""
    differences: tuple[Difference, ...] = ()

    @property
    def back(self) -> bool:
        """Whether it is undone; else it is redone."""
        return self.entry.standing


class UndoPlan(Struct, frozen=True):
    """Undo steps, one on top of the other."""

    turns: tuple[UndoStep, ...] = ()

    @property
    def steps(self) -> tuple[CommandStep, ...]:
        """Every command that would run."""
        return tuple(step for turn in self.turns for step in turn.steps)

    @property
    def problem(self) -> UndoStep | None:
        """The step at which it stops, if it does so before its goal."""
        return self.turns[-1] if self.turns and self.turns[-1].problem else None


def plan_undo(
    entries: Iterable[JournalEntry], history: JournalHistory, queue: Queue, dialect: Dialect, busy: Collection[str] = ()
) -> UndoPlan:
    """Plan to undo the entries that are applied and redo those that are not."""
    writing = PlanBuilder(Overlay(queue), dialect, busy, refused=shut(queue.beads, dialect))
    turns: list[UndoStep] = []
    for entry in entries:
        turns.append(_turn(entry, history, writing))
        if turns[-1].problem:
            break
    return UndoPlan(tuple(turns))


def _turn(entry: JournalEntry, history: JournalHistory, writing: PlanBuilder) -> UndoStep:
    if writing.refused is not None:
        return UndoStep(entry, problem=str(writing.refused))
    if not entry.standing and not entry.undone_by:
        return UndoStep(entry, problem=f"{entry.id} changed nothing that is still there")
    source = entry if entry.standing else history.get(entry.undone_by)
    if source is None:
        return UndoStep(entry, problem="the journal no longer records how it was undone")
    differing = tuple(differences_in(source.after, writing.overlay))
    if differing:
        return UndoStep(entry, problem="somebody changed the same field since", differences=differing)
    if entry.standing and entry.why_empty:
        return UndoStep(entry, problem=entry.why_empty)
    mark = len(writing.steps)
    if entry.standing or not entry.operations:
        back = way_back(writing, source.before)
        steps = tuple(writing.steps[mark:])
        if back.lost:
            return UndoStep(entry, problem="; ".join(back.lost))
        remain = rewrites_remain(still_rewritten(entry.rewritten, writing.overlay)) if entry.standing else ()
        return UndoStep(entry, steps, (*back.traces, *remain))
    try:
        for operation in operations_of(entry):
            operation.plan(writing)
    except OperationRefused as error:
        return UndoStep(entry, problem=str(error))
    return UndoStep(entry, tuple(writing.steps[mark:]))


def operations_of(entry: JournalEntry) -> tuple[Operation, ...]:
    """The operations behind an entry, as the journal keeps them.

    Raises:
        OperationRefused: they have a form that this release does not know.
    """
    return tuple(_operations(entry))


def _operations(entry: JournalEntry) -> Iterator[Operation]:
    for record in entry.operations:
        values = record.get("values")
        if not isinstance(values, dict):
            raise OperationRefused(UNREADABLE)
        tagged = {**values, "kind": record.get("kind"), "bead_id": record.get("bead_id", "")}
        try:
            operation: Operation = msgspec.convert(tagged, Recorded)
        except msgspec.ValidationError:
            raise OperationRefused(UNREADABLE) from None
        # with a value missing or one too many, another operation would be redone
        if operation.record()["values"].keys() != values.keys():
            raise OperationRefused(UNREADABLE)
        yield operation
