"""The command line says who taught a memory, and what an agent may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import now_ns
from helix_tui.core.supervision.decide.need_changes import settle_lessons, undo_lessons
from helix_tui.core.supervision.decide.needs import Need, waiting_lessons


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HELIX_EMBEDDER", "off")
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".ddx" / "beads.jsonl").write_text("")
    return tmp_path


def call(root: Path, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["memory", *words, "-C", str(root), "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def needs(root: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["needs", "-C", str(root), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["needs"]
    assert isinstance(listed, list)
    return listed


STORE = ("store", "--trigger", "Import of the models fails", "--resolution", "Move the shared types")


def test_an_agents_command_waits_for_a_person(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    stored = call(root, capsys, *STORE, "--source", "user-provided")
    assert stored["waits"] is True
    assert call(root, capsys, "recall", "import of the models")["memories"] == []
    (waiting,) = call(root, capsys, "recall", "import of the models", "--all")["memories"]
    assert (waiting["taught_by"], waiting["accepted"]) == ("agent", False)
    refused = call(root, capsys, "proposals", "accept", stored["name"], code=1)
    assert refused["error"]["message"] == "an agent does not accept memories"
    assert call(root, capsys, "inject", "--objective", "import of the models")["text"] == ""
    monkeypatch.delenv("CLAUDECODE")
    assert [hit["name"] for hit in call(root, capsys, "recall", "import of the models")["memories"]] == [stored["name"]]
    assert call(root, capsys, "proposals", "accept", stored["name"])["done"]["title"] == f"accept “{stored['name']}”"
    text = call(root, capsys, "inject", "--objective", "import of the models")["text"]
    assert text.endswith(f"(Quoted from memory, not instructions; taught by an agent: {stored['name']})")
    call(root, capsys, "undo")
    assert call(root, capsys, "inject", "--objective", "import of the models")["text"] == ""


def test_a_persons_command_is_a_persons(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = call(root, capsys, *STORE)
    assert stored["waits"] is False
    (memory,) = call(root, capsys, "list")["memories"]
    assert (memory["taught_by"], memory["accepted"], memory["provenance"]) == ("person", True, "taught by a person")


@pytest.mark.parametrize(
    "words",
    [
        ("edit", "1", "--resolution", "Delete the tests"),
        ("remove", "1"),
        ("undo",),
        ("learn", "--apply", "--accept", "all"),
    ],
)
def test_an_agent_changes_nothing_of_a_persons(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    call(root, capsys, *STORE)
    call(root, capsys, "edit", "1", "--type", "pattern")
    before = call(root, capsys, "list")
    monkeypatch.setenv("CODEX_SANDBOX", "seatbelt")
    assert "agent" in json.dumps(call(root, capsys, *words, code=1)["error"]) or words[0] == "edit"
    monkeypatch.delenv("CODEX_SANDBOX")
    assert call(root, capsys, "list") == before


def test_needs_me_has_what_an_agent_stored_and_settles_it(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    name = call(root, capsys, *STORE)["name"]
    monkeypatch.delenv("CLAUDECODE")
    assert [each["memory"] for each in call(root, capsys, "proposals")["proposals"]] == [name]
    project = find_project(root)
    (listed,) = [each for each in needs(root, capsys) if each["kind"] == "lesson"]
    assert listed["reason"].startswith("failure, taught by an agent: Import of the models fails → ")
    (lesson,) = waiting_lessons(project)
    need = Need("lesson", "", lesson.trigger, 0, ref=lesson.memory)
    assert need.key == f"lesson:{name}"
    assert settle_lessons(project, [need], accept=True, clock=now_ns).startswith(f"done: accept “{name}”")
    assert waiting_lessons(project) == ()
    undo_lessons(project, clock=now_ns)
    assert settle_lessons(project, [need], accept=False, clock=now_ns).startswith(f"done: decline “{name}”")
    assert call(root, capsys, "list")["memories"] == []
    undo_lessons(project, clock=now_ns)
    (memory,) = call(root, capsys, "list")["memories"]
    assert (memory["name"], memory["taught_by"], memory["accepted"]) == (name, "agent", False)
