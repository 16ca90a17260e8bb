"""The demo project shows every state of the queue, and is the same for the same instant."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helix_ddx.demo.workspace import DemoError, bead_id, build_demo, demo_queue
from helix_ddx.simulator.script import HARNESS, act_for
from helix_ddx.simulator.worker import HUMAN_PACE_S
from helix_ddx.store.git import git
from helix_tui.cli.setup.demo import DEMO_STALL_S
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ground.time import NS

NOW = 1_795_000_000 * NS


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_demo(tmp_path_factory.mktemp("demo") / "p", NOW).project


def test_every_state_is_there(demo: Path) -> None:
    tracker = read_tracker(demo / ".ddx" / "beads.jsonl")
    queue = classify(tracker.beads, now=NOW)
    states = {queue.state(bead) for bead in tracker.beads}
    expected = {
        "ready",
        "waiting_dependencies",
        "superseded",
        "epic_container",
        "retry_cooldown",
        "not_eligible",
        "closed",
        "unknown_status",
        "blocked_external",
        "proposed",
        "cancelled",
    }
    assert states >= expected
    assert not tracker.dropped
    assert {tracker.beads[bead].priority for bead in queue.ready} == {0, 1, 2, 3, 4}
    assert len(queue.ready) >= 10


def test_a_torn_line_is_there_when_it_is_asked_for(tmp_path: Path) -> None:
    demo = build_demo(tmp_path / "p", NOW, torn=True).project
    assert len(read_tracker(demo / ".ddx" / "beads.jsonl").dropped) == 1


def test_the_shapes_of_a_graph_are_there(demo: Path) -> None:
    beads = read_tracker(demo / ".ddx" / "beads.jsonl").beads
    top, left, right, bottom = (bead_id(key) for key in ("accents", "clock", "which-line", "next-many"))
    assert beads[left].depends_on == beads[right].depends_on == (top,)
    assert set(beads[bottom].depends_on) == {left, right}
    children = [bead for bead in beads.values() if bead.parent == bead_id("import")]
    assert (sum(bead.status == "closed" for bead in children), len(children)) == (3, 7)
    missing = bead_id("tide-tables")
    assert missing not in beads
    assert any(missing in bead.depends_on for bead in beads.values())
    assert missing in (demo / ".ddx/beads-archive.jsonl").read_text()


def test_the_past_is_there_and_calls_itself_a_simulation(demo: Path) -> None:
    results = [json.loads(path.read_text()) for path in (demo / ".ddx/executions").glob("*/result.json")]
    assert len(results) >= 12
    assert {result["harness"] for result in results} == {HARNESS}
    assert any("cost_usd" in result for result in results)
    assert any("cost_usd" not in result for result in results)
    revisions = {result[key] for result in results for key in ("base_rev", "result_rev")}
    assert {git(demo, "cat-file", "-t", rev) for rev in revisions} == {"commit"}
    metrics = [json.loads(line) for line in (demo / ".ddx/metrics/attempts.jsonl").read_text().splitlines()]
    assert {row["attempt_id"] for row in metrics} == {result["attempt_id"] for result in results}


def test_every_act_fits_the_code(demo: Path) -> None:
    for line in (demo / ".ddx/beads.jsonl").read_text().split("\n"):
        if '"simulate"' in line:
            row = json.loads(line)
            for edit in act_for(row).edits:
                assert not edit.old or edit.old in (demo / edit.path).read_text()


@pytest.mark.long
def test_it_is_the_same_for_the_same_instant(tmp_path: Path) -> None:
    one, two = (build_demo(tmp_path / name / "p", NOW).project for name in ("one", "two"))
    assert (one / ".ddx/beads.jsonl").read_bytes() == (two / ".ddx/beads.jsonl").read_bytes()


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(DemoError, match="not empty"):
        build_demo(tmp_path)
    command = [sys.executable, "-m", "helix_ddx", "demo-workspace", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not empty" in done.stderr


def test_the_tree_is_clean(demo: Path) -> None:
    assert git(demo, "status", "--short") == ""


def test_the_demo_s_stall_is_seen_and_over_within_a_minute() -> None:
    acts = [seed.act for seed in demo_queue().queue if isinstance(seed.act, dict)]
    silences = [act["silence_beats"] for act in acts if act.get("outcome") == "stall"]
    assert silences
    for beats in silences:
        assert DEMO_STALL_S + 10 < beats * HUMAN_PACE_S < 40
