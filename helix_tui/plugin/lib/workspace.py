"""Tasks of a plan as they are carried out, kept in the project's memory store."""

from __future__ import annotations

import json
from typing import Any

from memory.core import value

__all__ = ["block", "complete", "create", "list_workspaces", "load"]


def create(plan_id: int, task: dict[str, Any]) -> dict[str, Any]:
    """Begin a task, with the memories that are relevant and what its parents delivered.

    Raises:
        RuntimeError: it cannot begin yet; the message says why.
    """
    opened = value("workspace", "open", str(plan_id), seq=task["seq"])["workspace"]
    return {**opened["data"], "_id": opened["id"], "_injected": opened["injected"]}


def load(workspace_id: int | None = None, task_seq: str | None = None) -> dict[str, Any] | None:
    """One workspace: by id, the newest of a task, or the newest that is active; None if there is none."""
    for each in value("workspace")["workspaces"]:
        wanted = each["status"] == "active" if task_seq is None else each["task_seq"] == task_seq
        if each["id"] == workspace_id if workspace_id is not None else wanted:
            named = ("id", "plan_id", "status", "delivered", "utilized", "created_at")
            return {**each["data"], **{f"_{name}": each[name] for name in named}}
    return None


def complete(workspace_id: int, delivered: str, utilized: list[str]) -> dict[str, Any]:
    """End a task by its VERIFY, and credit its memories by that.

    Status is ``blocked`` where VERIFY fails or a rule of the plan is broken, whatever is reported.
    """
    return _close(workspace_id, utilized, delivered=delivered)


def block(workspace_id: int, reason: str, utilized: list[str] | None = None) -> dict[str, Any]:
    """End a task that cannot be carried out; a failure is proposed from it."""
    return _close(workspace_id, utilized or [], status="blocked", blocked_reason=reason)


def list_workspaces(status: str | None = None, plan_id: int | None = None) -> list[dict[str, Any]]:
    """The workspaces, newest first."""
    found = value("workspace")["workspaces"]
    return [each for each in found if status in (None, each["status"]) and plan_id in (None, each["plan_id"])]


def _close(number: int, utilized: list[str], **report: str) -> dict[str, Any]:
    answer = value("workspace", "close", str(number), utilized=json.dumps(utilized), **report)
    ended = answer["workspace"]
    return {
        "status": "complete" if ended["status"] == "delivered" else ended["status"],
        "workspace_id": ended["id"],
        "reason": ended["blocked_reason"],
        "utilized": ended["utilized"],
        "feedback": answer["feedback"],
    }
