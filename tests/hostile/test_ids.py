"""An id that ddx would read as an option, or as none, never becomes an argument of a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import AUGUST
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.ddx.names import DdxAction
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.editing.kinds.lifecycle import CloseBead
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.stages.delegate import NOBODY, Delegate
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import queue_of, row
from tests.programs import write_program

BAD = ("--help", "-x", "", "a\x1b[2Jb", "a\nb")


@pytest.mark.parametrize("bead_id", BAD)
@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("close", ("{}",)),
        ("update", ("{}", "--status", "closed")),
        ("queue", ("top", "{}")),
        ("dep", ("remove", "{}", "a-1")),
        ("dep", ("remove", "a-1", "{}")),
    ],
)
def test_a_command_takes_no_such_id(bead_id: str, action: DdxAction, words: tuple[str, ...]) -> None:
    writing = PlanBuilder(Overlay(queue_of([])), AUGUST)
    writing.add(action, [word.format("a-1") for word in words], {})
    with pytest.raises(OperationRefused, match="correct the id in the tracker"):
        writing.add(action, [word.format(bead_id) for word in words], {})


def test_a_title_is_no_id() -> None:
    writing = PlanBuilder(Overlay(queue_of([])), AUGUST)
    writing.add("create", ("--type", "task", "--", "- a title"), {})
    assert writing.steps[0].args[:2] == ("bead", "create")


def test_a_verb_that_a_release_renamed_is_used_by_its_new_name() -> None:
    renamed = replace(AUGUST, verbs={**AUGUST.verbs, "close": DdxVerb(("item", "finish"))})
    writing = PlanBuilder(Overlay(queue_of([row("a")])), renamed)
    CloseBead("a").plan(writing)
    assert writing.steps[0].args == ("item", "finish", "a")


@pytest.mark.parametrize("bead_id", ["--help", "-x"])
def test_a_change_to_such_a_bead_is_refused_with_its_id(project: ProjectFactory, bead_id: str) -> None:
    root = project([row("a-1"), row(bead_id)])
    before = (root / ".ddx" / "beads.jsonl").read_bytes()
    curator = Curator(find_project(root, env={}), lambda: find_executable(find_project(root), None, env={}))
    done = curator.run([CloseBead(bead_id)])
    assert any(bead_id in str(refusal) for refusal in done.plan.refusals), done
    assert (root / ".ddx" / "beads.jsonl").read_bytes() == before


@pytest.mark.parametrize("bead_id", BAD)
def test_no_agent_is_started_on_such_a_bead(tmp_path: Path, bead_id: str) -> None:
    ddx = tmp_path / "ddx"
    write_program(ddx, "")
    delegate = Delegate(find_project(tmp_path), str(ddx), dict(os.environ))
    assert "a-1" in delegate.one_bead("a-1", NOBODY)
    with pytest.raises(OperationRefused, match="correct the id in the tracker"):
        delegate.one_bead(bead_id, NOBODY)
