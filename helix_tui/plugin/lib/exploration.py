"""What explorers found, kept in the project's memory store."""

from __future__ import annotations

from typing import Any

from memory.core import value

__all__ = ["load", "save"]


def save(exploration: dict[str, Any]) -> dict[str, Any]:
    """Keep an exploration: id, objective."""
    objective = exploration.get("objective", "")
    kept = value("exploration", "add", file="-", objective=objective, document=exploration)["exploration"]
    return {"id": kept["id"], "objective": kept["objective"]}


def load(exploration_id: int | None = None) -> dict[str, Any] | None:
    """One exploration, the newest unless an id is given; None if there is none."""
    for each in value("exploration")["explorations"]:
        if exploration_id in (None, each["id"]):
            return {**each["data"], "_id": each["id"], "_created_at": each["created_at"]}
    return None
