"""The loop from the console: what comes next, start and stop, one bead, answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.core.supervision.signals.questions import OpenQuestion, OpenQuestions, read_questions
from helix_tui.core.supervision.stages.commands import ROWS
from helix_tui.screens.loop.controls import READ_ONLY
from tests.programs import write_program
from tests.screens.conftest import NOW, Console, MakeConsole

pytestmark = pytest.mark.long

BEADS = ['{"id":"x-1","title":"one","acceptance":"1. `make test` passes"}', '{"id":"x-2","title":"two"}']
REPORTS = "import sys, pathlib; pathlib.Path('started').write_text(' '.join(sys.argv[1:]))"


async def settled(pilot: Pilot[int]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def waited(pilot: Pilot[int], seen: Callable[[], bool]) -> None:
    """Let a program that was started say what it has to say."""
    for _ in range(600):
        if seen():
            return
        await pilot.pause(0.05)
    raise AssertionError("it was never seen")


def said(app: Console) -> str:
    return " ".join(note.message for note in app.told)


def a_run(root: Path) -> None:
    """A loop that runs: this very process says that it is one."""
    (root / ".helix").mkdir(exist_ok=True)
    now = format_instant(now_ns())
    (root / ".helix/helix.pid").write_text(f"{os.getpid()} {now}\n")
    log = root / "loop.log"
    log.write_text(
        "helix: cycle 1\n--- ddx output [10:00:00] rc=0 elapsed=2s ---\n"
        '{\n  "status": "fragment"\n}\n--- end ddx output ---\n'
        "\x1b[31mhelix: x-1 success\n"
    )
    state = {"run_id": "r", "pid": os.getpid(), "started_at": now, "phase": "dispatching", "log": str(log)}
    (root / ".helix/run-state.json").write_text(json.dumps(state | {"completed_cycles": 3}))


@pytest.fixture
def no_ddx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ddx on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))


async def test_next_action_stands_in_the_pulse_with_its_reasons_on_a_key(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once")
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("greater_than_sign")
        await settled(pilot)
        assert app.sees("○ 2 ready")
        assert app.sees("BUILD")
        assert app.sees("Decided from the queue, no model asked")
        assert app.sees("ddx work")
        await pilot.press("j", "enter")
        await settled(pilot)
        assert app.current_mode == "queue"
        assert len(app.screen_stack) == 1


async def test_next_action_says_why_nothing_has_landed(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once")
    metrics = app.root / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir()
    rows = [
        {
            "attempt_id": f"20260821T2{n}0000-aaaa000{n}",
            "bead_id": "x-1",
            "outcome": outcome,
            "ts_end": f"2026-08-21T2{n}:30:00Z",
        }
        for n, outcome in ((0, "land_conflict"), (1, "execution_failed"))
    ]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("greater_than_sign")
        await settled(pilot)
        assert app.sees("Since the last landing")
        assert app.sees("landed  nothing yet"), app.rows()
        assert app.sees("since   2 attempts (cost unknown): 1 "), app.rows()
        assert app.sees("runs    nothing")


async def test_reasons_wrap_fold_where_alike_and_say_times_from_now(console: MakeConsole) -> None:
    until = format_instant(NOW + 5 * 3600 * NS + 750 * NS)
    rows: list[dict[str, object]] = [
        {"id": "x-1", "title": "Ready"},
        {"id": "x-2", "title": "Cooling", "work-retry-after": until},
    ]
    for number in range(8):
        gone = [{"issue_id": f"w-{number}", "depends_on_id": f"gone-{number}-{n}", "type": "blocks"} for n in range(4)]
        rows.append({"id": f"w-{number}", "title": f"Wait for what is gone {number}", "dependencies": gone})
    base = {"status": "open", "priority": 2, "schema_version": 1, "labels": ["x"]}
    app = console([json.dumps(base | row) for row in rows], look_out="once")
    async with app.run_test(size=(60, 40)) as pilot:
        await settled(pilot)
        await pilot.press("greater_than_sign")
        await settled(pilot)
        text = " ".join(" ".join(row.split()) for row in app.rows())
        assert "w-0 “Wait for what is gone 0” waits on gone-0-0, gone-0-1, gone-0-2, gone-0-3" in text, text
        assert "w-5" not in text
        assert "3 more: dangling dependency" in text
        assert "1 on cooldown, the next ends in 5h 1" in text
        assert "2026-" not in text


async def test_waiting_is_said_with_its_reason(console: MakeConsole) -> None:
    app = console(['{"id":"x-1","title":"one","status":"proposed"}'], look_out="once")
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert app.sees("GUIDANCE ▸ proposed")


@pytest.mark.parametrize("yes", ["y", "enter"])
async def test_a_loop_is_started_by_the_command_that_is_shown(console: MakeConsole, a_ddx: None, yes: str) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", REPORTS))
    async with app.run_test(size=(140, 30)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        assert app.sees("--summary")
        await pilot.press("s")
        await settled(pilot)
        assert not (app.root / "started").exists()
        await pilot.press(yes)
        await settled(pilot)
    assert (app.root / "started").read_text() == f"run --summary --autonomy medium -C {app.root}"


async def test_what_the_repository_brings_is_shown_and_allowed_by_a_key_before_a_loop_starts(
    console: MakeConsole, a_ddx: None
) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", REPORTS))
    (app.root / "lefthook.yml").write_text("pre-commit:\n  commands: {}\n")
    async with app.run_test(size=(140, 30)) as pilot:
        for answer in ("escape", "enter"):
            await pilot.press("L")
            await settled(pilot)
            await pilot.press("s")
            await settled(pilot)
            await pilot.press("y")
            await settled(pilot)
            assert not (app.root / "started").exists()
            assert app.sees("lefthook.yml: lefthook runs its commands at a commit")
            assert app.sees("pre-commit:"), "its first lines"
            await pilot.press(answer)
            await settled(pilot)
            await pilot.press("escape")
    assert (app.root / "started").exists()


async def test_a_running_loop_is_paused_and_stopped_after_the_bead(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once", name="runs")
    a_run(app.root)
    app.feed.look()
    async with app.run_test(size=(120, 44)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        await pilot.pause()
        assert app.sees("executing a bead")
        assert app.sees("3 cycles completed")
        assert app.sees("helix: x-1 success")
        assert not app.sees("fragment")
        assert not app.sees("\x1b")
        for key, wish in (("p", "pause"), ("x", "stop")):
            await pilot.press(key)
            await settled(pilot)
            assert json.loads((app.root / ".helix/loop-request.json").read_text())["wish"] == wish
            app.feed.look()
            await pilot.press("L")
            await settled(pilot)


async def test_a_chooses_the_autonomy_of_the_next_loop(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once")
    async with app.run_test(size=(140, 34)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        assert app.sees("autonomy medium")
        await pilot.press("a")
        await settled(pilot)
        words = app.loop_controls.start_words
        assert words[words.index("--autonomy") + 1] == "high"


async def test_the_status_bar_names_the_level_of_a_running_loop(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once", name="runs")
    a_run(app.root)
    app.feed.look()
    async with app.run_test(size=(140, 34)) as pilot:
        await settled(pilot)
        assert app.sees("loop medium")
        await pilot.press("L", "a")
        await settled(pilot)
        assert app.loop_controls.autonomy == "medium"


@pytest.mark.parametrize("keys", [("L", "s"), ("L", "o")])
async def test_a_console_that_only_looks_starts_nothing(console: MakeConsole, keys: tuple[str, str]) -> None:
    app = console(BEADS, look_out="once", read_only=True, own=(sys.executable, "-c", REPORTS))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press(*keys)
        await settled(pilot)
        assert "not with --read-only" in said(app)
    assert not (app.root / "started").exists()


async def test_one_bead_without_a_ddx_says_what_is_missing(console: MakeConsole, no_ddx: None) -> None:
    app = console(BEADS, look_out="once")
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("L", "o")
        await settled(pilot)
        assert "ddx binary not found" in said(app)


@pytest.mark.parametrize(
    ("more", "said_of_it"),
    [({"status": "closed"}, "this bead is closed"), ({"status": "in_progress"}, "a worker is running this bead")],
)
async def test_a_bead_that_is_done_or_at_work_is_not_carried_through(
    console: MakeConsole, tmp_path: Path, more: dict[str, str], said_of_it: str
) -> None:
    program = write_program(tmp_path / "ddx", "import pathlib\npathlib.Path('called').touch()")
    now = format_instant(now_ns())
    bead = {"id": "x-1", "title": "one", "owner": "ddx", "updated_at": now, "work-heartbeat-at": now} | more
    app = console([json.dumps(bead)], look_out="once", ddx=str(program))
    async with app.run_test(size=(120, 30)) as pilot:
        app.go_to_bead("x-1")
        await settled(pilot)
        await pilot.press("L")
        await settled(pilot)
        assert app.sees(said_of_it)
        assert not app.sees("ddx try")
        await pilot.press("o")
        await settled(pilot)
        assert said_of_it in said(app)
    assert not (app.root / "called").exists()


@pytest.mark.parametrize("failed_since", [False, True])
async def test_a_change_that_a_review_refused_is_landed_only_after_a_second_yes(
    console: MakeConsole, no_ddx: None, a_ddx: None, failed_since: bool
) -> None:
    app = console(BEADS, look_out="once")
    attempt = "20260821T101112-0123abcd"
    result = {"bead_id": "x-1", "attempt_id": attempt, "status": "repair-cycle-exhausted"}
    result |= {"outcome": "preserved", "base_rev": "a" * 40, "result_rev": "b" * 40}
    result |= {"preserve_ref": f"refs/ddx/iterations/x-1/{attempt}-aaaaaaaaaaaa"}
    later = {"bead_id": "x-1", "attempt_id": "20260821T201112-0123abcd", "status": "execution_failed"}
    for each in (result, later) if failed_since else (result,):
        bundle = app.root / ".ddx" / "executions" / each["attempt_id"]
        bundle.mkdir(parents=True)
        (bundle / "result.json").write_text(json.dumps(each))
    app.feed.look()
    async with app.run_test(size=(140, 34)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        assert app.sees("ddx may land bbbbbbbbbbbb as it is")
        await pilot.press("o")
        await settled(pilot)
        assert app.sees("Attempt “one” again?")
        assert "ddx binary not found" not in said(app)
        await pilot.press("y")
        await settled(pilot)
        assert "ddx binary not found" in said(app)


def ask(root: Path, kind: str, *options: str) -> OpenQuestion:
    project = find_project(root)
    project.helix_dir.mkdir(exist_ok=True)
    questions = OpenQuestions(project, WriteGate(project, read_only=False))
    return questions.ask(kind, "which of the two holds?", key="k", options=options)


@pytest.mark.parametrize(
    ("options", "keys", "answer"),
    [((), (*"the first", "enter"), "the first"), (("yes", "no"), ("2",), "no")],
)
async def test_a_question_is_answered_from_needs_me(
    console: MakeConsole, options: tuple[str, ...], keys: tuple[str, ...], answer: str
) -> None:
    app = console(BEADS, look_out="once")
    asked = ask(app.root, "guidance", *options)
    app.feed.look()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("exclamation_mark")
        await settled(pilot)
        assert app.sees("which of the two holds?")
        await pilot.press("a", *(("space" if key == " " else key) for key in keys))
        await settled(pilot)
    (found,) = read_questions(app.root / ".helix/questions.json")
    assert (found.id, found.answer) == (asked.id, answer)


async def test_a_question_about_a_bead_and_an_escalation_are_decided_in_needs_me(
    console: MakeConsole,
) -> None:
    escalation = (
        '{"id":"x-9","title":"escalation: land_conflict of x-2","description":"which hunk?",'
        '"labels":["kind:escalation"],"execution-eligible":false,"helix-trigger-bead":"x-2"}'
    )
    app = console([*BEADS, escalation], look_out="once")
    project = find_project(app.root)
    project.helix_dir.mkdir(exist_ok=True)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask("conflict", "land it?", key="k", bead_id="x-1")
    app.feed.look()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("exclamation_mark")
        await settled(pilot)
        assert app.sees("conflict")
        assert app.sees("escalation: land_conflict of x-2")
        await pilot.press("a")
        await settled(pilot)
        assert app.sees("retry")
        await pilot.press("t", *"mine", "enter")
        await waited(pilot, lambda: app.sees("helix-decision=mine"))
        await pilot.press("enter")
        await waited(pilot, lambda: read_questions(project.helix_dir / "questions.json")[0].answered)
        app.feed.look()
        await settled(pilot)
        await pilot.press("a", *"ours", "enter")
        await waited(pilot, lambda: app.sees("ddx bead close x-9"))
        await pilot.press("enter")
        await waited(pilot, lambda: '"helix-decision":"ours"' in (app.root / ".ddx/beads.jsonl").read_text())
        await waited(pilot, lambda: not app.change_runner.pending)
    lines = (app.root / ".ddx/beads.jsonl").read_text().splitlines()
    rows = {each["id"]: each for each in map(json.loads, lines)}
    assert [rows[name].get("helix-decision") for name in ("x-1", "x-2", "x-9")] == ["mine", "ours", "ours"]
    assert rows["x-9"]["status"] == "closed"
    (asked,) = read_questions(project.helix_dir / "questions.json")
    assert asked.answer == "mine"


async def test_what_helix_injected_is_marked_in_the_queue(console: MakeConsole) -> None:
    injected = '{"id":"x-3","title":"look at it","labels":["helix-injected:review-finding"]}'
    app = console([*BEADS, injected])
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert app.sees("+ review-finding")


async def test_the_loops_own_log_is_followed_on_the_loop_screen(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once", name="followed")
    a_run(app.root)
    log = app.root / "loop.log"
    log.write_text(
        "  {}\n--- end ddx output ---\nhelix: cycle 1\n--- ddx output [1] rc=0 elapsed=1s ---\n{\n}\n"
        "--- end ddx output ---\n\x1b[31mhelix: x-1 success\n"
    )
    app.feed.look()
    async with app.run_test(size=(120, 34)) as pilot:
        await pilot.press("2")
        for _ in range(2):
            await settled(pilot)
        assert app.sees("executing a bead")
        assert app.sees("helix: cycle 1")
        assert app.sees("helix: x-1 success")
        assert not app.sees("ddx output")
        assert not app.sees("\x1b")
        log.write_text(log.read_text() + "cycle 2: x-2 → COMPLETE\n")
        app.screen.tick()  # type: ignore[attr-defined]
        await settled(pilot)
        assert app.sees("x-2 → COMPLETE")
        (app.root / ".helix/helix.pid").unlink()
        state = json.loads((app.root / ".helix/run-state.json").read_text())
        ended = {"phase": "stopped", "stop_reason": "max_cycles"}
        (app.root / ".helix/run-state.json").write_text(json.dumps(state | ended))
        app.feed.look()
        await settled(pilot)
        app.screen.tick()  # type: ignore[attr-defined]
        await settled(pilot)
        assert app.sees("stopped: it completed as many cycles as requested")
        assert not app.sees("x-2 → COMPLETE")


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.processes
async def test_leaving_does_not_wait_for_a_bead_that_is_carried_through(console: MakeConsole, tmp_path: Path) -> None:
    program = write_program(
        tmp_path / "ddx",
        "import sys, time\nif '--help' in sys.argv:\n    print('--harness')\n"
        "else:\n    print(sys.argv)\n    time.sleep(60)",
    )
    app = console(BEADS, look_out="once", ddx=str(program))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("L", "o")
        await settled(pilot)
        assert "is attempted (pid" in said(app)
    (line,) = app.loop_controls.at_work()
    assert "keeps running" in line
    process = app.loop_controls._carried[0][1]
    assert f"HELIX_STARTED_BY={os.getpid()}:".encode() in environment_of(process.pid), (
        "`stop` finds it once this console has ended"
    )
    process.kill()


async def test_without_a_ddx_no_start_is_offered_and_the_sheet_says_what_to_do(
    console: MakeConsole, no_ddx: None
) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", REPORTS))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        assert app.sees("Nothing can be started: ddx binary not found on PATH; install ddx"), app.rows()
        assert not app.sees("agent    ")
        await pilot.press("s", "y")
        await settled(pilot)
        assert not app.sees("spend")
        assert "is running" not in said(app)
    assert not (app.root / "started").exists()


async def test_a_loop_that_ends_at_once_without_a_fault_is_not_said_to_run(console: MakeConsole, a_ddx: None) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", ""))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("L", "s", "y")
        await settled(pilot)
        assert "the loop ended at once" in said(app)
        assert "is running" not in said(app)


async def test_a_loop_that_cannot_begin_says_why(console: MakeConsole, a_ddx: None) -> None:
    fails = "import sys; sys.stderr.write('helix: ddx binary not found; install ddx\\n'); sys.exit(127)"
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", fails))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("L", "s", "y")
        await settled(pilot)
        assert "ended at once: ddx binary not found; install ddx" in said(app)


TELLS = "import sys; print('told:', *sys.argv[1:])"


async def test_every_helix_command_is_offered_by_name(console: MakeConsole) -> None:
    app = console(BEADS)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        names = {command.name for command in app.offered(app.screen)}
    elsewhere = {name for name, row in ROWS.items() if row.asks is None}
    assert elsewhere == {"run", "start", "stop"}
    assert {f"helix {name}" for name in ROWS if name not in elsewhere} <= names
    assert {"helix run", "next action"} <= names


async def test_a_command_runs_and_its_output_is_followed(console: MakeConsole) -> None:
    app = console(BEADS, own=(sys.executable, "-c", TELLS))
    async with app.run_test(size=(140, 30)) as pilot:
        await pilot.press("colon", *"helix stuck", "enter")
        await settled(pilot)
        await waited(pilot, lambda: app.sees("told: stuck -C"))
        await pilot.press("escape")
        await settled(pilot)
        assert len(app.screen_stack) == 1


async def test_a_command_that_needs_words_asks_for_them(console: MakeConsole) -> None:
    app = console(BEADS, own=(sys.executable, "-c", TELLS))
    async with app.run_test(size=(160, 30)) as pilot:
        await pilot.press("colon", *"helix evolve", "enter")
        await settled(pilot)
        assert app.sees("carry a new requirement through the documents")
        await pilot.press(*"Add [red] -x", "enter")
        await settled(pilot)
        await waited(pilot, lambda: app.sees("-- Add [red] -x"))


async def test_a_long_question_is_kept_whole_and_read_from_its_first_word(console: MakeConsole) -> None:
    text = f"first words {' '.join(f'word{number}' for number in range(400))} to the end"
    app = console(BEADS, look_out="once")
    project = find_project(app.root)
    project.helix_dir.mkdir(exist_ok=True)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask("conflict", text, key="k", bead_id="x-1")
    app.feed.look()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("exclamation_mark")
        await settled(pilot)
        await pilot.press("a")
        await settled(pilot)
        assert app.sees("to the end")
        await pilot.press("g")
        await settled(pilot)
        assert app.sees("first words")


async def test_a_console_that_only_looks_runs_no_command(console: MakeConsole) -> None:
    app = console(BEADS, read_only=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("colon", *"helix stuck", "enter")
        await settled(pilot)
        assert READ_ONLY in said(app)


@pytest.mark.parametrize("width", [120, 48])
async def test_a_question_is_read_in_full_before_and_while_it_is_answered(console: MakeConsole, width: int) -> None:
    text = f"which of the two holds: {' '.join(f'word{number}' for number in range(40))} to the end"
    app = console(BEADS, look_out="once")
    project = find_project(app.root)
    project.helix_dir.mkdir(exist_ok=True)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask("conflict", text, key="k", bead_id="x-1")
    app.feed.look()
    async with app.run_test(size=(width, 40)) as pilot:
        await pilot.press("exclamation_mark")
        await settled(pilot)
        words = "word38 word39 to the end"
        assert words in " ".join(line.strip(" ▌▐") for line in app.rows()[-14:])
        await pilot.press("a")
        await settled(pilot)
        assert words in " ".join(line.strip(" ▌▐") for line in app.rows())
        assert app.sees("Answer q-1")
