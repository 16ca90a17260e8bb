"""What a run does to the queue around the turns of ddx: promotion, missing documents, replaced beads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

DOCUMENT = "---\nddx:\n  id: PRD-1\n  depends_on: [VISION-1, FEAT-777]\n---\n# Product\n"


@pytest.mark.parametrize("status", ["execution_failed", "no_changes", "declined_needs_decomposition", "success"])
@pytest.mark.long
def test_a_bead_that_was_split_is_an_epic_before_anybody_runs_it_again(stage: StageFactory, status: str) -> None:
    world = stage([row("a-1")])
    children = [["bead", "create", f"Child {n}", "--priority", "2", "--parent", "{id}"] for n in (1, 2)]
    world.turns({"results": [{"status": status, "close": False, "do": children}]})
    world.run(max_cycles=1)
    assert world.rows()["a-1"]["issue_type"] == "epic"


def _with_documents(world: Path) -> None:
    (world / "docs").mkdir()
    (world / "docs" / "prd.md").write_text(DOCUMENT)


@pytest.mark.long
def test_at_autonomy_high_each_missing_document_is_one_bead_that_its_beads_wait_for(stage: StageFactory) -> None:
    world = stage([row("a-1", spec__id="FEAT-777"), row("a-2", spec__id="PRD-1")])
    _with_documents(world.root)
    world.run(autonomy="high")
    gaps = {each["title"]: each["id"] for each in world.rows().values() if "kind:speculative" in each.get("labels", ())}
    assert set(gaps) == {"gap: VISION-1 is missing", "gap: FEAT-777 is missing"}
    waits = [edge["depends_on_id"] for edge in world.rows()["a-1"]["dependencies"]]
    assert waits == [gaps["gap: FEAT-777 is missing"]]
    assert world.executed == ["a-2 success"]


@pytest.mark.long
def test_at_autonomy_medium_a_missing_document_is_named_and_its_beads_are_skipped(stage: StageFactory) -> None:
    world = stage([row("a-1", spec__id="FEAT-777"), row("a-2", spec__id="PRD-1")])
    _with_documents(world.root)
    world.run()
    assert world.executed[:1] == ["a-2 success"]
    assert any("gap:" in line and "FEAT-777" in line for line in world.said)
    assert any("skipping a-1" in line and "FEAT-777 is missing" in line for line in world.said)
    assert "execution-eligible" not in world.rows()["a-1"]


@pytest.mark.long
def test_a_bead_whose_replacement_is_closed_is_closed_too(stage: StageFactory) -> None:
    world = stage([row("a-1", superseded__by="a-2"), row("a-2"), row("a-3")])
    world.run()
    assert world.rows()["a-1"]["status"] == "closed"


def test_the_agent_is_told_of_ready_beads_of_the_same_area(stage: StageFactory) -> None:
    from helix_tui.core.supervision.stages.stage_run import agent_context

    world = stage(
        [
            row(each, title=f"Title of {each}", labels=["helix", f"area:{area}"])
            for each, area in (("a-1", "ui"), ("a-2", "api"), ("a-3", "ui"))
        ]
    )
    curator = world.curator()
    queue = curator.look().queue
    context = agent_context(curator.project, queue, queue.beads["a-1"])
    assert "a-3 Title of a-3" in context
    assert "a-2" not in context


@pytest.mark.long
def test_the_alternate_agent_builds(stage: StageFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    world = stage([row("a-1")])
    for name, value in (("AGENT", "codex"), ("ALT_AGENT", "claude"), ("MODEL", "gpt-5.4")):
        monkeypatch.setenv(f"HELIX_{name}", value)
    for words in (("run",), ("build", "a-1")):
        done = world.process(*words, "--dry-run")
        assert "--harness claude" in done.stdout
        assert "--model" not in done.stdout
