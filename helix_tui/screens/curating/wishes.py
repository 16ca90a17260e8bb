"""What somebody is about to do: how it is planned on a state of the queue, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helix_tui.core.journal import Entry
from helix_tui.core.supervision.curation.conflicts import Conflict, NotUndoable
from helix_tui.core.supervision.curation.curator import Curator, Done, Sight
from helix_tui.core.supervision.curation.operations import Operation
from helix_tui.core.supervision.curation.planning import Plan, describe, plan
from helix_tui.core.supervision.curation.retracing import foretell
from helix_tui.core.supervision.curation.steps import Writing


@dataclass(frozen=True, slots=True)
class Wish:
    """One change that may be made. Both calls are for worker threads, each with a curator of its own."""

    title: str
    beads: tuple[str, ...]
    """The beads that it is about, for the mark on their rows."""
    plan: Callable[[Curator, Sight], Plan]
    """What it would run; touches nothing."""
    run: Callable[[Curator, Plan], Done | None]
    """Do what was shown."""


def wish_for(operations: Sequence[Operation], title: str = "") -> Wish:
    """The wish to do some operations as one change."""
    wanted = list(operations)

    def planned(curator: Curator, sight: Sight) -> Plan:
        return plan(wanted, sight.queue, curator.tongue(sight.queue), busy=sight.busy, title=title)

    def run(curator: Curator, shown: Plan) -> Done:
        return curator.run(wanted, shown=shown, title=title)

    beads = tuple(dict.fromkeys(operation.bead_id for operation in wanted if operation.bead_id))
    return Wish(title or describe(wanted), beads, planned, run)


def wish_for_steps(
    kind: str, title: str, beads: Sequence[str], make: Callable[[Writing, Sight], None]
) -> Wish:
    """The wish to run steps that are planned on what the queue then holds."""

    def planned(curator: Curator, sight: Sight) -> Plan:
        return curator.plan_steps(kind, title, make, sight)

    def run(curator: Curator, shown: Plan) -> Done:
        return curator.run_steps(kind, title, make, shown=shown)

    return Wish(title, tuple(beads), planned, run)


def undo_wish() -> Wish:
    """The wish to take back the last change of people."""

    shown: list[Entry | None] = [None]

    def planned(curator: Curator, sight: Sight) -> Plan:
        shown[0] = next(iter(curator.history().to_undo(curator.me)), None)
        return _plan_turn("undo", "take back", shown[0], curator, sight)

    return Wish("take back the last change", (), planned, lambda curator, _: curator.undo(shown[0]))


def redo_wish() -> Wish:
    """The wish to do again what was taken back last."""

    shown: list[Entry | None] = [None]

    def planned(curator: Curator, sight: Sight) -> Plan:
        shown[0] = next(iter(curator.history().to_redo(curator.me)), None)
        return _plan_turn("redo", "do again", shown[0], curator, sight)

    return Wish("do again what was taken back", (), planned, lambda curator, _: curator.redo(shown[0]))


def _plan_turn(kind: str, word: str, entry: Entry | None, curator: Curator, sight: Sight) -> Plan:
    """What taking back or doing again would run.

    Raises:
        Conflict: somebody changed since what it would touch.
        NotUndoable: it cannot be done.
    """
    if entry is None:
        return Plan(kind, f"there is nothing to {word}")
    tongue = curator.tongue(sight.queue)
    retreat = foretell([entry], curator.history(), sight.queue, tongue, sight.busy)
    turn = retreat.problem
    if turn is not None and turn.differences:
        raise Conflict(turn.differences, entry)
    if turn is not None:
        raise NotUndoable(entry, turn.problem)
    traces = tuple(trace for each in retreat.turns for trace in each.traces)
    return Plan(kind, f"{word} {entry.id}: {entry.title}", retreat.steps, notes=traces)
