"""``helix-tui ask`` about the work itself: beads, attempts, memories and commits are its sources."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.program import main
from tests.core.evidence.work import ATTEMPT, LATER, make_work


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_work(tmp_path_factory.mktemp("cli") / "ferry").root


def _ask(root: Path, question: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["-C", str(root), "ask", "--no-model", "--json", "--read-only", question]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_list_of_beads_leaves_out_those_that_only_exclude_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "which beads touch the parser?", capsys)
    assert "fy-1a2b" in found["answer"]
    assert "fy-5e6f" not in found["answer"]
    assert found["tier_selected"] == "Grounded"
    assert found["citations"][0]["file"] == "bead:fy-1a2b"
    assert not any(":" in file for file in found["ranked_files"])


def test_what_is_ready_is_what_the_queue_says(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(root), "queue", "--json", "--read-only"]) == 0
    ready = json.loads(capsys.readouterr().out)["ready"]
    found = _ask(root, "which beads are ready?", capsys)
    assert found["answer"].startswith("2 beads ready:\n")
    assert [one["file"] for one in found["citations"]] == [f"bead:{name}" for name in ready]


def test_that_nothing_is_in_a_state_is_an_answer(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "which beads are proposed?", capsys)
    assert (found["answer"], found["tier"]) == ("No bead is proposed.", "answered")
    assert _ask(root, "which attempts were interrupted?", capsys)["tier"] == "answered"


def test_attempts_in_a_state_are_those_with_that_outcome(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "how many attempts were refused?", capsys)
    assert found["answer"].startswith("1 attempt refused:\n")
    assert LATER in found["answer"]
    assert "attempt landed" not in _ask(root, "how many attempts landed?", capsys)["answer"]


@pytest.mark.parametrize(
    ("question", "told", "ids"),
    [
        ("which attempts failed because of a merge conflict?", "1 attempt that did not land", [ATTEMPT]),
        ("which attempts failed because of a broken disk?", "No attempt is recorded that did not land", []),
        ("how many attempts were refused by review?", "1 attempt that a review refused", [LATER]),
        ("which attempts at the parser failed?", "1 attempt that failed on “parser”", [ATTEMPT]),
        ("which attempts failed on 1 August?", "1 attempt that failed on 2026-08-01:", [ATTEMPT]),
        ("which attempts failed on 2026-08-02?", "No attempt is recorded that failed on 2026-08-02.", []),
        ("which attempts failed today?", "No attempt is recorded that failed on 20", []),
        ("how many attempts failed in August?", "1 attempt that failed in August:", [ATTEMPT]),
        ("which attempts failed in April 2026?", "No attempt is recorded that failed in April 2026.", []),
        ("which model failed most?", "claude/sonnet, 1 attempt that failed:", [ATTEMPT]),
        ("which agent made the most attempts?", "claude/sonnet, 2 attempts:", [LATER, ATTEMPT]),
    ],
)
def test_attempts_are_listed_by_their_end_and_its_cause(
    root: Path, capsys: pytest.CaptureFixture[str], question: str, told: str, ids: list[str]
) -> None:
    found = _ask(root, question, capsys)
    assert told in found["answer"]
    assert [one["source"]["id"] for one in found["citations"]] == ids


@pytest.mark.parametrize("question", ["what happened on 2026-08-01?", "why did the run of 1 August stop?"])
def test_a_day_is_told_by_its_attempts_and_its_run(
    root: Path, question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _ask(root, question, capsys)
    assert found["answer"].startswith(f"2026-08-01, 1 attempt: 1 failed, cost n/a:\n- `{ATTEMPT}` at `fy-1a2b`")
    assert "the budget of tokens is reached" in found["answer"]
    assert [one["source"]["id"] for one in found["citations"]] == [ATTEMPT, "helix-20260801.log"]
    assert found["tier"] == "answered"


def test_a_day_without_records_is_told_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Nothing is recorded for 2026-08-05" in _ask(root, "what happened on 2026-08-05?", capsys)["answer"]


def test_an_account_tells_of_the_last_attempt_and_its_review(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "what went wrong with fy-1a2b last time?", capsys)
    first = found["answer"].partition("Before that")[0]
    assert LATER in first
    assert "the quoted comma has no test" in first
    assert found["citations"][1]["source"] == {"kind": "attempt", "id": LATER, "record": "fy-1a2b"}
    assert found["controller_steps"][-1]["action"] == "search_records"


@pytest.mark.parametrize(
    "question",
    [
        "what went wrong with the quoted commas bead last time?",
        "what did it cost to accept quoted commas?",
        "how much has the bead about quoted commas cost?",
    ],
)
def test_a_bead_is_named_by_its_title_too(root: Path, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, question, capsys)
    assert found["answer"].startswith("`fy-1a2b` is “Accept quoted commas in the timetable parser”")
    assert f"The last attempt ({LATER})" in found["answer"]
    assert "Cost: n/a. [2]" in found["answer"]
    assert found["tier"] == "answered"


def test_a_bead_that_no_title_names_is_not_taken_for_another(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "what went wrong with the quoted semicolons bead?", capsys)
    assert "The last attempt" not in found["answer"]


def test_reasons_stand_in_commits(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "why was the lease limit raised?", capsys)
    assert "A slow disk let claims expire while tests ran" in found["answer"]
    assert any(one["file"].startswith("commit:") for one in found["citations"])


def test_memories_are_listed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "what has been learnt about a git lock?", capsys)
    assert "1 memory" in found["answer"]
    found = _ask(root, "any lessons about a git lock?", capsys)
    assert "1 memory" in found["answer"]
    assert found["citations"][0]["source"]["kind"] == "memory"


def test_code_is_asked_as_before(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _ask(root, "Where is the timetable parsed?", capsys)
    assert found["citations"][0]["file"] == "ferry/timetable.py"
    assert not any(step["action"] == "search_records" for step in found["controller_steps"])


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-08-01"), ("Pacific/Kiritimati", "2026-08-02")])
def test_the_day_of_an_attempt_is_the_one_under_which_the_loop_has_it(
    root: Path, zone: str, day: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        found = _ask(root, f"what happened on {day}?", capsys)
    time.tzset()
    assert found["answer"].startswith(f"{day}, 1 attempt: 1 failed, cost n/a:\n- `{ATTEMPT}`")
