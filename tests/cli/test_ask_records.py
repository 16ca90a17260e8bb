"""``helix-tui ask`` about the work itself: beads, attempts, memories, commits and the queue are its sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main
from tests.core.evidence.work import LATER, make_work


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_work(tmp_path_factory.mktemp("cli") / "ferry").root


def _ask(root: Path, question: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["-C", str(root), "ask", "--no-model", "--json", "--read-only", question]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("question", "kind", "said"),
    [
        ("which beads touch the parser of timetables?", "bead", "splits a stop name at its comma"),
        ("what went wrong with fy-1a2b last time?", "attempt", ""),
        (f"what happened to {LATER}?", "attempt", LATER),
        ("why was the lease limit raised?", "commit", "A slow disk let claims expire while tests ran"),
        ("any lessons about a git lock left by a killed worker?", "memory", "remove index.lock"),
        ("why did the run stop at the budget of tokens?", "run", "the budget of tokens is reached"),
        ("which beads are ready?", "queue", "- fy-1a2b: Accept quoted commas"),
    ],
)
def test_what_is_asked_about_the_work_is_quoted_from_its_records(
    root: Path, question: str, kind: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _ask(root, question, capsys)
    assert kind in {one["source"]["kind"] for one in found["citations"]}, found["answer"]
    assert said in found["answer"]
    assert not any(":" in file for file in found["ranked_files"])


def test_the_ready_beads_are_those_of_the_queue(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(root), "queue", "--json", "--read-only"]) == 0
    ready = json.loads(capsys.readouterr().out)["ready"]
    answer = _ask(root, "which beads are ready?", capsys)["answer"]
    assert "> ready: 2 beads`" in answer
    assert [line.split()[1].rstrip(":") for line in answer.split("\n") if line.startswith("    - fy-")] == ready


def test_a_record_is_opened_by_its_own_id(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "what went wrong with fy-1a2b last time?", capsys)
    sources = [one["source"] for one in found["citations"]]
    assert {"fy-1a2b"} == {source["record"] for source in sources if source["kind"] in ("bead", "attempt")}


def test_code_is_asked_as_before(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "Where is the timetable parsed?", capsys)
    assert found["ranked_files"][0] == "ferry/timetable.py"
    assert "ferry/timetable.py" in {one["file"] for one in found["citations"]}
