"""Explorations, plans and workspaces: what helix v1's orchestrator stores besides memories.

Tables: docs/formats/memory.md §1. Results have passed the guard, like memories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.memory.guard.scan import outward
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.plan_records import (
    ENDING,
    MAX_TEXT,
    Exploration,
    MemoryPlan,
    PlanTask,
    TaskReport,
    TaskWorkspace,
    field_names,
    field_text,
    in_order,
    read_idioms,
    read_tasks,
)
from helix_tui.core.memory.records import MemoryFault, Verdict
from helix_tui.core.memory.reports import FeedbackReport, Proposal
from helix_tui.core.memory.tasks.task_check import (
    VERIFY_TIMEOUT_S,
    TaskCheck,
    changed_since,
    run_verify,
    state_of_tree,
    violations_in,
)

_PLAN = "SELECT id, objective, framework, idioms, tasks, status, created_at FROM plan"

_WORKSPACE = (
    "SELECT id, plan_id, task_seq, task_slug, objective, data, status, delivered, utilized, created_at FROM workspace"
)


class PlanFault(MemoryFault):
    """A plan cannot be stored; ``problems`` lists every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the plan cannot be used: {problems[0]}{more}", "Correct it and add it again.")


class TaskWaits(MemoryFault):
    """A task cannot be started now."""


class TaskUnverified(MemoryFault):
    """A task cannot be marked delivered, as nothing proves it."""


class ClosedWorkspace(Struct, frozen=True):
    """How a task ended, and its effect on the memory."""

    workspace: TaskWorkspace
    verdict: Verdict | None
    feedback: FeedbackReport | None
    """What was counted, or None."""
    proposal: Proposal | None
    """The new failure proposed to a person; None if there is none or it is pending already."""


