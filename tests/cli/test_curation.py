"""Curation from the command line: what it prints, what it exits with, what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import row

pytestmark = pytest.mark.long

ROWS = [
    row("demo-a1", priority=1, labels=["helix"]),
    row("demo-b2", "demo-a1"),
    row("demo-c3", issue_type="epic"),
    row("demo-d4", parent="demo-c3"),
    row("demo-e5", status="closed"),
]


@pytest.fixture(autouse=True)
def _no_ddx(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ddx on PATH: the embedded tracker writes."""
    monkeypatch.setenv("PATH", os.defpath)


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    return project([json.dumps(each, sort_keys=True, separators=(",", ":")) for each in ROWS], git=True)


def rows_in(root: Path) -> dict[str, dict[str, Any]]:
    lines = (root / ".ddx" / "beads.jsonl").read_text("utf-8").split("\n")
    return {each["id"]: each for each in (json.loads(line) for line in lines if line)}


def test_a_dry_run_tells_and_changes_nothing(cli: Cli, root: Path) -> None:
    before = (root / ".ddx" / "beads.jsonl").read_bytes()
    ran = cli("close", "a1", "--dry-run", "-C", root)
    assert ran.code == 0
    assert ran.out.startswith("ddx bead close demo-a1\n")
    assert "would become ready: demo-b2" in ran.out
    assert "undo would run:\n  ddx bead reopen demo-a1 --reason 'undo in helix-tui'\n" in ran.out
    assert "nothing was changed" in ran.out
    document = cli("eligible", "a1", "off", "--dry-run", "--json", "-C", root).document
    assert document["schema"] == "eligible/1"
    assert document["commands"] == [["ddx", "bead", "update", "demo-a1", "--set", "execution-eligible=false"]]
    assert document["inverse"] == [["ddx", "bead", "update", "demo-a1", "--unset", "execution-eligible"]]
    assert document["newly_blocked"] == ["demo-a1"]
    assert document["orphaned"][0]["bead_id"] == "demo-b2"
    assert (document["before"], document["after"]) == (
        {"demo-a1": {"execution-eligible": None}},
        {"demo-a1": {"execution-eligible": False}},
    )
    assert document["journal_id"] is None
    assert (root / ".ddx" / "beads.jsonl").read_bytes() == before
    assert not (root / ".helix").exists()


def test_a_change_prints_its_command_and_goes_back(cli: Cli, root: Path) -> None:
    document = cli("close", "demo-a1", "--json", "-C", root).document
    assert document["newly_ready"] == ["demo-b2"]
    assert document["after"] == {"demo-a1": {"status": "closed"}}
    assert document["journal_id"] == "op-1"
    assert rows_in(root)["demo-a1"]["status"] == "closed"
    undone = cli("undo", "--json", "-C", root).document
    assert undone["operations"][0]["of"] == "op-1"
    assert rows_in(root)["demo-a1"]["status"] == "open"
    redone = cli("redo", "-C", root)
    assert redone.code == 0
    assert rows_in(root)["demo-a1"]["status"] == "closed"
    assert "nothing to redo" in cli("redo", "-C", root).out


def test_fields_are_set_and_unset(cli: Cli, root: Path) -> None:
    ran = cli("set", "a1", "priority=0", "title=New title", "spec-id=S-1", "status=in_progress", "-C", root)
    assert ran.code == 0
    assert "--title 'New title'" in ran.out
    changed = rows_in(root)["demo-a1"]
    assert (changed["priority"], changed["title"], changed["spec-id"], changed["status"]) == (
        0,
        "New title",
        "S-1",
        "in_progress",
    )
    assert cli("unset", "a1", "spec-id", "-C", root).code == 0
    assert "spec-id" not in rows_in(root)["demo-a1"]
    assert cli("undo", "9", "-C", root).code == 0
    assert rows_in(root)["demo-a1"]["title"] == "Title of demo-a1"


