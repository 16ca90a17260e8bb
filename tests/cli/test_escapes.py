"""No command prints a control sequence that a repository brings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground.text import clean_output, escape_json

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eid\u2066\x85\r"
ACTING = ("\x1b", "\x9b", "\x85", "\u202e", "\u2066", "\r", "\x07")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Records with control sequences in every text field."""
    (tmp_path / ".ddx").mkdir()
    row: dict[str, object] = {
        name: f"{name}{HOSTILE}" for name in ("id", "title", "description", "acceptance", "notes", "owner", "spec-id")
    }
    row |= {"status": "open", "priority": 2, "issue_type": "task", "labels": [HOSTILE], "parent": HOSTILE}
    (tmp_path / ".ddx" / "beads.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / ".helix").mkdir()
    question = {"schema": "question/1", "id": f"q{HOSTILE}", "kind": HOSTILE, "text": HOSTILE, "bead": HOSTILE}
    (tmp_path / ".helix" / "questions.jsonl").write_text(json.dumps(question) + "\n")
    return tmp_path


COMMANDS = (
    "queue",
    "why id",
    "attempts",
    "needs",
    "journal",
    "status",
    "stuck",
    "next",
    "check",
    "input --questions",
    "insights",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_prints_a_sequence(project: Path, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--json",)):
        main([*words.split(), "-C", str(project), *more])
        printed = "".join(capfd.readouterr())
        assert not [mark for mark in ACTING if mark in printed]


def test_only_our_colours_are_left() -> None:
    assert clean_output(f"\x1b[31mred\x1b[0m {HOSTILE}\tend\n\x1b[8mhidden") == "\x1b[31mred\x1b[0m id\tend\nhidden"


def test_escaped_json_says_the_same() -> None:
    line = json.dumps({"a": HOSTILE + "é"}, ensure_ascii=False).encode()
    assert json.loads(escape_json(line)) == json.loads(line)
    assert not [mark for mark in ("\x9b", "\u202e", "\x85", "\u2066") if mark in escape_json(line).decode()]
