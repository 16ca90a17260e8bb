"""Export a stored plan: as beads, in one reviewed change that can be undone as a whole, or as Claude Code tasks, as
tool calls or a task list on disk.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.operations import CreateBead
from helix_tui.core.editing.steps import NEW
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import names_in, read_bytes
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.writes import replace_file
from helix_tui.core.memory.plan_records import MemoryPlan, PlanTask, TaskWorkspace, in_order

_TITLE = 100
_SEQ = "seq:"

PENDING, IN_PROGRESS, COMPLETED = "pending", "in_progress", "completed"


def bead_operations(
    plan: MemoryPlan,
    beads: Mapping[str, Bead],
    *,
    parent: str = "",
    epic: bool = False,
    priority: int = 2,
    spec_id: str = "",
) -> list[CreateBead]:
    """The operations that create beads for a plan's tasks, prerequisites first.

    Args:
        beads: the tracker's, for this repository's kind of label and for existing beads.
        parent: put them under this bead.
        epic: make one epic of the plan's objective and put them under it.
        spec_id: the document that governs them; default ``plan-N``.

    Returns:
        Operations for one change, without tasks that already have a bead; others wait on that bead.
    """
    made = beads_of(plan, beads)
    if epic and made and not parent:  # no second epic for one plan: the rest joins the first
        parent = next(
            (i for i, bead in beads.items() if bead.issue_type == "epic" and _plan_label(plan) in bead.labels), ""
        )
    epic = epic and not made
    phase = _phase_label(beads.values())
    spec = spec_id or f"plan-{plan.id}"
    found: list[CreateBead] = []
    if epic:
        parent = _stand_in(len(found))
        found.append(
            CreateBead(
                title=_title(plan.objective),
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
            CreateBead(
                title=_title(f"{task.seq} {task.objective}"),
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
    """The seqs of a plan's tasks that already have a bead, with its id."""
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
    """The placeholder for a bead to be created in the same change."""
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


class TaskListTaken(HelixError):
    """The task list of this name exists, and is not this plan's."""


def list_name(plan: MemoryPlan) -> str:
    """The name of a plan's task list."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", f"helix-plan-{plan.key}")


def task_list(env: Mapping[str, str], name: str) -> Path:
    """The folder of a Claude Code task list."""
    own = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    return Path(own, "tasks", re.sub(r"[^a-zA-Z0-9_-]", "-", name))


def numbered(plan: MemoryPlan) -> dict[str, str]:
    """Task seq -> its id in a separate list, prerequisites first."""
    return {task.seq: str(number) for number, task in enumerate(in_order(plan.tasks), 1)}


def calls(plan: MemoryPlan) -> list[dict[str, Any]]:
    """The tool calls of Claude Code that register a plan in an empty task list, in order."""
    ids = numbered(plan)
    made: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    for task in in_order(plan.tasks):
        wanted = {"subject": task.title, "description": task.objective, "metadata": metadata(plan, task)}
        made.append({"tool": "TaskCreate", "input": wanted})
        if task.depends:
            blocked = {"taskId": ids[task.seq], "addBlockedBy": [ids[seq] for seq in task.depends]}
            waits.append({"tool": "TaskUpdate", "input": blocked})
    # every task first: a task can wait only on an existing one
    return [*made, *waits]


def metadata(plan: MemoryPlan, task: PlanTask, workspace: TaskWorkspace | None = None) -> dict[str, Any]:
    """A task's metadata: its limits, and the outcome of an ended workspace."""
    found: dict[str, Any] = {
        "helix_plan": plan.id,
        "seq": task.seq,
        "delta": list(task.delta),
        "verify": task.verify,
        "budget": task.budget,
    }
    if plan.framework:
        found["framework"] = plan.framework
    if plan.required or plan.forbidden:
        found["idioms"] = {"required": list(plan.required), "forbidden": list(plan.forbidden)}
    return found | (workspace.ending if workspace is not None else {})


def register(folder: Path, plan: MemoryPlan, workspaces: Iterable[TaskWorkspace]) -> list[Path]:
    """Write a plan's tasks as Claude Code's, or update those of an earlier call.

    Raises:
        TaskListTaken: the list has tasks that are not this plan's; nothing was written.
        OSError: it cannot be written.
    """
    # a task may have been started more than once: the last workspace counts
    newest = {workspace.seq: workspace for workspace in sorted(workspaces, key=lambda each: each.id)}
    ids = numbered(plan)
    blocks: dict[str, list[str]] = {seq: [] for seq in ids}
    for task in plan.tasks:
        for seq in task.depends:
            blocks[seq].append(ids[task.seq])
    documents = {
        ids[task.seq]: {
            "id": ids[task.seq],
            "subject": task.title,
            "description": task.objective,
            "status": _status(newest.get(task.seq)),
            "blocks": blocks[task.seq],
            "blockedBy": [ids[seq] for seq in task.depends],
            "metadata": metadata(plan, task, newest.get(task.seq)),
        }
        for task in plan.tasks
    }
    # checked before anything is written, so that a foreign list stays intact
    _must_be_ours(folder, plan)
    written = []
    for number, document in documents.items():
        path = folder / f"{number}.json"
        replace_file(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        written.append(path)
    return written


def _must_be_ours(folder: Path, plan: MemoryPlan) -> None:
    for name in names_in(folder):
        if not name.endswith(".json"):
            continue
        row = decode_json(read_bytes(folder / name))
        held = row.get("metadata") if isinstance(row, dict) else None
        if not isinstance(held, dict) or held.get("helix_plan") != plan.id:
            raise TaskListTaken(f"{folder} holds a task that is not of plan {plan.id}", "Name another list.")


def _status(workspace: TaskWorkspace | None) -> str:
    """A blocked task stays pending, with the reason in its metadata, so that dependents keep waiting."""
    if workspace is None or workspace.status == "blocked":
        return PENDING
    return COMPLETED if workspace.status == "delivered" else IN_PROGRESS
