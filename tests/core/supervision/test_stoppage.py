"""Why nothing runs: one answer, the same on every face, as long as its cause is there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.call import CliError
from helix_tui.cli.helix.shared import refuse_shut
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import decode_bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.time import now_ns
from helix_tui.core.statements.stuck import Stuck, find_stuck, report_lines
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.needs import needs_of
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.run_state.run_status import last_stoppage
from helix_tui.core.supervision.run_state.state import RunState
from helix_tui.core.supervision.signals.drift import Drift
from helix_tui.core.supervision.signals.stoppage import find_stoppage
from helix_tui.core.supervision.signals.tried import Tried
from tests.conftest import ProjectFactory
from tests.core.ddx.runs.test_ending import DIRTY, loop

ROW = {"id": "b-1", "title": "Do it", "status": "open", "acceptance": "`make test` passes"}


@pytest.fixture
def stopped(project: ProjectFactory) -> Project:
    """A project in which the last worker stopped for a file that nobody committed."""
    root = project([ROW], git=True)
    (root / ".gitignore").write_text(".ddx/\n.gitignore\n")
    (root / "stray.txt").write_text("x\n")
    loop(root / ".ddx", ("loop.operator_attention", DIRTY), ("loop.end", {"exit_reason": "operator_attention"}))
    return find_project(root)


def sight_of(project: Project) -> QueueState:
    beads = {"b-1": decode_bead(project.beads_file.read_bytes().split(b"\n")[0])}
    return QueueState(Tracker(project.beads_file), classify(beads, now=now_ns()))


def test_every_face_says_it_while_the_cause_is_there(stopped: Project) -> None:
    stoppage = find_stoppage(stopped)
    assert stoppage is not None
    assert (stoppage.present, stoppage.paths) == (True, ("stray.txt",))
    assert str(DIRTY["message"]) in stoppage.words
    assert "stray.txt" in stoppage.words
    queue_state = sight_of(stopped)
    verdict = decide(gather_facts(queue_state, stoppage=stoppage))
    assert (verdict.next_action, verdict.recommended_command) == ("GUIDANCE", "git status --short")
    assert verdict.reasons[0].code == "worker_stopped"
    (need, *_) = needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert (need.kind, need.bead_id, need.waiting) == ("worker_stopped", "b-1", 1)
    assert [each.reason for each in find_stuck(queue_state.queue, stoppage=stoppage)] == ["worker-stopped"]
    with pytest.raises(CliError, match="nothing was started: the last worker stopped") as refused:
        refuse_shut(queue_state, stopped)
    assert (refused.value.exit_code, "Commit them" in str(refused.value.advice)) == (1, True)


def test_it_is_done_with_when_the_files_are_committed(stopped: Project) -> None:
    subprocess.run(["git", "-C", str(stopped.root), "add", "."], check=True, capture_output=True)
    subprocess.run(["git", "-C", str(stopped.root), "commit", "-qm", "x"], check=True, capture_output=True)
    stoppage = find_stoppage(stopped)
    assert stoppage is not None
    assert stoppage.present is False
    assert "the next worker can begin" in stoppage.words
    queue_state = sight_of(stopped)
    verdict = decide(gather_facts(queue_state, stoppage=stoppage))
    assert verdict.next_action == "BUILD"
    assert "worker_stopped" in {note.code for note in verdict.notes}
    assert not needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert not find_stuck(queue_state.queue, stoppage=stoppage)
    refuse_shut(queue_state, stopped)


def test_what_ddx_writes_at_each_start_must_be_ignored_and_not_committed(project: ProjectFactory) -> None:
    root = project([ROW], git=True)
    log = ".ddx/agent-logs/agent-loop-1.jsonl"
    said = DIRTY | {"message": f"commit or clean: {log}", "dirty_paths": [log]}
    loop(root / ".ddx", ("loop.operator_attention", said), ("loop.end", {"exit_reason": "operator_attention"}))
    for words in (("add", "-A"), ("commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    stoppage = find_stoppage(find_project(root))
    assert stoppage is not None
    assert (stoppage.present, stoppage.paths) == (True, (".ddx/agent-logs/",))
    assert stoppage.fix == "enter `.ddx/agent-logs/` in .gitignore and commit that: ddx writes there at each start"
    (root / ".gitignore").write_text(".ddx/agent-logs/\n.gitignore\n")
    stoppage = find_stoppage(find_project(root))
    assert stoppage is not None
    assert stoppage.present is False


def test_a_clean_work_tree_does_not_show_that_what_git_refused_is_gone(project: ProjectFactory) -> None:
    root = project([ROW], git=True)
    said = DIRTY | {"reason": "durable_audit_commit_failed", "dirty_paths": [".ddx/metrics/attempts.jsonl"]}
    loop(root / ".ddx", ("loop.operator_attention", said), ("loop.end", {"exit_reason": "operator_attention"}))
    (root / ".gitignore").write_text(".ddx/\n.gitignore\n")
    stoppage = find_stoppage(find_project(root))
    assert stoppage is not None
    assert stoppage.present is None


@pytest.mark.parametrize(("why", "listed"), [("no_evidence_produced", 0), ("resource_exhausted", 1)])
def test_a_worker_that_left_its_bead_to_a_person_is_no_need_beside_that_bead(
    project: ProjectFactory, why: str, listed: int
) -> None:
    root = project([ROW | {"status": "proposed"}], git=True)
    told = {"bead_id": "b-1", "dirty_paths": None, "message": "agent exited without a commit", "reason": why}
    loop(root / ".ddx", ("loop.operator_attention", told), ("loop.end", {"exit_reason": "operator_attention"}))
    stoppage, queue_state = find_stoppage(find_project(root)), sight_of(find_project(root))
    assert stoppage is not None
    assert ("only this bead is concerned: the next worker can begin" in stoppage.words) is not listed
    needs = needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert [need.kind for need in needs] == ["worker_stopped"] * listed + ["proposed"]
    stuck = find_stuck(queue_state.queue, stoppage=stoppage)
    assert [each.reason for each in stuck] == [("operator-attention", "worker-stopped")[listed]]


def test_nothing_is_said_while_another_worker_is_at_work(stopped: Project) -> None:
    assert find_stoppage(stopped, [Run("b-1", verdict="alive")]) is None


def test_a_cause_that_cannot_be_seen_from_here_is_not_called_gone(project: ProjectFactory, tmp_path: Path) -> None:
    root = project([ROW], git=True)
    why = {"detail": "ResolveRoute: no viable routing candidate"}
    loop(root / ".ddx", ("disruption_detected", why), ("loop.end", {"exit_reason": "routing_unavailable"}))
    stoppage = find_stoppage(find_project(root))
    assert stoppage is not None
    assert stoppage.present is None
    assert "ResolveRoute" in stoppage.words
    assert "--agent" in stoppage.fix
    assert "--harness" in stoppage.fix


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"status": "proposed"}, ["worker-stopped"]),
        ({"execution-eligible": False}, ["worker-stopped"]),
        ({"dependencies": [{"issue_id": "b-1", "depends_on_id": "gone-1"}]}, ["worker-stopped", "dep-blocked"]),
    ],
)
def test_what_a_stopped_worker_left_in_its_bead_is_no_second_cause(
    stopped: Project, fields: dict[str, Any], reasons: list[str]
) -> None:
    stopped.beads_file.write_text(json.dumps(ROW | fields) + "\n")
    queue = sight_of(stopped).queue
    tried = [Tried("b-1", "failed")] if reasons == ["worker-stopped"] else []
    stuck = find_stuck(queue, stoppage=find_stoppage(stopped), tried=tried)
    assert [each.reason for each in stuck] == reasons
    assert len(report_lines(stuck)) == 1 + 2 * len(reasons)


def test_a_bead_that_is_kept_from_workers_for_its_drift_is_stuck_once() -> None:
    held = ROW | {"execution-eligible": False, "helix-drift": "parent or document changed"}
    rows = [held, held | {"id": "b-2", "helix-focus-suppressed": "e-1"}]
    beads = {bead.id: bead for bead in (decode_bead(json.dumps(row).encode()) for row in rows)}
    queue = classify(beads, now=now_ns())
    drift = [Drift(bead_id, "parent", "a", "b") for bead_id in beads]
    found = [(each.bead_id, each.reason) for each in find_stuck(queue, drift=drift)]
    assert found == [("b-1", "queue-drift"), ("b-2", "queue-drift"), ("b-2", "not-eligible")]
    assert [each.reason for each in find_stuck(queue)] == ["not-eligible"] * 2, "not said twice, but said"


def test_a_bead_that_is_stuck_twice_is_one_issue() -> None:
    twice = [Stuck("a-1", "one", reason, "why", "decide") for reason in ("worker-stopped", "operator-attention")]
    assert report_lines(twice)[0] == "BLOCKERS (1 issue):"
    assert report_lines([*twice, Stuck("a-2", "two", "tried", "why", "decide")])[0] == "BLOCKERS (2 issues):"


REFUSED = "load: configuration validation failed: [SCHEMA]; 'oops' not allowed; correct .ddx/config.yaml; `ddx config"


def test_a_run_in_which_ddx_started_no_work_says_so_until_a_worker_has_ended(project: ProjectFactory) -> None:
    here = find_project(project([ROW], git=True))
    state = RunState(run_id="r-1", stop_reason="ddx_failed", stop_detail=REFUSED, ended_at="2026-08-01T10:00:00Z")
    stoppage = last_stoppage(here, (), state)
    assert stoppage is not None
    assert stoppage.present is None
    assert "'oops' not allowed" in stoppage.words
    assert "correct .ddx/config.yaml" in stoppage.fix
    queue_state = sight_of(here)
    (need,) = needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert need.kind == "worker_stopped"
    other = RunState(run_id="r-1", stop_detail="ddx was ended by SIGKILL", ended_at=state.ended_at)
    assert last_stoppage(here, (), other) is None, "the next worker may well start"
    loop(here.ddx_dir, ("loop.end", {"exit_reason": "drained"}))
    assert last_stoppage(here, (), state) is None


def test_without_a_branch_every_face_says_beforehand_that_nothing_can_land(project: ProjectFactory) -> None:
    here = find_project(project([ROW], git=True))
    assert find_stoppage(here) is None
    subprocess.run(["git", "-C", str(here.root), "checkout", "-q", "--detach"], check=True)
    stoppage = find_stoppage(here)
    assert stoppage is not None
    assert "HEAD is detached" in stoppage.words
    queue_state = sight_of(here)
    verdict = decide(gather_facts(queue_state, stoppage=stoppage))
    assert (verdict.next_action, verdict.recommended_command) == ("GUIDANCE", "git branch")
    (need,) = needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert "git switch BRANCH" in need.reason
    with pytest.raises(CliError, match="nothing was started"):
        refuse_shut(queue_state, here)


def test_a_run_that_ended_for_want_of_a_ddx_is_said_on_every_face_until_there_is_one(
    project: ProjectFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = find_project(project([ROW], git=True))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DDX_BIN", raising=False)
    said = "ddx binary not found on PATH; install ddx, or name it with --ddx or DDX_BIN"
    state = RunState(run_id="r", stop_reason="missing_binary", stop_detail=said, ended_at="2026-08-21T20:00:00Z")
    stoppage = last_stoppage(here, (), state)
    assert stoppage is not None
    assert (stoppage.present, stoppage.ending.message) == (True, "ddx binary not found on PATH")
    queue_state = sight_of(here)
    assert decide(gather_facts(queue_state, stoppage=stoppage)).next_action == "GUIDANCE"
    (need,) = needs_of(queue_state.queue, (), queue_state.tracker, stoppage=stoppage)
    assert "install ddx, or name it with --ddx or DDX_BIN" in need.reason
    (stuck,) = find_stuck(queue_state.queue, stoppage=stoppage)
    assert stuck.reason == "worker-stopped"
    ddx = tmp_path / "ddx"
    ddx.write_text("#!/bin/sh\n")
    ddx.chmod(0o755)
    gone = last_stoppage(here, (), state)
    assert gone is not None
    assert gone.present is False, "it is no need any more"
