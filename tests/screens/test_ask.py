"""The Ask screen: every key, tab and state, on a repository whose answers one can check by eye."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from time import monotonic

import pytest
from textual.pilot import Pilot

from helix_tui.core.ask.index.keeper import IndexKeeper
from helix_tui.core.evidence.session import AskRequest
from helix_tui.core.evidence.sources import WorkReader
from helix_tui.screens.ask.ask_screen import AskScreen
from helix_tui.screens.external_editor import editor_command
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.widgets.chrome.bottom import Prompt
from tests.core.ask.sessions.solar import AMBIGUOUS, QUESTIONS, write
from tests.core.evidence.work import ATTEMPT, BEADS, LATER
from tests.screens.conftest import Console, MakeConsole

pytestmark = pytest.mark.long

STORM = QUESTIONS[0]


@pytest.fixture
def app(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A console on the Ask screen of the solar repository; files are not followed."""
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    made = console(screen="ask")
    write(made.root)
    return made


async def settled(pilot: Pilot[int]) -> AskScreen:
    """Until no key waits, and nothing is being read or answered."""
    screen = pilot.app.screen
    assert isinstance(screen, AskScreen)
    await screen.line._end_waiting()
    for _ in range(4):
        await pilot.pause()
        if screen.questions is not None:
            screen.questions._keeper.index()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    screen.show_detail()
    await pilot.pause()
    return screen


async def asked(pilot: Pilot[int], question: str) -> AskScreen:
    """Ask by the keyboard and wait for the answer."""
    await settled(pilot)
    await pilot.press("i")
    await pilot.press(*(("space" if char == " " else char) for char in "x"), "backspace")
    screen = pilot.app.screen
    assert isinstance(screen, AskScreen)
    assert screen.prompt is not None
    screen.prompt._field.value = question
    await pilot.press("enter")
    return await settled(pilot)


async def test_where_one_pane_shows_it_is_the_answer_once_one_asked(app: Console) -> None:
    async with app.run_test(size=(48, 40)) as pilot:
        screen = await asked(pilot, STORM)
        assert screen.focused is screen.view.pane
        assert app.sees("restore_panels")
        await pilot.press("escape")
        await pilot.pause()
        assert screen.focused is screen.list
        assert not app.sees("restore_panels")


