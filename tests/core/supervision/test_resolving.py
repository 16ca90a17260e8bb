"""A merge whose conflicts somebody resolves in an editor: no edit of theirs is lost, whatever git says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.supervision.stages.landing import conflicted, end_resolving

NAMES = ("one/__init__.py", "two/__init__.py")


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=60, check=False).stdout


def write(root: Path, text: str) -> None:
    for name in NAMES:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"{text} {name}\n")


def commit(root: Path, text: str) -> None:
    write(root, text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A merge that waits for two files of one name."""
    git(tmp_path, "init", "-q", "-b", "main")
    for key, value in (("user.name", "t"), ("user.email", "t@t")):
        git(tmp_path, "config", key, value)
    commit(tmp_path, "base")
    git(tmp_path, "checkout", "-q", "-b", "kept")
    commit(tmp_path, "theirs")
    git(tmp_path, "checkout", "-q", "main")
    commit(tmp_path, "ours")
    git(tmp_path, "merge", "kept")
    assert len(conflicted(tmp_path)) == 2
    return tmp_path


def edits_kept(said: str) -> dict[str, str]:
    folder = Path(re.split(r"your edits are in ", said)[1])
    return {name: (folder / name).read_text() for name in NAMES}


def test_edits_of_two_files_of_one_name_are_both_kept_where_a_marker_is_left(root: Path) -> None:
    files = conflicted(root)
    (root / NAMES[0]).write_text("resolved\n")
    left = (root / NAMES[1]).read_text()
    with pytest.raises(OperationRefused, match="still has conflict markers") as refused:
        end_resolving(root, files)
    assert edits_kept(str(refused.value)) == {NAMES[0]: "resolved\n", NAMES[1]: left}
    assert not git(root, "status", "--porcelain")


def test_a_commit_that_a_hook_refuses_keeps_what_was_resolved(root: Path) -> None:
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on a Monday >&2\nexit 1\n")
    hook.chmod(0o755)
    (root / ".git/hooks/pre-merge-commit").symlink_to(hook)
    files = conflicted(root)
    write(root, "resolved")
    with pytest.raises(OperationRefused, match="not on a Monday") as refused:
        end_resolving(root, files)
    assert edits_kept(str(refused.value)) == {name: f"resolved {name}\n" for name in NAMES}
    assert not git(root, "status", "--porcelain")