def test_edges_labels_supersession_and_rank(cli: Cli, root: Path) -> None:
    assert cli("dep", "add", "d4", "a1", "-C", root).code == 0
    assert cli("dep", "remove", "b2", "a1", "-C", root).code == 0
    assert cli("label", "a1", "--add", "x", "--remove", "helix", "-C", root).code == 0
    assert cli("supersede", "b2", "d4", "-C", root).code == 0
    assert cli("rank", "d4", "--top", "-C", root).code == 0
    rows = rows_in(root)
    assert rows["demo-d4"]["dependencies"][0]["depends_on_id"] == "demo-a1"
    assert "dependencies" not in rows["demo-b2"]
    assert rows["demo-a1"]["labels"] == ["x"]
    assert rows["demo-b2"]["superseded-by"] == "demo-d4"
    assert rows["demo-d4"]["queue-rank"] == 0
    assert cli("supersede", "b2", "--off", "-C", root).code == 0
    assert "superseded-by" not in rows_in(root)["demo-b2"]


def test_several_beads_are_one_change(cli: Cli, root: Path) -> None:
    document = cli("eligible", "a1", "b2", "d4", "off", "--json", "-C", root).document
    assert len(document["commands"]) == 3
    assert cli("undo", "-C", root).code == 0
    assert not any("execution-eligible" in each for each in rows_in(root).values())


def test_what_does_not_hold_exits_1_with_a_sentence(cli: Cli, root: Path) -> None:
    ran = cli("close", "b2", "a1", "-C", root)
    assert ran.code == 1
    assert "waits on demo-a1" in ran.err
    assert cli("close", "", "-C", root).code == 2
    assert rows_in(root)["demo-a1"]["status"] == "closed"
    document = cli("cancel", "e5", "--json", "-C", root)
    assert document.code == 1
    assert "reopen it first" in document.document["refused"][0]["why"]
    assert cli("close", "nobody", "-C", root).code == 1
    assert "matches 5 beads" in cli("close", "demo-", "-C", root).err
    for words in (
        ("set", "a1"),
        ("label", "a1"),
        ("supersede", "a1"),
        ("focus", "c3", "--off"),
        ("undo", "0"),
    ):
        assert cli(*words, "-C", root).code == 2


def test_read_only_is_refused_in_one_sentence(cli: Cli, root: Path) -> None:
    before = (root / ".ddx" / "beads.jsonl").read_bytes()
    for words in (
        ("close", "a1"),
        ("set", "a1", "priority=0"),
        ("create", "x", "--no-triage"),
        ("focus", "c3"),
        ("undo",),
        ("redo",),
        ("install-hooks",),
    ):
        ran = cli("--read-only", *words, "-C", root)
        assert ran.code == 1
        assert "started with --read-only" in ran.err
    assert (root / ".ddx" / "beads.jsonl").read_bytes() == before
    assert not (root / ".helix").exists()
    assert cli("--read-only", "close", "a1", "--dry-run", "-C", root).code == 0


def test_a_ddx_that_was_asked_for_and_is_not_there_exits_127(cli: Cli, root: Path, tmp_path: Path) -> None:
    ran = cli("close", "a1", "--ddx", tmp_path / "none", "-C", root)
    assert ran.code == 127
    assert "--ddx or DDX_BIN" in ran.err
    assert rows_in(root)["demo-a1"]["status"] == "open"


def test_create_asks_the_authoring_rules(cli: Cli, root: Path) -> None:
    good = ["--labels", "helix,phase:build,kind:x", "--spec-id", "S-1"]
    vague = cli("create", "New", *good, "--acceptance", "it works", "-C", root)
    assert vague.code == 1
    assert "--allow-vague" in vague.err
    missing = cli("create", "New", "-C", root)
    assert missing.code == 1
    assert "spec-id required for a task" in missing.err
    assert len(rows_in(root)) == 5
    made = cli("create", "New", *good, "--acceptance", "`pytest` passes", "--depends-on", "a1", "--json", "-C", root)
    assert made.code == 0
    (bead_id,) = made.document["created"]
    new = rows_in(root)[bead_id]
    assert (new["priority"], new["spec-id"], new["acceptance"]) == (2, "S-1", "`pytest` passes")
    assert cli("create", "Loose", *good, "--acceptance", "it works", "--allow-vague", "-C", root).code == 0
    assert cli("create", "Bare", "--no-triage", "--priority", "4", "-C", root).code == 0


