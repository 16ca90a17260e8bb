"""A plan becomes beads with dependencies in one change, which one undo takes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.editing.authoring import judge
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.memory.plan_records import MemoryPlan, PlanTask
from helix_tui.core.supervision.agents.plan_beads import bead_operations, beads_of
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import row

TASKS = (
    PlanTask("003", "wire", "Wire it up", ("src/app.py",), "pytest tests/test_app.py", ("001", "002"), 6),
    PlanTask("001", "models", "Specify the models", ("src/models.py",), "pytest tests/test_models.py"),
    PlanTask("002", "service", "Implement the service", ("src/auth.py",), "pytest tests/test_auth.py", ("001",)),
)
PLAN = MemoryPlan(7, "Authenticate users with JWT", TASKS, "fastapi", ("Use Depends()",), ("Plain passwords",))


def curator_of(root: Path) -> Curator:
    project = find_project(root, env={})
    return Curator(project, lambda: find_executable(project, None, env={}))


def test_one_change_makes_the_graph_and_one_undo_takes_it_away(
    project: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project([row("demo-1", labels=["activity:build"])], git=True)
    curator = curator_of(root)
    done = curator.run(bead_operations(PLAN, curator.look().queue.beads, epic=True))
    assert done.error is None, done.error
    assert not done.problems, done.problems
    assert not done.plan.refusals
    beads = curator.look().queue.beads
    made = beads_of(PLAN, beads)
    assert set(made) == {"001", "002", "003"}
    assert set(beads[made["003"]].depends_on) == {made["001"], made["002"]}
    assert beads[made["002"]].depends_on == (made["001"],)
    epic = beads[made["001"]].parent
    assert beads[epic].issue_type == "epic"
    assert all("activity:build" in beads[bead_id].labels for bead_id in made.values())
    document = beads[made["001"]].document()
    assert "`pytest tests/test_models.py` passes" in document["acceptance"]
    assert "DELTA: src/models.py" in document["description"]
    assert not judge(document, beads, strict=True).errors
    assert not any(task.seq not in made for task in TASKS)
    some = {bead_id: bead for bead_id, bead in beads.items() if bead_id != made["003"]}
    rest = bead_operations(PLAN, some, epic=True)
    assert [each.parent for each in rest] == [epic], "what is left joins the epic that is there"
    assert curator.undo() is not None
    left = curator.look().queue
    assert not [bead_id for bead_id in left.ready if bead_id != "demo-1"]


def test_tasks_that_have_a_bead_are_not_made_again(project: ProjectFactory) -> None:
    root = project([row("demo-1", labels=["plan:" + PLAN.key, "seq:001"])], git=True)
    curator = curator_of(root)
    wanted = bead_operations(PLAN, curator.look().queue.beads)
    assert [operation.title[:3] for operation in wanted] == ["002", "003"]
    assert list(wanted[0].depends_on) == ["demo-1"]
    planned = curator.plan(wanted)
    assert json.dumps([step.args for step in planned.steps])
    assert not planned.refusals
