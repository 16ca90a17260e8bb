"""Explorations, plans and workspaces: what helix v1's orchestrator keeps beside the memories.

Tables: docs/formats/memory.md §1. What comes back has passed the guard, like a memory itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.memory.errors import MemoryFault
from helix_tui.core.memory.guard.guard import outward
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.plan_records import (
    MAX_TEXT,
    Exploration,
    MemoryPlan,
    PlanTask,
    TaskWorkspace,
    field_names,
    field_text,
    read_tasks,
)

Status = Literal["active", "delivered", "blocked"]


class PlanFault(MemoryFault):
    """A plan cannot be stored as it is; ``problems`` holds every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the plan cannot be used: {problems[0]}{more}", "Correct it and add it again.")


class Plans:
    """Explorations, plans and workspaces of one memory."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @outward
    def add_exploration(self, objective: str, data: object) -> Exploration:
        """Keep what was found out for an objective."""
        at = now_ns()
        with self._memory.write() as db:
            row_id = db.execute(
                "INSERT INTO exploration(objective, data, created_at) VALUES (?, ?, ?)",
                (objective[:MAX_TEXT], json.dumps(data, ensure_ascii=False), format_instant(at)),
            ).lastrowid
        return Exploration(int(row_id or 0), objective, data, at)

    @outward
    def explorations(self) -> list[Exploration]:
        """All explorations, newest first."""
        rows = self._memory.read("SELECT id, objective, data, created_at FROM exploration ORDER BY id DESC")
        return [Exploration(row[0], row[1], _decoded(row[2]), parse_instant(row[3])) for row in rows]

    @outward
    def add_plan(self, document: object) -> MemoryPlan:
        """Store a plan as a planner writes it: ``{objective, framework?, idioms?, tasks[]}``.

        Raises:
            PlanFault: something in it cannot be used; nothing was stored.
        """
        if not isinstance(document, dict):
            raise PlanFault(["it is not a JSON object"])
        objective = field_text(document.get("objective"))
        tasks, problems = read_tasks(document.get("tasks"))
        if not objective:
            problems.insert(0, "it has no objective")
        if problems:
            raise PlanFault(problems)
        idioms = document.get("idioms")
        idioms = idioms if isinstance(idioms, dict) else {}
        with self._memory.write() as db:
            row_id = db.execute(
                "INSERT INTO plan(objective, framework, idioms, tasks, status, created_at)"
                " VALUES (?, ?, ?, ?, 'active', ?)",
                (
                    objective,
                    field_text(document.get("framework")),
                    json.dumps(idioms, ensure_ascii=False),
                    json.dumps([task.document() for task in tasks], ensure_ascii=False),
                    format_instant(now_ns()),
                ),
            ).lastrowid
        found = self.plan(int(row_id or 0))
        assert found is not None
        return found

    @outward
    def plans(self) -> list[MemoryPlan]:
        """All plans, newest first."""
        return [_plan(row) for row in self._memory.read(f"{_PLAN} ORDER BY id DESC")]

    @outward
    def plan(self, plan_id: int) -> MemoryPlan | None:
        """One plan."""
        rows = self._memory.read(f"{_PLAN} WHERE id = ?", (plan_id,))
        return _plan(rows[0]) if rows else None

    @outward
    def open_workspace(self, plan: MemoryPlan, task: PlanTask, *, bead: str = "", agent: str = "") -> TaskWorkspace:
        """Begin a task: recall what is remembered for it, and tell it what its parents delivered."""
        done = {each.seq: each for each in self.workspaces(plan.id) if each.status == "delivered"}
        lineage = [
            {"seq": seq, "slug": done[seq].slug, "delivered": done[seq].delivered}
            for seq in task.depends
            if seq in done
        ]
        with self._memory.write() as db:
            row_id = db.execute(
                "INSERT INTO workspace(plan_id, task_seq, task_slug, objective, data, created_at)"
                " VALUES (?, ?, ?, ?, '{}', ?)",
                (plan.id, task.seq, task.slug, task.objective, format_instant(now_ns())),
            ).lastrowid
        number = int(row_id or 0)
        told = self._memory.inject(
            task.objective,
            files=task.delta,
            attempt="" if bead else f"workspace-{number}",
            bead=bead,
            agent=agent,
            kind="plan",
            limit=8,
        )
        known = [memory for line in told.shown if (memory := self._memory.get(line.memory_id)) is not None]
        found = [memory for memory in known if not memory.withheld]
        data = task.document() | {
            "framework": plan.framework,
            "idioms": {"required": list(plan.required), "forbidden": list(plan.forbidden)},
            "failures": [memory.document() for memory in found if memory.type != "pattern"],
            "patterns": [memory.document() for memory in found if memory.type == "pattern"],
            "lineage": {"parents": lineage},
            "bead": bead,
        }
        with self._memory.write() as db:
            db.execute("UPDATE workspace SET data = ? WHERE id = ?", (json.dumps(data, ensure_ascii=False), number))
        workspace = self.workspace(number)
        assert workspace is not None
        return workspace

    @outward
    def close_workspace(
        self, workspace_id: int, status: Status, delivered: str, utilized: Sequence[str] = ()
    ) -> TaskWorkspace | None:
        """End a task; what it says it used is kept as a claim until verification settles it."""
        workspace = self.workspace(workspace_id)
        if workspace is None:
            return None
        with self._memory.write() as db:
            db.execute(
                "UPDATE workspace SET status = ?, delivered = ?, utilized = ? WHERE id = ?",
                (status, delivered[:MAX_TEXT], json.dumps(list(utilized)), workspace_id),
            )
        if utilized and not workspace.data.get("bead"):
            self._memory.claim(workspace.attempt, utilized)
        return self.workspace(workspace_id)

    @outward
    def workspaces(self, plan_id: int | None = None) -> list[TaskWorkspace]:
        """All workspaces, newest first, or those of one plan."""
        if plan_id is None:
            return [_workspace(row) for row in self._memory.read(f"{_WORKSPACE} ORDER BY id DESC")]
        rows = self._memory.read(f"{_WORKSPACE} WHERE plan_id = ? ORDER BY id DESC", (plan_id,))
        return [_workspace(row) for row in rows]

    @outward
    def workspace(self, workspace_id: int) -> TaskWorkspace | None:
        """One workspace."""
        rows = self._memory.read(f"{_WORKSPACE} WHERE id = ?", (workspace_id,))
        return _workspace(rows[0]) if rows else None


_PLAN = "SELECT id, objective, framework, idioms, tasks, status, created_at FROM plan"
_WORKSPACE = (
    "SELECT id, plan_id, task_seq, task_slug, objective, data, status, delivered, utilized, created_at FROM workspace"
)


def _plan(row: Sequence[Any]) -> MemoryPlan:
    tasks, problems = read_tasks(_decoded(row[4]))
    idioms = _decoded(row[3])
    idioms = idioms if isinstance(idioms, dict) else {}
    return MemoryPlan(
        row[0],
        field_text(row[1]),
        tasks,
        field_text(row[2]),
        tuple(field_names(idioms.get("required"))),
        tuple(field_names(idioms.get("forbidden"))),
        field_text(row[5]) or "active",
        parse_instant(row[6]),
        tuple(problems),
    )


def _workspace(row: Sequence[Any]) -> TaskWorkspace:
    data = _decoded(row[5])
    return TaskWorkspace(
        row[0],
        row[1],
        field_text(row[2]),
        field_text(row[3]),
        field_text(row[4]),
        data if isinstance(data, dict) else {},
        field_text(row[6]) or "active",
        field_text(row[7]),
        tuple(field_names(_decoded(row[8]))),
        parse_instant(row[9]),
    )


def _decoded(text: object) -> Any:
    """What a JSON column holds; None where it is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
