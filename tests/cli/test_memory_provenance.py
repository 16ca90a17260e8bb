"""The command line says who taught a memory, and what an agent may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main


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
    refused = call(root, capsys, "accept", stored["name"], code=1)
    assert refused["error"]["message"] == "an agent does not accept memories"
    assert call(root, capsys, "inject", "--objective", "import of the models")["text"] == ""
    monkeypatch.delenv("CLAUDECODE")
    assert [hit["name"] for hit in call(root, capsys, "recall", "import of the models")["memories"]] == [stored["name"]]
    assert call(root, capsys, "accept", stored["name"])["done"]["title"] == f"accept “{stored['name']}”"
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
