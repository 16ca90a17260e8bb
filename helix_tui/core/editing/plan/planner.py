"""From wishes to commands: what runs, what it rests on, what it leads to, and the way back.

A plan is made on one state of the tracker and changes nothing. Many operations are planned one on top of the
other, so that the third knows what the first two will have done.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import Dialect, shut
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Fields, Overlay
from helix_tui.core.editing.plan import fields as deeds
from helix_tui.core.editing.plan import lifecycle
from helix_tui.core.editing.plan.inverse import TRACES, WayBack, way_back
from helix_tui.core.editing.plan.lifecycle import plan_create
from helix_tui.core.editing.steps import CommandStep, OperationRefused, PlanBuilder, called

PLANNERS = {**deeds.PLANNERS, **lifecycle.PLANNERS, "create": plan_create}


class Refusal(Struct, frozen=True):
    """An operation that does not hold now, and why."""

    operation: Operation
    why: str


class Plan(Struct, frozen=True):
    """Everything known of some operations before they run."""

    kind: str
    title: str
    """What is done, in one sentence for people."""
    steps: tuple[CommandStep, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    """What somebody should know before it runs."""
    back: WayBack = field(default_factory=WayBack)
    """The way back as far as it is known beforehand."""
    of: str = ""
    """The journal entry that it undoes or does again; empty where it is neither."""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands, each as its words."""
        return tuple(("ddx", *step.args) for step in self.steps)

    @property
    def lines(self) -> tuple[str, ...]:
        """The commands as one would type them."""
        return tuple(shlex.join(words) for words in self.commands)

    @property
    def way_back(self) -> tuple[str, ...]:
        """The commands that would undo it, as one would type them; known as far as the plan is."""
        return tuple(shlex.join(("ddx", *step.args)) for step in self.back.steps)

    @property
    def touched(self) -> dict[str, tuple[str, ...]]:
        """Per bead the fields that are, or may be, changed."""
        return touched_by(self.steps)

    @property
    def undoable(self) -> bool:
        """Whether there is a way back."""
        return bool(self.steps) and not self.back.lost


def plan(
    operations: Iterable[Operation],
    queue: Queue,
    dialect: Dialect,
    *,
    busy: Collection[str] = (),
    title: str = "",
) -> Plan:
    """Plan operations on a queue; those that do not hold are left out and told."""
    wanted = list(operations)
    writing = PlanBuilder(Overlay(queue), dialect, busy, refused=shut(queue.beads, dialect))
    refusals = []
    for operation in wanted:
        mark = len(writing.steps)
        try:
            PLANNERS[operation.kind](writing, operation)
        except OperationRefused as error:
            refusals.append(Refusal(operation, str(error)))
            if len(writing.steps) > mark:
                writing = _up_to(writing, queue, mark)
    steps = tuple(writing.steps)
    kinds = {operation.kind for operation in wanted}
    return Plan(
        kind=kinds.pop() if len(kinds) == 1 else "several",
        title=title or describe(wanted),
        steps=steps,
        refusals=tuple(refusals),
        notes=tuple(dict.fromkeys(writing.notes)),
        back=plan_back(steps, queue, dialect) if steps else WayBack(),
    )


def plan_back(steps: Sequence[CommandStep], queue: Queue, dialect: Dialect) -> WayBack:
    """The way back from where steps will lead, as far as that is known beforehand."""
    after = Overlay(queue)
    for step in steps:
        after.apply(step.edits, step.leases)
        after.apply(step.ripple)
    goal = {bead_id: fields for bead_id, fields in values_before(steps, queue).items() if bead_id in after.edits}
    return way_back(PlanBuilder(after, dialect), goal)


def agree(made: Plan, shown: Plan) -> bool:
    """Whether a plan is what somebody agreed to: the same commands, resting on the same values, closing the
    same beads. Instants that each plan takes from its own clock do not count."""
    return _promise(made) == _promise(shown)