@pytest.mark.parametrize("keys", ["to", "how ", "what ", "Is ", "Why ", "quite ", "model ", "All ", "TODO ", "list "])
async def test_typing_begins_a_question_with_every_letter(
    app: Console, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.setattr("helix_tui.screens.ask.answers.LETTER_WAITS", 600.0)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        screen.line._typed_at = monotonic()
        await pilot.press(*("space" if char == " " else char for char in keys))
        await pilot.pause()
        assert screen.prompt is not None
        assert screen.prompt._field.value == keys
        assert not any("does nothing here" in notice.message for notice in app.told)
        assert (screen.with_model, screen.depth, len(app.screen_stack)) == (False, "root_to_anchor", 1)
        await pilot.press("escape")
        await pilot.pause()
        assert screen.prompt is None


@pytest.mark.parametrize("after", ["wait", "m", "j", "R", "enter", "6"])
async def test_a_letter_alone_is_a_key(app: Console, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    if after == "wait":
        monkeypatch.setattr("helix_tui.screens.ask.answers.LETTER_WAITS", 0.01)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        await pilot.press("m")
        for _ in range(500):
            if after != "wait" or screen.with_model:
                break
            await pilot.pause(0.01)
        await pilot.press(*(() if after == "wait" else (after,)))
        await screen.line._end_waiting()
        await pilot.pause()
        assert screen.with_model is (after != "m")  # the same once more is that key twice
        assert screen.prompt is None
        assert app.current_mode == ("journal" if after == "6" else "ask")


async def test_keys_that_move_are_no_begin_of_a_question(app: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        await pilot.press("j", "j", "k", "h", "f12")
        assert screen.prompt is None
        monkeypatch.setattr("helix_tui.screens.ask.answers.TYPED_TOGETHER", -1.0)
        await pilot.press("h", "e")
        await pilot.pause()
        assert screen.prompt is not None
        assert screen.prompt._field.value == "e"


async def test_a_question_typed_during_an_answer_stays_in_the_line(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        screen._request = AskRequest("the one before", "", "root_to_anchor", with_model=False, follows="")
        await screen.begin("and this?")
        await pilot.press("enter")
        await pilot.pause()
        assert screen.prompt is not None
        assert screen.prompt._field.value == "and this?"
        screen._request = None
        await pilot.press("enter")
        await settled(pilot)
        assert screen.prompt is None
        assert screen.document is not None
        assert screen.document["question"] == "and this?"


async def test_an_answer_is_in_plain_words_and_the_steps_in_those_of_the_loop(app: Console) -> None:
    async with app.run_test(size=(140, 70)) as pilot:
        screen = await asked(pilot, STORM)
        for part in ("Solar restoration is the work", "● sources", "Definition", "docs/solar-restoration.md:1-3"):
            assert app.sees(part), part
        assert not any(app.sees(word) for word in ("slot", "span", "grounded", "coverage"))
        screen.view.open_tab("steps")
        await settled(pilot)
        for part in ("seed docs", "Tree walk", "1 of 1 slots", "grounded", "claims 1.00 ≥ 0.80", "via alignment"):
            assert app.sees(part), part
        assert screen.document is not None
        assert screen.document["tier_selected"] == "Grounded"
        assert len(list((app.root / ".helix" / "ask" / "history").glob("*.json"))) == 1


async def test_tabs_show_evidence_with_code_and_reasons_steps_and_a_comparison(app: Console) -> None:
    async with app.run_test(size=(140, 60)) as pilot:
        screen = await asked(pilot, STORM)
        await pilot.press("O")
        await settled(pilot)
        assert app.sees("solar/restore.py:1–8")
        assert app.sees("6  def restore_panels(panels):")
        await pilot.press("O", "right_square_bracket", "right_square_bracket")
        await settled(pilot)
        assert screen.view.tab == "steps"
        assert app.sees("Documents to code")
        await pilot.press("right_square_bracket")
        assert app.sees("nothing to compare with")
        (app.root / "docs" / "solar-restoration.md").write_text("# Solar restoration\n\nIt is over.\n")
        assert screen.questions is not None
        index = screen.questions._keeper.index()
        assert index is not None
        index.refresh()
        await pilot.press("R")
        await settled(pilot)
        screen.view.open_tab("compare")
        await settled(pilot)
        assert app.sees("changed")
        assert app.sees("~ proof spans")


async def test_two_senses_are_chosen_by_key_and_by_enter(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, AMBIGUOUS)
        assert app.sees("means more than one thing here")
        assert app.sees("A  Casimir cavity")
        assert app.sees("B  Optical cavity")
        await pilot.press("B")
        await settled(pilot)
        assert app.sees("arrangement of mirrors")
        assert screen.document is not None
        assert screen.document["ambiguity_selected"] == "Optical cavity"


async def test_enter_on_a_source_opens_the_editor_at_its_line(app: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Path, int]] = []

    def note(_: object, path: Path, line: int) -> str:
        opened.append((path, line))
        return ""

    monkeypatch.setattr("helix_tui.screens.ask.answers.open_at", note)
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await asked(pilot, STORM)
        await pilot.press("enter")
        source = screen.view.pane.source
        key = next(source.key(n) for n in range(len(source)) if "docs/solar-restoration.md" in source.key(n))
        screen.view.pane.select(key)
        await pilot.press("enter")
        await pilot.pause()
        assert opened == [(app.root / "docs" / "solar-restoration.md", 1)]


def test_editors_take_a_line_in_their_own_way(tmp_path: Path) -> None:
    for name in ("vim", "hx", "code", "odd"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    file = tmp_path / "a b.md"

    def words(editor: str) -> list[str]:
        found = editor_command(file, 12, {"EDITOR": editor, "PATH": str(tmp_path)})
        assert found is not None
        return found[1:]

    assert words("vim -n") == ["-n", "+12", str(file)]
    assert words("hx") == [f"{file}:12"]
    assert words("code") == ["--wait", "--goto", f"{file}:12"]
    assert words("odd") == [str(file)]
    assert editor_command(file, 1, {"EDITOR": "none-such", "PATH": str(tmp_path)}) is None


async def test_a_bead_in_the_queue_asks_about_itself(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    bead = {"id": "s-1", "title": "restore_panels forgets the last panel", "status": "open"}
    app = console([json.dumps(bead | {"description": "See solar/restore.py after a storm."})])
    write(app.root)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await settled(pilot)  # the index stands: what is asked before answers from what is read by then
        await pilot.press("1", "i")
        await pilot.pause()
        screen = await settled(pilot)
        screen = await settled(pilot)
        assert screen.document is not None
        assert screen.document["question"].startswith("restore_panels forgets")
        assert "solar/restore.py" in screen.document["ranked_files"][:2]


async def test_questions_that_are_ready_are_offered_and_asked(app: Console) -> None:
    folder = app.root / ".helix" / "ask"
    folder.mkdir(parents=True)
    (folder / "questions.txt").write_text(f"# by eye\n{STORM}\n\n{AMBIGUOUS}\n")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        assert app.sees("Suggested questions")
        screen.list.select(f"ready {STORM}")
        await pilot.press("enter")
        await settled(pilot)
        assert app.sees("Solar restoration is the work")


async def test_a_model_words_the_answer_only_when_it_is_switched_on(
    app: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Solar restoration is the work that returns panels to full output after a storm, says the model. [1]"
    monkeypatch.setenv("HELIX_ASK_MODEL", f"{shlex.quote(sys.executable)} -c \"print('{said}')\"")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, STORM)
        assert screen.document is not None
        assert screen.document["model_calls"] == 0
        await pilot.press("m", "R")
        await settled(pilot)
        assert screen.document["model_calls"] == 1
        assert app.sees("says the model")


async def test_read_only_keeps_nothing(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    app = console(screen="ask", read_only=True)
    write(app.root)
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, STORM)
        assert app.sees("Solar restoration is the work")
        assert not (app.root / ".helix" / "ask" / "history").exists()


async def test_the_trace_is_written_beside_the_history(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, STORM)
        await pilot.press("T")
        await settled(pilot)
        (trace,) = (app.root / ".helix" / "ask" / "traces").glob("*.jsonl")
        assert json.loads(trace.read_text().splitlines()[-1])["verdict"] == "PASS"


async def test_the_mouse_opens_tabs_and_rows(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, STORM)
        await pilot.click(screen.view.tabs, offset=(10, 0))
        await settled(pilot)
        assert screen.view.tab == "evidence"
        await pilot.click(screen.list, offset=(5, 0))
        assert screen.focused is screen.list


async def test_a_plain_folder_can_be_asked_too(app: Console) -> None:
    shutil.rmtree(app.root / ".git")
    async with app.run_test(size=(140, 40)) as pilot:
        await asked(pilot, STORM)
        assert app.sees("Solar restoration is the work")


async def test_files_show_as_a_question_is_typed_and_one_can_be_opened(
    app: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def note(_: object, path: Path, line: int) -> str:
        opened.append(path)
        return ""

    monkeypatch.setattr("helix_tui.screens.ask.answers.open_at", note)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        await pilot.press("i", *"restore")
        await settled(pilot)
        assert app.sees("Files ")
        assert app.sees("solar/restore.py")
        await pilot.press("down")
        chosen = screen.line.files[0].file
        await pilot.press("enter")
        await settled(pilot)
        assert opened == [app.root / chosen]
        assert screen.document is None
        await pilot.press("i", *"panels")
        await settled(pilot)
        assert app.sees("Files ")
        await pilot.press("escape")
        await settled(pilot)
        assert not app.sees("Files ")


async def test_a_record_that_is_a_source_opens_on_its_screen(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    bead = {"id": "s-1b", "title": "Teach the parser about storms", "status": "open", "issue_type": "task"}
    app = console([json.dumps(bead)], screen="ask")
    write(app.root)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, "which bead teaches the parser about storms?")
        assert app.sees("bead s-1b")
        await pilot.press("enter")
        source = screen.view.pane.source
        screen.view.pane.select(next(key for n in range(len(source)) if (key := source.key(n)).startswith("record ")))
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen)
        assert app.screen.selected_bead == "s-1b"


async def test_attempts_at_archived_beads_are_records_here_as_on_the_command_line(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    first, *others = BEADS
    app = console([json.dumps(other) for other in others], screen="ask")
    write(app.root)
    (app.root / ".ddx" / "beads-archive.jsonl").write_text(json.dumps({**first, "status": "closed"}) + "\n")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, f"what came of {LATER}?")
        assert app.sees(LATER)
        work, alone = screen._work(), WorkReader(screen.console.snapshot.project)()
        assert {attempt.attempt_id for attempt in work.attempts("fy-1a2b")} == {ATTEMPT, LATER}
        for bead_id in alone.beads:
            assert [attempt.attempt_id for attempt in work.attempts(bead_id)] == [
                attempt.attempt_id for attempt in alone.attempts(bead_id)
            ]


async def test_a_follow_up_keeps_the_evidence_and_says_what_it_follows(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await asked(pilot, STORM)
        await pilot.press("I", *"and where?", "enter")
        await settled(pilot)
        assert screen.document is not None
        assert screen.document["question"] == "and where?"
        assert screen.document["follows"]["kept"] > 0
        assert app.sees(f"follows: {STORM}")


async def test_the_answer_with_a_model_is_compared_with_the_one_without(
    app: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Solar restoration returns panels to full output after a storm. [1] Pirates of 1871 paid for it. [1]"
    monkeypatch.setenv("HELIX_ASK_MODEL", f"{shlex.quote(sys.executable)} -c \"print('{said}')\"")
    async with app.run_test(size=(120, 60)) as pilot:
        screen = await settled(pilot)
        await pilot.press("m")
        await asked(pilot, STORM)
        assert app.sees("1 claim left out")
        screen.view.open_tab("compare")
        await settled(pilot)
        for part in ("With the model", "Without it", "left out: Pirates of 1871", "in both 1 · only with the model 0"):
            assert app.sees(part), part


async def test_a_line_opens_while_the_one_before_still_goes(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await settled(pilot)
        await pilot.press("i")
        before = screen.prompt
        assert before is not None
        screen.prompt, going = None, before.remove()
        await screen.begin("")
        await going
        assert list(screen.query(Prompt)) == [screen.prompt]
