"""A run at each level of autonomy: its reviews are real, what it tells agents goes back, nothing is left behind."""

from __future__ import annotations

import json
import shutil

import pytest

from helix_tui.core.ddx.git_state import implementation_changes
from tests.real.stranger import Stranger
from tests.real.test_sums import agrees

LEVELS = ("medium", "high")


def six(stranger: Stranger) -> list[str]:
    """An epic with two tasks, one after the other, and four beads beside it; the last one fails, one is refused."""
    made = stranger.ddx("bead", "create", "Epic of files", "--type", "epic", "--priority", "1", check=True)
    epic = made.stdout.split()[-1]
    one = stranger.bead("Write one", parent=epic)
    two = stranger.bead("Write two", parent=epic, after=(one,))
    more = [stranger.bead(title, priority=3) for title in ("Write three", "Write no [nochange]", "Write no [block]")]
    beads = [one, two, *more, stranger.bead("Write no [fail]", priority=4)]
    stranger.commit("beads")
    return beads


def nothing_is_left(stranger: Stranger) -> None:
    """No process, no mark of a run in a row, nothing beside which ddx would not work."""
    assert not stranger.processes()
    text = json.dumps(stranger.rows())
    assert not [mark for mark in ("helix-context", "helix-held", "helix-focus") if mark in text]
    assert implementation_changes(stranger.project) == ()
    assert ".helix" not in stranger.git("status", "--porcelain", "--untracked-files=all")


@pytest.mark.usefixtures("lands")
@pytest.mark.parametrize("level", LEVELS)
def test_a_run_reviews_each_success_and_leaves_nothing_behind(stranger: Stranger, level: str) -> None:
    beads = set(six(stranger))
    done = stranger.supervised("--autonomy", level)
    assert done.returncode == 0, done.stderr
    nothing_is_left(stranger)
    works = stranger.calls("work")
    assert all(call["context"] for call in works), "each agent was told stance and context"
    landed = {row["bead_id"] for row in stranger.tui_json("attempts")["attempts"] if row["status"] == "success"}
    assert len(landed & beads) >= 3
    reviewed = {row.get("helix-trigger-bead") for row in stranger.rows().values()}
    assert landed & beads <= reviewed
    agrees(stranger, stranger.tui_json("attempts")["spent"])
    assert stranger.tui_json("queue")["ready"] == stranger.ready()
    refused = [row for row in stranger.tui_json("attempts")["attempts"] if "block" in row["status"]]
    if refused:
        asked = {item["kind"] for item in stranger.tui_json("needs")["needs"]}
        assert {"medium": "ambiguous", "high": "escalation"}[level] in asked


def test_another_harness_reviews_where_it_was_asked_for(stranger: Stranger) -> None:
    """The agent on PATH is a second harness too: ddx's own review and HELIX's review bead are given to that one."""
    shutil.copy(stranger.base / "bin" / "claude", stranger.base / "bin" / "codex")
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    done = stranger.supervised("--review-agent", "codex/gpt-5.4")
    assert stranger.closed() >= {bead}, done.stderr
    (review,) = [row for row in stranger.rows().values() if row.get("helix-trigger-bead") == bead]
    worked = {call["bead"]: call["agent"] for call in stranger.calls("work")}
    assert worked == {bead: "claude", review["id"]: "codex"}
    reviewed = {call["agent"] for call in stranger.calls("review") if call["bead"] == bead}
    if "--review-harness" not in stranger.ddx(*stranger.release.drain, "--help").stdout:
        assert "does not take --review-harness" in done.stderr
    elif stranger.release.is_april:
        assert reviewed == {"codex"}
    else:
        assert reviewed <= {"codex"}  # May's and June's loop takes the option, and reviews nothing by itself


def test_low_asks_before_it_begins_and_does_what_it_was_allowed(stranger: Stranger) -> None:
    six(stranger)
    rows = stranger.rows()
    assert stranger.supervised("--autonomy", "low").returncode == 0
    assert not stranger.calls()
    assert stranger.rows() == rows
    assert stranger.git("status", "--porcelain") == ""
    for _ in range(5):  # the focus on an epic, then the bead: each is asked about for itself
        (asked,) = stranger.tui_json("needs")["needs"]
        assert stranger.tui("input", "--answer", asked["question_id"], "yes").returncode == 0
        stranger.supervised("--autonomy", "low", "--max-cycles", "1")
        if stranger.calls("work"):
            break
    assert len({call["title"] for call in stranger.calls("work")}) == 1
    assert not stranger.processes()
    assert "helix-context" not in json.dumps(stranger.rows())


def test_a_dry_run_writes_nothing(stranger: Stranger) -> None:
    six(stranger)
    files = {path: path.read_bytes() for path in stranger.project.rglob("*") if path.is_file()}
    for level in ("low", *LEVELS):
        done = stranger.supervised("--autonomy", level, "--dry-run")
        assert (done.returncode, "Stance (execution)" in done.stderr) == (0, True), done.stderr
    assert files == {path: path.read_bytes() for path in stranger.project.rglob("*") if path.is_file()}
    assert not stranger.calls()


@pytest.mark.usefixtures("lands")
def test_a_budget_ends_a_run_after_the_bead_in_hand_and_undo_finds_what_a_person_did(stranger: Stranger) -> None:
    beads = [stranger.bead(f"Write {number}") for number in range(3)]
    stranger.commit("beads")
    assert stranger.tui("label", beads[2], "--add", "mine").returncode == 0
    stranger.supervised("--budget", "1 attempts", "--no-auto-review")
    assert stranger.closed() == {stranger.calls("work")[0]["bead"]}
    assert stranger.tui_json("status")["last_stop_reason"] == "budget"
    stranger.supervised("--day-budget", "1 attempts", "--no-auto-review")
    assert len(stranger.calls("work")) == 1
    undone = stranger.tui("undo")
    assert (undone.returncode, "mine" in undone.stdout) == (0, True), (undone.stdout, undone.stderr)
    nothing_is_left(stranger)