def _promise(made: Plan) -> list[tuple[Any, ...]]:
    return [
        (
            step.args,
            step.before,
            {bead_id: fields.get("status") for bead_id, fields in step.ripple.items()},
        )
        for step in made.steps
    ]


def values_before(steps: Sequence[CommandStep], queue: Queue) -> dict[str, Fields | None]:
    """Per bead what it holds in the fields that steps touch; None for a bead that they make."""
    overlay = Overlay(queue)
    return {
        bead_id: overlay.values(bead_id, fields) if bead_id in overlay else None
        for bead_id, fields in touched_by(steps).items()
    }


def touched_by(steps: Iterable[CommandStep]) -> dict[str, tuple[str, ...]]:
    """Per bead the fields that steps change, or may change."""
    found: dict[str, dict[str, None]] = {}
    for step in steps:
        for edits in (step.edits, step.ripple):
            for bead_id, fields in edits.items():
                found.setdefault(bead_id, {}).update(dict.fromkeys(fields))
        for bead_id, name in step.watched:
            found.setdefault(bead_id, {})[name] = None
    return {bead_id: tuple(name for name in fields if name not in TRACES) for bead_id, fields in found.items()}


def _up_to(writing: PlanBuilder, queue: Queue, mark: int) -> PlanBuilder:
    """The plan without the steps of an operation that was refused half-way."""
    shorter = PlanBuilder(Overlay(queue), writing.dialect, writing.busy)
    shorter.notes = writing.notes
    shorter.steps = writing.steps[:mark]
    for step in shorter.steps:
        shorter.overlay.apply(step.edits, step.leases)
        shorter.overlay.apply(step.ripple)
    return shorter


_SAYINGS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "eligible": lambda v: "allow workers to pick {}" if v["on"] else "forbid workers to pick {}",
    "supersede": lambda v: f"mark {{}} as superseded by {called(v['by'])}" if v["by"] else "clear superseded-by of {}",
    "depend": lambda v: f"add dependency: {{}} waits on {called(v['on'])}",
    "undepend": lambda v: f"remove dependency: {{}} no longer waits on {called(v['on'])}",
    "parent": lambda v: f"set parent of {{}} to {called(v['under'])}" if v["under"] else "clear parent of {}",
    "priority": lambda v: f"set priority of {{}} to P{v['level']}",
    "rank": lambda v: _rank_saying(v),
    "label": lambda v: _label_saying(v),
    "claim": lambda v: "claim {}",
    "unclaim": lambda v: "release {}",
    "close": lambda v: "close {}",
    "reopen": lambda v: "reopen {}",
    "cancel": lambda v: "cancel {}",
    "drop": lambda v: "drop the kept change of {}",
    "set": lambda v: f"set {', '.join(map(called, v['fields']))} of {{}}",
    "unset": lambda v: f"clear {', '.join(map(called, v['names']))} of {{}}",
    "create": lambda v: f"create “{called(v['title'])}”",
}


def _rank_saying(values: Mapping[str, Any]) -> str:
    if values["top"]:
        return "move {} to the top of its priority"
    for word in ("before", "after"):
        if values[word]:
            return f"move {{}} {word} {called(values[word])}"
    return "clear rank of {}"


def _label_saying(values: Mapping[str, Any]) -> str:
    parts = [f"+{called(text)}" for text in values["add"]] + [f"-{called(text)}" for text in values["remove"]]
    return f"label {{}} {' '.join(parts)}"


def describe(operations: Sequence[Operation]) -> str:
    """One sentence for what is done."""
    if not operations:
        return "nothing"
    sayings = {_SAYINGS[operation.kind](operation.values) for operation in operations}
    if len(sayings) > 1:
        return f"{len(operations)} operations"
    ids = [operation.bead_id for operation in operations]
    whom = called(ids[0]) if len(ids) == 1 else f"{len(ids)} beads"
    return sayings.pop().replace("{}", whom, 1)
