"""The loop screen: every key, tab and state, on attempts as DDx leaves them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence
from helix_tui.core.ddx.runs.running import Run
from helix_tui.screens.loop import attempt_screen as attempt_module
from helix_tui.screens.loop.attempt_screen import load_evidence
from tests.screens.loop_host import Attempts, commits, open_loop, settled

pytestmark = pytest.mark.long

LANDED, KEPT, CRASHED, OLD = (
    "20260821T200000-aaaa0001",
    "20260821T190000-aaaa0002",
    "20260821T180000-aaaa0003",
    "20260820T170000-aaaa0004",
)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four attempts on three beads: landed with a diff, preserved but gone, crashed, and an old one."""
    root = tmp_path / "demo"
    root.mkdir()
    base, result = commits(root)
    attempts = Attempts(root)
    attempts.bead("ddx-1", "Scrub worktree leftovers")
    attempts.bead("ddx-2", "Land gate [/rejects] \x1b[31mstale refs")
    attempts.bead("ddx-3", "Guard host-global scratch")
    landed = attempts.attempt(
        LANDED,
        "ddx-1",
        result={
            "status": "success",
            "outcome": "merged",
            "base_rev": base,
            "result_rev": result,
            "cost_usd": 1.1,
        },
    )
    attempts.transcript(landed, 5)
    (landed / "checks").mkdir()
    (landed / "checks" / "reach.json").write_text('{"status":"block","message":"1 symbol cannot be reached"}')
    kept = {"status": "land_conflict", "outcome": "preserved", "base_rev": base, "result_rev": "f" * 40}
    attempts.attempt(KEPT, "ddx-2", result=kept | {"preserve_ref": "refs/ddx/iterations/ddx-2/x"})
    attempts.attempt(CRASHED, "ddx-3")
    attempts.attempt(OLD, "ddx-1", result={"status": "no_changes", "no_changes_rationale": "It was there."})
    return root


