"""A stored plan as tasks of Claude Code: the calls that make them, and a task list on disk.

Claude Code keeps its tasks in ``tasks/<list>/<id>.json`` below its configuration folder; a session that is
started with ``CLAUDE_CODE_TASK_LIST_ID=<list>`` shows them (ctrl+t). A task carries what its builder has to keep
to as metadata: files, command, budget, idioms; and later its outcome.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import replace_file
from helix_tui.core.memory.plan_records import MemoryPlan, PlanTask, TaskWorkspace, in_order

PENDING, IN_PROGRESS, COMPLETED = "pending", "in_progress", "completed"


class TaskListTaken(HelixError):
    """There is a task list of this name, and it is not this plan's."""


def list_name(plan: MemoryPlan) -> str:
    """What a plan's task list is called."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", f"helix-plan-{plan.key}")


def task_list(env: Mapping[str, str], name: str) -> Path:
    """Where Claude Code keeps a task list."""
    own = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    return Path(own, "tasks", re.sub(r"[^a-zA-Z0-9_-]", "-", name))


def numbered(plan: MemoryPlan) -> dict[str, str]:
    """Task's seq -> the id that it has in a list of its own, prerequisites first."""
    return {task.seq: str(number) for number, task in enumerate(in_order(plan.tasks), 1)}


def calls(plan: MemoryPlan) -> list[dict[str, Any]]:
    """The calls of Claude Code's own tools that register a plan in an empty task list, in order."""
    ids = numbered(plan)
    made: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    for task in in_order(plan.tasks):
        wanted = {"subject": task.title, "description": task.objective, "metadata": metadata(plan, task)}
        made.append({"tool": "TaskCreate", "input": wanted})
        if task.depends:
            blocked = {"taskId": ids[task.seq], "addBlockedBy": [ids[seq] for seq in task.depends]}
            waits.append({"tool": "TaskUpdate", "input": blocked})
    return [*made, *waits]


def metadata(plan: MemoryPlan, task: PlanTask, workspace: TaskWorkspace | None = None) -> dict[str, Any]:
    """What a task carries: its limits, and of a workspace that has ended what came of it."""
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
    """Write a plan's tasks as Claude Code's, or bring those of an earlier call up to date.

    Raises:
        TaskListTaken: the list holds tasks that are not this plan's; nothing was written.
        OSError: it cannot be written.
    """
    newest = {each.seq: each for each in sorted(workspaces, key=lambda each: each.id)}
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
    _must_be_ours(folder, plan)
    written = []
    for number, document in documents.items():
        path = folder / f"{number}.json"
        replace_file(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        written.append(path)
    return written


def _must_be_ours(folder: Path, plan: MemoryPlan) -> None:
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return
    for path in names:
        try:
            row = msgspec.json.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            row = None
        held = row.get("metadata") if isinstance(row, dict) else None
        if not isinstance(held, dict) or held.get("helix_plan") != plan.id:
            raise TaskListTaken(f"{folder} holds a task that is not of plan {plan.id}", "Name another list.")


def _status(workspace: TaskWorkspace | None) -> str:
    """A blocked task stays pending, with the reason in its metadata: what waits on it waits on."""
    if workspace is None or workspace.status == "blocked":
        return PENDING
    return COMPLETED if workspace.status == "delivered" else IN_PROGRESS
