"""One verdict on an attempt: what decides it, in which order, and what git says of real commits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.index import AttemptIndex, BranchHistory
from helix_tui.core.ddx.attempts.verdict import OUTCOMES
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.signals.responses import response_to
from tests.core.ddx.attempts.test_attempts import FIRST, SECOND, Place, event

EXHAUSTED = "repair-cycle-exhausted"
WRITTEN = {"status": "success", "status_source": "result"}
PRE, POST = "pre-land review: BLOCK", "post-merge review: BLOCK (flagged for human)"
REF = f"refs/ddx/iterations/b-1/{FIRST}-0123456789ab"
CANDIDATE = f"refs/ddx/iterations/{FIRST}/0"


@pytest.mark.parametrize(
    ("fields", "outcome", "proof"),
    [
        # git is asked first, whatever anybody else says
        ({"status": "review_block", "detail": PRE, "on_branch": True}, "landed", "git"),
        ({"status": "success", "on_branch": False}, "kept_aside", "git"),
        ({"status": "success", "landed_rev": "abc", "on_branch": False}, "kept_aside", "git"),
        ({"status": "review_block", "detail": POST, "on_branch": False}, "refused", "git"),
        ({**WRITTEN, "held": True, "on_branch": False}, "unfinished", "status"),
        ({"status": "execution_failed", "on_branch": False}, "failed", "status"),
        # then a revision as which it landed
        ({"status": "success", "landed_rev": "abc", "preserve_ref": REF}, "landed", "landed revision"),
        ({"status": EXHAUSTED, "recovered": True, "preserve_ref": REF}, "landed", "landed revision"),
        ({"status": "push_failed", "merged": True}, "landed", "landed revision"),
        ({"status": "land_conflict", "merged": True, "preserve_ref": REF}, "kept_aside", "ref"),
        # then a ref beside the branch
        ({"status": "success", "preserve_ref": REF}, "kept_aside", "ref"),
        ({"status": "success", "preserve_ref": REF, "detail": "auto-recovered: merged"}, "landed", "event"),
        ({"status": EXHAUSTED, "preserve_ref": REF}, "refused", "ref"),
        ({"status": "review_block", "candidate_ref": CANDIDATE}, "refused", "ref"),
        ({"status": "review_malfunction", "candidate_ref": CANDIDATE}, "kept_aside", "ref"),
        # then what ddx wrote of the end: a later release reviews before it lands, April after
        ({"status": "review_block", "detail": PRE}, "refused", "event"),
        ({"status": "review_malfunction", "detail": "pre-land review: malformed"}, "kept_aside", "event"),
        ({"status": "review_block", "detail": POST}, "landed", "event"),
        ({"status": "review_malfunction", "detail": "pre-close review: unparseable"}, "landed", "event"),
        ({"status": "execution_failed", "detail": "pre-land repair: no agent"}, "failed", "status"),
        # then the word for the end
        ({"status": "success", "status_source": "event"}, "landed", "status"),
        ({"status": "review_request_changes"}, "landed", "status"),
        ({"status": "review_request_changes", "sources": ("metrics",)}, "refused", "status"),
        ({"status": "already_satisfied"}, "satisfied", "status"),
        ({"status": "no_changes"}, "no_change", "status"),
        ({"status": "no_evidence_produced"}, "no_change", "status"),
        ({"status": "land_conflict"}, "kept_aside", "status"),
        ({"status": "execution_failed", "detail": "signal: terminated"}, "interrupted", "status"),
        ({"status": "execution_failed", "detail": "cancelled"}, "interrupted", "status"),
        ({"status": "execution_failed", "detail": "tests were interrupted by a panic"}, "failed", "status"),
        ({"status": "a_word_of_next_year"}, "unknown", "status"),
        (
            {"status": "no_changes", "status_source": "result",
             "no_changes_rationale": "status: already_satisfied\nreason: it is there"},
            "unknown", "status",
        ),
        # and where nobody said anything
        ({}, "interrupted", "nothing"),
        ({"held": True}, "unfinished", "nothing"),
    ],
)  # fmt: skip
def test_what_decides(fields: dict[str, Any], outcome: str, proof: str) -> None:
    attempt = Attempt("a", "b-1", **fields)
    assert (attempt.verdict.outcome, attempt.verdict.proof) == (outcome, proof)
    assert attempt.verdict.why
    assert attempt.verdict.outcome in OUTCOMES
    assert (attempt.landed, attempt.preserved) == (
        outcome == "landed",
        outcome in ("kept_aside", "refused"),
    )


def test_landing_by_recovery_is_landing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.bundle(FIRST, status="success", outcome="task_succeeded", candidate_ref=CANDIDATE)
    place.row(
        "b-1",
        event("execute-bead", "repair-cycle-exhausted", f"pre-land repair: exhausted\npreserve_ref={REF}"),
    )
    assert place.look().verdict.outcome == "refused"
    body = f"attempt_id={FIRST}\nresult_rev=aaa\nlanded_tip=bbb\naction=auto_land_and_close"
    place.row(
        "b-1",
        event("execute-bead", "repair-cycle-exhausted", f"pre-land repair: exhausted\npreserve_ref={REF}"),
        event("dangling-success-recovery", "recovered dangling success", body, "2026-08-01T11:00:00Z"),
    )
    attempt = place.look()
    assert (attempt.verdict.outcome, attempt.landed_rev) == ("landed", "bbb")
    assert attempt.landed_at == parse_instant("2026-08-01T11:00:00Z"), "when it was recovered, not when it ended"
    assert attempt.counted_at < attempt.landed_at
    assert (attempt.status, response_to(attempt)) == ("success", "count"), "ddx calls it a success then, and so do we"
    parked = f"attempt_id={FIRST}\nresult_rev=aaa\npreserve_ref={REF}\npushed=true"
    place.row("b-1", event("dangling-success-preserved", "preserved for operator landing", parked))
    attempt = place.look()
    assert (attempt.verdict.outcome, attempt.preserve_ref) == ("kept_aside", REF)


def test_an_attempt_that_was_cut_short_changed_nothing_for_that(tmp_path: Path) -> None:
    """10 May: ddx tries again at once, in a context that is cancelled too, and calls that no change."""
    place = Place(tmp_path)
    place.bundle(FIRST, status="no_evidence_produced", outcome="task_no_evidence")
    ended = event("execute-bead", "no_changes", f"agent exited without a commit\nattempt_id={FIRST}")
    place.row("b-1", event("disruption_detected", "routing", {}), ended)
    assert place.look().verdict.outcome == "no_change"
    place.row("b-1", event("disruption_detected", "context_canceled", {}), ended)
    assert (place.look().verdict.outcome, place.look().verdict.why) == ("interrupted", "no_changes: context canceled")


def test_only_the_newest_attempt_of_a_held_bead_can_be_unfinished(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.bundle(FIRST)
    place.bundle(SECOND)
    place.row("b-1", status="in_progress")
    place.index.refresh(place.beads)
    assert [attempt.verdict.outcome for attempt in place.index.attempts] == ["unfinished", "interrupted"]


class Repository:
    """A real repository with a tracker; commits that landed and commits that are only at a ref."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        self.base = self.commit("base")
        self.place = Place(root)
        self.index = AttemptIndex.of(find_project(root, env={}))

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text: str) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")

    def aside(self, text: str, ref: str) -> str:
        """A commit on top of the branch that only a ref holds."""
        tree = self.git("rev-parse", "HEAD^{tree}")
        made = self.git("commit-tree", tree, "-p", "HEAD", "-m", text)
        self.git("update-ref", ref, made)
        return made

    def outcomes(self) -> dict[str, tuple[str, str]]:
        self.index.refresh(read_tracker(self.root / ".ddx" / "beads.jsonl").beads or self.place.beads)
        return {attempt.attempt_id: (attempt.verdict.outcome, attempt.verdict.proof) for attempt in self.index.attempts}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "r")


