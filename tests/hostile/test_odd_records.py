"""One odd record is one notice: no command that reads ends by it. `tests.drills.odd_records` makes 5,000."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.records import encode_json
from helix_tui.core.supervision.run_state.run_control import read_request
from helix_tui.core.supervision.run_state.state import load_state
from helix_tui.core.supervision.signals.questions import read_questions
from helix_tui.widgets.base.line import wrap_spans
from tests.cli.conftest import Cli, cli
from tests.drills.odd_records import drill, run_command

__all__ = ["cli"]  # a fixture

BEAD = {
    "id": "ferry-e2560e1f",
    "title": "Find a stop",
    "status": "open",
    "priority": 1,
    "issue_type": "task",
    "created_at": "2026-11-20T10:00:00Z",
    "dependencies": [{"issue_id": "ferry-e2560e1f", "depends_on_id": "ferry-1", "type": "blocks"}],
    "events": [{"kind": "review", "created_at": "2026-11-21T10:00:00Z", "summary": "REQUEST_CHANGES", "body": "{}"}],
}
RESULT = {"bead_id": "ferry-e2560e1f", "attempt_id": "20261121T100000-deadbeef", "status": "success", "cost_usd": 0.5}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a record of each kind."""
    bundle = tmp_path / ".ddx" / "executions" / "20261121T100000-deadbeef"
    bundle.mkdir(parents=True)
    (tmp_path / ".helix").mkdir()
    rows = (BEAD, {**BEAD, "id": "ferry-1", "dependencies": []})
    (tmp_path / ".ddx" / "beads.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (bundle / "result.json").write_text(json.dumps(RESULT))
    return tmp_path


def test_a_few_records_of_a_seed_end_no_command(root: Path) -> None:
    commands = [("queue",), ("status",), ("stuck",), ("needs", "--json"), ("attempts",), ("next",)]
    assert drill(root, 48, seed=38, at_once=6, commands=commands) == 0


@pytest.mark.parametrize("name", ["run-state", "queue-snapshot", "questions", "snoozed", "budget", "loop-request"])
def test_open_brackets_without_end_are_no_document(root: Path, name: str) -> None:
    (root / ".helix" / f"{name}.json").write_bytes(b"[" * 5_000)
    for words in (("status",), ("stuck",), ("check", "--dry-run")):
        assert not run_command(words, root)
    assert read_request(find_project(root)) == ""


def test_a_decision_without_its_parts_is_none_and_the_other_fields_stay(root: Path) -> None:
    document = {"run_id": "r", "next_action": {"reasons": []}, "tried": [1], "cost_usd": "much", "newer": 1}
    (root / ".helix" / "run-state.json").write_text(json.dumps(document))
    state = load_state(find_project(root))
    assert (state.run_id, state.next_action, state.tried, state.cost_usd) == ("r", {}, [], 0.0)
    assert state.rest == {"newer": 1}


def test_a_dependency_that_names_no_bead_is_the_reason_in_the_list(root: Path, cli: Cli) -> None:
    (root / ".ddx" / "beads.jsonl").write_text(json.dumps({**BEAD, "dependencies": ["ferry-1"]}) + "\n")
    ran = cli("-C", root, "queue")
    assert ran.code == 0
    assert "names no bead" in ran.out


def test_questions_that_are_no_list_are_none(root: Path) -> None:
    path = root / ".helix" / "questions.json"
    path.write_text('{"questions": 5}')
    assert read_questions(path) == ()


def test_an_event_of_an_odd_kind_is_no_source_of_ask(root: Path) -> None:
    from helix_tui.core.evidence.records import _event_parts

    assert not list(_event_parts([{"kind": ["review"]}, {"kind": {}}]))
    assert len(read_tracker(root / ".ddx" / "beads.jsonl").beads) == 2


@pytest.mark.parametrize("width", [2, 10, 80])
def test_combining_marks_without_end_are_wrapped(width: int) -> None:
    text = "e" + "\u0301" * 400 + "字" + "\u0301" * 81
    lines = wrap_spans([(text, "text")], width, 0)
    assert "".join(part for line in lines for part, _ in line) == text


def test_a_name_that_is_no_text_is_json_all_the_same() -> None:
    assert encode_json({"path": "docs/\udcff.md", "at": Path("a")}) == b'{"path": "docs/?.md", "at": "a"}'
    assert encode_json({"path": "docs/\u00e4.md"}) == '{"path":"docs/\u00e4.md"}'.encode()
