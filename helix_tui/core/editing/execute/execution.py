"""Small parts of running a plan: what was promised, what came of it, what the journal keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.plan.planner import Plan
from helix_tui.core.editing.steps import CommandStep
from helix_tui.core.editing.undo.conflicts import PlanChanged, differences, rests_on


def insist(made: Plan, shown: Plan | None, queue: Queue) -> None:
    """Refuse to run another plan than the one that was shown.

    Raises:
        PlanChanged: it is another one.
    """
    if shown is not None and [step.args for step in made.steps] != [step.args for step in shown.steps]:
        raise PlanChanged(differences(rests_on(shown.steps), queue.beads))


def interrupted(step: CommandStep, stop: BaseException) -> DdxError:
    """A person, or a polite kill, ended a command; with the exit code that a shell gives that."""
    code = stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
    return DdxError(("ddx", *step.args), "interrupted", "look at the bead, and do it again if you still want it", code)


def mentioned(history: JournalHistory, but: set[str]) -> set[str]:
    """Ids of all beads that entries name, ``but`` some entries."""
    return {bead_id for entry in history.entries if entry.id not in but for bead_id in (*entry.before, *entry.after)}


def shift(before: Queue, after: Queue, steps: Iterable[CommandStep]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(newly ready, newly blocked) by some steps; what others changed meanwhile is not theirs."""
    near = _reached(before, after, steps)
    was, now = set(before.ready), set(after.ready)
    ready = tuple(bead_id for bead_id in after.ready if bead_id not in was and bead_id in near)
    gone = [bead_id for bead_id in before.ready if bead_id not in now and bead_id in after.beads]
    free = TERMINAL | {"claimed", "running"}
    return ready, tuple(bead_id for bead_id in gone if bead_id in near and after.state(bead_id) not in free)


def _reached(before: Queue, after: Queue, steps: Iterable[CommandStep]) -> set[str]:
    """The beads that steps touch, those that wait for them and those above them."""
    touched: set[str] = set()
    for step in steps:
        touched |= {*step.edits, *step.ripple, *(bead_id for bead_id, _ in step.watched)}
    near = set(touched)
    for queue in (before, after):
        for bead_id in touched & queue.beads.keys():
            near |= {*queue.graph.dependents.get(bead_id, ()), queue.beads[bead_id].parent}
    return near


def operation_record(operation: Operation) -> dict[str, Any]:
    """An operation as the journal keeps it."""
    return {"kind": operation.kind, "bead_id": operation.bead_id, "values": operation.values}
