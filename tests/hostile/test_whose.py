"""Folders that name the git folder, or the tracker, of another project of the person: none is followed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from helix_tui.core.ground.git import ask_git
from helix_tui.core.ground.project import ddx_environment, find_project
from helix_tui.core.ground.writes import make_folder

ATTEMPT = "20260821T101112-0123abcd"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A project of the person, with a bead."""
    root = tmp_path / "victim"
    (root / ".ddx").mkdir(parents=True)
    (root / ".ddx" / "beads.jsonl").write_text(json.dumps({"id": "private-1", "title": "Private"}) + "\n")
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    git(root, "commit", "-q", "--allow-empty", "-m", "private")
    return root


def _git_file(root: Path, victim: Path) -> None:
    (root / ".git").write_text(f"gitdir: {victim / '.git'}\n")


def _git_link(root: Path, victim: Path) -> None:
    (root / ".git").symlink_to(victim / ".git")


def _made_up_worktree(root: Path, victim: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "commondir").write_text(f"{victim / '.git'}\n")
    (root / ".git" / "gitdir").write_text(f"{root / '.git'}\n")


def _worktree_of_another(root: Path, victim: Path) -> None:
    git(victim, "worktree", "add", "-q", "-b", "topic", str(victim.parent / "topic"))
    (root / ".git").write_text(f"gitdir: {victim / '.git' / 'worktrees' / 'topic'}\n")


def _core_worktree(root: Path, victim: Path) -> None:
    git(root, "init", "-q")
    with open(root / ".git" / "config", "a") as config:
        config.write(f"[core] WorkTree = {victim}\n")


def _linked_refs(root: Path, victim: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    (root / ".git" / "refs" / "heads").rmdir()
    (root / ".git" / "refs" / "tags").rmdir()
    (root / ".git" / "refs").rmdir()
    (root / ".git" / "refs").symlink_to(victim / ".git" / "refs")


@pytest.mark.parametrize(
    "point", [_git_file, _git_link, _made_up_worktree, _worktree_of_another, _core_worktree, _linked_refs]
)
def test_a_git_folder_of_another_project_is_not_followed(tmp_path: Path, victim: Path, point: object) -> None:
    root = tmp_path / "clone"
    root.mkdir()
    point(root, victim)  # type: ignore[operator]
    before = {path: path.read_bytes() for path in sorted((victim / ".git").rglob("*")) if path.is_file()}
    project = find_project(root)
    assert (project.root, project.git_dir, project.primary, project.ddx_dir) == (root, None, None, root / ".ddx")
    assert "git is not used" in project.notice
    assert ask_git(root, "log", "-1") is None, "git does not follow it either"
    env = ddx_environment(project, os.environ)
    assert (env["DDX_BEAD_DIR"], env["GIT_DIR"]) == (str(root / ".ddx"), os.devnull)
    make_folder(root / ".helix")
    after = {path: path.read_bytes() for path in sorted((victim / ".git").rglob("*")) if path.is_file()}
    assert after == before


@pytest.mark.parametrize("name", [".ddx", ".ddx/beads.jsonl"])
def test_a_tracker_that_is_a_link_to_another_project_is_not_followed(tmp_path: Path, victim: Path, name: str) -> None:
    root = tmp_path / "clone"
    (root / name).parent.mkdir(parents=True)
    (root / name).symlink_to(victim / name)
    project = find_project(root, env={"HOME": str(tmp_path)})
    assert not project.beads_file.exists()
    assert "is a link" in project.notice


def test_a_clone_that_only_has_the_name_of_an_attempt_is_its_own(tmp_path: Path, victim: Path) -> None:
    clone = tmp_path / f".execute-bead-clone-private-1-{ATTEMPT}"
    git(tmp_path, "clone", "-q", str(victim), str(clone))
    project = find_project(clone)
    assert (project.root, project.attempt) == (clone, None)
    assert "names this attempt" in project.notice


def test_what_people_really_have_is_followed(tmp_path: Path, victim: Path) -> None:
    linked, by_link, apart = tmp_path / "linked", tmp_path / "by-link", tmp_path / "apart"
    git(victim, "worktree", "add", "-q", "-b", "topic", str(linked))
    by_link.symlink_to(linked)
    for root in (linked, by_link):
        project = find_project(root)
        assert (project.root, project.primary, project.branch()) == (root, victim, "topic")
        assert (project.ddx_dir, project.helix_dir) == (victim / ".ddx", victim / ".helix")
        assert project.notice == ""
    git(tmp_path, "init", "-q", "-b", "main", "--separate-git-dir", str(tmp_path / "apart.git"), str(apart))
    assert (find_project(apart).branch(), find_project(apart).notice) == ("main", "")
    git(tmp_path, "clone", "-q", "--bare", str(victim), str(tmp_path / "proj" / ".bare"))
    git(tmp_path / "proj" / ".bare", "worktree", "add", "-q", str(tmp_path / "proj" / "main"), "main")
    project = find_project(tmp_path / "proj" / "main")
    assert (project.root, project.primary, project.notice) == (tmp_path / "proj" / "main", None, "")
    git(victim, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "proj" / ".bare"), "sub")
    project = find_project(victim / "sub")
    assert (project.root, project.notice) == (victim / "sub", "")


def test_a_work_tree_that_was_moved_is_its_own_until_git_repairs_it(tmp_path: Path, victim: Path) -> None:
    git(victim, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "old"))
    (tmp_path / "old").rename(tmp_path / "new")
    assert "git worktree repair" in find_project(tmp_path / "new").notice
    git(victim, "worktree", "repair", str(tmp_path / "new"))
    assert find_project(tmp_path / "new").primary == victim
