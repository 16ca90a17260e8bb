"""What is said where the disk lets nobody take the gate, and of what ddx commits by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import FAMILIES
from helix_tui.core.ddx.git_state import staged_beside_tracker
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import (
    Executable,
    GateBroken,
    WriteGate,
    commits_writes,
    embedded_tracker,
)
from helix_tui.core.editing.plan import plan
from helix_tui.core.ground.process import run
from helix_tui.core.ground.project import find_project
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import queue_of, row


def test_a_lock_that_cannot_be_written_says_so_and_what_to_do(project: ProjectFactory) -> None:
    root = project([])
    (root / ".helix" / "curation.lock").mkdir(parents=True)
    with (
        pytest.raises(GateBroken, match="nothing was changed") as caught,
        WriteGate(find_project(root, env={})).open(),
    ):
        pytest.fail("nobody holds it")
    assert "Free space" in caught.value.advice
    assert isinstance(caught.value, OSError), "who deals with a disk deals with this"


@pytest.mark.parametrize("always", ["always", '"always"', "always  # so we want it"])
def test_ddx_commits_each_write_and_what_is_staged_beside_the_tracker(tmp_path: Path, always: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    ddx = Executable(("ddx",), tmp_path, {})
    config, tracker = tmp_path / ".ddx" / "config.yaml", tmp_path / ".ddx" / "beads.jsonl"
    config.parent.mkdir()
    tracker.write_text("{}\n")
    (tmp_path / "work.txt").write_text("work\n")
    config.write_text(f"git:\n  auto_commit: {always}\n")
    assert commits_writes(ddx)
    assert not staged_beside_tracker(tmp_path), "nothing is staged"
    subprocess.run(["git", "-C", str(tmp_path), "add", str(tracker)], check=True)
    assert not staged_beside_tracker(tmp_path), "the tracker is ddx's own"
    subprocess.run(["git", "-C", str(tmp_path), "add", "work.txt"], check=True)
    assert staged_beside_tracker(tmp_path)
    assert not commits_writes(Executable(ddx.words, tmp_path, {"DDX_BEAD_DIR": str(tmp_path / "elsewhere")}))
    for other in ("git:\n  auto_commit: never\n", "bead:\n  auto_commit: always\n", ""):
        config.write_text(other)
        assert not commits_writes(ddx), other


def test_preview_entry_and_undo_say_that_each_command_makes_a_commit(tmp_path: Path) -> None:
    root = tmp_path / "project"
    config = root / ".ddx" / "config.yaml"
    config.parent.mkdir(parents=True)
    (root / ".ddx" / "beads.jsonl").write_text(json.dumps(row("d-1")) + "\n")
    project = find_project(root, env={})
    curator = Curator(project, lambda: embedded_tracker(project, os.environ))
    config.write_text("git:\n  auto_commit: always\n")
    commit = "ddx makes a commit of each command (git.auto_commit is always), and an undo removes none"
    close = [operations.CloseBead("d-1")]
    assert commit in curator.plan(close).back.traces
    entry = curator.run(close).entry
    assert entry is not None
    assert commit in entry.traces
    assert commit in curator.plan_undo([entry])[0].turns[0].traces
    config.write_text("git:\n  auto_commit: never\n")
    assert commit not in curator.plan_undo([entry])[0].turns[0].traces


def test_closing_says_what_ddx_commits_and_foretells_its_undo() -> None:
    queue = queue_of([row("d-1"), row("d-2")])
    wanted = [operations.CloseBead("d-1"), operations.CloseBead("d-2")]
    plain = plan(wanted, queue, FAMILIES["head"])
    assert plain.notes == ()
    assert not any("closing_commit_sha" in line for line in plain.way_back)
    made = plan(wanted, queue, replace(FAMILIES["head"], commits_staged=True))
    assert made.notes == ("ddx commits what is staged with it: git.auto_commit is always",)
    unset = [line for line in made.way_back if "closing_commit_sha" in line]
    assert unset == ["ddx bead update d-1 --unset closing_commit_sha"], "the first takes all that is staged"
    assert made.steps == plain.steps


def test_a_daemon_that_ddx_leaves_behind_does_not_hold_the_gate(tmp_path: Path) -> None:
    project = find_project(tmp_path, env={})
    pid = tmp_path / "pid"
    script = f'setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! > "{pid}"'
    with WriteGate(project).open() as lock:
        run(("sh", "-c", script), keep=(lock,))
    try:
        with WriteGate(project, patience_s=0.0).open():
            pass
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
