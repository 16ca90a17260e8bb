"""An id that ddx would read as an option, or as none, never becomes an argument of a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.editing.lifecycle import CloseBead
from helix_tui.core.editing.steps import OperationRefused, check_ids
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.stages.delegate import NOBODY, Delegate
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import row
from tests.programs import write_program

BAD = ("--help", "-x", "", "a\x1b[2Jb", "a\nb")


@pytest.mark.parametrize("bead_id", BAD)
@pytest.mark.parametrize(
    "words",
    [
        ("bead", "close", "{}"),
        ("bead", "update", "{}", "--status", "closed"),
        ("bead", "queue", "top", "{}"),
        ("bead", "dep", "remove", "{}", "a-1"),
        ("bead", "dep", "remove", "a-1", "{}"),
    ],
)
def test_a_command_takes_no_such_id(bead_id: str, words: tuple[str, ...]) -> None:
    check_ids([word.format("a-1") for word in words])
    with pytest.raises(OperationRefused, match="correct the id in the tracker"):
        check_ids([word.format(bead_id) for word in words])


def test_a_title_is_no_id() -> None:
    check_ids(("bead", "create", "--type", "task", "--", "- a title"))


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
