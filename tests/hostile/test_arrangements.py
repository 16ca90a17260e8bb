"""What people really have still works: links, mounts, folders of others, read-only folders, odd work trees."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground.files import text_of
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.writes import make_folder


def test_pipes_in_git_s_own_folder_keep_nobody_waiting(clone: Path) -> None:
    for name in ("packed-refs", "config", "index", "info/exclude", "HEAD"):
        (clone / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(clone / ".git" / name)
    project = find_project(clone)
    assert project.branch() is None
    assert project.ref("refs/heads/other") is None
    make_folder(project.helix_dir)
    assert (clone / ".helix" / ".gitignore").is_file()


@pytest.mark.parametrize("reached", ["as it is", "by a link", "from a folder in it", "as a linked folder of a parent"])
def test_what_people_really_have_works(
    reached: str, clone: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone / "Überblick").mkdir()
    (clone / "Überblick" / "Größe.md").write_text("---\nddx:\n  id: size\n---\n# The size of the boat\n\n12 m.\n")
    (clone / "AGENTS.md").write_text("# For agents\n\nSail with the compass.\n")
    (clone / "CLAUDE.md").symlink_to("AGENTS.md")
    (clone / "docs" / "linked.md").symlink_to("../Überblick/Größe.md")
    subprocess.run(["git", "-C", str(clone), "add", "-A"], check=True, timeout=30)
    root = clone
    if reached == "by a link":
        root = tmp_path / "link"
        root.symlink_to(clone)
    elif reached == "from a folder in it":
        root = clone / "Überblick"
    elif reached == "as a linked folder of a parent":
        (tmp_path / "disk").symlink_to(tmp_path)
        root = tmp_path / "disk" / "demo"
    project = find_project(root)
    assert text_of(project.root / "CLAUDE.md").startswith("# For agents")
    assert text_of(project.root / "docs" / "linked.md").endswith("12 m.\n")
    for words in (("set", "de-1", "priority=1"), ("doc", "show", "size"), ("ask", "compass"), ("journal",)):
        assert main([*words, "-C", str(root)]) == 0, words
    shown = capfd.readouterr().out
    assert "Sail with the compass" in shown
    assert "The size of the boat" in shown
    assert "set priority" in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_works(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As in a container whose user does not own what is mounted; git refuses it unless it is a safe.directory."""
    for folder, _, names in os.walk(clone):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, 4711, 4711)
    assert subprocess.run(["git", "-C", str(clone), "status"], capture_output=True, timeout=30).returncode == 128
    for words in (("queue",), ("check",), ("set", "de-1", "priority=1"), ("journal",), ("ask", "what must float?")):
        assert main([*words, "-C", str(clone)]) == 0, words
    shown = capfd.readouterr().out
    assert "Sail the boat" in shown
    assert "set priority" in shown


def test_a_folder_without_locks_says_so_and_changes_nothing(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Some network folders have none."""

    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = (clone / ".ddx" / "beads.jsonl").read_bytes()
    for words in (("queue",), ("status",), ("journal",), ("ask", "what must float?"), ("check",)):
        assert main([*words, "-C", str(clone)]) == 0, words
    assert main(["set", "de-1", "priority=1", "-C", str(clone)]) == 1
    assert "No locks available" in capfd.readouterr().err
    assert (clone / ".ddx" / "beads.jsonl").read_bytes() == before


def test_a_work_tree_of_a_submodule_is_its_own(clone: Path, tmp_path: Path) -> None:
    part, tree = tmp_path / "part", tmp_path / "tree"
    for words in (
        ("init", "-q", "-b", "main", str(part)),
        ("-C", str(part), "commit", "-q", "--allow-empty", "-m", "start"),
        ("-C", str(clone), "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "part"),
        ("-C", str(clone / "part"), "worktree", "add", "-q", "-b", "topic", str(tree)),
    ):
        subprocess.run(["git", *words], check=True, timeout=30, capture_output=True)
    project = find_project(tree)
    assert (project.root, project.branch(), project.notice) == (tree, "topic", "")


_MOUNTED = ("queue", "check", "ask compass", "set de-1 priority=1", "journal")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_mounted_folder_works(mode: str, clone: Path, tmp_path: Path) -> None:
    """Bound to another path, as in a container; read-only, everything is shown and a change is refused."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    (clone / "AGENTS.md").write_text("# For agents\n\nSail with the compass.\n")
    subprocess.run(["git", "-C", str(clone), "add", "-A"], check=True, timeout=30)
    root = tmp_path / "mounted"
    root.mkdir()
    ours = f"'{sys.executable}' -P -m helix_tui"
    commands = "".join(f"{ours} {words} -C '{root}'; echo ended $?; " for words in _MOUNTED)
    script = f"mount --bind '{clone}' '{root}' && mount -o remount,bind,{mode} '{root}' && {{ {commands} }}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=300)
    ends = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert ends == ["ended 0", "ended 0", "ended 0", "ended 0" if mode == "rw" else "ended 1", "ended 0"], done.stderr
    assert "Sail with the compass" in done.stdout
    assert ("set priority" in done.stdout) == (mode == "rw")
    assert mode == "rw" or "Read-only file system" in done.stderr
