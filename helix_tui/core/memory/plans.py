"""Explorations, plans and workspaces: what seed 004's orchestrator keeps beside the memories.

Tables and shapes: seed 004, "Database Schema" and "Workspace Format". A plan comes from a model, so every
field is checked before it is stored: names that repeat, dependencies that lead nowhere or in a circle are
refused with all their reasons at once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from helix_tui.core.clock import format_instant, now_ns, parse_instant
from helix_tui.core.memory.errors import MemoryFault
from helix_tui.core.memory.store import MemoryStore

BUDGET = (5, 9)
"""Tool calls that a task may take (seed 003: 5-9)."""

MAX_TASKS = 200
_LONGEST = 4_000

Status = Literal["active", "delivered", "blocked"]


class PlanFault(MemoryFault):
    """A plan cannot be stored as it is; ``problems`` holds every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the plan cannot be used: {problems[0]}{more}", "Mend it and add it again.")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a plan (seed 004, Planner)."""

    seq: str
    slug: str
    objective: str
    delta: tuple[str, ...] = ()
    """Files that may be changed; nothing else may."""
    verify: str = ""
    depends: tuple[str, ...] = ()
    """Seqs of tasks that must be delivered first."""
    budget: int = 7

    @property
    def title(self) -> str:
        """As seed 003 writes a task's subject: ``001: spec-auth-models``."""
        return f"{self.seq}: {self.slug}"

    def document(self) -> dict[str, Any]:
        """The keys of the seed."""
        return {
            "seq": self.seq,
            "slug": self.slug,
            "objective": self.objective,
            "delta": list(self.delta),
            "verify": self.verify,
            "depends": ",".join(self.depends) or "none",
            "budget": self.budget,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """An objective as a graph of tasks."""

    id: int
    objective: str
    tasks: tuple[Task, ...]
    framework: str = ""
    required: tuple[str, ...] = ()
    """Idioms to keep to."""
    forbidden: tuple[str, ...] = ()
    status: str = "active"
    created_at: int | None = None
    problems: tuple[str, ...] = ()
    """What is wrong with a stored plan that somebody else wrote."""

    @property
    def key(self) -> str:
        """Its number and a trace of what it says: a number alone comes again in another database."""
        said = "\0".join([self.objective, *(f"{task.seq} {task.objective}" for task in self.tasks)])
        return f"{self.id}-{hashlib.sha256(said.encode()).hexdigest()[:6]}"

    def document(self) -> dict[str, Any]:
        """The JSON shape of a plan."""
        return {
            "id": self.id,
            "objective": self.objective,
            "framework": self.framework,
            "idioms": {"required": list(self.required), "forbidden": list(self.forbidden)},
            "tasks": [task.document() for task in self.tasks],
            "status": self.status,
            "created_at": None if self.created_at is None else format_instant(self.created_at),
            "problems": list(self.problems),
        }


@dataclass(frozen=True, slots=True)
class Exploration:
    """What explorers found out for an objective."""

    id: int
    objective: str
    data: Any
    created_at: int | None

    def document(self) -> dict[str, Any]:
        """The JSON shape of an exploration."""
        return {
            "id": self.id,
            "objective": self.objective,
            "data": self.data,
            "created_at": None if self.created_at is None else format_instant(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class Workspace:
    """One task as it is carried out: what it was given, and what came of it."""

    id: int
    plan_id: int | None
    seq: str
    slug: str
    objective: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Seed 004's workspace format: delta, verify, budget, failures, patterns, lineage, and what else is
    there."""
    status: str = "active"
    delivered: str = ""
    utilized: tuple[str, ...] = ()
    created_at: int | None = None

    @property
    def attempt(self) -> str:
        """The name under which the ledger keeps what was injected into it."""
        return f"workspace-{self.id}"

    @property
    def injected(self) -> tuple[str, ...]:
        """Names of the memories that it was given."""
        shown = [*_listed(self.data.get("failures")), *_listed(self.data.get("patterns"))]
        return tuple(name for each in shown if isinstance(each, dict) and (name := _text(each.get("name"))))

    @property
    def parents(self) -> tuple[str, ...]:
        """What it builds on: ``seq slug: delivered`` of each parent."""
        lineage = self.data.get("lineage")
        parents = _listed(lineage.get("parents")) if isinstance(lineage, dict) else []
        return tuple(
            f"{_text(each.get('seq'))} {_text(each.get('slug'))}: {_text(each.get('delivered'))}".strip()
            for each in parents
            if isinstance(each, dict)
        )

    def document(self) -> dict[str, Any]:
        """The JSON shape of a workspace."""
        return {
            "id": self.id,
            "plan_id": self.plan_id,
            "task_seq": self.seq,
            "task_slug": self.slug,
            "objective": self.objective,
            "status": self.status,
            "delivered": self.delivered,
            "utilized": list(self.utilized),
            "injected": list(self.injected),
            "parents": list(self.parents),
            "data": dict(self.data),
            "created_at": None if self.created_at is None else format_instant(self.created_at),
        }


def read_tasks(document: object) -> tuple[tuple[Task, ...], list[str]]:
    """Tasks of a plan as a model writes them, and everything that is wrong with them."""
    problems: list[str] = []
    rows = document if isinstance(document, list) else []
    if not rows:
        return (), ["it has no tasks"]
    if len(rows) > MAX_TASKS:
        return (), [f"{len(rows)} tasks are more than {MAX_TASKS}"]
    tasks = [task for number, row in enumerate(rows, 1) if (task := _read_task(row, number, problems))]
    seqs = [task.seq for task in tasks]
    problems += [f"task {seq} stands there twice" for seq in dict.fromkeys(seqs) if seqs.count(seq) > 1]
    for task in tasks:
        problems += [
            f"task {task.seq} depends on {name}, which is no task"
            for name in task.depends
            if name not in seqs
        ]
    if not problems:
        problems += _circles(tasks)
    return tuple(tasks), problems


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """The tasks with prerequisites first, else in the order of the plan."""
    by_seq = {task.seq: task for task in tasks}
    sorter = TopologicalSorter({seq: task.depends for seq, task in by_seq.items()})
    return [by_seq[seq] for seq in sorter.static_order()]


def _read_task(row: object, number: int, problems: list[str]) -> Task | None:
    if not isinstance(row, dict):
        problems.append(f"task {number} is no object")
        return None
    seq = _text(row.get("seq")) or (str(row["seq"]) if isinstance(row.get("seq"), int) else "")
    named = seq or f"number {number}"
    if not re.fullmatch(r"[\w.-]{1,40}", seq):
        problems.append(f"task {named} needs a seq of letters, digits, dots or dashes, like 001")
    objective = _text(row.get("objective")) or _text(row.get("description"))
    if not objective:
        problems.append(f"task {named} has no objective")
    delta = tuple(_names(row.get("delta")))
    verify = _text(row.get("verify"))
    if not verify:
        problems.append(f"task {named} has no verify command: nothing could prove it")
    budget = row.get("budget", BUDGET[1])
    if isinstance(budget, str) and budget.strip().isdigit():
        budget = int(budget)
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        problems.append(f"task {named} has no whole number as budget")
        budget = BUDGET[1]
    depends = tuple(name for name in _names(row.get("depends")) if name.lower() not in ("none", "-"))
    return Task(seq, _text(row.get("slug")) or "task", objective, delta, verify, depends, budget)


def _circles(tasks: Sequence[Task]) -> list[str]:
    try:
        in_order(tasks)
    except CycleError as error:
        return [f"tasks wait on each other in a circle: {' -> '.join(error.args[1])}"]
    return []


def _names(value: object) -> list[str]:
    """Names as a list or as words between commas."""
    parts = value.split(",") if isinstance(value, str) else _listed(value)
    return [name for part in parts if (name := _text(str(part) if isinstance(part, int) else part))]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value.strip()[:_LONGEST] if isinstance(value, str) else ""


class Plans:
    """Explorations, plans and workspaces of one memory."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    def add_exploration(self, objective: str, data: object) -> Exploration:
        """Keep what was found out for an objective."""
        at = now_ns()
        with self._memory.write() as db:
            row_id = db.execute(
                "INSERT INTO exploration(objective, data, created_at) VALUES (?, ?, ?)",
                (objective[:_LONGEST], json.dumps(data, ensure_ascii=False), format_instant(at)),
            ).lastrowid
        return Exploration(int(row_id or 0), objective, data, at)

    def explorations(self) -> list[Exploration]:
        """All explorations, newest first."""
        rows = self._memory.read("SELECT id, objective, data, created_at FROM exploration ORDER BY id DESC")
        return [Exploration(row[0], row[1], _decoded(row[2]), parse_instant(row[3])) for row in rows]

    def add_plan(self, document: object) -> Plan:
        """Store a plan as a planner writes it: ``{objective, framework?, idioms?, tasks[]}``.

        Raises:
            PlanFault: something in it cannot be used; nothing was stored.
        """
        if not isinstance(document, dict):
            raise PlanFault(["it is no JSON object"])
        objective = _text(document.get("objective"))
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
                    _text(document.get("framework")),
                    json.dumps(idioms, ensure_ascii=False),
                    json.dumps([task.document() for task in tasks], ensure_ascii=False),
                    format_instant(now_ns()),
                ),
            ).lastrowid
        found = self.plan(int(row_id or 0))
        assert found is not None
        return found

    def plans(self) -> list[Plan]:
        """All plans, newest first."""
        return [_plan(row) for row in self._memory.read(f"{_PLAN} ORDER BY id DESC")]

    def plan(self, plan_id: int) -> Plan | None:
        """One plan."""
        rows = self._memory.read(f"{_PLAN} WHERE id = ?", (plan_id,))
        return _plan(rows[0]) if rows else None

    def set_status(self, plan_id: int, status: str) -> None:
        """Say how a plan stands: active, applied, dropped."""
        with self._memory.write() as db:
            db.execute("UPDATE plan SET status = ? WHERE id = ?", (status, plan_id))

    def open_workspace(self, plan: Plan, task: Task, *, bead: str = "", agent: str = "") -> Workspace:
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
            db.execute(
                "UPDATE workspace SET data = ? WHERE id = ?", (json.dumps(data, ensure_ascii=False), number)
            )
        workspace = self.workspace(number)
        assert workspace is not None
        return workspace

    def close_workspace(
        self, workspace_id: int, status: Status, delivered: str, utilized: Sequence[str] = ()
    ) -> Workspace | None:
        """End a task; what it says it used is kept as a claim until verification settles it."""
        workspace = self.workspace(workspace_id)
        if workspace is None:
            return None
        with self._memory.write() as db:
            db.execute(
                "UPDATE workspace SET status = ?, delivered = ?, utilized = ? WHERE id = ?",
                (status, delivered[:_LONGEST], json.dumps(list(utilized)), workspace_id),
            )
        if utilized and not workspace.data.get("bead"):
            self._memory.claim(workspace.attempt, utilized)
        return self.workspace(workspace_id)

    def workspaces(self, plan_id: int | None = None) -> list[Workspace]:
        """All workspaces, newest first, or those of one plan."""
        if plan_id is None:
            return [_workspace(row) for row in self._memory.read(f"{_WORKSPACE} ORDER BY id DESC")]
        rows = self._memory.read(f"{_WORKSPACE} WHERE plan_id = ? ORDER BY id DESC", (plan_id,))
        return [_workspace(row) for row in rows]

    def workspace(self, workspace_id: int) -> Workspace | None:
        """One workspace."""
        rows = self._memory.read(f"{_WORKSPACE} WHERE id = ?", (workspace_id,))
        return _workspace(rows[0]) if rows else None


_PLAN = "SELECT id, objective, framework, idioms, tasks, status, created_at FROM plan"
_WORKSPACE = (
    "SELECT id, plan_id, task_seq, task_slug, objective, data, status, delivered, utilized, created_at"
    " FROM workspace"
)


def _plan(row: Sequence[Any]) -> Plan:
    tasks, problems = read_tasks(_decoded(row[4]))
    idioms = _decoded(row[3])
    idioms = idioms if isinstance(idioms, dict) else {}
    return Plan(
        row[0],
        _text(row[1]),
        tasks,
        _text(row[2]),
        tuple(_names(idioms.get("required"))),
        tuple(_names(idioms.get("forbidden"))),
        _text(row[5]) or "active",
        parse_instant(row[6]),
        tuple(problems),
    )


def _workspace(row: Sequence[Any]) -> Workspace:
    data = _decoded(row[5])
    return Workspace(
        row[0],
        row[1],
        _text(row[2]),
        _text(row[3]),
        _text(row[4]),
        data if isinstance(data, dict) else {},
        _text(row[6]) or "active",
        _text(row[7]),
        tuple(_names(_decoded(row[8]))),
        parse_instant(row[9]),
    )


def _decoded(text: object) -> Any:
    """What a JSON column holds; None where it is no JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