def test_focus_holds_back_and_gives_back(cli: Cli, root: Path) -> None:
    before = {k: {n: v for n, v in each.items() if n != "updated_at"} for k, each in rows_in(root).items()}
    assert "no focus" in cli("focus", "-C", root).out
    document = cli("focus", "c3", "--json", "-C", root).document
    assert sorted(document["newly_blocked"]) == ["demo-a1"]
    shown = cli("focus", "--json", "-C", root).document
    assert (shown["epic"], sorted(shown["held"])) == ("demo-c3", ["demo-a1", "demo-b2"])
    assert cli("create", "Later", "--no-triage", "-C", root).code == 0
    assert cli("focus", "--reconcile", "-C", root).code == 0
    assert len(cli("focus", "--json", "-C", root).document["held"]) == 3
    assert cli("focus", "--off", "-C", root).code == 0
    after = {k: {n: v for n, v in each.items() if n != "updated_at"} for k, each in rows_in(root).items()}
    assert {bead_id: each for bead_id, each in after.items() if bead_id in before} == before


def test_a_conflict_shows_both_versions(cli: Cli, root: Path) -> None:
    cli("set", "a1", "priority=3", "-C", root)
    tracker = root / ".ddx" / "beads.jsonl"
    tracker.write_text(tracker.read_text().replace('"priority":3', '"priority":4'))
    ran = cli("undo", "-C", root)
    assert ran.code == 1
    assert "priority was 3 and is 4 now" in ran.err
    document = cli("undo", "--json", "-C", root).document
    assert document["conflicts"] == [{"bead_id": "demo-a1", "field": "priority", "expected": 3, "found": 4}]
    assert document["operations"] == []
    told = cli("undo", "--dry-run", "--json", "-C", root).document
    assert told["operations"][0]["conflicts"]
    assert rows_in(root)["demo-a1"]["priority"] == 4
    tracker.write_text(tracker.read_text().replace('"priority":4', '"priority":3'))
    assert cli("undo", "op-1", "-C", root).code == 0
    assert cli("undo", "none", "-C", root).code == 2


def test_cancelling_says_what_then_waits_for_ever(cli: Cli, root: Path) -> None:
    said = cli("cancel", "a1", "--dry-run", "-C", root).out
    assert "demo-b2 waits on it and never becomes ready" in said


def test_the_journal_tells_who_what_and_the_way_back(cli: Cli, root: Path) -> None:
    assert "no changes made with helix-tui yet" in cli("journal", "-C", root).out
    cli("set", "a1", "priority=3", "-C", root)
    cli("cancel", "d4", "-C", root)
    newest, oldest = cli("journal", "--json", "-C", root).document["operations"]
    assert (newest["kind"], newest["undoable"]) == ("cancel", False)
    assert "stays cancelled" in newest["why_not"]
    assert oldest["inverse"] == [["ddx", "bead", "update", "demo-a1", "--priority", "1"]]
    assert oldest["who"]["kind"] == "cli"
    text = cli("journal", "op-1", "-C", root).out
    assert "priority: 1 → 3" in text
    assert cli("journal", "op-9", "-C", root).code == 1
    ran = cli("undo", "-C", root)
    assert ran.code == 1
    assert "stays cancelled" in ran.err
    assert cli("undo", "--id", "op-1", "-C", root).code == 0
    assert rows_in(root)["demo-a1"]["priority"] == 1


