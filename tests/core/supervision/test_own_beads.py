"""Every bead that HELIX makes keeps the rules that HELIX asks of everybody, with and without documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing.authoring import judge
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.editing.execute.trust import allow_written
from helix_tui.core.editing.operations import CreateBead
from helix_tui.core.ground.project import Project, find_project, machine_name
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.injection import UNGOVERNED, Trigger
from helix_tui.core.supervision.stages.stage_run import AlignmentActive, acquire, plan_governing
from helix_tui.core.supervision.stages.table import BEAD_RULES, STAGES, render
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import row

CYCLE = Trigger("post-cycle-review", 3, "a-1")


def made(queue: Queue) -> dict[str, CreateBead]:
    """One bead of each kind that HELIX makes by itself, for the bead a-1."""
    spec = injection.spec_of(queue, queue.beads["a-1"])
    return {
        "review": injection.review_bead(queue, CYCLE, scope="last-commit"),
        "alignment": injection.alignment_bead(queue, CYCLE),
        "acceptance": injection.acceptance_bead(queue, CYCLE, script="scripts/check.sh", output="no"),
        "decision": injection.decision_bead(queue, "kind:escalation", "t", "x", key="k", spec_id=spec, assumed="y"),
    }


def curator_of(root: Path) -> Curator:
    project = find_project(root, env={})
    return Curator(project, lambda: find_executable(project, None, env={}))


def own_hook(root: Path) -> None:
    """Our own hook, by the files of this checkout."""
    path = root / ".ddx" / "hooks" / "validate-bead-create"
    path.parent.mkdir(parents=True)
    ours = f'exec "{sys.executable}" -m helix_tui install-hooks --judge -C "$(dirname "$0")/../.."'
    path.write_text(f"#!/bin/sh\n{ours}\n")
    path.chmod(0o755)
    allow_written(find_project(root, env={}), path)


@pytest.fixture
def refused(project: ProjectFactory) -> Path:
    """A project whose hook asks our rules, with a bead that no document governs."""
    root = project([row("a-1"), row("e-1", issue_type="epic", **{"spec-id": "FEAT-7"}), row("c-1", parent="e-1")])
    own_hook(root)
    return root


def rows(root: Path) -> dict[str, dict[str, Any]]:
    lines = (root / ".ddx" / "beads.jsonl").read_text().splitlines()
    return {each["id"]: each for each in map(json.loads, lines)}


@pytest.mark.parametrize("kind", ["review", "alignment", "acceptance", "decision"])
def test_a_bead_of_ours_passes_our_own_hook(refused: Path, kind: str) -> None:
    curator = curator_of(refused)
    done = curator.run([made(curator.look().queue)[kind]])
    assert done.error is None, done.error
    (new,) = done.created.values()
    bead = rows(refused)[new]
    assert not judge(bead, strict=True).errors
    assert bool(bead.get("spec-id")) == (bead["issue_type"] == "task")


def test_without_a_document_a_task_would_be_refused(refused: Path) -> None:
    curator = curator_of(refused)
    wish = made(curator.look().queue)["review"]
    task = replace(wish, issue_type="task")
    assert "spec-id required for a task" in str(curator.run([task]).error)


@pytest.mark.parametrize("scope", [None, "FEAT-7", "docs"])
def test_an_alignment_gets_its_governing_bead(refused: Path, scope: str | None) -> None:
    governing, done = acquire(curator_of(refused), scope)
    assert done.error is None
    bead = rows(refused)[governing.bead_id]
    assert (bead["issue_type"], bead.get("spec-id", "")) == (("task", "FEAT-7") if scope == "FEAT-7" else ("chore", ""))


def test_an_alignment_takes_its_bead_from_a_dead_process_at_once_and_from_no_living_one(refused: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(30)
    curator = curator_of(refused)
    held = acquire(curator, None)[0].bead_id
    path = refused / ".ddx" / "beads.jsonl"
    for pid, dead in ((os.getpid(), False), (child.pid, True)):
        claim = {"claimed-at": format_instant(now_ns() - 600 * NS), "claimed-pid": str(pid), "status": "in_progress"}
        of_row = {"claimed-machine": machine_name(), "owner": "helix"}
        path.write_text(
            "".join(
                json.dumps(row | (claim | of_row if name == held else {})) + "\n" for name, row in rows(refused).items()
            )
        )
        if dead:
            assert plan_governing(curator, None, curator.look().queue).mode == "reclaimed"
        else:
            with pytest.raises(AlignmentActive, match="refusing duplicate dispatch"):
                plan_governing(curator, None, curator.look().queue)


def test_a_bead_is_governed_by_what_it_is_part_of(refused: Path) -> None:
    queue = curator_of(refused).look().queue
    assert injection.spec_of(queue, queue.beads["c-1"]) == "FEAT-7"
    assert injection.spec_of(queue, queue.beads["a-1"], "e-1") == "FEAT-7"
    assert injection.spec_of(queue, queue.beads["a-1"]) == ""


@pytest.mark.parametrize("name", ["align", "backfill", "evolve", "experiment", "input", "polish", "review"])
def test_each_stage_that_makes_beads_is_told_their_rules(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path, tmp_path / ".ddx")
    assert BEAD_RULES in render(project, STAGES[name], {}).text


def test_what_the_rules_of_beads_say_is_what_the_hook_asks() -> None:
    bead = {"title": "t", "labels": ["helix", "phase:build"], "acceptance": "`make test` passes", "issue_type": "task"}
    assert judge(bead).errors
    assert not judge(bead | {"spec-id": "FEAT-001"}).errors
    assert not judge(bead | {"issue_type": UNGOVERNED}).errors
    for missing in ("labels", "acceptance"):
        assert judge({**bead, "spec-id": "FEAT-001", missing: ""}).errors
    assert f"`{UNGOVERNED}`" in BEAD_RULES