def test_git_decides_and_is_asked_again_when_the_branch_moves(repository: Repository) -> None:
    here = repository
    candidate = here.aside("candidate", CANDIDATE)
    here.place.bundle(FIRST, status="success", base_rev=here.base, result_rev=candidate)
    here.place.row("b-1", event("execute-bead", "success", f"success\nresult_rev={candidate}\nbase_rev={here.base}"))
    assert here.outcomes() == {FIRST: ("kept_aside", "git")}
    here.git("merge", "-q", "--no-ff", "-m", "land", candidate)
    assert here.outcomes() == {FIRST: ("landed", "git")}
    assert here.index.refresh(here.place.beads) == set(), "nothing moved: nothing is merged again"
    here.commit("more")
    assert here.outcomes() == {FIRST: ("landed", "git")}
    here.git("reset", "-q", "--hard", here.base)
    assert here.outcomes() == {FIRST: ("kept_aside", "git")}, "history was rewritten"


def test_work_that_changed_nothing_has_not_landed_because_its_base_is_on_the_branch(
    repository: Repository,
) -> None:
    here = repository
    here.place.bundle(FIRST, status="no_changes", base_rev=here.base, result_rev=here.base)
    here.place.bundle(SECOND, status="already_satisfied", result_rev=here.base)
    here.place.row("b-1")
    outcomes = here.outcomes()
    assert outcomes[FIRST][0] == "no_change"
    assert outcomes[SECOND][0] == "satisfied"