async def test_attempts_stand_newest_first_with_the_evidence_of_the_first(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        shown = app.shown()
        places = [shown.index(word) for word in ("✓ ", ": conflict", ": interrupted")]
        assert places == sorted(places)
        assert "Idle" in shown
        assert "Land gate [/rejects] s" in shown
        for part in ("1 symbol cannot be reached", "1 file +2 −1", "watchdog.py", "cost $1.10"):
            assert part in shown, part
        assert "Other attempts on this bead 1" in shown


async def test_tabs_show_diff_transcript_prompt_and_files(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "right_square_bracket")
        await settled(pilot)
        assert app.sees("+ two [/and] a half")
        await pilot.press("right_square_bracket")
        await settled(pilot)
        assert app.sees("line 4 of it")
        await pilot.press("right_square_bracket")
        await settled(pilot)
        assert app.sees("Work on ddx-1")
        await pilot.press("right_square_bracket")
        await settled(pilot)
        assert app.sees("▸ manifest.json")
        assert app.sees("▸ checks/reach.json")
        app.loop.view.raw.select("result.json\n0")
        await pilot.press("enter")
        await settled(pilot)
        assert app.sees('"outcome": "merged"')
        await pilot.press("h")
        assert not app.sees('"outcome": "merged"')
        await pilot.press("h")
        assert app.loop.list.has_focus
        await pilot.press("left_square_bracket")
        assert app.loop.view.current == "prompt"


async def test_the_mouse_selects_opens_and_turns_tabs(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.click("AttemptList", offset=(20, 2))
        assert app.loop.list.selected_key == KEPT
        await pilot.click("AttemptList", offset=(20, 2), times=2)
        assert app.loop.view.evidence.has_focus
        at = " evidence  ".index("e") + len("evidence  d")
        await pilot.click("PaneTabs", offset=(at, 0))
        assert app.loop.view.current == "diff"


async def test_a_tab_that_somebody_chose_stays_for_other_attempts(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press(*["left_square_bracket"] * 3)
        assert app.loop.view.current == "prompt"
        await pilot.press("j", "j")
        await settled(pilot)
        assert app.loop.view.current == "prompt"
        assert app.sees("Work on ddx-3")


@pytest.mark.parametrize(
    ("attempt_id", "tab", "said"),
    [
        (KEPT, "diff", "is not in this repository"),
        (KEPT, "transcript", "No transcript here."),
        (CRASHED, "evidence", "it left no result"),
        (CRASHED, "diff", "No diff: the attempt names no commits"),
        (CRASHED, "prompt", "Work on ddx-3"),
        (OLD, "evidence", "It was there."),
    ],
)
async def test_what_is_not_there_is_said_in_words(project: Path, attempt_id: str, tab: str, said: str) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert app.loop.show_attempt(attempt_id)
        app.loop.view.open_tab(tab)
        await settled(pilot)
        assert app.pane_says(said), app.shown()


async def test_an_attempt_without_a_folder_says_where_it_was_looked_for(project: Path) -> None:
    metrics = project / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir()
    metrics.write_text(
        '{"attempt_id":"20260821T210000-aaaa0009","bead_id":"ddx-1","outcome":"execution_failed","ts_end":'
        '"2026-08-21T21:00:00Z"}\n'
    )
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert app.sees("✗ failed")
        assert app.pane_says("no folder .ddx/executions/20260821T210000-aaaa0009 here")


async def test_a_claim_without_an_attempt_says_so_in_every_tab(project: Path) -> None:
    claim = {"claimed-at": "2026-08-21T22:00:00Z", "claimed-machine": socket.gethostname(), "owner": "ddx"}
    claim["execute-loop-heartbeat-at"] = "2026-08-21T22:00:20Z"
    made = Attempts.__new__(Attempts)
    made.ddx, made.beads = project / ".ddx", []
    made.bead("ddx-9", "Claimed", status="in_progress", **claim, **{"claimed-pid": str(os.getpid())})
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert app.sees("◉ Claimed")
        assert app.pane_says("No attempt yet.")
        for tab in ("diff", "prompt", "raw"):
            app.loop.view.open_tab(tab)
            await settled(pilot)
            assert app.pane_says("No attempt yet."), tab
        app.loop.view.open_tab("evidence")
        await settled(pilot)
        assert app.pane_says("no attempt yet")
        assert app.pane_says("Evidence that it is running")


async def test_an_attempt_on_a_parked_bead_says_what_ddx_asks_a_person(project: Path) -> None:
    made = Attempts.__new__(Attempts)
    made.ddx, made.beads = project / ".ddx", []
    asked = {"needs-human-reason": "repair-cycle-exhausted", "needs-human-summary": "two reviews refused it"}
    made.bead("ddx-9", "Parked", status="proposed", **asked, **{"needs-human-suggested-action": "split it"})
    result = {"status": "no_changes", "no_changes_rationale": "It was there."}
    made.attempt("20260821T210000-aaaa0009", "ddx-9", result=result)
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert app.sees("parked  a person must decide")
        assert app.sees("next  repair-cycle-exhausted: two reviews refused it; suggested:")
        assert not app.sees("resolvable")


async def test_nothing_attempted_yet_says_what_fills_the_screen(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    attempts.bead("ddx-1", "Scrub")
    app = open_loop(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.sees("Nothing has been attempted yet.")
        assert app.sees("One bead is ready.")
        assert app.sees("ddx work")
        attempts.attempt(LANDED, "ddx-1", result={"status": "no_changes"})
        app.feed.look()
        await settled(pilot)
        assert app.sees("○ no change")
        assert not app.sees("Nothing has been attempted")


async def test_no_tracker_at_all_is_said_as_on_the_queue(tmp_path: Path) -> None:
    app = open_loop(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.sees("No DDx queue here.")


async def test_holding_a_key_down_reads_the_last_attempt_only(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(attempt: Attempt, run: Run | None, bead: Bead | None) -> AttemptEvidence:
        read.append(attempt.attempt_id)
        return load_evidence(attempt, run, bead)

    monkeypatch.setattr(attempt_module, "load_evidence", counted)
    made = Attempts.__new__(Attempts)
    made.root, made.ddx, made.beads = project, project / ".ddx", []
    for number in range(60):
        made.attempt(f"20260819T10{number:02}00-bbbb0000", "ddx-1", result={"status": "no_changes"})
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        read.clear()
        for _ in range(50):
            app.loop.list.action_cursor_down()
        await settled(pilot)
        assert read == [app.loop.list.selected_key]


async def test_what_comes_too_late_is_dropped(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(attempt: Attempt, run: Run | None, bead: Bead | None) -> AttemptEvidence:
        if attempt.attempt_id == LANDED:
            gate.wait(20)
            return AttemptEvidence(decisions="of the first one")
        return AttemptEvidence(decisions="of the second one")

    monkeypatch.setattr(attempt_module, "load_evidence", slow)
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.loop.show_detail()
        await pilot.press("j")
        app.loop.show_detail()
        gate.set()
        await settled(pilot)
        assert app.sees("of the second one")
        assert not app.sees("of the first one")


async def test_an_attempt_is_shown_in_a_console_that_grew_on_another_screen(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(48, 30)) as pilot:
        await pilot.pause()
        await pilot.press("1")
        await pilot.resize_terminal(80, 40)
        await pilot.pause()
        await pilot.press("2")
        for _ in range(4):
            await app.workers.wait_for_complete()
            await pilot.pause()
        assert not app.sees("No attempt is selected")
        assert app.sees("Assessment")


async def test_what_fails_is_said_in_the_pane_and_the_program_goes_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(attempt: Attempt, run: Run | None, bead: Bead | None) -> AttemptEvidence:
        raise PermissionError("no [/entry]")

    monkeypatch.setattr(attempt_module, "load_evidence", broken)
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert app.pane_says("the evidence cannot be read (PermissionError: no [/entry])")
        assert app.pane_says("come back to try again")
        await pilot.press("left_square_bracket", "left_square_bracket")
        await settled(pilot)
        assert app.pane_says("cannot be read")


async def test_a_narrow_pane_opens_the_attempt_over_the_list_and_esc_leads_back(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(48, 30)) as pilot:
        await settled(pilot)
        assert app.sees("Scrub worktree leftov")
        assert app.sees("landed · sonnet")
        assert not app.sees("evidence")
        await pilot.press("enter")
        await settled(pilot)
        assert app.sees("evidence")
        assert app.sees("1 symbol cannot be reached")
        assert app.loop.view.evidence.has_focus
        await pilot.press("escape")
        await pilot.pause()
        assert not app.sees("evidence")
        assert app.loop.list.has_focus
        await pilot.press("l")
        await settled(pilot)
        assert app.sees("evidence")
        await pilot.resize_terminal(120, 30)
        await settled(pilot)
        assert app.sees(": conflict")
        assert app.sees("evidence")
        assert app.loop.view.evidence.has_focus
        await pilot.resize_terminal(48, 30)
        await settled(pilot)
        assert app.sees("1 symbol cannot be reached")
        assert app.loop.view.evidence.has_focus


@pytest.mark.parametrize("width", [32, 40, 48, 60, 80, 100, 120, 160])
async def test_the_footer_stays_on_one_line_with_at_most_six_keys(project: Path, width: int) -> None:
    app = open_loop(project)
    async with app.run_test(size=(width, 24)) as pilot:
        await settled(pilot)
        assert app.rows()[-1].endswith("? all")
        await pilot.press("enter")
        await settled(pilot)
        assert app.rows()[-1].endswith("? all")
        assert len(app.loop.footer.key_ids) <= 6


async def test_the_id_is_copied_and_tab_goes_through_the_panes(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await settled(pilot)
        await pilot.press("y")
        assert app.clipboard == LANDED
        await pilot.press("tab")
        assert app.loop.view.evidence.has_focus
        await pilot.press("tab")
        assert app.loop.list.has_focus


async def test_keys_between_attempts_of_one_bead(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("J")
        assert app.loop.list.selected_key == OLD
        await pilot.press("K")
        assert app.loop.list.selected_key == LANDED


async def test_a_line_of_the_evidence_leads_to_its_bead_and_to_other_attempts(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        app.loop.view.evidence.focus()
        app.loop.view.evidence.select(f"attempt:{OLD}\n0")
        await pilot.press("enter")
        await settled(pilot)
        assert app.loop.list.selected_key == OLD
        app.loop.view.evidence.select("bead:ddx-1\n0")
        await pilot.press("enter")
        await settled(pilot)
        assert type(app.screen).__name__ == "QueueScreen"


async def test_an_attempt_is_opened_from_elsewhere_even_before_it_is_known(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert not app.loop.show_attempt("20260821T215900-cccc0001")
        made = Attempts.__new__(Attempts)
        made.ddx = project / ".ddx"
        made.attempt("20260821T215900-cccc0001", "ddx-3", result={"status": "execution_failed"})
        app.feed.look()
        await settled(pilot)
        assert app.loop.list.selected_key == "20260821T215900-cccc0001"


async def test_a_filter_narrows_as_one_types_and_esc_shows_all(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"scrub")
        await pilot.pause()
        assert app.sees("2 of 4")
        assert app.loop.list.selected_key == LANDED
        assert not app.sees("Guard host")
        await pilot.press("enter")
        await pilot.pause()
        assert app.loop.list.has_focus
        assert app.sees("2 of 4")
        await pilot.press("escape")
        await pilot.pause()
        assert app.sees("Guard host")


async def test_follow_is_a_key(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert app.loop.list.following
        assert not app.sees("follows"), "nothing runs"
        await pilot.press("j")
        await pilot.pause()
        assert not app.loop.list.following
        await pilot.press("full_stop")
        await pilot.pause()
        assert app.loop.list.following
        assert app.loop.list.selected_key == LANDED


async def test_unknown_statuses_hostile_files_and_half_written_json_are_shown(project: Path) -> None:
    made = Attempts.__new__(Attempts)
    made.ddx = project / ".ddx"
    strange = made.attempt("20260821T213000-dddd0001", "ddx-1", result={"status": "quantum_\x1b[31m[/x]"})
    (strange / "checks.json").write_text('{"results": [')
    (strange / "\u202eevil\x1b[2J.json").write_text('{"a": "\\u001b]0;x\\u0007[/b]"}')
    (strange / "blob.bin").write_bytes(b"\0\1" * 100)
    (strange / "wide.log").write_text("w" * 3_000_000)
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        shown = app.shown()
        assert "quantum_[/x]" in shown
        assert "checks.json" in shown
        app.loop.view.open_tab("raw")
        await settled(pilot)
        for file in app.loop.view.raw.files:
            app.loop.view.raw.set_fold(file.name, on=False)
        await settled(pilot)
        everything = "".join(text for para in app.loop.view.raw.paras for text, _ in (*para.spans, *para.right))
        assert "\x1b" not in everything
        assert "\u202e" not in everything
        assert "Binary, 200 B" in everything
        assert "more characters" in everything


async def test_a_line_of_ten_megabytes_is_counted_and_the_rest_is_shown(project: Path) -> None:
    file = project / ".ddx" / "executions" / LANDED / "embedded" / "agent-claude-1755806400000000000.jsonl"
    with file.open("a") as out:
        out.write('{"type":"text_delta","data":{"text":"' + "z " * 5_000_000 + '"}}\n')
        out.write('{"type":"text_delta","data":{"text":"and it goes on"}}\n')
    app = open_loop(project)
    async with app.run_test(size=(140, 40)) as pilot:
        app.loop.view.open_tab("transcript")
        await settled(pilot)
        assert app.sees("line 4 of it")
        assert app.sees("and it goes on")
        assert app.sees("1 line of more than 8.4 MB not shown")


async def test_a_search_in_a_pane_finds_what_is_folded_and_steps_on(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(140, 30)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "right_square_bracket", "right_square_bracket")
        await settled(pilot)
        await pilot.press("slash", *"line", "enter")
        await settled(pilot)
        pane = app.loop.view.pane
        assert pane.has_focus
        assert pane.pattern is not None
        first = pane.selected_key
        await pilot.press("n")
        await settled(pilot)
        assert pane.selected_key != first
        assert app.loop.filter.text == "", "the list is not filtered"


async def test_a_line_of_a_diff_opens_in_the_editor_and_the_diff_in_the_pager(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    for name in ("EDITOR", "PAGER"):
        script = tmp_path / name.lower()
        script.write_text(f'#!/bin/sh\necho "{name} $@" >> {seen}\nhead -c 10 "$1" >> {seen}\n')
        script.chmod(0o755)
        monkeypatch.setenv(name, str(script))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("textual.app.App.suspend", lambda self: contextlib.nullcontext())
    app = open_loop(project)
    async with app.run_test(size=(140, 30)) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+e")
        await settled(pilot)
        assert f"EDITOR {project / 'watchdog.py'}" in seen.read_text(), "from the list, the first line that changed"
        seen.unlink()
        await pilot.press("enter", "ctrl+e")
        await settled(pilot)
        assert f"EDITOR {project / 'watchdog.py'}" in seen.read_text(), "from a tab whose lines are of no file, too"
        seen.unlink()
        await pilot.press("escape", "right_square_bracket")
        await settled(pilot)
        await pilot.press("ctrl+e")
        await settled(pilot)
        assert f"EDITOR {project / 'watchdog.py'}" in seen.read_text(), "from the list, in the diff"
        seen.unlink()
        await pilot.press("enter", "G", "ctrl+e", "P")
        await settled(pilot)
    text = seen.read_text()
    assert f"EDITOR {project / 'watchdog.py'}" in text
    assert "diff --git" in text


@pytest.mark.parametrize("width", [32, 48])
async def test_in_a_narrow_console_enter_shows_the_attempt_without_further_news(project: Path, width: int) -> None:
    app = open_loop(project)
    async with app.run_test(size=(width, 24)) as pilot:
        await pilot.pause(0.2)
        await pilot.press("enter")
        for _ in range(4):
            await app.workers.wait_for_complete()
            await pilot.pause()
        assert not app.sees("No attempt is selected")
        assert app.sees("landed")


async def test_a_wide_diff_has_its_files_beside_it(tmp_path: Path) -> None:
    base, _ = commits(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "harbour.md").write_text("quay\n")
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run(["git", "add", "docs"])
    run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "more"])
    result = run(["git", "rev-parse", "HEAD"]).stdout.strip()
    attempts = Attempts(tmp_path)
    attempts.bead("ddx-1", "Two files")
    attempts.attempt(LANDED, "ddx-1", result={"status": "success", "base_rev": base, "result_rev": result})
    app = open_loop(tmp_path)
    async with app.run_test(size=(160, 30)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "right_square_bracket")
        await settled(pilot)
        assert not app.loop.view.files.size.width  # beside the list there is no room: they stand above the diff
        assert "list:1" in [para.key for para in app.loop.view.diff.paras]
        await pilot.press("z")
        await settled(pilot)
        assert "list:1" not in [para.key for para in app.loop.view.diff.paras]
        assert app.loop.view.files.number == 0
        await pilot.press("J", "J")
        assert app.loop.view.files.number == 1
        await pilot.press("tab")
        assert app.focused is app.loop.view.files
        await pilot.press("k", "k")
        await pilot.pause()
        assert app.loop.view.diff.here is not None
        assert app.loop.view.diff.here[0] == 0
        await pilot.press("enter")
        assert app.loop.view.diff.has_focus
