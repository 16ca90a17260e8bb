"""``memory learn``, ``proposals``, ``plan``, ``exploration``, ``workspace``, ``undo`` at a command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main
from helix_tui.core.memory import open_memory
from tests.conftest import ProjectFactory

BEAD = {
    "id": "x-1",
    "title": "Sort sailings by the clock",
    "status": "open",
    "priority": 1,
    "issue_type": "task",
}
ATTEMPT = "20260821T200100-00000001"


@pytest.fixture(autouse=True)
def _by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIX_EMBEDDER", "off")


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    """A project with one failed attempt."""
    root = project([BEAD], git=True)
    folder = root / ".ddx" / "executions" / ATTEMPT
    folder.mkdir(parents=True)
    result = {
        "attempt_id": ATTEMPT,
        "bead_id": "x-1",
        "status": "execution_failed",
        "outcome": "error",
        "error": "the clock has no zone",
        "started_at": "2026-08-21T20:01:00Z",
        "finished_at": "2026-08-21T20:01:59Z",
    }
    (folder / "result.json").write_text(json.dumps(result))
    return root


class Shell:
    """Runs commands and reads their documents."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._root, self._capsys = root, capsys

    def __call__(self, *words: str, code: int = 0) -> dict[str, Any]:
        assert main(["memory", *words, "--json", "-C", str(self._root)]) == code
        document: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return document


@pytest.fixture
def memory(root: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(root, capsys)


def test_learning_is_shown_before_it_is_applied(memory: Shell, root: Path) -> None:
    shown = memory("learn")
    assert [each["verdict"] for each in shown["attempts"]] == ["failed"]
    assert not shown["applied"]
    assert not (root / ".helix" / "helix.db").exists()
    applied = memory("learn", "--apply")
    assert applied["waiting"] == 1
    assert memory("learn", "--apply")["attempts"] == []


def test_lessons_are_accepted_and_taken_back(memory: Shell, root: Path) -> None:
    memory("learn", "--apply")
    number = str(memory("proposals")["proposals"][0]["id"])
    assert memory("proposals", "accept", number)["proposals"] == []
    assert memory("list")["total"] == 1
    assert memory("undo")["undone"]["kind"] == "accept"
    assert memory("list")["total"] == 0
    memory("proposals", "decline", "all")
    assert memory("proposals")["proposals"] == []
    assert memory("proposals", "accept", "99", code=2)["error"]["message"] == "no lesson 99 waits"


def test_a_policy_accepts_at_once(memory: Shell) -> None:
    assert memory("learn", "--apply", "--accept", "failures")["accepted"]["kind"] == "accept"
    assert memory("list")["total"] == 1


def test_read_only_shows_and_changes_nothing(memory: Shell, root: Path) -> None:
    with open_memory(root / ".helix" / "helix.db"):
        pass
    assert memory("learn", "--read-only")["attempts"]
    memory("learn", "--apply", "--read-only", code=1)
    assert memory("proposals")["proposals"] == []


PLAN = {
    "objective": "Authenticate users",
    "tasks": [
        {
            "seq": "001",
            "slug": "models",
            "objective": "Specify the models",
            "delta": ["src/models.py"],
            "verify": "pytest tests/test_models.py",
            "depends": "none",
            "budget": 7,
        },
        {
            "seq": "002",
            "slug": "service",
            "objective": "Write the service",
            "delta": ["src/auth.py"],
            "verify": "pytest tests/test_auth.py",
            "depends": "001",
            "budget": 7,
        },
    ],
}


def test_a_plan_is_added_shown_and_made_beads_of(memory: Shell, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    assert memory("plan", "add", "--file", str(file))["plan"]["id"] == 1
    foreseen = memory("plan", "apply", "1", "--dry-run")
    assert len(foreseen["commands"]) == 3
    assert foreseen["created"] == []
    done = memory("plan", "apply", "1")
    assert len(done["created"]) == 3
    assert done["journal_id"]
    assert set(memory("plan", "apply", "1")["beads"]) == {"001", "002"}
    assert memory("plan", "show", "1")["plan"]["tasks"][1]["depends"] == "001"


@pytest.mark.parametrize(("era", "undoable"), [("head", True), ("april", False)])
def test_a_plan_says_beforehand_whether_its_beads_can_be_taken_back(
    memory: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str, undoable: bool
) -> None:
    monkeypatch.setenv("HELIX_DDX_ERA", era)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(tmp_path / "plan.json"))
    for document in (memory("plan", "apply", "1", "--dry-run"), memory("plan", "apply", "1")):
        assert document["undoable"] is undoable
        assert bool(document["why_not"]) is not undoable


@pytest.mark.parametrize("text", ["", "{", "[]", '{"objective": "x", "tasks": []}'])
def test_what_is_no_plan_is_refused(memory: Shell, tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    assert memory("plan", "add", "--file", str(file), code=1)["error"]["message"]


def test_workspaces_and_explorations_are_kept(memory: Shell, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(file))
    memory("exploration", "add", "--objective", "Authenticate users", "--file", str(file))
    assert memory("exploration")["explorations"][0]["data"] == PLAN
    opened = memory("workspace", "open", "1", "--seq", "001")["workspace"]
    memory("workspace", "close", str(opened["id"]), "--delivered", "the models are there")
    second = memory("workspace", "open", "1", "--seq", "002")["workspace"]
    assert second["parents"] == ["001 models: the models are there"]
    assert len(memory("workspace")["workspaces"]) == 2
    memory("workspace", "open", "1", "--seq", "009", code=2)
