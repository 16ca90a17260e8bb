"""What ddx lands from a linked work tree is on the branch checked out there; its workers' records are in that tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

from helix_tui.core.ddx.attempts.index import AttemptIndex, BranchHistory
from helix_tui.core.ground.project import find_project


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def linked_tree(folder: Path) -> tuple[Path, Path]:
    """A repository, and a linked work tree of it on the branch ``topic``."""
    root, linked = folder / "root", folder / "linked"
    git(folder, "init", "-q", "-b", "main", str(root))
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    git(root, "worktree", "add", "-q", "-b", "topic", str(linked))
    return root, linked


def test_a_landing_on_the_branch_of_a_linked_work_tree_counts_there(tmp_path: Path) -> None:
    root, linked = linked_tree(tmp_path)
    git(linked, "commit", "-q", "--allow-empty", "-m", "landed on topic")
    landed = git(linked, "rev-parse", "HEAD")
    for folder, on_branch in ((linked, True), (root, False)):
        history = BranchHistory(find_project(folder))
        history.look([landed])
        assert history.holds(landed) is on_branch


def test_the_attempts_of_workers_are_read_where_ddx_wrote_them(tmp_path: Path) -> None:
    root, linked = linked_tree(tmp_path)
    (root / ".ddx").mkdir()
    bundle = linked / ".ddx" / "executions" / "20260821T100000-0a1b2c3d"
    bundle.mkdir(parents=True)
    (bundle / "result.json").write_text('{"bead_id": "b-1", "status": "execution_failed", "tokens": 3000}')
    for folder, read in ((linked, ["b-1"]), (root, [])):
        index = AttemptIndex.of(find_project(folder))
        index.refresh({})
        assert [attempt.bead_id for attempt in index.attempts] == read
