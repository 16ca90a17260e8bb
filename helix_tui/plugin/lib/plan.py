"""Plans, graphs of tasks, kept in the project's memory store."""

from __future__ import annotations

from typing import Any

from memory.core import value

__all__ = ["load", "ready_tasks", "save"]


def save(plan: dict[str, Any]) -> dict[str, Any]:
    """Keep a plan: id, task_count.

    Raises:
        RuntimeError: it cannot be carried out; the message says why.
    """
    kept = value("plan", "add", file="-", document=plan)["plan"]
    return {"id": kept["id"], "task_count": len(kept["tasks"])}


def load(plan_id: int | None = None) -> dict[str, Any] | None:
    """One plan, the newest unless an id is given; None if there is none."""
    plans: list[dict[str, Any]] = value("plan")["plans"]
    return next((each for each in plans if plan_id in (None, each["id"])), None)


def ready_tasks(plan_id: int | None = None) -> list[dict[str, Any]]:
    """The tasks that can start: everything they depend on is delivered."""
    plan = load(plan_id)
    if plan is None:
        return []
    ready = value("plan", "show", str(plan["id"]))["ready"]
    return [task for task in plan["tasks"] if task["seq"] in ready]
