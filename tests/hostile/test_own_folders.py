"""A ``.helix`` that the repository brings is not used; the console works without it, and says so in one line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.own_folders import NotUsed
from helix_tui.core.ground.trust.person import Allowed
from helix_tui.core.ground.writes import make_folder, replace_file
from tests.conftest import ProjectFactory

BEAD = {"id": "de-1", "title": "A bead", "status": "open", "issue_type": "task", "priority": 2}
LINE = "the console works without memory and journal, and changes nothing"


def git(root: Path, *words: str) -> None:
    """Run git in a repository."""
    subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30, capture_output=True)


def bring(root: Path, path: str) -> None:
    """Let git track a file."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("brought")
    git(root, "add", "-f", path)


def is_used(root: Path) -> bool:
    """Whether the project's folder is the one on disk."""
    return find_project(root).helix_dir == root / ".helix"


def test_a_folder_of_our_own_is_used(project: ProjectFactory) -> None:
    """Made by us, and hidden from git."""
    root = project([BEAD], git=True)
    replace_file(find_project(root).helix_dir / "journal.jsonl", b"{}\n")
    assert is_used(root)
    assert (root / ".helix" / "journal.jsonl").is_file()
    assert person.notes() == ()


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("ids", ["sha1", "sha256"])
@pytest.mark.parametrize("path", [".helix/helix.db", ".helix/a/b", ".HELIX/journal.jsonl"])
def test_what_git_tracks_is_found_in_every_format_of_its_index(
    tmp_path: Path, version: str, ids: str, path: str
) -> None:
    """Beside neighbours that share most of their names with it, which version 4 does not repeat."""
    root = tmp_path / "clone"
    subprocess.run(["git", "init", "-q", f"--object-format={ids}", str(root)], check=True, timeout=30)
    git(root, "config", "index.version", version)
    for neighbour in (".heli", ".helix-notes", ".helix-", "docs/.helix/x"):
        bring(root, neighbour)
    # longer than the index has a number for
    long_path = "/".join(["a" * 200] * 25)
    blob = "0" * (39 if ids == "sha1" else 63) + "1"
    git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{long_path}")
    assert is_used(root)
    bring(root, path)
    assert (root / ".git" / "index").read_bytes()[7] == int(version)
    assert not is_used(root)


def test_what_a_split_index_tracks_is_found(project: ProjectFactory) -> None:
    """Most paths are then in another file."""
    root = project([BEAD], git=True)
    bring(root, ".helix/helix.db")
    git(root, "update-index", "--split-index")
    bring(root, "more")
    assert not is_used(root)


def test_a_link_or_submodule_that_git_tracks_is_found(project: ProjectFactory, tmp_path: Path) -> None:
    """A folder's own name can be an entry too."""
    root = project([BEAD], git=True)
    (root / ".helix-logs").symlink_to(tmp_path)
    git(root, "add", ".helix-logs")
    (root / ".helix-logs").unlink()
    assert find_project(root).logs_dir != root / ".helix-logs"


def test_a_new_index_is_seen_by_a_console_that_is_open(project: ProjectFactory) -> None:
    """A pull may bring one."""
    root = project([BEAD], git=True)
    opened = find_project(root)
    assert opened.helix_dir == root / ".helix"
    bring(root, ".helix/helix.db")
    assert opened.helix_dir != root / ".helix"


def test_prompts_may_be_committed(project: ProjectFactory) -> None:
    """They are text for agents, as before."""
    root = project([BEAD], git=True)
    bring(root, ".helix/prompts/build.md")
    assert is_used(root)
    bring(root, ".helix/promptsX/build.md")
    assert not is_used(root)


