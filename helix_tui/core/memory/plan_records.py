"""Explorations, plans and workspaces as records, and a plan's tasks as a model writes them.

Formats: docs/formats/memory.md §1 and §3. A plan comes from a model, so every field is checked before it is stored,
with all faults reported at once: repeated names, unknown or circular dependencies.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from msgspec import Struct, to_builtins

from helix_tui.core.memory.records import stamp

BUDGET = (5, 9)
"""Limits for a task's budget of tool calls (docs/formats/memory.md §3)."""

MAX_TASKS = 200
MAX_TEXT = 4_000
"""Maximum characters of a field."""

ENDING = ("blocked_reason", "tried", "error")
"""Fields of a blocked task, besides its ``helix_outcome``."""

_LINEAGE = ("seq", "slug", "delivered")
"""Fields that a workspace has of each parent task."""


class PlanTask(Struct, frozen=True):
    """One task of a plan (docs/formats/memory.md §3)."""

    seq: str
    slug: str
    objective: str
    delta: tuple[str, ...] = ()
    """The only files that may be changed; empty: none."""
    verify: str = ""
    depends: tuple[str, ...] = ()
    """Seqs of tasks that must be delivered first."""
    budget: int = 7

    @property
    def title(self) -> str:
        """As helix v2 writes a task's subject: ``001: spec-auth-models``."""
        return f"{self.seq}: {self.slug}"

    def document(self) -> dict[str, Any]:
        """The keys of helix v1."""
        return {**to_builtins(self), "depends": ",".join(self.depends) or "none"}


class MemoryPlan(Struct, frozen=True):
    """An objective as a graph of tasks."""

    id: int
    objective: str
    tasks: tuple[PlanTask, ...]
    framework: str = ""
    required: tuple[str, ...] = ()
    """Idioms to follow."""
    forbidden: tuple[str, ...] = ()
    status: str = "active"
    created_at: int | None = None
    problems: tuple[str, ...] = ()
    """What is wrong with a stored plan, so that no beads are made from it."""
    digest: str = ""
    """Hash of its own text, if the guard has replaced parts of it."""

    @property
    def key(self) -> str:
        """Its number and a hash of its text, as a number alone recurs in another database."""
        said = "\0".join([self.objective, *(f"{task.seq} {task.objective}" for task in self.tasks)])
        return f"{self.id}-{self.digest or hashlib.sha256(said.encode()).hexdigest()[:6]}"

    def document(self) -> dict[str, Any]:
        """The JSON shape of a plan."""
        return {
            "id": self.id,
            "objective": self.objective,
            "framework": self.framework,
            "idioms": {"required": list(self.required), "forbidden": list(self.forbidden)},
            "tasks": [task.document() for task in self.tasks],
            "status": self.status,
            "created_at": stamp(self.created_at),
            "problems": list(self.problems),
        }


class Exploration(Struct, frozen=True):
    """Findings of explorers for an objective."""

    id: int
    objective: str
    data: Any
    created_at: int | None

    def document(self) -> dict[str, Any]:
        """The JSON shape of an exploration."""
        return {**to_builtins(self), "created_at": stamp(self.created_at)}


class TaskReport(Struct, frozen=True):
    """The report of a builder and of the verifier at the end of a task."""

    status: str = "delivered"
    """delivered or blocked."""
    delivered: str = ""
    """What is true now."""
    utilized: tuple[str, ...] = ()
    blocked_reason: str = ""
    tried: str = ""
    error: str = ""
    violations: tuple[str, ...] = ()
    """Rules of the plan that a reviewer found broken."""


class TaskWorkspace(Struct, frozen=True):
    """One execution of a task: its inputs and its outcome."""

    id: int
    plan_id: int | None
    seq: str
    slug: str
    objective: str
    data: Mapping[str, Any] = {}
    """Helix v1's workspace format: delta, verify, budget, failures, patterns, lineage, and any other fields."""
    status: str = "active"
    delivered: str = ""
    utilized: tuple[str, ...] = ()
    created_at: int | None = None

    @property
    def ending(self) -> dict[str, Any]:
        """Its outcome as helix v2 keeps it on a task: ``helix_outcome`` and, if blocked, why, what was tried and the
        error.
        """
        if self.status not in ("delivered", "blocked"):
            return {}
        found = {"helix_outcome": self.status}
        names = ENDING if self.status == "blocked" else ()
        return found | {name: said for name in names if (said := field_text(self.data.get(name)))}

    @property
    def brief(self) -> str:
        """The task as given to its builder: files, verify command, idioms, memories booked as shown."""
        required, forbidden = read_idioms(self.data.get("idioms"))
        before = self.data.get("previous")
        rows = {
            "TASK": f"{self.seq} {self.slug}",
            "WORKSPACE": str(self.id),
            "OBJECTIVE": self.objective,
            "DELTA": ", ".join(field_names(self.data.get("delta"))) or "none: change no file",
            "VERIFY": field_text(self.data.get("verify")),
            "BUDGET": f"{self.data.get('budget', BUDGET[1])} tool calls",
            "FRAMEWORK": field_text(self.data.get("framework")),
            "KEEP TO": "; ".join(required),
            "AVOID": "; ".join(forbidden),
            "PARENT_DELIVERIES": "; ".join(self.parents),
            "TRIED BEFORE": "; ".join(f"{k}: {v}" for k, v in before.items() if v) if isinstance(before, dict) else "",
        }
        memories = self.data.get("memories")
        shown = [memories] if isinstance(memories, str) and memories else []
        return "\n".join([*(f"{name}: {said}" for name, said in rows.items() if said), *shown])

    @property
    def attempt(self) -> str:
        """Its attempt name in the ledger."""
        return f"workspace-{self.id}"

    @property
    def injected(self) -> tuple[str, ...]:
        """Names of the memories injected into it."""
        shown = [*_listed(self.data.get("failures")), *_listed(self.data.get("patterns"))]
        return tuple(name for each in shown if isinstance(each, dict) and (name := field_text(each.get("name"))))

    @property
    def parents(self) -> tuple[str, ...]:
        """Its parents as ``seq slug: delivered``."""
        lineage = self.data.get("lineage")
        parents = _listed(lineage.get("parents")) if isinstance(lineage, dict) else []
        said = [[field_text(parent.get(name)) for name in _LINEAGE] for parent in parents if isinstance(parent, dict)]
        return tuple(f"{seq} {slug}: {delivered}".strip() for seq, slug, delivered in said)

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
            "delta": field_names(self.data.get("delta")),
            "verify": field_text(self.data.get("verify")),
            "budget": self.data.get("budget"),
            "helix_outcome": None,
            **dict.fromkeys(ENDING, ""),
            **self.ending,
            "verification": self.data.get("verification"),
            "brief": self.brief,
            "data": dict(self.data),
            "created_at": stamp(self.created_at),
        }


