"""Where a bead that left the tracker was last seen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from helix_tui.core.ddx import git_state
from helix_tui.core.ddx.git_state import BeadHistory, uncommitted
from helix_tui.core.ground.project import find_project
from tests.conftest import ProjectFactory


def row(bead_id: str, status: str) -> str:
    bead = {"id": bead_id, "status": status, "title": bead_id.upper(), "updated_at": "2026-08-01T00:00:00Z"}
    return json.dumps(bead, sort_keys=True, separators=(",", ":")) + "\n"


def commit(root: Path, text: str) -> str:
    (root / ".ddx" / "beads.jsonl").write_text(text)
    for words in (("commit", "-q", "-am", "tracker"), ("rev-parse", "HEAD")):
        done = subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_that_took_a_bead_out_tells_its_last_state(project: ProjectFactory) -> None:
    root = project([row("a-1", "open").strip(), row("a-2", "open").strip()], git=True)
    commit(root, row("a-1", "closed") + row("a-2", "open"))
    gone = commit(root, row("a-2", "open"))
    history = BeadHistory(find_project(root, env={}))
    seen = history.last_seen("a-1")
    assert seen is not None
    assert (seen.where, seen.status, seen.title, seen.rev, seen.closed) == (
        "git",
        "closed",
        "A-1",
        gone,
        True,
    )
    assert seen.when is not None
    assert history.last_seen("a-9") is None
    assert history.last_seen("a-1") is seen, "looked up once"


def test_the_archive_is_asked_first_and_again_when_it_changes(project: ProjectFactory) -> None:
    root = project([], git=True)
    history = BeadHistory(find_project(root, env={}))
    assert history.last_seen("a-1") is None
    archive = root / ".ddx" / "beads-archive.jsonl"
    archive.write_text(row("a-10", "closed") + row("a-1", "open") + "{half\n" + row("a-1", "cancelled"))
    seen = history.last_seen("a-1")
    assert seen is not None
    assert (seen.where, seen.status, seen.closed) == ("archive", "cancelled", False)


def test_without_git_and_for_strange_ids_nothing_is_known(project: ProjectFactory) -> None:
    history = BeadHistory(find_project(project([]), env={}))
    for bead_id in ("a-1", "", "a\n1", "--all", "$(x)"):
        assert history.last_seen(bead_id) is None


def test_a_name_that_the_cap_cuts_is_not_listed(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project([], git=True)
    for name in ("one.txt", "three.txt", "two.txt"):
        (root / name).touch()
    assert uncommitted(root) == ("one.txt", "three.txt", "two.txt")
    # "?? one.txt" with its NUL is 11 bytes, and 8 more are a part of the next
    monkeypatch.setattr(git_state, "_CAP", 19)
    assert uncommitted(root) == ("one.txt",)
