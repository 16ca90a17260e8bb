"""Kept changes landed by hand: nothing reaches git before the plan was confirmed, and one undo takes all of it back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helix_tui.core.editing.execute.curator import Result
from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.supervision.stages import landing
from helix_tui.core.supervision.stages.landing import KeptChange, Landing, merge_of, resolve
from tests.core.supervision.conftest import World, WorldFactory, row

CHANGES = {"a": {"a.txt": "a\n"}, "b": {"b.txt": "b\n"}, "c": {"shared.txt": "theirs\n"}, "d": {"b.txt": "other\n"}}
"""Bead -> what its kept change writes: c conflicts with main, d with b."""


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def commit(root: Path, files: dict[str, str], message: str) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def kept(world: WorldFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """Four beads with a kept change each, and a branch that has moved on."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = world([row(bead_id) for bead_id in CHANGES])
    root = made.root
    git(root, "init", "-q", "-b", "main")
    for key, value in (("user.name", "t"), ("user.email", "t@t")):
        git(root, "config", key, value)
    (root / ".gitignore").write_text(".ddx/\n.helix/\n")
    base = commit(root, {"shared.txt": "one\n"}, "begin")
    for bead_id, files in CHANGES.items():
        git(root, "checkout", "-q", "--detach", base)
        git(root, "update-ref", f"refs/ddx/iterations/{bead_id}/1", commit(root, files, f"work on {bead_id}"))
    git(root, "checkout", "-q", "main")
    commit(root, {"shared.txt": "ours\n"}, "go on")
    return made


def change(bead_id: str) -> KeptChange:
    return KeptChange(bead_id, f"refs/ddx/iterations/{bead_id}/1")


def state_of(root: Path) -> tuple[str, str, str]:
    """The commit, what differs from it, and every object of the repository."""
    return git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain"), git(root, "count-objects", "-v")


def land(made: World, *changes: KeptChange) -> Result:
    landed = Landing(changes)
    return landed.run(made.curator, landed.plan(made.curator, made.curator.look()))


def status(made: World, bead_id: str) -> str:
    return made.curator.look().queue.beads[bead_id].status


def test_planning_and_resolving_change_nothing_in_the_repository(kept: World) -> None:
    root = kept.root
    before = state_of(root)
    plan = Landing(tuple(map(change, CHANGES))).plan(kept.curator, kept.curator.look())
    assert plan.title == "land 3 of 4 kept changes"
    assert [refusal.why for refusal in plan.refusals] == ["c conflicts with main in shared.txt; resolve that first"]
    assert [line.split()[-1] for line in plan.first] == [f"refs/ddx/iterations/{bead_id}/1" for bead_id in "abd"]
    resolved = resolve(root, change("c"))
    assert resolved.resolution is not None
    assert "<<<<<<< " in (resolved.resolution.folder / "shared.txt").read_text()
    assert state_of(root) == before


@pytest.mark.long
def test_what_can_land_lands_as_one_change_which_one_undo_takes_back(kept: World) -> None:
    root = kept.root
    before = git(root, "rev-parse", "HEAD")
    done = land(kept, *map(change, CHANGES))
    assert (status(kept, "a"), status(kept, "b"), status(kept, "c")) == ("closed", "closed", "open")
    assert git(root, "log", "--format=%s", "-2").count("Land ") == 2
    assert done.problems == ("2 of 3 landed", "d conflicts with main in b.txt"), "found on top of the merge before it"
    (entry,) = kept.curator.history().entries
    assert (entry.title, entry.kind) == ("land 3 of 4 kept changes", "land")
    undone = kept.curator.undo()
    assert landing.follow_landing(kept.curator, undone) == f"git reset --keep {before}"
    assert git(root, "rev-parse", "HEAD") == before
    assert (status(kept, "a"), status(kept, "b")) == ("open", "open")
    again = kept.curator.redo()
    assert landing.follow_landing(kept.curator, again).startswith("git merge --ff-only")
    assert (status(kept, "a"), status(kept, "b")) == ("closed", "closed")
    assert done.entry is not None
    assert merge_of(root, done.entry) is not None


def test_a_change_that_conflicts_after_the_preview_is_reported_and_does_not_hide_the_others(kept: World) -> None:
    root = kept.root
    landed = Landing((change("a"), change("b")))
    shown = landed.plan(kept.curator, kept.curator.look())
    commit(root, {"b.txt": "somebody else's\n"}, "meanwhile")
    done = landed.run(kept.curator, shown)
    assert done.problems == ("1 of 2 landed", "b conflicts with main in b.txt")
    assert (status(kept, "a"), status(kept, "b")) == ("closed", "open")
    assert git(root, "status", "--porcelain") == ""
    assert not (root / ".git/MERGE_HEAD").exists()


