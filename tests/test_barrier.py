"""An exception planted in each class of handler: the console goes on, says one line, and logs the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import MountError, Widget
from textual.widgets import Input

from helix_tui.barrier import LIMIT, RECENT
from helix_tui.screens.commands.palette import CommandsSheet
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.journal import JournalScreen
from helix_tui.screens.memory.memory_screen import MemoryScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.screens.sheet import Sheet
from helix_tui.settings.file import Settings
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.bottom import Prompt
from helix_tui.widgets.text.page import Page
from tests.planting import _hear, _log, lines, plant, rests, sees, surviving, trace
from tests.screens.conftest import Console, MakeConsole, console
from tests.screens.test_queue import queue

__all__ = ["_hear", "_log", "console"]

pytestmark = [pytest.mark.plants, pytest.mark.long]


async def test_key_action(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "action_copy_id", plant)
            await pilot.press("y")
            await pilot.pause()
        assert "key y on Queue" in lines(app)[0]


async def test_a_key_is_called_as_people_write_it(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(RowList, "on_key", plant, raising=False)
            await pilot.press("greater_than_sign")
            await pilot.pause()
        assert "could not handle the key > on Queue" in lines(app)[0]


@pytest.mark.parametrize("name", ["on_key", "on_mouse_move", "on_click"])
async def test_event_of_a_widget(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with surviving(console) as (_, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(RowList, name, plant, raising=False)
            await pilot.press("j")
            await pilot.hover(RowList)
            await pilot.click(RowList, offset=(3, 3))
            await pilot.pause()


async def test_watcher_of_a_value(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of ours, one of Textual's, and somebody else who watches one."""
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(RowList, "watch_has_focus", plant, raising=False)
            app.set_focus(None)
            await pilot.pause()
            app.set_focus(queue(app).list)
            await pilot.pause()


async def test_watcher_that_waits(console: MakeConsole) -> None:
    async def later(*_: object) -> None:
        await asyncio.sleep(0)
        plant()

    async with surviving(console) as (app, pilot):
        queue(app).watch(queue(app).list, "disabled", later, init=False)
        queue(app).list.disabled = True
        await pilot.pause()
        queue(app).list.disabled = False
        await pilot.pause()
        app.set_focus(queue(app).list)


class _FailsToStand(LineSheet):
    """A sheet that fails once it is mounted."""

    def on_mount(self) -> None:
        plant()


class _FailsToCompose(LineSheet):
    """A sheet whose parts cannot be made."""

    def compose(self) -> ComposeResult:
        yield from plant()


@pytest.mark.parametrize("kind", [_FailsToStand, _FailsToCompose])
async def test_sheet_that_cannot_open(console: MakeConsole, kind: type[LineSheet]) -> None:
    async with surviving(console) as (app, pilot):
        app.push_screen(kind("t", "lead", lambda _: None))
        await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen), "what cannot open is closed"


