"""What we write in a project stays invisible to git: entered once, and what was there stays."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from helix_tui.core.ground.files import RefusedFileError
from helix_tui.core.ground.trust.work_tree import common_dir_above, configured
from helix_tui.core.ground.writes import HEADING, PATTERNS, exclude, make_folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def untracked(folder: Path) -> str:
    return git(folder, "status", "--porcelain", "--untracked-files=all")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "demo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    return root


def test_git_does_not_see_what_is_written_into_our_folders(repository: Path) -> None:
    for folder in (".helix", ".helix/ask/history", ".helix-logs", "packages/one/.helix"):
        (make_folder(repository / folder) / "kept").write_text("x")
    assert untracked(repository) == ""
    assert not list(repository.rglob(".gitignore"))


def test_prompts_of_a_project_can_be_committed(repository: Path) -> None:
    (make_folder(repository / ".helix" / "prompts") / "check.md").write_text("x")
    assert untracked(repository) == "?? .helix/prompts/check.md"


def test_a_linked_work_tree_enters_them_for_all(repository: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", str(linked))
    (make_folder(linked / ".helix") / "helix.db").write_text("x")
    make_folder(repository / ".helix").joinpath("helix.db").write_text("x")
    assert (untracked(linked), untracked(repository)) == ("", "")
    assert (repository / ".git" / "info" / "exclude").read_text().count(PATTERNS[0]) == 1


def test_what_an_exclude_file_holds_stays_and_so_does_its_mode(repository: Path) -> None:
    path = repository / ".git" / "info" / "exclude"
    path.write_bytes(b"*.swp\n\xff\xfe no text\nlast line without an end")
    path.chmod(0o600)
    assert exclude(repository / ".git")
    assert path.read_bytes().startswith(b"*.swp\n\xff\xfe no text\nlast line without an end\n" + HEADING.encode())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    assert not exclude(repository / ".git")
    assert path.read_bytes() == before


@pytest.mark.parametrize("hostile", ["link", "hard link", "pipe"])
def test_an_exclude_file_that_leads_elsewhere_is_not_touched(repository: Path, tmp_path: Path, hostile: str) -> None:
    path, target = repository / ".git" / "info" / "exclude", tmp_path / "mine"
    target.write_text("*.swp\n")
    path.unlink()
    if hostile == "link":
        path.symlink_to(target)
    elif hostile == "hard link":
        path.hardlink_to(target)
    else:
        os.mkfifo(path)
    with pytest.raises(RefusedFileError):
        exclude(repository / ".git")
    (make_folder(repository / ".helix") / "helix.db").write_text("x")
    assert target.read_text() == "*.swp\n"
    path.unlink()
    assert untracked(repository) == ""


def test_many_at_once_enter_them_once(repository: Path) -> None:
    (repository / ".git" / "info" / "exclude").unlink()
    (repository / ".git" / "info").rmdir()
    code = (
        "import sys; from pathlib import Path; from helix_tui.core.ground.writes import make_folder;"
        "make_folder(Path(sys.argv[1]))"
    )
    folder = str(repository / ".helix" / "ask")
    running = [subprocess.Popen([sys.executable, "-c", code, folder]) for _ in range(6)]
    assert [each.wait(60) for each in running] == [0] * 6
    text = (repository / ".git" / "info" / "exclude").read_text()
    assert [text.count(f"{pattern}\n") for pattern in PATTERNS] == [1, 1, 1]
    assert os.listdir(repository / ".git" / "info") == ["exclude"]


def test_where_the_exclude_file_cannot_be_used_a_file_in_the_folder_serves(repository: Path) -> None:
    path = repository / ".git" / "info" / "exclude"
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("no folder")
    (make_folder(repository / ".helix") / "helix.db").write_text("x")
    (make_folder(repository / ".helix-logs") / "check.log").write_text("x")
    assert untracked(repository) == ""


def test_a_project_without_git_is_ready_for_it(tmp_path: Path) -> None:
    (make_folder(tmp_path / "plain" / ".helix") / "helix.db").write_text("x")
    git(tmp_path / "plain", "init", "-q")
    assert untracked(tmp_path / "plain") == ""


def test_a_folder_that_is_not_ours_is_only_made(repository: Path) -> None:
    before = (repository / ".git" / "info" / "exclude").read_text()
    assert make_folder(repository / "elsewhere" / "deep").is_dir()
    assert (repository / ".git" / "info" / "exclude").read_text() == before


def test_values_of_the_configuration_are_found_by_section_and_key(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "ddx.sharedMainGitLockRoot", "/some where/else")
    git(repository, "remote", "add", "origin", "/the/origin")
    common_dir = common_dir_above(repository / "not" / "there")
    assert common_dir == repository / ".git"
    assert configured(common_dir, "ddx", "sharedMainGitLockRoot") == "/some where/else"
    assert configured(common_dir, 'remote "origin"', "URL") == "/the/origin"
    assert configured(common_dir, "ddx", "nothing") == ""
    assert common_dir_above(tmp_path) is None