def test_where_nothing_lands_nothing_is_changed_and_the_journal_has_why(kept: World) -> None:
    root = kept.root
    landed = Landing((change("a"),))
    shown = landed.plan(kept.curator, kept.curator.look())
    head = commit(root, {"a.txt": "somebody else's\n"}, "meanwhile")
    with pytest.raises(OperationRefused, match="a conflicts with main in a"):
        landed.run(kept.curator, shown)
    assert git(root, "rev-parse", "HEAD") == head
    assert status(kept, "a") == "open"
    (entry,) = kept.curator.history().entries
    assert (entry.result, entry.standing) == ("failed", False)


def test_a_resolved_change_lands_as_it_was_edited(kept: World) -> None:
    root = kept.root
    resolved = resolve(root, change("c"))
    assert resolved.resolution is not None
    folder = resolved.resolution.folder
    with pytest.raises(OperationRefused, match="conflict markers in shared"):
        land(kept, resolved)
    (folder / "shared.txt").write_text("both\n")
    done = land(kept, resolved)
    assert done.problems == ()
    assert (root / "shared.txt").read_text() == "both\n"
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2
    assert git(root, "status", "--porcelain") == ""
    assert status(kept, "c") == "closed"
    assert not folder.exists()


def test_a_resolution_for_an_older_commit_of_the_branch_is_not_used(kept: World) -> None:
    root = kept.root
    resolved = resolve(root, change("c"))
    assert resolved.resolution is not None
    (resolved.resolution.folder / "shared.txt").write_text("both\n")
    shown = Landing((resolved,)).plan(kept.curator, kept.curator.look())
    head = commit(root, {"shared.txt": "ours again\n"}, "meanwhile")
    with pytest.raises(OperationRefused, match="older commit"):
        Landing((resolved,)).run(kept.curator, shown)
    assert git(root, "rev-parse", "HEAD") == head
    assert (resolved.resolution.folder / "shared.txt").read_text() == "both\n", "the edits are still there"


def test_a_commit_that_a_hook_refuses_keeps_what_was_resolved(kept: World) -> None:
    root = kept.root
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on a Monday >&2\nexit 1\n")
    hook.chmod(0o755)
    resolved = resolve(root, change("c"))
    assert resolved.resolution is not None
    (resolved.resolution.folder / "shared.txt").write_text("both\n")
    with pytest.raises(OperationRefused, match="not on a Monday"):
        land(kept, resolved)
    assert git(root, "status", "--porcelain") == ""
    assert (resolved.resolution.folder / "shared.txt").read_text() == "both\n"


@pytest.mark.long
def test_a_link_in_the_place_of_a_conflict_is_replaced_and_not_followed(kept: World, tmp_path: Path) -> None:
    root = kept.root
    outside = tmp_path / "outside"
    outside.write_text("not ours\n")
    for ref, target in (("refs/ddx/iterations/c/1", "theirs"), ("main", str(outside))):
        git(root, "checkout", "-q", "--detach" if ref != "main" else "main", *([] if ref == "main" else [ref]))
        (root / "link").symlink_to(target)
        git(root, "add", "link")
        git(root, "rm", "-qf", "shared.txt")
        git(root, "commit", "-qm", "a link")
        git(root, "update-ref", "refs/ddx/iterations/c/1" if ref != "main" else "refs/heads/main", "HEAD")
    resolved = resolve(root, change("c"))
    assert resolved.resolution is not None
    assert resolved.resolution.merge.conflicts == ("link",)
    (resolved.resolution.folder / "link").write_text("both\n")
    assert land(kept, resolved).problems == ()
    assert outside.read_text() == "not ours\n"
    assert (root / "link").read_text() == "both\n"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda root: (root / "shared.txt").write_text("more\n"), "not committed"),
        (lambda root: git(root, "config", "user.useConfigOnly", "true"), "git has no name for your commits"),
    ],
    ids=["changed files", "no name"],
)
def test_what_stops_every_merge_is_found_before_the_preview(
    kept: World, monkeypatch: pytest.MonkeyPatch, broken: object, why: str
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME", raising=False)
        monkeypatch.delenv(f"GIT_{role}_EMAIL", raising=False)
    root = kept.root
    git(root, "config", "--unset", "user.name")
    git(root, "config", "--unset", "user.email")
    monkeypatch.setenv("HOME", str(root / "nobody"))
    assert callable(broken)
    broken(root)
    with pytest.raises(OperationRefused, match=why):
        Landing((change("a"),)).plan(kept.curator, kept.curator.look())
