"""A plan as tasks of Claude Code: its own calls, and a list on disk as Claude Code keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.memory.plan_records import MemoryPlan, PlanTask, TaskWorkspace
from helix_tui.core.supervision.agents.plan_beads import TaskListTaken, calls, list_name, register, task_list

TASKS = (
    PlanTask("002", "service", "Implement the service", ("src/auth.py",), "pytest tests/test_auth.py", ("001",)),
    PlanTask("001", "models", "Specify the models", ("src/models.py",), "pytest tests/test_models.py", (), 5),
)
PLAN = MemoryPlan(7, "Authenticate users", TASKS, "fastapi", ("Use `Depends(`",), ("Plain passwords",))


def held(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_the_calls_make_the_tasks_before_they_are_made_to_wait() -> None:
    made = calls(PLAN)
    assert [call["tool"] for call in made] == ["TaskCreate", "TaskCreate", "TaskUpdate"]
    assert made[0]["input"]["subject"] == "001: models"
    assert made[2]["input"] == {"taskId": "2", "addBlockedBy": ["1"]}
    assert made[1]["input"]["metadata"] == {
        "helix_plan": 7,
        "seq": "002",
        "delta": ["src/auth.py"],
        "verify": "pytest tests/test_auth.py",
        "budget": 7,
        "framework": "fastapi",
        "idioms": {"required": ["Use `Depends(`"], "forbidden": ["Plain passwords"]},
    }


def test_a_list_on_disk_says_what_became_of_each_task(tmp_path: Path) -> None:
    folder = task_list({"CLAUDE_CONFIG_DIR": str(tmp_path)}, list_name(PLAN))
    register(folder, PLAN, ())
    tasks = held(folder)
    assert (tasks["1"]["blocks"], tasks["2"]["blockedBy"], tasks["2"]["status"]) == (["2"], ["1"], "pending")
    done = TaskWorkspace(3, 7, "001", "models", "x", {}, "delivered", "there")
    data = {"blocked_reason": "no access", "tried": "twice", "error": "403"}
    stuck = TaskWorkspace(4, 7, "002", "service", "x", data, "blocked")
    register(folder, PLAN, (done, stuck))
    tasks = held(folder)
    assert (tasks["1"]["status"], tasks["1"]["metadata"]["helix_outcome"]) == ("completed", "delivered")
    assert tasks["2"]["status"] == "pending"
    assert {name: tasks["2"]["metadata"][name] for name in data} == data


def test_a_list_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "mine"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text('{"id": "1", "subject": "own"}')
    with pytest.raises(TaskListTaken):
        register(folder, PLAN, ())
    assert held(folder) == {"1": {"id": "1", "subject": "own"}}
