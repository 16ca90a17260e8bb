"""Two supervisors' days: what waits on a person is there once, goes when any tool deals with it, in a few keys.

What is there is held against a count of its own, made from the files alone, by nobody's reader but this one.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from helix_tui.core.ddx.attempts.attempt import Attempt, Review
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import WriteGate, find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.store.database import database_path
from helix_tui.core.supervision.decide.need_changes import LandRequest, OpenRequest, kept_change
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.questions import OpenQuestions, read_questions
from helix_tui.core.supervision.stages.delegate import AgentChoice
from helix_tui.core.supervision.stages.landing import Landing
from helix_tui.screens.editing.choices import ChoiceSheet
from helix_tui.screens.loop.loop_screen import LoopScreen
from helix_tui.screens.needs.needs_screen import NeedsScreen
from tests.screens.conftest import Console, MakeConsole
from tests.screens.journal_host import at_rest

pytestmark = pytest.mark.long

STALE, PROPOSALS, LESSONS = 32, 41, 11
ATTEMPTS = {
    "k-land": "20260820T100000-aaaaaaa1",
    "k-conflict": "20260820T110000-aaaaaaa2",
    "k-check": "20260820T120000-aaaaaaa3",
}
GUIDANCE, CONFLICT = "which of the two dates holds?", "k-ask: kept aside; land it, or try again?"


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


@pytest.fixture(scope="module")
def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


# --- the project ------------------------------------------------------------------------------------------


def _rows(dead: int) -> Iterator[dict[str, Any]]:
    claim = {"status": "in_progress", "owner": "worker", "claimed-at": "2026-08-16T08:00:00Z"}
    claim |= {"claimed-pid": str(dead), "claimed-machine": socket.gethostname()}
    for number in range(STALE):
        yield {"id": f"c-{number:02}", "title": f"Claimed and left {number}", "priority": number % 3, **claim}
    for number in range(PROPOSALS):
        yield {"id": f"p-{number:02}", "title": f"Proposed {number}", "status": "proposed"}
    for bead_id in (*ATTEMPTS, "k-ask"):
        yield {"id": bead_id, "title": f"Work of {bead_id}", "status": "open"}
    yield {"id": "d-1", "title": "Wait for what is gone", "dependencies": [_edge("d-1", "gone")]}
    yield {"id": "d-2", "title": "Wait for what was dropped", "dependencies": [_edge("d-2", "d-3")]}
    yield {"id": "d-3", "title": "Dropped", "status": "cancelled"}
    yield {"id": "w-1", "title": "Wait for what is kept", "dependencies": [_edge("w-1", "k-conflict")]}
    yield {"id": "r-1", "title": "Ready"}
    yield {"id": "z-1", "title": "Done", "status": "closed"}


def _edge(waiter: str, on: str) -> dict[str, str]:
    return {"issue_id": waiter, "depends_on_id": on, "type": "blocks"}


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()


def _kept(root: Path, bead_id: str, status: str, base: str, text: str) -> None:
    """A change that an attempt has left at a ref, with the evidence that DDx writes."""
    attempt = ATTEMPTS[bead_id]
    git(root, "checkout", "-q", "-b", bead_id, base)
    (root / f"{'shared' if 'conflict' in bead_id else bead_id}.txt").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", f"work on {bead_id}")
    tip, ref = git(root, "rev-parse", "HEAD"), f"refs/ddx/iterations/{bead_id}/{attempt}"
    git(root, "update-ref", ref, tip)
    git(root, "checkout", "-q", "main")
    git(root, "branch", "-q", "-D", bead_id)
    folder = root / ".ddx" / "executions" / attempt
    folder.mkdir(parents=True)
    result: dict[str, Any] = {"bead_id": bead_id, "attempt_id": attempt, "status": status, "base_rev": base}
    result |= {
        "outcome": "preserved",
        "result_rev": tip,
        "preserve_ref": ref,
        "harness": "claude",
        "model": "sonnet",
        "cost_usd": 1.25,
    }
    result |= {"started_at": "2026-08-20T10:00:00Z", "finished_at": "2026-08-20T10:09:00Z"}
    (folder / "result.json").write_text(json.dumps(result))
    checks = {"results": [{"definition_id": "make test", "status": "fail", "message": "2 of 40 failed"}]}
    (folder / "checks.json").write_text(json.dumps(checks))


@pytest.fixture
def days(console: MakeConsole, dead_pid: int) -> Console:
    """The project after two days without a supervisor, and a console on it."""
    app = console([json.dumps({"priority": 2, "schema_version": 1, **row}) for row in _rows(dead_pid)], look_out="once")
    root = app.root
    (root / ".gitignore").write_text(".ddx/\n.helix/\n")
    (root / "shared.txt").write_text("one\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    base = git(root, "rev-parse", "HEAD")
    _kept(root, "k-land", "preserved_needs_review", base, "landed\n")
    _kept(root, "k-conflict", "land_conflict", base, "theirs\n")
    _kept(root, "k-check", "post_run_check_failed", base, "checked\n")
    (root / "shared.txt").write_text("ours\n")
    git(root, "commit", "-q", "-am", "go on")
    project = find_project(root)
    project.helix_dir.mkdir(exist_ok=True)
    questions = OpenQuestions(project, WriteGate(project, read_only=False))
    questions.ask("guidance", GUIDANCE, key="g", options=("the first", "the second"))
    questions.ask("conflict", CONFLICT, key="c", bead_id="k-ask")
    with open_memory(database_path(project), teacher="person") as memory:
        for number in range(LESSONS):
            lesson = Proposal(
                0,
                f"20260819T1{number % 10}0000-bbbbbb{number:02}",
                f"z-{number}",
                "failure",
                f"the number {number} timetable was empty",
                f"load month {number} first",
                "an attempt failed",
                at="2026-08-19T12:00:00Z",
            )
            assert Proposals(memory).add(lesson) is not None
    return app


# --- the independent count --------------------------------------------------------------------------------


def count(root: Path) -> set[str]:
    """What waits on a person, from the files alone; the keys are those by which *Needs me* calls it."""
    rows, torn = {}, 0
    for line in (root / ".ddx" / "beads.jsonl").read_text().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            torn += 1
            continue
        rows[row["id"]] = row
    found = {"unread_lines:"} if torn else set()
    for name, row in rows.items():
        if row["status" if "status" in row else "id"] == "in_progress" and not _lives(row.get("claimed-pid")):
            found.add(f"orphaned_claim:{name}")
        if row.get("status") == "proposed":
            found.add(f"proposed:{name}")
        if row.get("status", "open") != "open":
            continue
        for edge in row.get("dependencies") or ():
            target = rows.get(edge["depends_on_id"])
            if target is None:
                found.add(f"missing_dependency:{name}")
            elif target.get("status") == "cancelled":
                found.add(f"cancelled_dependency:{name}")
    asked = json.loads((root / ".helix" / "questions.json").read_text())["questions"]
    for each in asked:
        if not each["answered_at"]:
            found.add(f"{each['kind']}:{each['id']}")
    kinds = {"land_conflict": "merge_conflict", "post_run_check_failed": "failing_check"}
    for path in (root / ".ddx" / "executions").glob("*/result.json"):
        result = json.loads(path.read_text())
        row = rows[result["bead_id"]]
        if row.get("status", "open") == "open" and row.get("helix-dropped") != result["attempt_id"]:
            found.add(f"{kinds.get(result['status'], 'kept_aside')}:{row['id']}")
    with closing(sqlite3.connect(root / ".helix" / "helix.db")) as db:
        found |= {f"lesson:{row[0]}" for row in db.execute("SELECT id FROM proposal WHERE state = 'open'")}
    return found


def _lives(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except (OSError, TypeError, ValueError):
        return False
    return True


def keys(app: Console) -> list[str]:
    return [need.key for need in app.needs]


async def look(app: Console, pilot: Pilot[int]) -> None:
    """The feed and the monitor have seen what lies there now."""
    for _ in range(200):  # a change runs in a thread of its own
        await at_rest(pilot)
        if not app.change_runner.pending:
            break
        await pilot.pause(0.02)
    app.feed.look()
    await at_rest(pilot)
    assert sorted(keys(app)) == sorted(count(app.root)), "each thing once, and nothing is missing"


async def opened(app: Console, pilot: Pilot[int], key: str = "") -> None:
    """*Needs me* lies on the screen, with the cursor on a need, whatever is folded."""
    await look(app, pilot)
    if not isinstance(app.screen, NeedsScreen):
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
    screen = app.screen
    assert isinstance(screen, NeedsScreen)
    if key:
        screen._unfolded = {row.group for row in screen._rows.values()}
        screen.show_again()
        assert screen.list.select(key), key
        await at_rest(pilot)


def tear(app: Console) -> None:
    """A line that nobody can read; ddx writes nothing any more then."""
    with (app.root / ".ddx" / "beads.jsonl").open("a") as file:
        file.write('{"id":"torn","title"\n')


SIZE = (140, 44)


async def test_everything_that_waits_is_there_once(days: Console) -> None:
    tear(days)
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot)
        assert len(days.needs) == STALE + PROPOSALS + LESSONS + len(ATTEMPTS) + 2 + 2 + 1
        assert isinstance(days.screen, NeedsScreen)
        headings = {row.group: len(row.needs) for row in days.screen._rows.values() if row.kind == "group"}
        assert headings.items() >= {"questions": 2, "stale claims": 32, "proposals": 41, "lessons": 11}.items()
        assert days.sees(f"{len(days.needs)} need you"), "the status bar counts the same"


async def test_all_stale_claims_are_released_in_four_keys(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await look(days, pilot)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        await pilot.press("J", "c")
        await at_rest(pilot)
        assert days.sees("--unclaim")
        await pilot.press("enter")
        await look(days, pilot)
        assert not [key for key in keys(days) if key.startswith("orphaned_claim")]


@pytest.mark.parametrize(
    ("key", "pressed"),
    [
        ("orphaned_claim:c-07", ("c", "enter")),
        ("proposed:p-03", ("A", "enter")),
        ("proposed:p-04", ("D", "enter")),
        ("lesson:4", ("A", "enter")),
        ("lesson:5", ("D", "enter")),
        ("guidance:q-1", ("enter", "2")),
        ("conflict:q-2", ("enter", "r", "enter")),
        ("kept_aside:k-land", ("M", "enter")),
        ("kept_aside:k-land", ("D", "enter")),
        ("merge_conflict:k-conflict", ("D", "enter")),
        ("failing_check:k-check", ("M", "enter")),
        ("failing_check:k-check", ("D", "enter")),
        ("missing_dependency:d-1", ("d", "enter")),
        ("cancelled_dependency:d-2", ("d", "enter")),
    ],
)
async def test_each_thing_is_dealt_with_in_three_keys(days: Console, key: str, pressed: tuple[str, ...]) -> None:
    assert len(pressed) <= 3
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, key)
        for each in pressed:
            await pilot.press(each)
            await at_rest(pilot)
            await days.workers.wait_for_complete()
            days.change_runner.settle(5)
            await at_rest(pilot)
        await look(days, pilot)
        assert key not in keys(days)
        assert isinstance(days.screen, NeedsScreen), days.rows()


async def test_the_preview_of_a_landing_that_conflicts_promises_nothing_and_says_where(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "merge_conflict:k-conflict")
        await pilot.press("M")
        await at_rest(pilot)
        assert days.sees("conflicts with main in shared.txt"), days.rows()
        assert not days.sees("Undo with u")
        await pilot.press("enter")
        await look(days, pilot)
        assert git(days.root, "status", "--porcelain") == ""
        assert "merge_conflict:k-conflict" in keys(days)


@pytest.fixture
def resolving(days: Console, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make $EDITOR one that runs a line of shell on the file."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(type(days), "suspend", lambda app: nullcontext())

    def by(line: str) -> None:
        editor = days.root.parent / "editor"
        editor.write_text(f"#!/bin/sh\n{line}\n")
        editor.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(editor))

    return by


async def resolved(days: Console, pilot: Pilot[int], sees: str) -> None:
    """``E`` on the conflict, until the screen shows something."""
    await opened(days, pilot, "merge_conflict:k-conflict")
    await pilot.press("E")
    for _ in range(100):
        await pilot.pause(0.02)
        await at_rest(pilot)
        if days.sees(sees):
            return
    raise AssertionError(days.rows())


async def test_a_conflict_is_resolved_in_the_editor(days: Console, resolving: Callable[[str], None]) -> None:
    resolving("printf 'both\\n' > \"$1\"")
    before = git(days.root, "rev-parse", "HEAD")
    async with days.run_test(size=SIZE) as pilot:
        await resolved(days, pilot, "ddx bead close k-conflict")
        assert git(days.root, "rev-parse", "HEAD") == before, "nothing reaches git before enter"
        assert days.sees("git merge --no-ff"), "the preview shows the merge and the closing"
        assert days.sees(f"git reset --keep {before[:12]}"), "and all that undo would do"
        await pilot.press("enter")
        await look(days, pilot)
        assert "merge_conflict:k-conflict" not in keys(days)
        assert (days.root / "shared.txt").read_text() == "both\n"
        assert "Land refs/ddx" in git(days.root, "log", "-1", "--format=%s")
        await pilot.press("u")
        await at_rest(pilot)
        await pilot.press("enter")
        await look(days, pilot)
        assert "merge_conflict:k-conflict" in keys(days)
        assert git(days.root, "rev-parse", "HEAD") == before


async def test_leaving_the_preview_of_a_resolution_changes_nothing_and_keeps_the_edits(
    days: Console, resolving: Callable[[str], None], tmp_path: Path
) -> None:
    resolving("printf 'both\\n' > \"$1\"")
    objects = git(days.root, "count-objects", "-v")
    async with days.run_test(size=SIZE) as pilot:
        await resolved(days, pilot, "ddx bead close k-conflict")
        await pilot.press("escape")
        await look(days, pilot)
        assert "merge_conflict:k-conflict" in keys(days)
        assert days.snapshot.journal.entries == ()
    assert git(days.root, "count-objects", "-v") == objects
    assert git(days.root, "status", "--porcelain") == ""
    assert _put_aside(tmp_path) == ["both\n"]


async def test_an_unfinished_resolution_changes_nothing_and_keeps_the_edits(
    days: Console, resolving: Callable[[str], None], tmp_path: Path
) -> None:
    resolving("printf 'half done\\n' >> \"$1\"")
    async with days.run_test(size=SIZE) as pilot:
        await resolved(days, pilot, "still has conflict markers in shared.txt")
        assert days.sees("helix-merge-"), days.rows()
        await pilot.press("escape")
        await look(days, pilot)
        assert "merge_conflict:k-conflict" in keys(days)
    assert git(days.root, "status", "--porcelain") == ""
    assert (days.root / "shared.txt").read_text() == "ours\n"
    (kept,) = _put_aside(tmp_path)
    assert "half done" in kept


def _put_aside(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("helix-merge-*/shared.txt")]


# --- any tool ---------------------------------------------------------------------------------------------


def _tracker(*words: str) -> Callable[[Console], None]:
    def do(app: Console) -> None:
        argv = [sys.executable, "-m", "helix_ddx", "bead", *words]
        subprocess.run(argv, cwd=app.root, check=True, capture_output=True)

    return do


def _ours(*words: str) -> Callable[[Console], None]:
    def do(app: Console) -> None:
        argv = [sys.executable, "-m", "helix_tui", *words, "-C", str(app.root)]
        subprocess.run(argv, check=True, capture_output=True)

    return do


def _by_hand(app: Console) -> None:
    git(app.root, "merge", "-q", "--no-ff", "-m", "by hand", f"refs/ddx/iterations/k-land/{ATTEMPTS['k-land']}")
    _tracker("close", "k-land")(app)


def _in_an_editor(app: Console) -> None:
    tracker = app.root / ".ddx" / "beads.jsonl"
    tracker.write_text("".join(line for line in tracker.read_text().splitlines(True) if '"torn"' not in line))


@pytest.mark.parametrize(
    ("key", "deal"),
    [
        ("orphaned_claim:c-07", _ours("unclaim", "c-07")),
        ("proposed:p-03", _ours("set", "p-03", "status=open")),
        ("lesson:4", _ours("memory", "proposals", "decline", "4")),
        ("guidance:q-1", _ours("input", "--answer", "q-1", "the first")),
        ("conflict:q-2", _ours("input", "--answer", "q-2", "land it")),
        ("kept_aside:k-land", _by_hand),
        ("failing_check:k-check", _ours("set", "k-check", f"helix-dropped={ATTEMPTS['k-check']}")),
        ("missing_dependency:d-1", _ours("dep", "remove", "d-1", "gone")),
        ("unread_lines:", _in_an_editor),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_another_tool_has_dealt_with_is_gone(
    days: Console, key: str, deal: Callable[[Console], None]
) -> None:
    if key == "unread_lines:":
        tear(days)
    async with days.run_test(size=SIZE) as pilot:
        await look(days, pilot)
        assert key in keys(days)
        deal(days)
        await look(days, pilot)
        assert key not in keys(days)


# --- many, later, and back --------------------------------------------------------------------------------


async def test_marks_lead_many_to_one_change(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "proposed:p-10")
        await pilot.press("space", "space", "space", "A")
        await at_rest(pilot)
        await pilot.press("enter")
        await look(days, pilot)
        assert sum(key.startswith("proposed") for key in keys(days)) == PROPOSALS - 3
        screen = days.screen
        assert isinstance(screen, NeedsScreen)
        assert screen.marked == frozenset(), "the marks of what was done are gone"


async def test_all_lessons_are_declined_together_and_come_back_by_undo(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot)
        screen = days.screen
        assert isinstance(screen, NeedsScreen)
        assert screen.list.select("group:lessons")
        await pilot.press("D")
        await at_rest(pilot)
        await pilot.press("enter")
        await at_rest(pilot)
        await look(days, pilot)
        assert not [key for key in keys(days) if key.startswith("lesson")]
        await pilot.press("u")
        await at_rest(pilot)
        await look(days, pilot)
        assert sum(key.startswith("lesson") for key in keys(days)) == LESSONS


async def test_an_answer_is_undone_and_the_question_waits_again(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "conflict:q-2")
        await pilot.press("enter")
        await at_rest(pilot)
        assert days.sees("k-ask: kept aside; land it"), "the whole question"
        await pilot.press("r")
        await at_rest(pilot)
        await pilot.press("enter")
        await look(days, pilot)
        assert "conflict:q-2" not in keys(days)
        await pilot.press("u")
        await at_rest(pilot)
        await pilot.press("enter")
        await look(days, pilot)
        assert "conflict:q-2" in keys(days)
        assert not [question for question in read_questions(days.root / ".helix/questions.json") if question.answered]


async def test_what_is_snoozed_is_apart_and_undo_brings_it_back(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "kept_aside:k-land")
        before = len(days.needs)
        await pilot.press("Z", "1")
        await at_rest(pilot)
        assert [need.key for need in days.snoozed] == ["kept_aside:k-land"]
        assert len(days.needs) == before - 1
        assert isinstance(days.screen, NeedsScreen)
        assert len(days.screen._rows["group:snoozed"].needs) == 1
        assert days.sees(f"{before - 1} need you")
        for key, left in (("u", 0), ("U", 1), ("u", 0), ("U", 1)):
            await pilot.press(key)
            await at_rest(pilot)
            assert (len(days.needs), len(days.snoozed)) == (before - left, left), key


async def test_what_is_brought_back_is_snoozed_again_by_undo(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "kept_aside:k-land")
        await pilot.press("Z", "2")
        await at_rest(pilot)
        until = (days.root / ".helix/snoozed.json").read_bytes()
        assert isinstance(days.screen, NeedsScreen)
        days.screen.list.select("group:snoozed")
        await pilot.press("Z")
        await at_rest(pilot)
        assert days.snoozed == ()
        await pilot.press("u")
        await at_rest(pilot)
        assert (days.root / ".helix/snoozed.json").read_bytes() == until
        await pilot.press("u")
        await at_rest(pilot)
        assert days.snoozed == ()


async def test_the_evidence_of_a_question_lies_beside_its_choices(days: Console) -> None:
    project = find_project(days.root)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask(
        "conflict", "land k-check?", key="e", bead_id="k-check"
    )
    async with days.run_test(size=(140, 60)) as pilot:
        days.feed.look()
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        screen = days.screen
        assert isinstance(screen, NeedsScreen)
        assert screen.list.select("conflict:q-3")
        await pilot.press("enter")
        await days.workers.wait_for_complete()
        await at_rest(pilot)
        for words in (
            "land k-check?",
            "Work of k-check",
            "retry",
            "land",
            "drop",
            "edit",
            "2 of 40 failed",
            "+checked",
        ):
            assert days.sees(words), (words, days.rows())


async def test_a_question_about_a_kept_change_drops_it_in_two_keys(days: Console) -> None:
    project = find_project(days.root)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask(
        "conflict", "land k-check?", key="e", bead_id="k-check"
    )
    async with days.run_test(size=SIZE) as pilot:
        days.feed.look()
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        assert isinstance(days.screen, NeedsScreen)
        assert days.screen.list.select("conflict:q-3")
        await pilot.press("D")
        await at_rest(pilot)
        assert days.sees("Answer q-3: drop"), "what it writes is shown first"
        await pilot.press("enter")
        await at_rest(pilot)
        await days.workers.wait_for_complete()
        days.change_runner.settle(5)
        await at_rest(pilot)
        days.feed.look()
        await at_rest(pilot)
        assert not [key for key in keys(days) if key.endswith("k-check") or key == "conflict:q-3"]


async def test_the_row_of_an_attempt_leads_to_its_diff_the_one_before_and_the_editor(
    days: Console, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" > {seen}\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("textual.app.App.suspend", lambda self: nullcontext())
    async with days.run_test(size=SIZE) as pilot:
        for key, tab in (("right_square_bracket", "diff"), ("left_square_bracket", "compare")):
            await opened(days, pilot, "merge_conflict:k-conflict")
            await pilot.press(key)
            await at_rest(pilot)
            screen = days.screen
            assert isinstance(screen, LoopScreen)
            assert screen.view.current == tab
            assert screen.view.subject is not None
            assert screen.view.subject.attempt.attempt_id == ATTEMPTS["k-conflict"]
        await opened(days, pilot, "merge_conflict:k-conflict")
        await pilot.press("ctrl+e")
        await days.workers.wait_for_complete()
        await at_rest(pilot)
        assert seen.read_text().strip() == str(days.root / "shared.txt")
        assert isinstance(days.screen, NeedsScreen)


async def test_what_is_assigned_says_to_whom_and_is_found_by_it(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "proposed:p-20")
        await pilot.press("at", "t", *"anna", "enter")
        await at_rest(pilot)
        await pilot.press("enter")
        await look(days, pilot)
        assert {need.key: need.assigned for need in days.needs if need.assigned} == {"proposed:p-20": "anna"}
        await pilot.press("slash", *"assigned:anna", "enter")
        await at_rest(pilot)
        assert days.sees("1 of "), days.rows()
        assert days.sees("anna")
        assert [row.needs[0].key for row in _rows_of(days) if row.kind == "need"] == ["proposed:p-20"]


async def test_of_several_kept_changes_those_that_can_land_and_one_undo_takes_them_back(days: Console) -> None:
    before = git(days.root, "rev-parse", "HEAD")
    marked = {"kept_aside:k-land", "failing_check:k-check", "merge_conflict:k-conflict"}
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "kept_aside:k-land")
        screen = days.screen
        assert isinstance(screen, NeedsScreen)
        screen.mark(frozenset(marked))
        await pilot.press("M")
        await at_rest(pilot)
        assert days.sees("git merge --no-ff"), days.rows()
        assert days.sees("Land 2 of 3 kept changes")
        assert days.sees("conflicts with main in shared.txt")
        assert git(days.root, "rev-parse", "HEAD") == before, "only shown so far"
        await pilot.press("enter")
        await look(days, pilot)
        assert marked & set(keys(days)) == {"merge_conflict:k-conflict"}
        assert git(days.root, "log", "--oneline").count("Land refs/ddx") == 2
        assert (days.root / "k-land.txt").read_text() == "landed\n"
        assert len(days.snapshot.journal.entries) == 1
        await pilot.press("u")
        await at_rest(pilot)
        assert days.sees("2 reopened again"), days.rows()
        await pilot.press("enter")
        await look(days, pilot)
        assert marked <= set(keys(days))
        assert git(days.root, "rev-parse", "HEAD") == before


@pytest.mark.parametrize("held", ["", "a commit since", "another branch", "a change not committed"])
async def test_undoing_a_landing_takes_the_merge_out_where_nothing_else_has_it(days: Console, held: str) -> None:
    before = git(days.root, "rev-parse", "HEAD")

    async def turned(pilot: Pilot[int], key: str, expected: str) -> None:
        await pilot.press(key)
        await at_rest(pilot)
        assert days.sees(expected), days.rows()
        await pilot.press("enter")
        await look(days, pilot)

    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "kept_aside:k-land")
        await turned(pilot, "M", "git removes the merge from the branch")
        merge = git(days.root, "rev-parse", "HEAD")
        assert merge != before
        if held == "a commit since":
            git(days.root, "commit", "-q", "--allow-empty", "-m", "more")
        elif held == "another branch":
            git(days.root, "branch", "other")
        elif held:
            tracked = git(days.root, "ls-files").split()[0]
            (days.root / tracked).write_text("changed\n")
        head = git(days.root, "rev-parse", "HEAD")
        await turned(pilot, "u", "stays as it is" if held else "git reset --keep")
        assert "kept_aside:k-land" in keys(days)
        assert git(days.root, "rev-parse", "HEAD") == (head if held else before)
        if not held:
            await turned(pilot, "U", "git merge --ff-only")
            assert git(days.root, "rev-parse", "HEAD") == merge
            assert "kept_aside:k-land" not in keys(days)


async def test_enter_in_the_sheet_of_a_retry_takes_the_first_model_not_the_words_above_it(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "failing_check:k-check")
        await pilot.press("R")
        await at_rest(pilot)
        sheet = days.screen
        assert isinstance(sheet, ChoiceSheet)
        assert sheet.list.selected_key == f"choice:{sheet.choices[0].label}"
        assert days.sees("Which model retries “Work of k-check”?")
        assert days.sees("claude sonnet"), "the model of the attempts so far"
        assert days.sees("0 of 3 attempts landed")


async def test_another_model_is_tried_with_the_harness_of_the_attempts_so_far(
    days: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[Any, ...]] = []
    monkeypatch.setattr(days.loop_controls, "run_beads", lambda *given: tried.append(given))
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "failing_check:k-check")
        for key in ("R", "t", *"opus", "enter"):
            await pilot.press(key)
            await at_rest(pilot)
        assert tried == [], "its change is kept aside: ddx may land that"
        assert days.sees("Attempt “Work of k-check” again?")
        await pilot.press("y")
        await at_rest(pilot)
    assert tried == [(("k-check",), AgentChoice("claude", "opus"), [])]


async def test_a_lesson_stands_once_in_its_row_beside_the_title_of_its_bead(days: Console) -> None:
    async with days.run_test(size=SIZE) as pilot:
        await opened(days, pilot, "lesson:2")
        need = next(need for need in days.needs if need.key == "lesson:2")
        assert need.bead_id, "it is about a bead of the queue"
        row = next(line for line in days.rows() if need.reason[:30] in line)
        assert row.count(need.reason[:30]) == 1
        assert days.snapshot.queue.beads[need.bead_id].title in row


def _rows_of(app: Console) -> list[Any]:
    assert isinstance(app.screen, NeedsScreen)
    return list(app.screen._rows.values())


def test_a_landing_says_what_review_refused(days: Console) -> None:
    attempt = Attempt("a", "k-land", status="repair-cycle-exhausted", review=Review("BLOCK", "one word too many"))
    attempt = replace(attempt, preserve_ref=f"refs/ddx/iterations/k-land/{ATTEMPTS['k-land']}")
    change = kept_change(Need("refused", "k-land", "", 0), attempt)
    curator = Curator(find_project(days.root), lambda: find_executable(find_project(days.root), None))
    notes = LandRequest(Landing((change,))).plan(curator, curator.look()).notes
    assert notes[0] == "review refused this change of k-land (BLOCK: one word too many)"


def test_opening_a_parked_bead_says_what_a_worker_would_land_of_it(days: Console) -> None:
    attempt = Attempt("a", "p-20", status="repair-cycle-exhausted", result_rev="c" * 40, review=Review("BLOCK"))
    asked = (operations.SetFields("p-20", {"status": "open"}),)
    project = find_project(days.root)
    curator = Curator(project, lambda: find_executable(project, None), who="human")
    note = OpenRequest(asked, kept=(attempt,)).plan(curator, curator.look()).notes[0]
    assert note.startswith(
        "review refused this change of p-20 (BLOCK): once the bead is open a worker lands cccccccccccc"
    )
    assert f"tracker update p-20 --reject-preserved {'c' * 40}" in note
