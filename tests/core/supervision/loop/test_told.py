"""The agent of the bead that is next gets stance and context by its description, and nobody keeps them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.editing import operations
from helix_tui.core.editing.journal import PASSING
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.text import CONTEXT_BEGIN, with_context
from helix_tui.core.supervision.stages.stage_run import agent_context
from tests.core.supervision.conftest import queue_of, row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long


def test_context_is_put_into_the_next_bead_and_taken_out(stage: StageFactory) -> None:
    world = stage([row("a-1", description="Write one.\n\nSlowly."), row("a-2", priority=4)])
    (world.root / "AGENTS.md").write_text("# Quick Reference\n\n```bash\nmake test\n```\n")
    world.run(context=True, auto_review=False, auto_align=False, max_cycles=1)
    said = "\n".join(world.said)
    assert "Stance (execution): contract-following" in said
    assert "make test" in said
    assert str(world.root) not in said.partition("Stance (execution)")[2].partition("Key Rules")[0]
    rows = world.rows()
    assert rows["a-1"]["description"] == "Write one.\n\nSlowly."
    assert rows["a-1"]["status"] == "closed"
    assert not any(CONTEXT_BEGIN in str(each.get("description")) for each in rows.values())


def test_what_a_run_writes_and_takes_back_is_no_step_of_undo(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", priority=4)])
    mine = world.curator().run([operations.SetFields("a-2", {"notes": "mine"})])
    world.run(context=True, auto_review=False, auto_align=False, max_cycles=1)
    history = world.curator().journal.read()
    passing = [entry for entry in history.entries if entry.kind == PASSING]
    assert [entry.title.split()[0] for entry in passing] == ["tell", "remove"]
    assert mine.entry is not None
    assert [entry.id for entry in history.to_undo()] == [mine.entry.id]


def test_a_description_that_was_written_counts_although_the_command_failed(stage: StageFactory) -> None:
    world = stage([row("a-1", description="Write one.")])
    fails = "\nif '--description' in sys.argv: sys.stderr.write('Error: load config for auto-commit'); sys.exit(1)"
    code = world.ddx.read_text().replace("sys.exit(main(", "done = (main(")
    world.ddx.write_text(f"{code}{fails}\nsys.exit(done)\n")
    world.run(context=True, auto_review=False, auto_align=False, max_cycles=1)
    assert world.rows()["a-1"]["description"] == "Write one."
    said = "\n".join(world.said)
    assert "Stance (execution): contract-following" in said
    assert "auto-commit" not in said


def test_what_a_run_that_died_has_left_is_taken_out(stage: StageFactory) -> None:
    world = stage([row("a-1", description=with_context("Write one.", "Stance"))])
    world.turns({"results": []}, {"results": []})
    world.run()
    assert world.rows()["a-1"]["description"] == "Write one."


def test_a_review_gets_the_stance_of_a_review(stage: StageFactory) -> None:
    world = stage([row("r-1", labels=["helix", "phase:review", "kind:review"])])
    project = find_project(world.root)
    beads = read_tracker(project.beads_file).beads
    told = agent_context(project, queue_of([row("r-1")]), beads["r-1"])
    assert told.startswith("Stance (review): adversarial")
    assert "Authority order" in told
    assert "Absorb small adjacent work" not in told, "a review mends nothing"


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_tracker_that_is_committed_is_so_after_a_run(stage: StageFactory) -> None:
    world = stage([row("a-1", description="Write one."), row("a-2", priority=4)], git=True)
    world.run(context=True, max_cycles=1, auto_align=False)
    assert git(world.root, "status", "--porcelain", "--", ".ddx") == ""
    assert git(world.root, "log", "-1", "--format=%s").startswith("chore: update tracker (helix-tui run-")
    assert git(world.root, "show", "--name-only", "--format=", "HEAD") == ".ddx/beads.jsonl"


def test_a_tracker_that_somebody_left_uncommitted_stays_so_and_that_is_said(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", priority=4)], git=True)
    world.rewrite("a-2", notes="mine")
    world.run(context=True, max_cycles=1, auto_align=False)
    assert git(world.root, "log", "--format=%s") == "start"
    assert ".ddx/beads.jsonl is not committed; it was not when the run began" in world.said[-1]


def test_a_tracker_that_git_ignores_is_nobodys_to_commit(stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / ".gitignore").write_text(".ddx/\n")
    git(world.root, "rm", "-rq", "--cached", ".ddx")
    git(world.root, "add", ".gitignore")
    git(world.root, "commit", "-qm", "ignore")
    world.run(context=True, max_cycles=1, auto_align=False)
    assert git(world.root, "log", "-1", "--format=%s") == "ignore"
    assert not any("not committed" in line for line in world.said)