def test_a_revision_that_is_not_here_leaves_the_word_to_the_records(repository: Repository) -> None:
    here = repository
    here.place.bundle(FIRST, status="success", outcome="merged", base_rev=here.base, result_rev="e" * 40)
    here.place.row("b-1")
    assert here.outcomes() == {FIRST: ("landed", "landed revision")}


def test_landed_here_and_not_pushed_is_landed(repository: Repository) -> None:
    here = repository
    made = here.commit("work")
    here.place.bundle(FIRST, status="push_failed", base_rev=here.base, result_rev=made)
    here.place.row("b-1")
    assert here.outcomes() == {FIRST: ("landed", "git")}


def test_a_linked_work_tree_asks_about_the_branch_of_the_main_one(repository: Repository, tmp_path: Path) -> None:
    here = repository
    candidate = here.aside("candidate", CANDIDATE)
    here.git("worktree", "add", "-q", "--detach", str(tmp_path / "w"), candidate)
    history = BranchHistory(find_project(tmp_path / "w", env={}))
    history.look({candidate, here.base})
    assert (history.holds(candidate), history.holds(here.base)) == (False, True)


def test_without_git_nobody_is_asked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    index = AttemptIndex.of(find_project(tmp_path, env={}))
    place.bundle(FIRST, status="success", base_rev="a" * 40, result_rev="b" * 40)
    place.row("b-1")
    index.refresh(place.beads)
    assert [attempt.verdict.proof for attempt in index.attempts] == ["status"]


def test_head_trackers_reviewed_attempts_are_not_landed(shared: Path, tmp_path: Path) -> None:
    """Ground truth: 4 of 4 are not landed; on 11 August 2026 nothing landed."""
    ddx = tmp_path / ".ddx"
    ddx.mkdir()
    (ddx / "beads.jsonl").write_bytes((shared / "data" / "ddx" / "beads-head.jsonl").read_bytes())
    index = AttemptIndex.of(find_project(tmp_path, env={}))
    index.refresh(read_tracker(ddx / "beads.jsonl").beads)
    reviewed = [attempt for attempt in index.attempts if attempt.status.startswith("review_")]
    assert [one.landed for one in reviewed] == [False] * 4
    assert {one.verdict.outcome for one in reviewed} == {"refused", "kept_aside"}
    day = [attempt for attempt in index.attempts if attempt.attempt_id.startswith("20260811")]
    assert day
    assert not any(one.landed for one in day)


def test_attempts_stand_in_the_order_of_the_date_that_is_shown(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.bundle(FIRST, status="success", started_at="2026-08-08T10:00:00Z", finished_at="2026-08-10T10:00:00Z")
    place.bundle(SECOND, "b-2", status="success", started_at="2026-08-09T10:00:00Z",
                 finished_at="2026-08-09T11:00:00Z")  # fmt: skip
    place.row("b-1")
    place.row("b-2")
    place.index.refresh(place.beads)
    assert [attempt.attempt_id for attempt in place.index.attempts] == [FIRST, SECOND]


def test_an_attempt_without_a_status_that_was_preserved_has_ended() -> None:
    assert Attempt("a", "b-1", preserve_ref=REF).finished
    assert not Attempt("a", "b-1").finished
    assert not Attempt("a", "b-1", held=True).finished
