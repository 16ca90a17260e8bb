"""Commands that act on a project's own work tree, called in a folder that ddx made for one attempt."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ATTEMPT = "20260701T101112-0a1b2c3d"
PERSON = ("-c", "user.name=T", "-c", "user.email=t@example.com")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of git with one ready bead and a change that nobody committed."""
    root = tmp_path / "project"
    (root / ".ddx").mkdir(parents=True)
    bead = {"id": "demo-2", "title": "Write a file", "status": "open", "issue_type": "task"}
    (root / ".ddx" / "beads.jsonl").write_text(json.dumps(bead) + "\n")
    (root / "file.txt").write_text("one\n")
    git(root.parent, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, *PERSON, "commit", "-qm", "start")
    (root / "file.txt").write_text("two\n")
    return root


@pytest.fixture(params=["wt", "clone"])
def attempt_folder(request: pytest.FixtureRequest, project: Path) -> Path:
    """The work tree, or the clone, in which an attempt works."""
    folder = project.parent / f".execute-bead-{request.param}-demo-2-{ATTEMPT}"
    if request.param == "wt":
        git(project, "worktree", "add", "-q", "--detach", str(folder))
    else:
        git(project.parent, "clone", "-q", str(project), str(folder))
        (project / ".ddx" / "executions" / ATTEMPT).mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "demo-2"),
        ("experiment",),
        ("run",),
        ("start",),
        ("build",),
        ("align",),
        ("review",),
        ("plan",),
        ("frame", "--dry-run"),
        ("evolve", "one more field"),
        ("input", "a button"),
    ],
)
def test_the_projects_own_tree_is_not_acted_on_from_an_attempts_folder(
    cli: Cli, project: Path, attempt_folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    before = git(project, "rev-parse", "HEAD"), (project / ".ddx" / "beads.jsonl").read_bytes()
    monkeypatch.chdir(attempt_folder)
    ran = cli(*words)
    assert ran.code == 2
    assert f"cannot {words[0]} in {attempt_folder}" in ran.err
    assert f"for attempt {ATTEMPT}" in ran.err
    assert f"helix-tui {words[0]} -C {project}" in ran.err
    assert (git(project, "rev-parse", "HEAD"), (project / ".ddx" / "beads.jsonl").read_bytes()) == before
    assert git(project, "status", "--porcelain").split() == ["M", "file.txt"]
    assert not (project / ".helix").exists()
    assert not (project / ".helix-logs").exists()


def test_what_waits_for_an_answer_is_listed_and_answered_from_there(
    cli: Cli, attempt_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(attempt_folder)
    assert cli("input", "--questions").code == 0


def test_a_project_that_is_named_is_acted_on_from_there_too(
    cli: Cli, project: Path, attempt_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(attempt_folder)
    ran = cli("commit", "demo-2", "-C", project, "--dry-run")
    assert ran.code == 0, ran.err
    assert "git commit" in ran.out