def test_a_restore_goes_back_to_a_point(cli: Cli, root: Path) -> None:
    for level in (2, 3, 4):
        cli("set", "a1", f"priority={level}", "-C", root)
    told = cli("undo", "--to", "op-1", "--dry-run", "--json", "-C", root).document
    assert [each["journal_id"] for each in told["operations"]] == ["op-5", "op-3"]
    assert cli("undo", "--to", "op-1", "-C", root).code == 0
    assert rows_in(root)["demo-a1"]["priority"] == 2


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a helix-tui on PATH that is the one under test."""
    folder.mkdir()
    own = folder / "helix-tui"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m helix_tui "$@"\n')
    own.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_hook_is_installed_and_asked(cli: Cli, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(tmp_path / "bin", monkeypatch)
    first = cli("install-hooks", "--json", "-C", root).document
    assert first["changed"] is True
    assert cli("install-hooks", "--json", "-C", root).document["changed"] is False
    assert cli("create", "Bare", "--no-triage", "-C", root).code == 0, "our own hook is passed over too"
    ran = cli("tracker", "-C", str(root), "create", "Bare")
    assert ran.code == 1
    assert "missing required label" in ran.err
    ruled = ("--labels", "helix,phase:build", "--set", "spec-id=F-1", "--acceptance", "`true` exits 0")
    ran = cli("create", "Ruled", *ruled, "-C", root)
    assert (ran.code, ran.err.count("consider adding a kind label")) == (0, 1), (
        "what the command finds, the hook does not say again"
    )
    again = cli("install-hooks", "--dry-run", "-C", root)
    assert "nothing would change: already installed" in again.out
    hook = root / ".ddx" / "hooks" / "validate-bead-create"
    assert cli("install-hooks", "--remove", "--dry-run", "-C", root).code == 0
    assert hook.exists()
    assert cli("install-hooks", "--remove", "--json", "-C", root).document["changed"] is True
    assert not hook.exists()
    assert cli("install-hooks", "--remove", "--json", "-C", root).document["changed"] is False
    for folder in (False, True):
        hook.mkdir() if folder else hook.symlink_to("nowhere")
        for words in ([], ["--remove"]):
            assert "not ours" in cli("install-hooks", *words, "-C", root).err
            assert "not ours" in cli("install-hooks", "--dry-run", *words, "-C", root).err
        hook.rmdir() if folder else hook.unlink()
    hook.write_text("#!/bin/sh\n")
    assert "not ours" in cli("install-hooks", "--remove", "-C", root).err
    foreign = cli("install-hooks", "-C", root)
    assert foreign.code == 1
    assert "not ours" in foreign.err


@pytest.mark.parametrize("words", [(), ("--claude",)])
def test_what_is_installed_names_no_path_and_asks_to_be_committed(
    cli: Cli, project: ProjectFactory, words: tuple[str, ...]
) -> None:
    here = project([], git=True)
    ran = cli("install-hooks", *words, "-C", here)
    file = ".claude/settings.json" if words else ".ddx/hooks/validate-bead-create"
    assert f"git add -A -- {file} && git commit -m" in ran.err
    text = (here / file).read_text()
    assert sys.prefix not in text
    assert str(here) not in text
    assert " helix-tui " in text or '"helix-tui ' in text
    (here / "mine.txt").write_text("staged by a person")
    git(here, "add", "mine.txt")
    done = cli("install-hooks", *words, "--commit", "--json", "-C", here).document
    assert done["uncommitted"] is False
    assert git(here, "show", "--name-only", "--format=%H", done["commit"]).split() == [done["commit"], file]
    assert git(here, "status", "--porcelain") == "A  mine.txt"
    assert "git commit" not in cli("install-hooks", *words, "-C", here).err
    assert "git commit" in cli("install-hooks", *words, "--remove", "-C", here).err


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.rstrip()


def test_hostile_text_stays_text(cli: Cli, root: Path) -> None:
    ran = cli("set", "a1", "title=\x1b[31mred\x1b[0m; rm -rf / $(x)", "-C", root)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert rows_in(root)["demo-a1"]["title"] == "\x1b[31mred\x1b[0m; rm -rf / $(x)"
    assert "\x1b" not in cli("journal", "op-1", "-C", root).out