async def test_screen_that_fails_when_it_is_mounted(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (_, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(MemoryScreen, "on_mount", plant, raising=False)
            await pilot.press("3")
            await pilot.pause()


async def test_message_handler(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "on_print", plant, raising=False)
            queue(app).post_message(events.Print("x"))
            await pilot.pause()


async def test_callback(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        queue(app).call_next(plant)
        after: list[int] = []
        queue(app).call_next(after.append, 1)
        await pilot.pause()
        assert after == [1], "what waits behind it is called too"


async def test_widget_of_textual_goes_on_listening(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        field = Input()
        await app.screen.mount(field)
        field.focus()
        with monkeypatch.context() as patched:
            patched.setattr(Input, "insert_text_at_cursor", plant)
            await pilot.press("a")
        await pilot.press("b")
        assert field.value == "b"
        await field.remove()
        queue(app).focus_first()


async def test_timer(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        done = asyncio.Event()

        def once() -> None:
            done.set()
            plant()

        queue(app).set_timer(0.001, once)
        await asyncio.wait_for(done.wait(), 5)
        await pilot.pause()


async def test_interval_that_fails_each_time_is_told_once(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        count = 0
        often = asyncio.Event()

        def each() -> None:
            nonlocal count
            count += 1
            if count == 20:
                often.set()
            plant()

        timer = app.set_interval(0.001, each)
        await asyncio.wait_for(often.wait(), 10)
        timer.stop()
        await pilot.pause()
        assert trace().count("Traceback") == 1


@pytest.mark.parametrize("name", ["render_line", "render_lines"])
async def test_render(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(queue(app).footer, name, plant)
            queue(app).footer.refresh()
            await pilot.pause()
            await pilot.pause()
            await sees(app, pilot, "could not be drawn; f5 tries again")
            for _ in range(2 * LIMIT):
                queue(app).footer.refresh()
                await pilot.pause()
            await sees(app, pilot, "could not be drawn; f5 tries again")
        await pilot.press("f5")
        await pilot.pause()
        if name == "render_line":
            await sees(app, pilot, "could not be drawn", gone=True)


async def test_the_line_of_what_could_not_be_drawn_names_the_key_as_it_was_rebound(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebound = Settings(keymap={"app.try-again": "f9"})
    async with surviving(lambda: console(settings=rebound)) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(queue(app).footer, "render_line", plant)
            queue(app).footer.refresh()
            await pilot.pause()
            await pilot.pause()
            await sees(app, pilot, "could not be drawn; f9 tries again")
        await pilot.press("f9")
        await sees(app, pilot, "could not be drawn", gone=True)


class _Late(Widget):
    """A widget that fails in one of the ways that only come when it is mounted or changed."""

    value = reactive(0)
    fails = ""

    def compose(self) -> ComposeResult:
        if self.fails == "compose":
            plant()
        yield Vertical()

    def on_mount(self) -> None:
        if self.fails == "mount":
            plant()

    def watch_value(self, value: int) -> None:
        if self.fails == "watch" and value:
            plant()

    def get_content_height(self, *_: Any) -> int:
        if self.fails == "layout":
            plant()
        return 1

    def render_line(self, y: int) -> Strip:
        return Strip.blank(self.size.width)


@pytest.mark.parametrize("fails", ["compose", "mount", "watch"])
async def test_widget_that_comes_late(console: MakeConsole, fails: str) -> None:
    async with surviving(console) as (app, pilot):
        widget = _Late()
        widget.fails = fails
        await queue(app).mount(widget)

        def change() -> None:
            widget.value = 1

        widget.call_later(change)
        await pilot.pause()
        await pilot.pause()


async def test_recompose(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        widget = _Late()
        await queue(app).mount(widget)
        widget.fails = "compose"
        widget.refresh(recompose=True)
        await pilot.pause()
        await pilot.pause()


async def test_layout_that_fails_puts_a_notice_on_the_screen(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        widget = _Late()
        widget.styles.height = "auto"
        widget.fails = "layout"
        await queue(app).mount(widget)
        await pilot.pause()
        await pilot.pause()
        await sees(app, pilot, "Queue has failed.")
        await widget.remove()
        await pilot.press("f5")
        await pilot.pause()
        await sees(app, pilot, "Queue has failed.", gone=True)
        assert app.sees("demo-") or app.sees("0000")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(MountError("Can't mount widget(s) before the screen is mounted"), id="mounts"),
        pytest.param(NoMatches("No nodes match 'RowList' on CommandsSheet()"), id="looks for"),
    ],
)
async def test_leaving_between_a_key_and_what_it_works_on_is_no_defect(console: MakeConsole, error: Exception) -> None:
    app = console()
    async with app.run_test(size=(80, 24)):
        app.leaving = True  # what a signal notes at any moment
        app.barrier.caught(error)
        assert not RECENT
        app.leaving = False
        app.barrier.caught(error)
        assert RECENT


async def test_screen_that_cannot_be_composed(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(JournalScreen, "compose_body", plant)
            await pilot.press("6")
            await pilot.pause()
            await pilot.pause()
            await sees(app, pilot, "Journal has failed.")
            await pilot.press("1")
            await pilot.pause()
            assert isinstance(app.screen, QueueScreen)
            await pilot.press("6")
        await pilot.press("f5")
        await pilot.pause()
        await pilot.pause()
        await sees(app, pilot, "has failed", gone=True)


async def test_screen_that_cannot_be_made(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(JournalScreen, "__init__", plant)
            await pilot.press("6")
            await pilot.pause()
            assert isinstance(app.screen, QueueScreen)


async def test_news_that_one_screen_cannot_show(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "show_snapshot", plant)
            (app.root / ".ddx" / "beads.jsonl").write_text('{"id": "demo-00000001", "title": "another"}\n')
            app.feed.look()
            await pilot.pause()


async def test_screen_that_fails_again_and_again_is_replaced(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "action_copy_id", plant)
            for _ in range(LIMIT):
                await pilot.press("y")
                await pilot.pause()
            await pilot.pause()
            await sees(app, pilot, "Queue has failed.")
            await sees(app, pilot, "f5")
        await pilot.press("f5")
        await pilot.pause()
        await sees(app, pilot, "has failed", gone=True)


class _Broken(Sheet):
    """A sheet whose page cannot be written."""

    def write(self, page: Page) -> None:
        plant()


class _Unmounted(LineSheet):
    """A sheet that cannot come up."""

    def on_mount(self) -> None:
        plant()


class _Uncomposed(LineSheet):
    """A sheet without widgets."""

    def compose(self) -> ComposeResult:
        plant()
        yield Vertical()


def _sheets() -> dict[str, Callable[[], Sheet]]:
    return {
        "mounted": lambda: _Unmounted("t", "lead", plant),
        "composed": lambda: _Uncomposed("t", "lead", plant),
        "written": lambda: _Broken("t"),
        "choice": lambda: ChoiceSheet("t", [Choice("enter", "a", "do", "", plant)]),
        "line": lambda: LineSheet("t", "lead", plant),
    }


@pytest.mark.parametrize("make", _sheets().values(), ids=_sheets())
async def test_sheet_that_fails_is_closed(console: MakeConsole, make: Callable[[], Sheet]) -> None:
    async with surviving(console) as (app, pilot):
        app.push_screen(make())
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_sheet_that_cannot_be_drawn_is_closed(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        sheet = LineSheet("t", "lead", plant)
        monkeypatch.setattr(sheet.caption, "render_line", plant)
        app.push_screen(sheet)
        await pilot.pause()
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_palette(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(CommandsSheet, "_offers", plant)
            await pilot.press("ctrl+p")
            await pilot.pause()
            assert not isinstance(app.screen, CommandsSheet)


@pytest.mark.parametrize("keys", [["ctrl+p"], ["ctrl+p", "q", "u"], ["colon"]], ids=["all", "some", "go to"])
async def test_palette_provider(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, keys: list[str]) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(Console, "_commands", plant)
            await pilot.press(*keys)
            await rests(app, pilot)
        await pilot.press("escape")


async def test_chosen_command(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        monkeypatch.setattr(Console, "action_help", plant)
        await pilot.press("colon", *"keys", "enter")
        await pilot.pause()
        assert not app.screen.query(Prompt)


async def test_result_of_a_sheet(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        sheet = LineSheet("t", "lead", lambda _: None)
        app.push_screen(sheet, plant)
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_colours(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(Console, "get_css_variables", plant)
            app.call_later(app.action_use_theme, "helix-paper")
            await pilot.pause()
            await pilot.pause()


@pytest.mark.parametrize("name", ["on_resize", "on_screen_suspend", "on_screen_resume", "on_blur"])
async def test_event_that_nobody_sends_by_hand(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with surviving(console) as (_, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(RowList if name == "on_blur" else QueueScreen, name, plant, raising=False)
            await pilot.resize_terminal(90, 30)
            await pilot.press("6", "1", "tab")
            await pilot.pause()


async def test_wait_that_is_cancelled(console: MakeConsole) -> None:
    """As it is, a cancelled wait ends the loop of whoever waits: the app's own hears no key any more."""
    async with surviving(console) as (app, pilot):

        async def wait() -> None:
            waited: asyncio.Future[None] = asyncio.Future()
            waited.cancel()
            try:
                await waited
            except asyncio.CancelledError:
                raise asyncio.CancelledError("Planted: a defect") from None

        app.call_next(wait)
        await pilot.pause()
        app.call_later(wait)
        await pilot.pause()
        assert "WaitCancelled" in trace()


async def test_who_leaves_by_a_key_leaves_with_0(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueScreen, "on_unmount", plant, raising=False)
    app = console()
    async with app.run_test() as pilot:
        await pilot.press("q")
    assert app.return_code == 0
    assert "Planted" in trace()


def test_who_cannot_draw_at_all_ends_with_70(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = console()
    monkeypatch.setattr(QueueScreen, "__init__", plant)
    app.run(headless=True)
    assert app.return_code == 70
    assert "Planted" in trace()
    out, err = capsys.readouterr()
    assert "the console cannot draw: Planted: a defect" in " ".join((out + err).split())
    assert "Traceback" not in out + err


async def test_what_is_caught_is_known_to_the_suite(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        RECENT.clear()
        app.call_later(plant)
        await pilot.pause()
        assert len(RECENT) == 1
        assert RECENT[0].rstrip().endswith("Planted: a defect")


async def test_a_click_where_the_terminal_no_longer_is_does_nothing(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(110, 34)) as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause()
        palette = app.screen
        click = events.Click(palette, 131, 42, 0, 0, 1, False, False, False, screen_x=131, screen_y=42)
        palette.post_message(click)
        await pilot.pause()
        assert app.screen is palette
    assert not trace()
