"""``memory learn``, ``proposals``, ``plan``, ``exploration``, ``workspace``, ``undo`` at a command line."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main
from helix_tui.core.memory.memory_store import open_memory
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
    left = memory("undo")
    assert (left["undone"], left["why"]) == (None, "nothing to undo in the memory")
    memory("proposals", "decline", "all")
    assert memory("proposals")["proposals"] == []
    assert memory("proposals", "accept", "99", code=2)["error"]["message"] == "no lesson 99 waits"


def test_a_policy_accepts_at_once(memory: Shell) -> None:
    assert memory("learn", "--apply", "--accept", "failures")["accepted"]["kind"] == "accept"
    assert memory("list")["total"] == 1


@pytest.fixture
def long_past(root: Path) -> Path:
    """The project with 30 failed attempts, on a bead each."""
    beads = [BEAD | {"id": f"y-{number}", "title": f"Task number {number}"} for number in range(30)]
    (root / ".ddx" / "beads.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [BEAD, *beads]))
    for number, bead in enumerate(beads):
        attempt = f"20260822T2001{number:02}-00000001"
        folder = root / ".ddx" / "executions" / attempt
        folder.mkdir()
        result = {"attempt_id": attempt, "bead_id": bead["id"], "status": "execution_failed", "outcome": "error"}
        result |= {"error": f"the clock {number} has no zone", "finished_at": f"2026-08-22T20:01:{number:02}Z"}
        (folder / "result.json").write_text(json.dumps(result))
    return root


def test_of_a_long_past_the_newest_lessons_are_taken_and_the_others_left_for_later(
    memory: Shell, long_past: Path
) -> None:
    assert len(memory("learn")["attempts"]) == 31
    first = memory("learn", "--apply", "--limit", "4", "--accept", "failures")
    assert [each["bead"] for each in first["attempts"]] == ["y-29", "y-28", "y-27", "y-26"]
    assert (memory("list")["total"], first["waiting"]) == (4, 0)
    rest = memory("learn", "--apply")
    assert len(rest["attempts"]) == 27
    taken = memory("learn", "--apply", "--limit", "1", "--accept", "failures")
    assert taken["accepted"] is None, "those that wait already are not accepted unseen"


def test_many_lessons_begin_with_their_number_and_their_causes(
    long_past: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["memory", "learn", "--no-color", "-C", str(long_past)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "31 lessons from 31 attempts, 2026-08-21 to 2026-08-22"
    assert said[1].strip() == "31  execution_failed: the agent or its harness failed"
    assert sum("Task number" in line and line.startswith("failed") for line in said) == 20
    assert any(line.startswith("… 11 more: --json has all") for line in said)


def test_read_only_shows_and_changes_nothing(memory: Shell, root: Path) -> None:
    with open_memory(root / ".helix" / "helix.db", teacher="person"):
        pass
    assert memory("learn", "--read-only")["attempts"]
    memory("learn", "--apply", "--read-only", code=1)
    assert memory("proposals")["proposals"] == []


PLAN: dict[str, Any] = {
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


@pytest.mark.parametrize(("depends", "why"), [("009", "depends on 009, which is not a task"), ("002", "cycle")])
def test_a_stored_plan_that_cannot_be_used_is_shown_with_its_problems(
    memory: Shell,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    depends: str,
    why: str,
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(file))
    spoilt = json.dumps([PLAN["tasks"][0] | {"depends": depends}, PLAN["tasks"][1]])
    connection = sqlite3.connect(root / ".helix" / "helix.db")
    connection.execute("UPDATE plan SET tasks = ?", (spoilt,))
    connection.commit()
    connection.close()
    shown = memory("plan", "show", "1")
    assert shown["ready"] == []
    assert why in shown["plan"]["problems"][0]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["memory", "plan", "show", "1", "-C", str(root)]) == 0
    assert why in capsys.readouterr().out


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


def test_a_plan_says_beforehand_that_its_beads_can_be_taken_back(memory: Shell, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(tmp_path / "plan.json"))
    for document in (memory("plan", "apply", "1", "--dry-run"), memory("plan", "apply", "1")):
        assert (document["undoable"], document["why_not"]) == (True, [])


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
    memory("workspace", "close", str(opened["id"]), "--delivered", "the models are there", "--verified", "passed")
    second = memory("workspace", "open", "1", "--seq", "002")["workspace"]
    assert second["parents"] == ["001 models: the models are there"]
    assert len(memory("workspace")["workspaces"]) == 2
    memory("workspace", "open", "1", "--seq", "009", code=2)


def test_closing_runs_verify_and_proposes_what_blocked(memory: Shell, root: Path, tmp_path: Path) -> None:
    checks = root / "checks.py"
    checks.write_text("import sys; print('no such table'); sys.exit(1)\n")
    task = {"seq": "001", "slug": "models", "objective": "Specify the models", "budget": 5}
    task |= {"verify": f"{shlex.quote(sys.executable)} checks.py", "depends": "none", "delta": []}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"objective": "Authenticate users", "tasks": [task]}))
    memory("plan", "add", "--file", str(file))
    number = str(memory("workspace", "open", "1", "--seq", "001")["workspace"]["id"])
    assert memory("workspace", "close", number, "--dry-run")["would_run"].endswith("checks.py")
    ended = memory("workspace", "close", number, "--delivered", "done", "--tried", "an index", code=1)
    assert (ended["workspace"]["helix_outcome"], ended["verdict"]) == ("blocked", "failed")
    assert not ended["as_reported"]
    assert ended["workspace"]["error"] == "no such table"
    (proposal,) = memory("proposals")["proposals"]
    assert proposal["id"] == ended["proposal"]["id"]
    checks.write_text("")
    again = memory("workspace", "open", "1", "--seq", "001")["workspace"]
    assert "tried: an index" in again["brief"]
    assert memory("workspace", "close", str(again["id"]), "--delivered", "done")["workspace"]["status"] == "delivered"


def test_closing_as_delivered_says_that_the_task_is_blocked_instead(
    memory: Shell, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(file))
    memory("workspace", "open", "1", "--seq", "001")
    close = ["memory", "workspace", "close", "1", "--delivered", "done", "-C", str(root)]
    assert main([*close, "--verified", "failed"]) == 1
    said = capsys.readouterr().err
    assert "workspace 1 is blocked, not delivered as reported" in said
    assert "To try the task again: `helix-tui memory workspace open 1 --seq 001`" in said
    # a task reported as blocked is closed as asked
    memory("workspace", "open", "1", "--seq", "001")
    close[3] = "2"
    assert main([*close, "--verified", "failed", "--status", "blocked"]) == 0
    assert "as reported" not in capsys.readouterr().err


def test_what_another_program_closed_as_blocked_is_learned_from(memory: Shell, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    memory("plan", "add", "--file", str(file))
    memory("workspace", "open", "1", "--seq", "001")
    with sqlite3.connect(root / ".helix" / "helix.db") as held:
        held.execute("UPDATE workspace SET status = 'blocked', delivered = 'no access to the table'")
    held.close()
    assert memory("learn")["workspaces"][0]["why"] == "no access to the table"
    memory("learn", "--apply")
    (proposal,) = [each for each in memory("proposals")["proposals"] if each["attempt"] == "workspace-1"]
    assert "no access to the table" in proposal["trigger"]
    assert memory("learn")["workspaces"] == []


def test_an_agent_proposes_and_a_rule_of_a_person_accepts(
    memory: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = ("--trigger", "Import of models fails at start", "--resolution", "Move the shared types")
    memory("proposals", "add", *lesson, "--attempt", "a-1")
    (waiting,) = memory("proposals")["proposals"]
    assert (waiting["trigger"], waiting["state"]) == (lesson[1], "open")
    assert memory("list")["memories"] == []
    memory("proposals", "add", "--trigger", "x", "--attempt", "a-2", code=2)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "helix-tui").mkdir()
    (tmp_path / "helix-tui" / "settings.toml").write_text('accept_lessons = "failures"\n')
    assert memory("learn", "--apply")["accepted"] is not None
    assert lesson[1] in {each["trigger"] for each in memory("list")["memories"]}
