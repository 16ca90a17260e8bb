"""What a simulation does to a project: commits, refs, statuses, signals, two workers at once."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.demo.workspace import bead_id, build_demo, drain
from helix_ddx.simulator.head import HeadWorker
from helix_ddx.simulator.script import HARNESS
from helix_ddx.simulator.verb import DEMO_MARKER
from helix_ddx.simulator.worker import Orders, SimulatedResult
from helix_ddx.store import places
from helix_ddx.store.git import commit, git, init
from helix_ddx.store.tracker import Row, Store
from helix_tui.core.ground.time import NS

pytestmark = pytest.mark.long

CONTRACT = (
    *("success", "no_changes", "execution_failed", "land_conflict", "post_run_check_failed"),
    "structural_validation_failed",
)


def make_project(folder: Path, **beads: Any) -> Path:
    """A repository with one file and one bead an act."""
    project = folder / "demo"
    init(project)
    (project / ".git" / DEMO_MARKER).touch()
    (project / "README.md").write_text("demo\n")
    (project / ".gitignore").write_text(".ddx/agent-logs/\n.ddx/*.lock\n.ddx/run-state*\n.ddx/workers/\n")
    rows: list[Row] = [
        {
            "id": f"demo-{number:08x}",
            "title": title,
            "status": "open",
            "priority": 1,
            "issue_type": "task",
            "created_at": f"2026-11-21T08:00:{number:02d}Z",
            "updated_at": "2026-11-21T08:00:00Z",
            "acceptance": "1. `true` passes\n2. it is done",
            "simulate": act,
        }
        for number, (title, act) in enumerate(beads.items())
    ]
    Store(project / ".ddx").write_new(rows)
    commit(project, "base")
    return project


def work(project: Path, **orders: Any) -> list[SimulatedResult]:
    worker = HeadWorker(project, Orders(pace=0, **orders), out=io.StringIO(), err=io.StringIO())
    worker.run()
    return worker.results


def row_of(project: Path, number: int = 0) -> Row:
    return Store(project / ".ddx").read()[f"demo-{number:08x}"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def result_of(project: Path, result: SimulatedResult) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((project / ".ddx/executions" / result.attempt / "result.json").read_text())
    return document


def test_a_drain_ends_in_every_way_of_the_contract(tmp_path: Path) -> None:
    project = build_demo(tmp_path / "demo").project
    summary = drain(project).to_json()
    statuses = {attempt["status"] for attempt in summary["attempts"]}
    assert statuses >= {*CONTRACT, "already_satisfied"}
    assert all(summary["counts"].values())
    assert len(summary["attempts"]) == sum(summary["counts"].values()) >= 10
    assert summary["memories"] == {}


def test_every_record_says_that_it_is_a_simulation(tmp_path: Path) -> None:
    project = make_project(tmp_path, one={"outcome": "success"}, two={"outcome": "review_block"})
    results = work(project)
    for result in results:
        assert result_of(project, result)["harness"] == HARNESS
        assert result_of(project, result)["model"].startswith(HARNESS)
    (log,) = (project / ".ddx/agent-logs").glob("agent-loop-*")
    logs = lines_of(log)
    assert logs[0]["data"]["harness"] == HARNESS
    for path in (project / ".ddx/agent-logs/sessions").iterdir():
        assert {row["harness"] for row in lines_of(path)} == {HARNESS}


def test_what_lands_is_a_real_commit_with_trailers(tmp_path: Path) -> None:
    project = make_project(tmp_path, greet={"edits": [{"path": "greeting.txt", "new": "hello\n"}]})
    (result,) = work(project)
    assert (project / "greeting.txt").read_text() == "hello\n"
    row = row_of(project)
    assert row["status"] == "closed"
    assert row["closing_commit_sha"] == result.landed
    made = result_of(project, result)["result_rev"]
    message = git(project, "log", "-1", "--format=%B", made)
    assert f"Ddx-Attempt-Id: {result.attempt}" in message
    assert f"Ddx-Harness: {HARNESS}" in message
    assert git(project, "merge-base", "--is-ancestor", made, "HEAD") == ""
    assert git(project, "diff", "--name-only", f"{made}~1", made) == "greeting.txt"


CONFLICT = {
    "outcome": "land_conflict",
    "edits": [{"path": "README.md", "old": "demo\n", "new": "agent\n"}],
    "person": {"path": "README.md", "old": "demo\n", "new": "person\n"},
}


def test_a_conflict_is_a_conflict_of_git(tmp_path: Path) -> None:
    project = make_project(tmp_path, clash=CONFLICT | {"recovers": False})
    (result,) = work(project)
    assert result.status == "land_conflict"
    assert (project / "README.md").read_text() == "person\n"
    assert git(project, "show", f"{result.preserved}:README.md") == "agent"
    assert row_of(project)["status"] == "open"


def test_head_resolves_a_conflict_in_favour_of_the_person(tmp_path: Path) -> None:
    project = make_project(tmp_path, clash=CONFLICT)
    (result,) = work(project)
    assert result.closed
    assert (project / "README.md").read_text() == "person\n"
    assert len(git(project, "log", "-1", "--format=%P", result.landed).split()) == 2


def test_a_review_that_asks_for_changes(tmp_path: Path) -> None:
    project = make_project(tmp_path, change={"outcome": "review_request_changes", "rationale": "Too loud."})
    (result,) = work(project)
    row = row_of(project)
    assert (result.status, row["status"]) == ("success", "closed")
    assert [cycle["review_verdicts"] for cycle in result.row["cycle_trace"]] == [["REQUEST_CHANGES"], ["APPROVE"]]


def test_a_failed_bead_is_open_and_taken_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, fail={"outcome": "execution_failed", "detail": "no credit"})
    (result,) = work(project)
    row = row_of(project)
    assert (result.status, row["status"]) == ("execution_failed", "open")
    assert result_of(project, result)["error"] == "no credit"
    assert work(project, once=True)


def test_why_an_agent_changed_nothing_is_kept(tmp_path: Path) -> None:
    project = make_project(tmp_path, first={"outcome": "no_changes", "rationale": "nobody says which days"})
    (result,) = work(project, once=True)
    assert result.status == "no_changes"
    assert "nobody says which days" in result_of(project, result)["no_changes_rationale"]


def test_nothing_done_without_a_word_stops_head(tmp_path: Path) -> None:
    acts = {"outcome": "no_changes", "rationale": ""}
    project = make_project(tmp_path, first=acts, second={"outcome": "success"})
    (result,) = work(project)
    assert (result.status, result.stops) == ("no_evidence_produced", "operator_attention")
    assert row_of(project)["status"] == "proposed"


def test_head_closes_an_epic_with_its_last_child(tmp_path: Path) -> None:
    project = make_project(tmp_path, child={"outcome": "success"}, parent={"outcome": "success"})
    with Store(project / ".ddx").change() as rows:
        rows["demo-00000001"]["issue_type"] = "epic"
        rows["demo-00000000"]["parent"] = "demo-00000001"
    work(project)
    assert row_of(project, 1)["status"] == "closed"
    assert row_of(project, 1)["events"][-1]["kind"] == "epic_auto_close"


def test_unknown_cost_is_nowhere_a_number(tmp_path: Path) -> None:
    project = make_project(tmp_path, free={"outcome": "success", "cost_usd": None})
    (result,) = work(project)
    assert "cost_usd" not in result_of(project, result)
    assert "cost_usd" not in result.row
    usage = json.loads((project / ".ddx/executions" / result.attempt / "usage.json").read_text())
    assert "cost_usd" not in usage


def test_two_workers_never_take_the_same_bead(tmp_path: Path) -> None:
    acts = {f"bead {number}": {"edits": [{"path": f"{number}.txt", "new": "x\n"}]} for number in range(6)}
    project = make_project(tmp_path, **acts)
    found: list[list[SimulatedResult]] = []
    threads = [threading.Thread(target=lambda: found.append(work(project))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    beads = sorted(result.bead for results in found for result in results)
    assert beads == [f"demo-{number:08x}" for number in range(6)]
    assert [result.detail for results in found for result in results if not result.closed] == []
    assert all((project / f"{number}.txt").exists() for number in range(6))
    assert git(project, "fsck", "--no-dangling") == ""


def test_the_heartbeat_is_fresh_while_the_transcript_is_silent(tmp_path: Path) -> None:
    project = make_project(tmp_path, stall={"outcome": "stall", "silence_beats": 5, "calls": []})
    clock = iter(range(2_000_000_000 * NS, 3_000_000_000 * NS, 20 * NS))
    seen: list[tuple[str, str]] = []
    worker = HeadWorker(project, Orders(pace=0.01), out=io.StringIO(), clock=lambda: next(clock))
    worker.disk.watchers.append(lambda op, path, text: seen.append((op, str(path.relative_to(path.anchor)))))
    worker.run()
    names = [name for _, name in seen]
    assert sum(name.endswith("/run-state.json") for name in names) > 3
    assert sum("ddx-claim-heartbeats" in name for name in names) > 2
    assert sum(name.endswith("/status.json") for name in names) > 2


def start(project: Path, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "helix_ddx",
            "work",
            "-C",
            str(project),
            "--pace",
            "30",
        ],
        env=os.environ | {"TMPDIR": str(folder), "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_claim(process: subprocess.Popen[str]) -> None:
    """Until the worker says that it has taken the bead."""
    assert process.stdout is not None
    assert any(line.startswith("▶") for line in process.stdout)


def test_head_stops_gracefully_once(tmp_path: Path) -> None:
    project = make_project(tmp_path, long={"outcome": "success"})
    with start(project, tmp_path) as process:
        wait_for_claim(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "shutting down gracefully" in err
    assert "worker exited: stopped by signal" in out
    (log,) = (project / ".ddx/agent-logs").glob("agent-loop-*")
    assert lines_of(log)[-1]["data"]["exit_reason"] == "sigint"
    assert row_of(project)["status"] == "open"
    assert "owner" not in row_of(project)
    assert not list(places.lease_folder(project, {"TMPDIR": str(tmp_path)}).glob("*"))


def test_a_killed_worker_leaves_what_ddx_leaves(tmp_path: Path) -> None:
    project = make_project(tmp_path, gone={"outcome": "killed"})
    done = subprocess.run(
        [sys.executable, "-m", "helix_ddx", "work", "-C", str(project), "--pace", "0"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert row_of(project)["status"] == "in_progress"
    assert (project / ".ddx/run-state.json").exists()
    assert bool(list(places.lease_folder(project).glob("*.json")))


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ({"outcome": "melts"}, "unknown outcome"),
        ({"colour": "red"}, "colour"),
        (7, "neither an outcome nor an object"),
        ({"edits": [{"path": "../out.txt", "new": "x"}]}, "outside the project"),
    ],
)
def test_an_act_that_cannot_be_played_is_named(act: Any, why: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, wrong=act)
    done = subprocess.run(
        [sys.executable, "-m", "helix_ddx", "work", "-C", str(project), "--pace", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert why in done.stderr
    assert not (tmp_path / "out.txt").exists()


def test_a_bead_without_an_act_succeeds_by_editing_the_file_that_it_names(tmp_path: Path) -> None:
    project = make_project(tmp_path, plain=None)
    with Store(project / ".ddx").change() as rows:
        del rows["demo-00000000"]["simulate"]
        rows["demo-00000000"]["description"] = "## Files\n- notes/today.md\n"
    (result,) = work(project)
    assert result.closed
    assert (project / "notes/today.md").exists()


def test_the_demo_is_drained_by_the_command(tmp_path: Path) -> None:
    project = build_demo(tmp_path / "demo").project
    command = [
        sys.executable,
        "-m",
        "helix_ddx",
        "drain",
        "-C",
        str(project),
        "--pace",
        "0",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["workspace"] == str(project)
    assert document["counts"]["landed"] >= 3
    assert Store(project / ".ddx").read()[bead_id("accents")]["status"] == "closed"


def test_nothing_is_simulated_in_a_project_that_no_demo_made_nor_in_a_clone_of_one(tmp_path: Path) -> None:
    demo = build_demo(tmp_path / "demo").project
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(demo), str(clone))
    rows = (clone / ".ddx" / "beads.jsonl").read_bytes()
    for verb, folder, code in (("work", clone, 1), ("drain", clone, 1), ("drain", demo, 0)):
        before = git(folder, "rev-parse", "HEAD")
        command = [sys.executable, "-m", "helix_ddx", verb, "-C", str(folder), "--pace", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code
        assert (git(folder, "rev-parse", "HEAD") == before) is (code == 1)
        assert ("is not a demo" in done.stderr and "demo-workspace DIR" in done.stderr) is (code == 1)
    assert (clone / ".ddx" / "beads.jsonl").read_bytes() == rows
