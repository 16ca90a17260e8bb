"""Finding the project, its folders, its branch and the places where leases may lie."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from helix_tui.core.ground.project import (
    AttemptFolder,
    Project,
    find_ddx,
    find_project,
    lease_roots,
    machine_name,
    worktree_roots,
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "demo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    (root / ".ddx").mkdir()
    return root


def test_the_project_is_the_git_root_above_the_start(repository: Path) -> None:
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    project = find_project(inner, env={})
    assert (project.root, project.ddx_dir) == (repository, repository / ".ddx")
    assert (project.name, project.branch()) == ("demo", "main")
    assert project.beads_file == repository / ".ddx" / "beads.jsonl"
    assert project.helix_dir == repository / ".helix"


def test_without_git_and_without_a_tracker_there_still_is_a_project(tmp_path: Path) -> None:
    project = find_project(tmp_path / "not-there", env={})
    assert project.root == tmp_path / "not-there"
    assert (project.branch(), project.origin_head(), project.ddx_dir.name) == (None, None, ".ddx")
    assert lease_roots(project, {}) == lease_roots(project, {})


def test_a_tracker_in_a_folder_of_another_repository_is_meant(repository: Path) -> None:
    (repository / ".ddx").rmdir()
    (repository / "inner" / ".ddx").mkdir(parents=True)
    assert find_project(repository / "inner", env={}).root == repository / "inner"
    (repository / ".ddx").mkdir()
    assert find_project(repository / "inner", env={}).root == repository


def test_the_folder_named_by_the_environment_wins(repository: Path, tmp_path: Path) -> None:
    named = find_project(repository, env={"DDX_BEAD_DIR": str(tmp_path / "elsewhere")})
    assert named.ddx_dir == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("https://host.example/org/repo.git", "host.example/org/repo"),
        ("git@host.example:org/repo.git", "host.example/org/repo"),
        ("ssh://git@host.example/org/repo", "host.example/org/repo"),
        ("/somewhere/local", None),
        ("https://host.example/../../etc", None),
    ],
)
def test_without_a_tree_of_its_own_the_state_lies_under_the_users_data(
    repository: Path, tmp_path: Path, url: str, identity: str | None
) -> None:
    (repository / ".ddx").rmdir()
    git(repository, "remote", "add", "origin", url)
    digest = hashlib.sha1(str(repository).encode()).hexdigest()[:8]
    state = tmp_path / "data" / "ddx" / "projects" / (identity or f"local/demo-{digest}")
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}
    assert find_project(repository, env=env).ddx_dir == repository / ".ddx"
    state.mkdir(parents=True)
    if identity is not None:
        # another project may claim this address: ddx enters each work tree that it serves
        assert find_project(repository, env=env).ddx_dir == repository / ".ddx"
        (state / "worktrees.json").write_text(json.dumps({"worktrees": [{"path": str(repository)}]}))
    assert find_project(repository, env=env).ddx_dir == state
    (repository / ".ddx").mkdir()
    assert find_project(repository, env=env).ddx_dir == repository / ".ddx"


def test_a_linked_work_tree_knows_its_branch_and_its_main_tree(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    project = find_project(tmp_path / "linked", env={})
    assert (project.root, project.main_root) == (tmp_path / "linked", repository)
    assert project.branch() == "topic"
    assert project.common_dir == repository / ".git"
    assert (project.ddx_dir, project.records_dir) == (repository / ".ddx", tmp_path / "linked" / ".ddx")
    primary = find_project(repository, env={})
    assert (primary.main_root, primary.records_dir) == (repository, repository / ".ddx")


def test_a_detached_head_is_told_by_its_commit(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "--detach")
    assert find_project(repository, env={}).branch() == head[:7]


@pytest.mark.parametrize("packed", [False, True])
def test_the_head_of_origin_is_read_from_gits_own_files(repository: Path, packed: bool) -> None:
    head = git(repository, "rev-parse", "HEAD")
    project = find_project(repository, env={})
    assert project.origin_head() is None
    git(repository, "update-ref", "refs/remotes/origin/main", head)
    if packed:
        git(repository, "pack-refs", "--all")
    assert project.origin_head() == head
    assert project.ref("refs/heads/main") == head
    git(repository, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    assert project.ref("refs/heads/alias") == head


def test_broken_git_files_are_no_git(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert find_project(tmp_path, env={}).git_dir is None
    project = Project(tmp_path, tmp_path / ".ddx", tmp_path, tmp_path)
    (tmp_path / "HEAD").write_bytes(b"\xff\xfe")
    assert project.branch() is not None
    (tmp_path / "HEAD").write_text("ref: refs/heads/.invalid\n")
    assert project.branch() is None


def test_leases_are_looked_for_wherever_some_release_keeps_them(repository: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(repository)
    project = find_project(link, env={})
    digest = hashlib.sha1(os.path.realpath(repository).encode()).hexdigest()
    (repository / ".ddx" / "config.yaml").write_text(
        "version: '1'\nexecutions: # where attempts live\n  retain_days: 3\n"
        '  temp_worktree_root: "/from/config" # x\n'
    )
    env = {"HOME": "/h", "TMPDIR": "/t", "DDX_CLAIM_HEARTBEAT_DIR": "/beats", "DDX_EXEC_WT_DIR": "/wt"}
    roots = lease_roots(project, env)
    named = "ddx-claim-heartbeats"
    for base in ("/beats", f"/wt/{named}", f"/from/config/{named}", f"/t/{named}", f"/tmp/{named}"):
        assert Path(base, digest) in roots
    cache = lease_roots(project, {"HOME": "/h", "XDG_CACHE_HOME": "/c"})
    if os.uname().sysname == "Linux":
        assert Path(f"/c/ddx/{named}", digest) in cache
    assert roots[0] == Path("/beats", digest)
    assert len(roots) == len(set(roots)) < 20
    assert Path("/wt") in worktree_roots(project, env)
    assert Path("/from/config") in worktree_roots(project, env)


def test_a_users_config_names_the_work_trees_too(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / ".ddx").mkdir(parents=True)
    (tmp_path / "home" / ".ddx" / "config.yaml").write_text("executions:\n  temp_worktree_root: ~/trees\n")
    roots = worktree_roots(find_project(repository, env={}), {"HOME": str(tmp_path / "home")})
    assert tmp_path / "home" / "trees" in roots


def test_the_ddx_asked_for_is_not_replaced_by_another(tmp_path: Path) -> None:
    def program(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    on_path, named, asked = program("bin/ddx"), program("named"), program("asked")
    env = {"PATH": str(tmp_path / "bin")}
    assert find_ddx(None, env) == on_path
    assert find_ddx(None, env | {"DDX_BIN": str(named)}) == named
    assert find_ddx(asked, env | {"DDX_BIN": str(named)}) == asked
    assert find_ddx(tmp_path / "missing", env) is None
    assert find_ddx(None, {"PATH": str(tmp_path)}) is None


def test_a_machine_may_be_named_by_the_environment() -> None:
    assert machine_name({"DDX_MACHINE_ID": "box"}) == "box"
    assert machine_name({})


ATTEMPT = "20260821T101112-0123abcd"


def test_a_work_tree_of_an_attempt_belongs_to_its_project(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "exec-wt" / f".execute-bead-wt-demo-1-a-{ATTEMPT}"
    git(repository, "worktree", "add", "-q", "--detach", str(tree))
    (tree / ".ddx").mkdir()
    (tree / "src").mkdir()
    project = find_project(tree / "src", env={})
    assert (project.root, project.ddx_dir) == (repository, repository / ".ddx")
    assert project.attempt == AttemptFolder(tree, "demo-1-a", ATTEMPT)
    assert find_project(repository, env={}).attempt is None


@pytest.mark.parametrize("by", ["origin", "setting"])
def test_a_clone_for_an_attempt_belongs_to_its_origin(repository: Path, tmp_path: Path, by: str) -> None:
    clone = tmp_path / f".execute-bead-clone-demo-2-{ATTEMPT}"
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True, timeout=30)
    if by == "setting":
        git(clone, "config", "ddx.sharedMainGitLockRoot", str(repository))
        git(clone, "remote", "set-url", "origin", "https://host.example/org/repo")
    (clone / ".ddx").mkdir()
    alone = find_project(clone, env={})
    assert (alone.root, alone.attempt) == (clone, None)
    assert "names this attempt" in alone.notice
    (repository / ".ddx" / "executions" / ATTEMPT).mkdir(parents=True)
    project = find_project(clone, env={})
    assert (project.root, project.helix_dir) == (repository, repository / ".helix")
    assert project.attempt == AttemptFolder(clone, "demo-2", ATTEMPT)


def test_a_slot_that_serves_many_attempts_belongs_to_its_origin_too(repository: Path, tmp_path: Path) -> None:
    slot = tmp_path / ".execute-bead-slot-0a1b" / "slot-3"
    subprocess.run(["git", "clone", "-q", str(repository), str(slot)], check=True, timeout=30)
    assert find_project(slot, env={}).attempt is None
    (repository / ".ddx" / "run-state.json").write_text(json.dumps({"worktree_path": str(slot)}))
    project = find_project(slot, env={})
    assert (project.root, project.attempt) == (repository, AttemptFolder(slot))


@pytest.mark.parametrize("origin", ["", "https://host.example/org/repo", "/not/there", "relative"])
def test_a_folder_with_such_a_name_and_no_project_behind_it_is_a_project(tmp_path: Path, origin: str) -> None:
    lone = tmp_path / f".execute-bead-clone-demo-2-{ATTEMPT}"
    lone.mkdir()
    git(lone, "init", "-q")
    if origin:
        git(lone, "remote", "add", "origin", origin)
    assert find_project(lone, env={}) == Project(lone, lone / ".ddx", lone / ".git", lone / ".git")
