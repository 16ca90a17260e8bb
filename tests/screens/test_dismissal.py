"""Keys and clicks that were queued before the first of them took effect; rows that went away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot
from textual.screen import Screen

from helix_tui.screens.commands.commands import Command
from helix_tui.screens.commands.palette import CommandsSheet
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet, Pick, PickSheet
from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.help import HelpScreen
from helix_tui.screens.journal import JournalScreen
from helix_tui.screens.loop.sheets import LoopSheet, NextSheet
from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.screens.queue.bead_screen import BeadScreen
from helix_tui.screens.queue.queue_screen import QueueScreen, UnreadScreen
from helix_tui.screens.sheet import LinesSheet
from helix_tui.widgets.chrome.bottom import Prompt
from helix_tui.widgets.chrome.header import Tabs
from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_queue import queue

pytestmark = pytest.mark.long


async def queued(pilot: Pilot[Any], keys: Iterable[str], character: str | None = None) -> None:
    """Keys that all wait before any is handled, as they do behind something slow."""
    for key in keys:
        pilot.app.post_message(events.Key(key, character))
    await pilot.pause()
    await pilot.pause()


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Let the app go on until something holds; fails where it never does."""
    for _ in range(200):
        if holds():
            return
        await pilot.pause()
    assert holds()


def offered(text: str) -> list[Pick]:
    return [Pick("one", (("one", "text"),)), Pick("two", (("two", "text"),))]


def nothing(_: object) -> None:
    return


SHEETS: dict[str, Callable[[], Screen[Any]]] = {
    "choice": lambda: ChoiceSheet("t", [Choice("a", "a", "do it", "", lambda: None)]),
    "pick": lambda: PickSheet("t", offered, nothing),
    "line": lambda: LineSheet("t", "lead", nothing),
    "preview": lambda: LinesSheet("t", [], "note", lambda: None),
    "next": NextSheet,
    "loop": lambda: LoopSheet(""),
    "help": HelpScreen,
    "needs": NeedsScreen,
    "unread": UnreadScreen,
    "bead": lambda: BeadScreen("demo-00000001"),
    "palette": lambda: CommandsSheet([], {}, print),
}


@pytest.mark.parametrize("make", SHEETS.values(), ids=SHEETS)
@pytest.mark.parametrize("key", ["escape", "enter"])
async def test_a_key_that_comes_once_more_closes_nothing_else(
    console: MakeConsole, make: Callable[[], Screen[Any]], key: str
) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(HelpScreen())
        app.push_screen(make())
        await pilot.pause()
        under = app.screen_stack[1]
        await queued(pilot, [key] * 6)
        assert app.is_running
        if key == "escape":
            assert app.screen is under, "one key closes one sheet"


@pytest.mark.parametrize("make", SHEETS.values(), ids=SHEETS)
async def test_a_sheet_is_dismissed_once(console: MakeConsole, make: Callable[[], Screen[Any]]) -> None:
    app = console()
    results: list[object] = []
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(HelpScreen())
        await pilot.pause()
        sheet = make()
        app.push_screen(sheet, results.append)
        await pilot.pause()
        for result in (1, 2, 3):
            sheet.dismiss(result)
        await pilot.pause()
        sheet.dismiss(4)
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert len(app.screen_stack) == 2
        assert results == [1]


