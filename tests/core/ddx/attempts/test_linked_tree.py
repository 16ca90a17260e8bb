"""What ddx lands from a linked work tree is on the branch that is checked out there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from helix_tui.core.ddx.attempts.index import BranchHistory
from helix_tui.core.ground.project import find_project


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_landing_on_the_branch_of_a_linked_work_tree_counts_there(tmp_path: Path) -> None:
    root, linked = tmp_path / "root", tmp_path / "linked"
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    git(root, "worktree", "add", "-q", "-b", "topic", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "landed on topic")
    landed = git(linked, "rev-parse", "HEAD")
    for folder, on_branch in ((linked, True), (root, False)):
        history = BranchHistory(find_project(folder))
        history.look([landed])
        assert history.holds(landed) is on_branch