def read_tasks(document: object, *, new: bool = False) -> tuple[tuple[PlanTask, ...], list[str]]:
    """Read the tasks of a plan written by a model; return them and all faults.

    Args:
        new: it is to be stored: each task has to name its files, and its budget is checked against `BUDGET`.
    """
    problems: list[str] = []
    rows = document if isinstance(document, list) else []
    if not rows:
        return (), ["it has no tasks"]
    if len(rows) > MAX_TASKS:
        return (), [f"more than {MAX_TASKS} tasks: {len(rows):,}"]
    tasks = [task for number, row in enumerate(rows, 1) if (task := _read_task(row, number, problems, new=new))]
    seqs = [task.seq for task in tasks]
    problems += [f"task {seq} appears twice" for seq in dict.fromkeys(seqs) if seqs.count(seq) > 1]
    for task in tasks:
        problems += [
            f"task {task.seq} depends on {name}, which is not a task" for name in task.depends if name not in seqs
        ]
    # only known names: the sorter would treat an unknown one as a task
    if not problems:
        problems += _circles(tasks)
    return tuple(tasks), problems


def in_order(tasks: Iterable[PlanTask]) -> list[PlanTask]:
    """The tasks with prerequisites first, otherwise in the order of the plan."""
    by_seq = {task.seq: task for task in tasks}
    sorter = TopologicalSorter({seq: task.depends for seq, task in by_seq.items()})
    return [by_seq[seq] for seq in sorter.static_order()]


def _read_task(row: object, number: int, problems: list[str], *, new: bool) -> PlanTask | None:
    if not isinstance(row, dict):
        problems.append(f"task {number} is not an object")
        return None
    seq = field_text(row.get("seq")) or (str(row["seq"]) if isinstance(row.get("seq"), int) else "")
    named = seq or f"number {number}"
    if not re.fullmatch(r"[\w.-]{1,40}", seq):
        problems.append(f"task {named} needs a seq of letters, digits, dots or dashes, like 001")
    objective = field_text(row.get("objective")) or field_text(row.get("description"))
    if not objective:
        problems.append(f"task {named} has no objective")
    if new and "delta" not in row:
        problems.append(f"task {named} has no delta: list the files that it may change, [] if none")
    verify = field_text(row.get("verify"))
    if not verify:
        problems.append(f"task {named} has no verify command: nothing can prove it")
    budget = row.get("budget", BUDGET[1])
    if isinstance(budget, str) and budget.strip().isdigit():
        budget = int(budget)
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        problems.append(f"task {named} has no whole number as budget")
        budget = BUDGET[1]
    low, high = BUDGET
    if new and not low <= budget <= high:
        allowed = f"{low} to {high} are allowed; split it, or join two"
        problems.append(f"task {named} has a budget of {budget} tool calls: {allowed}")
    # helix v1 writes “none” for no prerequisites
    delta, depends = (
        tuple(name for name in field_names(row.get(field)) if name.lower() not in ("none", "-"))
        for field in ("delta", "depends")
    )
    # even with faults: all faults of a plan are reported at once
    return PlanTask(seq, field_text(row.get("slug")) or "task", objective, delta, verify, depends, budget)


def _circles(tasks: Sequence[PlanTask]) -> list[str]:
    try:
        in_order(tasks)
    except CycleError as error:
        return [f"the tasks form a dependency cycle: {' -> '.join(error.args[1])}"]
    return []


def field_names(value: object) -> list[str]:
    """Names as a list or as words between commas."""
    parts = value.split(",") if isinstance(value, str) else _listed(value)
    return [name for part in parts if (name := field_text(str(part) if isinstance(part, int) else part))]


def read_idioms(value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The required and the forbidden idioms of a plan: by name; a plain list or text means required."""
    if not isinstance(value, dict):
        return _rules(value), ()
    return _rules(value.get("required")), _rules(value.get("forbidden"))


def _rules(value: object) -> tuple[str, ...]:
    """One rule per line or list entry."""
    return tuple(field_names(value.split("\n") if isinstance(value, str) else value))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def field_text(value: object) -> str:
    return value.strip()[:MAX_TEXT] if isinstance(value, str) else ""