class Plans:
    """Explorations, plans and workspaces of one memory."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @outward
    def add_exploration(self, objective: str, data: object) -> Exploration:
        """Store findings for an objective."""
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
            PlanFault: it is invalid; nothing was stored.
        """
        if not isinstance(document, dict):
            raise PlanFault(["it is not a JSON object"])
        objective = field_text(document.get("objective"))
        tasks, problems = read_tasks(document.get("tasks"), new=True)
        if not objective:
            problems.insert(0, "it has no objective")
        if problems:
            raise PlanFault(problems)
        required, forbidden = read_idioms(idioms := document.get("idioms"))
        kept = idioms if isinstance(idioms, dict) else {"required": required, "forbidden": forbidden}
        with self._memory.write() as db:
            row_id = db.execute(
                "INSERT INTO plan(objective, framework, idioms, tasks, status, created_at)"
                " VALUES (?, ?, ?, ?, 'active', ?)",
                (
                    objective,
                    field_text(document.get("framework")),
                    json.dumps(kept, ensure_ascii=False),
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

    def ready(self, plan: MemoryPlan) -> tuple[str, ...]:
        """Seqs of the tasks that can start: not delivered, not running, with all dependencies delivered. Empty for an
        invalid plan.
        """
        if plan.problems:
            return ()
        newest = self._newest(plan)
        return tuple(task.seq for task in in_order(plan.tasks) if not _why_not(task, newest))

    @outward
    def open_workspace(
        self, plan: MemoryPlan, task: PlanTask, *, bead: str = "", agent: str = "", root: Path | None = None
    ) -> TaskWorkspace:
        """Start a task with recalled memories and what its parents delivered.

        Args:
            root: the project, whose state is recorded to find later what the task changed.

        Raises:
            TaskWaits: a dependency is not delivered, or the task is running or delivered.
        """
        newest = self._newest(plan)
        if why := _why_not(task, newest):
            ready = ", ".join(self.ready(plan)) or "none"
            raise TaskWaits(f"task {task.seq} cannot start: {why}", f"Tasks that can start: {ready}.")
        done = {seq: each for seq, each in newest.items() if each.status == "delivered"}
        before = newest.get(task.seq)
        lineage = [{"seq": seq, "slug": done[seq].slug, "delivered": done[seq].delivered} for seq in task.depends]
        with self._memory.write() as db:
            # the row comes first: the ledger's attempt name contains its number
            row_id = db.execute(
                "INSERT INTO workspace(plan_id, task_seq, task_slug, objective, data, created_at)"
                " VALUES (?, ?, ?, ?, '{}', ?)",
                (plan.id, task.seq, task.slug, task.objective, format_instant(now_ns())),
            ).lastrowid
        number = int(row_id or 0)
        injection = self._memory.inject(
            task.objective,
            files=task.delta,
            # work on a bead is settled by DDx's evidence, under an attempt that has no id yet
            attempt="" if bead else f"workspace-{number}",
            bead=bead,
            agent=agent,
            kind="plan",
            limit=8,
        )
        known = [memory for line in injection.shown if (memory := self._memory.get(line.memory_id)) is not None]
        found = [memory for memory in known if not memory.withheld]
        data = task.document() | {
            "framework": plan.framework,
            "idioms": {"required": list(plan.required), "forbidden": list(plan.forbidden)},
            "failures": [memory.document() for memory in found if memory.type != "pattern"],
            "patterns": [memory.document() for memory in found if memory.type == "pattern"],
            "memories": injection.text,
            "lineage": {"parents": lineage},
            "bead": bead,
            "tree": state_of_tree(root) if root is not None else {},
        }
        # it was blocked before: tell its builder what was tried
        if before is not None:
            data["previous"] = {name: field_text(before.data.get(name)) for name in ENDING}
        with self._memory.write() as db:
            db.execute("UPDATE workspace SET data = ? WHERE id = ?", (json.dumps(data, ensure_ascii=False), number))
        workspace = self.workspace(number)
        assert workspace is not None
        return workspace

    def check(self, workspace: TaskWorkspace, root: Path, timeout: float = VERIFY_TIMEOUT_S) -> TaskCheck:
        """Run a task's VERIFY, and check its changes against the rules of its plan."""
        tree = workspace.data.get("tree")
        tree = tree if isinstance(tree, dict) else {}
        changed = changed_since(root, tree)  # before VERIFY: files that VERIFY creates are not the builder's work
        found = run_verify(field_text(workspace.data.get("verify")), root, timeout)
        if changed is None:
            return found
        required, forbidden = read_idioms(workspace.data.get("idioms"))
        beside = [
            name
            for each in self.workspaces(workspace.plan_id)
            # a task opened later may have ended before this check, leaving its files changed
            if each.id != workspace.id and (each.status == "active" or each.id > workspace.id)
            for name in field_names(each.data.get("delta"))
        ]
        broken = violations_in(
            root,
            tree["rev"],
            changed,
            delta=field_names(workspace.data.get("delta")),
            required=required,
            forbidden=forbidden,
            others=beside,
            task=" ".join([workspace.slug, workspace.objective, *field_names(workspace.data.get("delta"))]),
        )
        return replace(found, violations=broken)

    @outward
    def close_workspace(
        self, workspace_id: int, report: TaskReport, check: TaskCheck | None = None
    ) -> ClosedWorkspace | None:
        """End a task by its VERIFY: settle its memories, and propose a failure if it is blocked.

        A task whose VERIFY fails, or that breaks a rule of its plan, is blocked whatever its builder says. Injections
        into a bead's work are settled by DDx's evidence.

        Raises:
            TaskUnverified: it is reported as delivered, but its VERIFY was not run.
        """
        workspace = self.workspace(workspace_id)
        if workspace is None:
            return None
        if report.status == "delivered" and (check is None or check.result == "not run"):
            why = check.why if check is not None else "VERIFY was not run"
            advice = "Run it yourself, and say --verified passed or --verified failed."
            raise TaskUnverified(f"workspace {workspace_id} is not delivered: {why}", advice)
        broken = (*(check.violations if check is not None else ()), *report.violations)
        holds = (check is None or check.result != "failed") and not broken
        status = "delivered" if report.status == "delivered" and holds else "blocked"
        why = report.blocked_reason or "; ".join(broken) or (check.why if check is not None and not holds else "")
        failed = check is not None and check.result == "failed"
        ending = {
            "helix_outcome": status,
            "blocked_reason": (why or report.delivered)[:MAX_TEXT] if status == "blocked" else "",
            "tried": report.tried[:MAX_TEXT],
            "error": (report.error or (check.output if check is not None and failed else ""))[:MAX_TEXT],
            "verification": check.document() if check is not None else None,
            "violations": list(broken),
        }
        data = json.dumps({**workspace.data, **ending}, ensure_ascii=False)
        with self._memory.write() as db:
            db.execute(
                "UPDATE workspace SET status = ?, delivered = ?, utilized = ?, data = ? WHERE id = ?",
                (status, report.delivered[:MAX_TEXT], json.dumps(list(report.utilized)), data, workspace_id),
            )
        ended = self.workspace(workspace_id)
        assert ended is not None
        verdict: Verdict | None = None
        # a VERIFY that holds says nothing of a task that its builder could not do
        if check is not None and check.result != "not run" and (status == "delivered" or not holds):
            verdict = "passed" if holds else "failed"
        settled = self._settle(ended, report, verdict)
        return ClosedWorkspace(ended, verdict, settled, propose(self._memory, ended))

    def unlearned(self) -> list[TaskWorkspace]:
        """Blocked tasks without a proposal yet, which another program closed, newest first."""
        drawn = Proposals(self._memory).attempts()
        return [
            workspace
            for workspace in self.workspaces()
            if workspace.status == "blocked" and workspace.attempt not in drawn
        ]

    def _settle(self, workspace: TaskWorkspace, report: TaskReport, verdict: Verdict | None) -> FeedbackReport | None:
        # its attempt is settled by DDx's evidence; a second verdict would count it twice
        if workspace.data.get("bead"):
            return None
        if report.utilized:
            self._memory.claim(workspace.attempt, report.utilized)
        if verdict is None or not self._memory.injections(attempt=workspace.attempt):
            return None
        return self._memory.feedback(verified=verdict, attempt=workspace.attempt, kind="plan", revise=True)

    def _newest(self, plan: MemoryPlan) -> dict[str, TaskWorkspace]:
        """Task to the workspace opened last."""
        return {workspace.seq: workspace for workspace in reversed(self.workspaces(plan.id))}

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


def propose(memory: MemoryStore, workspace: TaskWorkspace) -> Proposal | None:
    """The failure of a blocked task as a proposal; None if there is none, or it was proposed before."""
    why = field_text(workspace.data.get("blocked_reason")) or workspace.delivered
    if workspace.status != "blocked" or not why:
        return None
    said = {name: field_text(workspace.data.get(name)) for name in ("tried", "error")}
    resolution = "; ".join(f"{name}: {clean_line(text, 300)}" for name, text in said.items() if text)
    trigger = f"{clean_line(workspace.objective, 200)}: {clean_line(why, 300)}"
    lesson = Proposal(
        0,
        workspace.attempt,
        str(workspace.data.get("bead") or ""),
        "failure",
        trigger,
        resolution or clean_line(why, 600),
        f"workspace {workspace.id} ended blocked",
        taught_by="agent",
    )
    return Proposals(memory).add(lesson)


def _why_not(task: PlanTask, newest: Mapping[str, TaskWorkspace]) -> str:
    """Why a task cannot be started, or "". A blocked one can be tried again."""
    own = newest.get(task.seq)
    if own is not None and own.status != "blocked":
        return f"workspace {own.id} is {own.status}"
    waits = []
    for seq in task.depends:
        other = newest.get(seq)
        if other is None:
            waits.append(f"{seq} (not started)")
        elif other.status != "delivered":
            why = field_text(other.data.get("blocked_reason"))
            waits.append(f"{seq} ({other.status}{f': {clean_line(why, 100)}' if why else ''})")
    return f"it waits on {', '.join(waits)}" if waits else ""


def _plan(row: Sequence[Any]) -> MemoryPlan:
    tasks, problems = read_tasks(_decoded(row[4]))
    required, forbidden = read_idioms(_decoded(row[3]))
    return MemoryPlan(
        row[0],
        field_text(row[1]),
        tasks,
        field_text(row[2]),
        required,
        forbidden,
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
    """The value of a JSON column; None if it is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