def test_a_project_in_a_subfolder_is_judged_by_its_own(project: ProjectFactory) -> None:
    """What another folder of the same repository tracks is not its own."""
    root = project([BEAD], git=True)
    inner = root / "demo"
    (inner / ".ddx").mkdir(parents=True)
    git(root, "rm", "-q", "-r", "--cached", ".ddx")
    (root / ".ddx").rename(root / "elsewhere")
    bring(root, ".helix/helix.db")
    assert not is_used(root)
    assert is_used(inner)
    bring(root, "demo/.helix/helix.db")
    assert not is_used(inner)


@pytest.mark.parametrize("target", ["elsewhere", "docs"])
def test_a_link_is_never_used(project: ProjectFactory, tmp_path: Path, target: str) -> None:
    """Neither one to outside nor one within the work tree; no trust changes that."""
    root = project([BEAD])
    folder = tmp_path / target if target == "elsewhere" else root / target
    folder.mkdir()
    (folder / "journal.jsonl").write_text("theirs")
    (root / ".helix").symlink_to(folder)
    person.allow(Allowed("folder", os.path.realpath(root), ".helix"))
    assert not is_used(root)
    with pytest.raises(NotUsed, match="is a link"):
        replace_file(find_project(root).helix_dir / "journal.jsonl", b"ours")
    assert (folder / "journal.jsonl").read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_folder_is_used_only_when_it_is_trusted(project: ProjectFactory) -> None:
    """As with git's own safe.directory."""
    root = project([BEAD])
    (root / ".helix").mkdir()
    os.chown(root / ".helix", 4711, 4711)
    assert not is_used(root)
    person.allow(Allowed("folder", os.path.realpath(root), ".helix"))
    assert is_used(root)


def test_a_tracked_folder_is_used_when_it_is_trusted(project: ProjectFactory) -> None:
    """Of this repository and no other; by whatever link the repository is reached."""
    root = project([BEAD], git=True)
    bring(root, ".helix/helix.db")
    assert not is_used(root)
    person.allow(Allowed("folder", os.path.realpath(root), ".helix"))
    assert is_used(root)
    (root.parent / "link").symlink_to(root)
    assert is_used(root.parent / "link")


def test_a_damaged_index_does_not_keep_the_console_from_its_own_folder(project: ProjectFactory) -> None:
    """Git does not read it either; a FIFO in its place keeps nobody waiting."""
    root = project([BEAD], git=True)
    index = root / ".git" / "index"
    for content in (b"", b"DIRC", b"DIRC\0\0\0\4\0\0\xff\xff.helix" * 9, index.read_bytes()[:-90] + b".helix"):
        index.write_bytes(content)
        assert is_used(root)
    index.unlink()
    os.mkfifo(index)
    assert is_used(root)


def test_nothing_is_made_or_said_twice(project: ProjectFactory, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that read work without it and say one line; commands that change the queue refuse with the same."""
    root = project([BEAD], git=True)
    bring(root, ".helix/questions.json")
    assert main(["-C", str(root), "queue"]) == 0
    told = capsys.readouterr()
    assert "A bead" in told.out
    assert told.err.count(LINE) == 1
    assert "helix-tui trust" in told.err
    assert main(["-C", str(root), "set", "de-1", "title=Another"]) == 1
    assert capsys.readouterr().err.count(LINE) == 1
    assert b"Another" not in (root / ".ddx" / "beads.jsonl").read_bytes()
    with pytest.raises(NotUsed):
        make_folder(find_project(root).helix_dir / "logs")


def test_a_folder_and_then_the_database_in_it_wait_for_trust(
    project: ProjectFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list of what would run; a database in a folder that is not used is not even looked at."""
    root = project([BEAD], git=True)
    bring(root, ".helix/helix.db")
    trust = ["-C", str(root), "trust"]
    assert main([*trust, "--show", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["folders"], document["brought"][0]["allowed"]) == ([".helix"], False)
    assert main([*trust, "--yes"]) == 0
    assert is_used(root)
    assert "not allowed  .helix/helix.db" in capsys.readouterr().out
    assert main([*trust, "--yes"]) == 0
    assert "not allowed" not in capsys.readouterr().out
