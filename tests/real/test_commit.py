"""`commit` with a remote: rows of others stand, nothing is stashed, two commits and one push, or all is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.stranger import Stranger


@pytest.fixture
def shared(stranger: Stranger) -> Path:
    """A colleague's clone of the same remote, with one bead in the tracker."""
    stranger.bead("Write one")
    stranger.commit("beads")
    remote, colleague = stranger.base / "remote.git", stranger.base / "colleague"
    stranger.run("git", "clone", "-q", "--bare", str(stranger.project), str(remote))
    stranger.run("git", "-C", str(remote), "config", "core.logAllRefUpdates", "true")
    stranger.git("remote", "add", "origin", str(remote))
    stranger.git("fetch", "-q")
    stranger.git("branch", "-q", "--set-upstream-to", "origin/main")
    stranger.run("git", "clone", "-q", str(remote), str(colleague))
    return colleague


def push_of(stranger: Stranger, colleague: Path, subject: str) -> None:
    """The colleague commits what is changed, and pushes."""
    for words in (("add", "-A"), ("commit", "-q", "-m", subject), ("push", "-q")):
        done = stranger.run("git", *words, cwd=colleague)
        assert done.returncode == 0, done.stderr


def state(stranger: Stranger) -> tuple[object, ...]:
    """The commits, what git shows as changed, the stashes, and every tracked file."""
    files = stranger.git("ls-files").split("\n")
    contents = {name: path.read_bytes() for name in files if (path := stranger.project / name).is_file()}
    lines = stranger.git("status", "--porcelain"), stranger.git("stash", "list"), stranger.git("rev-parse", "HEAD")
    return (*lines, contents)


def test_a_colleagues_change_of_a_row_is_not_overwritten(stranger: Stranger, shared: Path) -> None:
    (bead,) = stranger.rows()
    done = stranger.run("ddx", "bead", "update", bead, "--priority", "0", cwd=shared)
    assert done.returncode == 0, done.stderr
    push_of(stranger, shared, "more urgent")
    stranger.ddx("bead", "update", bead, "--notes", "mine", check=True)
    (stranger.project / "README.md").write_text("changed\n")
    before = state(stranger)
    done = stranger.tui("commit", bead)
    assert done.returncode == 1, done.stdout
    assert "upstream branch changed" in done.stderr
    assert bead in done.stderr
    assert state(stranger) == before
    assert '"priority":0' in stranger.git("show", "origin/main:.ddx/beads.jsonl").replace(" ", "")


def test_the_work_then_the_tracker_are_committed_and_pushed_once(stranger: Stranger, shared: Path) -> None:
    (bead,) = stranger.rows()
    stranger.ddx("bead", "update", bead, "--notes", "looked at", check=True)
    (shared / "theirs.txt").write_text("theirs\n")
    push_of(stranger, shared, "theirs")
    (stranger.project / "README.md").write_text("changed\n")
    foretold = stranger.tui("commit", bead, "--dry-run").stdout
    assert foretold.count("git push") == 1
    done = stranger.tui("commit", bead)
    assert done.returncode == 0, done.stderr
    subjects = stranger.git("log", "--format=%s", "origin/main", "-3").split("\n")
    assert subjects == [f"{bead} close tracker bead", f"{bead} Write one", "theirs"]
    files = [stranger.git("show", "--name-only", "--format=", rev) for rev in ("origin/main", "origin/main~1")]
    assert files == [".ddx/beads.jsonl", "README.md"]
    pushes = (stranger.base / "remote.git" / "logs" / "refs" / "heads" / "main").read_text().splitlines()
    assert len(pushes) == 2, "the colleague's, and one of ours"
    assert stranger.closed() == {bead}
    assert (stranger.git("status", "--porcelain"), stranger.git("stash", "list")) == ("", "")


def test_a_refused_push_leaves_the_bead_open_and_nothing_modified(stranger: Stranger, shared: Path) -> None:
    del shared
    (bead,) = stranger.rows()
    stranger.ddx("bead", "update", bead, "--notes", "looked at", check=True)
    hook = stranger.base / "remote.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho closed for the night >&2\nexit 1\n")
    hook.chmod(0o755)
    rows, before = stranger.rows(), stranger.git("status", "--porcelain")
    (stranger.project / "README.md").write_text("changed\n")
    done = stranger.tui("commit", bead)
    assert done.returncode == 1
    assert "closed for the night" in done.stderr
    assert f"{bead} stays open" in done.stderr
    assert stranger.git("log", "-1", "--format=%s") == f"{bead} Write one"
    assert (stranger.rows(), stranger.git("status", "--porcelain"), stranger.closed()) == (rows, before, set())
    assert stranger.git("stash", "list") == ""
    hook.unlink()
    stranger.git("push", "-q")
    assert stranger.tui("close", bead).returncode == 0


def test_a_persons_uncommitted_work_is_never_merged_or_stashed_over(stranger: Stranger, shared: Path) -> None:
    (bead,) = stranger.rows()
    (stranger.project / "notes.txt").write_text("first\n")
    stranger.commit("notes")
    stranger.git("push", "-q")
    stranger.run("git", "pull", "-q", cwd=shared)
    (shared / "notes.txt").write_text("theirs\n")
    push_of(stranger, shared, "their notes")
    (stranger.project / "notes.txt").write_text("half a thought\n")
    (stranger.project / "README.md").write_text("changed\n")
    stranger.git("add", "README.md")
    head = stranger.git("rev-parse", "HEAD")
    done = stranger.tui("commit", bead)
    assert (stranger.project / "notes.txt").read_text() == "half a thought\n"
    assert stranger.git("stash", "list") == ""
    assert not (stranger.project / ".git" / "rebase-merge").exists()
    assert " M notes.txt" in stranger.run("git", "status", "--porcelain").stdout
    assert (done.returncode, stranger.closed()) == (1, set()), done.stderr
    assert (stranger.git("rev-parse", "HEAD"), "nothing was committed" in done.stderr) == (head, True), done.stderr