async def test_a_sheet_closed_before_it_stands_is_gone(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        for make in SHEETS.values():
            sheet = make()
            app.push_screen(sheet)
            sheet.dismiss()
            await pilot.pause()
            assert len(app.screen_stack) == 1


async def test_a_sheet_leaves_from_under_another_one(console: MakeConsole) -> None:
    app = console()
    results: list[object] = []
    async with app.run_test(size=(100, 30)) as pilot:
        below = LineSheet("below", "lead", nothing)
        app.push_screen(below, results.append)
        await pilot.press("a")
        app.push_screen(HelpScreen())
        await pilot.pause()
        below.dismiss("it left")
        await pilot.pause()
        assert below.has_left
        assert isinstance(app.screen, HelpScreen), "who lies on top stays"
        await pilot.press("escape")
        await pilot.pause()
        assert results == ["it left"]
        assert len(app.screen_stack) == 1
        assert not below.is_attached


async def test_a_sheet_cannot_wait_for_its_own_end(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        for lies_under in (False, True):
            sheet = LineSheet("t", "lead", nothing)
            app.push_screen(sheet)
            if lies_under:
                app.push_screen(HelpScreen())
            await pilot.pause()
            sheet.call_later(sheet.dismiss)  # whatever a callback returns is waited for
            await pilot.pause()
            await pilot.press("1")
            assert isinstance(app.screen, QueueScreen)
            assert not sheet.is_attached


async def test_going_to_many_places_at_once_comes_to_the_last(console: MakeConsole) -> None:
    """Each leaves what lies on the screen; one that is cancelled halfway would end the loop of the app."""
    app = console()
    async with app.run_test(size=(140, 40)) as pilot:
        beads = list(app.snapshot.queue.beads)
        for bead_id in beads[:3]:
            app.push_screen(BeadScreen(bead_id))
        await pilot.pause()
        app.screen.post_message(Tabs.Pressed("memory"))
        app.screen.post_message(Tabs.Pressed("loop"))
        app.open_attempt("20260821T000000-00000000")
        app.ask_about("what comes next")
        app.go_to_bead(beads[3])
        await asyncio.sleep(0)
        app.go_to_bead(beads[4])
        await pilot.pause()
        await pilot.pause()
        assert queue(app).selected_bead == beads[4]
        await pilot.press("6")
        assert isinstance(app.screen, JournalScreen)


async def test_the_first_screen_cannot_be_dismissed(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        first = queue(app)
        first.dismiss()
        await queued(pilot, ["escape"] * 5)
        assert app.screen is first


async def test_two_enters_pick_once(console: MakeConsole) -> None:
    app = console()
    picked: list[tuple[str, ...]] = []
    said: list[str] = []
    done: list[str] = []
    async with app.run_test(size=(100, 30)) as pilot:
        for sheet in (
            PickSheet("t", offered, picked.append),
            LineSheet("t", "lead", said.append),
            ChoiceSheet("t", [Choice("a", "a", "do it", "", partial(done.append, "did"))]),
        ):
            app.push_screen(sheet)
            await pilot.pause()
            await queued(pilot, ["enter"] * 4)
            assert len(app.screen_stack) == 1
    assert (picked, said, done) == ([("one",)], [""], ["did"])


async def test_two_presses_of_a_key_lay_one_sheet(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.pause()
        await queued(pilot, ["minus", "minus", "minus"])
        assert [type(screen) for screen in app.screen_stack[1:]] == [PreviewSheet]


async def test_two_openings_of_a_row_open_it_once(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(50, 30)) as pilot:
        rows = queue(app).list
        for _ in range(3):
            rows.action_open()
        await pilot.pause()
        await pilot.pause()
        assert len(app.screen_stack) == 2


async def test_keys_typed_behind_one_that_leaves_do_nothing_below(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        selected = queue(app).selected_bead
        app.push_screen(PickSheet("t", offered, nothing))
        await pilot.pause()
        await queued(pilot, ["escape", "down", "down", "enter"])
        assert queue(app).selected_bead == selected
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize("opens", ["enter", "exclamation_mark", "L", "question_mark"])
async def test_keys_typed_behind_one_that_opens_something_change_nothing(console: MakeConsole, opens: str) -> None:
    """They were meant for what was in view: whatever they open or ask for there, no command is run."""
    app = console()
    async with app.run_test(size=(60, 30)) as pilot:
        before = app.snapshot.tracker.beads
        await queued(pilot, [opens, "minus", "enter", "x", "enter"])
        for _ in range(20):
            await pilot.pause()
        assert app.is_running
        assert not app.change_runner.pending
        assert app.snapshot.tracker.beads == before
        assert len(app.screen_stack) <= 2


@pytest.mark.parametrize("rest", [0, 1, 3], ids="behind {} turns of the loop".format)
async def test_keys_typed_behind_one_that_goes_to_a_screen_follow_it(console: MakeConsole, rest: int) -> None:
    """In the order in which they came, wherever the first of them found the screens."""
    app = console()
    async with app.run_test(size=(140, 40)) as pilot:
        first = queue(app).selected_bead
        for key in "2635216":
            app.post_message(events.Key(key, key))
            for _ in range(rest):
                await asyncio.sleep(0)
        await until(pilot, lambda: isinstance(app.screen, JournalScreen))
        for _ in range(20):
            await pilot.pause()
        assert isinstance(app.screen, JournalScreen), "the last key goes to the last screen"
        await queued(pilot, ["1", "j", "j", "k"])
        await until(pilot, lambda: isinstance(app.screen, QueueScreen))
        await until(pilot, lambda: queue(app).selected_bead != first)


async def test_a_deed_that_went_away_cannot_be_chosen(console: MakeConsole) -> None:
    done: list[str] = []
    deeds = [Choice("", "", name, "", partial(done.append, name)) for name in ("pause", "stop", "stop now")]
    app = console()
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        sheet = ChoiceSheet("t", deeds)
        app.push_screen(sheet)
        await pilot.pause()
        sheet.list.action_last()
        sheet.list.action_open()
        sheet.choices = tuple(deeds[:2])
        await pilot.pause()
        assert app.screen is sheet
        assert [note.message for note in app.told] == ["no longer available: stop now"]
        sheet.list.action_first()
        sheet.list.action_open()
        sheet.choices = (deeds[1], deeds[0])
        await pilot.pause()
        assert done == ["pause"], "what stood in the row, not what has its place now"


@pytest.mark.parametrize("typed", ["", "what"])
async def test_brackets_in_a_command_are_text(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    offered = [Command("ask: what is [/x] in [red]", "a [/y] of [bold]", "help")]
    monkeypatch.setattr(Console, "_commands", lambda *_: offered)
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+p", *typed)
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.sees("ask: what is [/x] in [red]")
        assert app.sees("a [/y] of [bold]")


async def test_what_opens_again_while_it_still_goes_is_another_one(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        app.push_screen(first := CommandsSheet([], {}, print))
        await pilot.pause()
        going = first.dismiss()
        app.action_command_palette()  # the first one has not been removed yet
        await going
        await pilot.pause()
        assert isinstance(app.screen, CommandsSheet)
        assert app.screen is not first
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen))
        await app.action_go_to()
        line = app.screen.query_one(Prompt)
        app._line, removed = None, line.remove()
        await app.action_go_to()
        await removed
        assert app.screen.query_one(Prompt) is not line


async def test_keys_that_come_while_the_console_leaves_open_nothing(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        opened = set(app.opened)
        app.leaving = True  # what leaving notes first; Textual closes the screens after it
        await queued(pilot, ["3", "5"])
        assert set(app.opened) == opened


async def test_of_sizes_that_came_at_once_the_last_one_holds(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[Size] = []
    lay_out = Screen._screen_resized

    def resized(screen: Screen[Any], size: Size) -> None:
        sizes.append(size)
        if len(sizes) < 100:  # without an end where each asks for the other
            lay_out(screen, size)

    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await pilot.pause()
        monkeypatch.setattr(Screen, "_screen_resized", resized)
        app._size = last = Size(60, 24)
        for size in (Size(8, 3), last, Size(8, 3)):
            app.screen.post_message(events.Resize(size, size))
            app.screen.call_later(lambda: None)
        await asyncio.sleep(0.5)
        assert len(sizes) < 5
        assert set(sizes) == {last}


async def test_of_two_choices_with_one_label_enter_takes_the_one_under_the_cursor(console: MakeConsole) -> None:
    app = console()
    done: list[str] = []
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(ChoiceSheet("t", [Choice("", "", "same", "", partial(done.append, name)) for name in "abc"]))
        await pilot.pause()
        await queued(pilot, ["down", "enter"])
        await pilot.pause()
    assert done == ["b"]
