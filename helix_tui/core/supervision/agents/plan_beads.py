"""A stored plan becomes beads: one reviewed change, with its dependencies, that can be taken back as one.

A plan's task is a bead whose acceptance is its verify command; what it may touch and spend stands in its
description, where the agent reads it (docs/formats/memory.md §3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from helix_tui.core.beads.record import Bead
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.steps import NEW
from helix_tui.core.memory.plan_records import MemoryPlan, PlanTask, in_order

_TITLE = 100
_SEQ = "seq:"


def bead_operations(
    plan: MemoryPlan,
    beads: Mapping[str, Bead],
    *,
    parent: str = "",
    epic: bool = False,
    priority: int = 2,
    spec_id: str = "",
) -> list[Operation]:
    """What makes beads of a plan's tasks, prerequisites first.

    Args:
        beads: the tracker's, for the kind of label that this repository uses and for what is made already.
        parent: put them under this bead.
        epic: make one epic of the plan's objective and put them under it.
        spec_id: the document they are built against; ``plan-N`` where there is none.

    Returns:
        Operations for one change; a task that has a bead already is left out, and others wait on that bead.
    """
    made = beads_of(plan, beads)
    epic = epic and not made
    phase = _phase_label(beads.values())
    spec = spec_id or f"plan-{plan.id}"
    found: list[Operation] = []
    if epic:
        parent = _stand_in(len(found))
        found.append(
            operations.create(
                _title(plan.objective),
                issue_type="epic",
                priority=priority,
                labels=("helix", phase, "kind:plan", _plan_label(plan)),
                acceptance=f"`helix-tui memory plan show {plan.id}` shows every task as closed",
                description=plan.objective,
                spec_id=spec,
            )
        )
    places = dict(made)
    for task in in_order(plan.tasks):
        if task.seq in made:
            continue
        places[task.seq] = _stand_in(len(found))
        found.append(
            operations.create(
                _title(f"{task.seq} {task.objective}"),
                priority=priority,
                labels=("helix", phase, "kind:plan", _plan_label(plan), f"{_SEQ}{task.seq}"),
                parent=parent,
                depends_on=[places[seq] for seq in task.depends],
                spec_id=spec,
                acceptance=_acceptance(task),
                description=_description(plan, task),
            )
        )
    return found


def beads_of(plan: MemoryPlan, beads: Mapping[str, Bead]) -> dict[str, str]:
    """The seqs of a plan's tasks that have a bead already, and which."""
    return {
        label.removeprefix(_SEQ): bead_id
        for bead_id, bead in beads.items()
        if _plan_label(plan) in bead.labels
        for label in bead.labels
        if label.startswith(_SEQ)
    }


def _plan_label(plan: MemoryPlan) -> str:
    return f"plan:{plan.key}"


def _stand_in(number: int) -> str:
    """What a bead that is to be made is called in the same change."""
    return NEW if number == 0 else f"(new {number + 1})"


def _phase_label(beads: Iterable[Bead]) -> str:
    """``phase:build`` or ``activity:build``, whichever this repository uses (docs/decisions/0010)."""
    used = Counter(
        label.partition(":")[0] for bead in beads for label in bead.labels if label.startswith(("phase:", "activity:"))
    )
    return "activity:build" if used["activity"] > used["phase"] else "phase:build"


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"


def _acceptance(task: PlanTask) -> str:
    lines = [f"1. `{task.verify}` passes"]
    if task.delta:
        files = ", ".join(f"`{name}`" for name in task.delta)
        lines.append(f"2. `git diff --name-only` shows only {files}")
    return "\n".join(lines)


def _description(plan: MemoryPlan, task: PlanTask) -> str:
    parts = [
        task.objective,
        f"DELTA: {', '.join(task.delta)}" if task.delta else "",
        f"VERIFY: {task.verify}",
        f"BUDGET: {task.budget} tool calls",
        f"FRAMEWORK: {plan.framework}" if plan.framework else "",
        f"KEEP TO: {'; '.join(plan.required)}" if plan.required else "",
        f"AVOID: {'; '.join(plan.forbidden)}" if plan.forbidden else "",
        f"Task {task.title} of plan {plan.id}: {plan.objective}",
    ]
    return "\n\n".join(part for part in parts if part)
