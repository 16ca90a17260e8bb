"""The loop screen on recorded runs, step by step: what runs, what it does, what a kill leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot

from helix_tui.core.ddx.runs.transcript_events import read_event
from helix_tui.core.ground.time import NS
from tests.core.ddx.replay import Replay, Step
from tests.screens.loop_host import Attempts, LoopConsole, open_loop, settled

pytestmark = [pytest.mark.realtime, pytest.mark.long]

RECORDED = Path(__file__).resolve().parents[1] / "data" / "ddx"


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


async def play(pilot: Pilot[int], app: LoopConsole, replay: Replay, step: Step) -> None:
    """Let the console see one step, with everything that it reads because of it."""
    app.feed.now = replay.now(step.t)
    app.feed.look()
    await pilot.pause()
    app.loop.show_detail()
    app.loop.stream.look()
    app.loop.view.look()
    await app.workers.wait_for_complete()
    await pilot.pause()


def is_transcript(path: Path) -> bool:
    return path.parent.name == "embedded" and path.suffix == ".jsonl"


def is_told(path: Path) -> bool:
    """Whether a step changes what the screen tells of the attempt, and is worth a look of its own."""
    return is_transcript(path) or "run-state" in path.parts or path.name == "result.json"


async def test_no_line_of_a_transcript_is_lost_or_doubled_when_its_file_moves(tmp_path: Path) -> None:
    replay = Replay(RECORDED / "head-success.jsonl", tmp_path)
    app = open_loop(replay.project, replay.env)
    actions: set[str] = set()
    places: set[Path] = set()
    async with app.run_test(size=(140, 40)) as pilot:
        for step in replay.steps():
            if is_transcript(step.path):
                places.add(step.path.parent)
            if not is_told(step.path):
                continue
            await play(pilot, app, replay, step)
            if app.loop.list.board.runs and not app.loop.view.transcript.has_focus:
                await pilot.press("enter")
            for view in app.loop.list.board.runs:
                actions.update(f"{action.name} {action.target}" for action in view.actions)
        app.feed.look()
        await settled(pilot)
        assert len(places) == 2, "this recording moves the transcript from the clone to the project"
        assert app.loop.view.current == "transcript"
        shown = app.loop.view.transcript.script.events
        final = next(iter((replay.project / ".ddx" / "executions").glob("*/embedded/agent-*.jsonl")))
        written = [read_event(line) for line in final.read_bytes().split(b"\n") if line]
        wanted = Counter((event.at, event.type, event.seq) for event in written)
        found = Counter((event.at, event.type, event.seq) for event in shown)
        assert {key: found[key] for key in wanted} == dict(wanted)
        assert max(found.values()) == 1
        assert [event.at for event in shown if event.at] == sorted(event.at for event in shown if event.at)
        assert any(action.startswith(("Edit ", "Write ", "Bash ")) for action in actions)
        assert app.sees("✓ ")
        assert app.loop.list.selected_attempt is not None


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait(10)
    return process.pid


async def test_a_killed_worker_is_gone_and_says_why(tmp_path: Path, dead_pid: int) -> None:
    replay = Replay(RECORDED / "head-killed.jsonl", tmp_path, pid=dead_pid)
    last = replay.run()
    app = open_loop(replay.project, replay.env)
    app.feed.now = replay.now(last)
    async with app.run_test(size=(140, 40)) as pilot:
        app.feed.look()
        await settled(pilot)
        assert app.sees("worker dead: process")
        assert app.sees("1 dead")
        assert app.loop.view.current == "evidence"
        assert app.pane_says("not running: its worker is dead")


async def test_many_workers_that_are_gone_do_not_bury_the_attempts(tmp_path: Path, dead_pid: int) -> None:
    replay = Replay(RECORDED / "head-killed.jsonl", tmp_path, pid=dead_pid)
    last = replay.run()
    for number in range(8):
        state = {
            "bead_id": f"old-{number}",
            "attempt_id": f"20260101T00000{number}-0000000{number}",
            "pid": dead_pid,
        }
        state |= {"started_at": f"2026-01-01T00:00:0{number}Z", "expires_at": "2026-01-01T00:02:00Z"}
        path = replay.project / ".ddx" / "run-state" / f"{state['attempt_id']}.json"
        path.write_text(json.dumps(state))
    app = open_loop(replay.project, replay.env)
    app.feed.now = replay.now(last)
    async with app.run_test(size=(140, 40)) as pilot:
        app.feed.look()
        await settled(pilot)
        assert app.sees("9 dead, 8 without an open bead, 1 shown"), "*Needs me* lists the other one"
        assert len(app.loop.list.board.runs) == 1, "those of January hold nothing and are no news"


async def test_a_worker_that_is_gone_and_holds_nothing_has_a_row_for_a_day(tmp_path: Path, dead_pid: int) -> None:
    replay = Replay(RECORDED / "head-killed.jsonl", tmp_path, pid=dead_pid)
    last = replay.run()
    started = datetime.fromtimestamp((replay.now(last) - 3_600 * NS) // NS, UTC).isoformat()
    state = {"bead_id": "gone-1", "attempt_id": "20260101T000000-00000000", "pid": dead_pid}
    state |= {"started_at": started, "expires_at": "2026-01-01T00:02:00Z"}
    (replay.project / ".ddx" / "run-state" / "20260101T000000-00000000.json").write_text(json.dumps(state))
    app = open_loop(replay.project, replay.env)
    app.feed.now = replay.now(last)
    async with app.run_test(size=(140, 40)) as pilot:
        app.feed.look()
        await settled(pilot)
        assert app.sees("2 dead, 1 without an open bead")
        # what holds a bead is first, though it began earlier or later
        assert [view.run.bead_id == "gone-1" for view in app.loop.list.board.runs] == [False, True]
        app.feed.now += 86_400 * NS
        app.feed.look()
        await settled(pilot)
        assert app.sees("2 dead, 1 without an open bead, 1 shown")


async def test_a_living_process_that_does_nothing_is_silent_not_gone(tmp_path: Path) -> None:
    replay = Replay(RECORDED / "head-killed.jsonl", tmp_path)
    app = open_loop(replay.project, replay.env)
    last = replay.run()
    for record in (replay.project / ".ddx" / "run-state").glob("*.json"):
        record.write_text(json.dumps(json.loads(record.read_text()) | {"expires_at": "2099-01-01T00:00:00Z"}))
    app.feed.now = replay.now(last + 3_000)
    async with app.run_test(size=(140, 40)) as pilot:
        app.feed.look()
        await settled(pilot)
        assert app.sees("nothing done for 50m")
        assert app.pane_says("running, but silent") or app.loop.view.current == "transcript"


async def test_two_workers_have_two_entries(tmp_path: Path) -> None:
    replay = Replay(RECORDED / "april-two-workers.jsonl", tmp_path)
    app = open_loop(replay.project, replay.env)
    most = 0
    async with app.run_test(size=(140, 40)) as pilot:
        for number, step in enumerate(replay.steps()):
            app.feed.now = replay.now(step.t)
            if number % 5 == 0:
                app.feed.look()
                await pilot.pause()
                most = max(most, sum(view.run.live for view in app.loop.list.board.runs))
    assert most == 2


async def test_a_growing_transcript_is_followed_and_held_where_somebody_reads(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    attempts.bead("ddx-1", "Scrub", status="in_progress")
    attempt_id = "20260821T215900-aaaa0001"
    file = attempts.transcript(attempts.attempt(attempt_id, "ddx-1"), 30)
    record = {
        "bead_id": "ddx-1",
        "attempt_id": attempt_id,
        "harness": "claude",
        "model": "sonnet",
        "started_at": "2026-08-21T21:59:00Z",
        "refreshed_at": "2026-08-21T22:00:20Z",
        "expires_at": "2026-08-21T22:02:20Z",
        "worktree_path": str(tmp_path / "nowhere"),
        "pid": os.getpid(),
    }
    (attempts.ddx / "run-state.json").write_text(json.dumps(record))
    app = open_loop(tmp_path)
    async with app.run_test(size=(120, 20)) as pilot:
        await settled(pilot)
        pane = app.loop.view.transcript
        assert app.loop.view.current == "transcript"
        assert app.sees("line 29 of it")

        with file.open("a") as out:
            out.write(attempts.line(30))
        app.loop.view.look()
        await settled(pilot)
        assert app.sees("line 30 of it")

        await pilot.press("enter", "k", "k")
        held, top = pane.selected_key, app.rows()[4].partition("│")[2]
        with file.open("a") as out:
            out.write(attempts.line(31) + attempts.line(32)[:20])
        app.loop.view.look()
        await settled(pilot)
        assert (pane.selected_key, app.rows()[4].partition("│")[2]) == (held, top)
        assert len(pane.script.events) == 32

        with file.open("a") as out:
            out.write(attempts.line(32)[20:])
        await pilot.press("full_stop")
        app.loop.view.look()
        await settled(pilot)
        assert app.sees("line 32 of it")
        assert pane.selected_key == "32"
        said = [action.target for view in app.loop.list.board.runs for action in view.actions]
        app.loop.stream.look()
        await settled(pilot)
        assert said == [] or said[-1].startswith("line")


async def test_a_new_snapshot_repaints_only_what_differs(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    attempts.bead("ddx-1", "Scrub")
    for number in range(30):
        attempts.attempt(f"20260821T10{number:02}00-aaaa0001", "ddx-1", result={"status": "no_changes"})
    app = open_loop(tmp_path)
    async with app.run_test(size=(120, 20)) as pilot:
        await settled(pilot)
        before = dict(app.loop.list._painted)
        app.feed.look()
        attempts.attempt("20260821T104000-aaaa0001", "ddx-1", result={"status": "execution_failed"})
        app.feed.look()
        await settled(pilot)
        kept = [key for key, entry in app.loop.list._painted.items() if before.get(key) is entry]
        assert len(kept) > 10
        assert app.sees("✗ failed")
