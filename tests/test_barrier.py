"""An exception planted in each class of handler: the console goes on, says one line, and logs the trace."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from helix_tui.barrier import LIMIT, RECENT
from helix_tui.core import logs
from helix_tui.screens.curating.choosing import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.curating.sheet import Sheet
from helix_tui.screens.dismissal import Palette
from helix_tui.screens.journal import JournalScreen
from helix_tui.screens.queue import QueueScreen
from helix_tui.widgets.curation.page import Page
from helix_tui.widgets.lists.rowlist import RowList
from tests.screens.conftest import Console, MakeConsole, console
from tests.screens.test_queue import queue

__all__ = ["console"]

pytestmark = pytest.mark.plants


class Planted(Exception):
    """What these tests raise."""


def plant(*_: object, **__: object) -> Any:
    raise Planted("a defect")


@pytest.fixture(autouse=True)
def _log(tmp_path: Path) -> Iterator[None]:
    logs.begin(tmp_path, process="test")
    yield
    logs.end()


def trace() -> str:
    """What stands in the log."""
    return logs.log_file().read_text() if logs.log_file().exists() else ""


SAID: list[str] = []
"""What consoles have said in this test; their own list forgets after seconds."""


@pytest.fixture(autouse=True)
def _hear(monkeypatch: pytest.MonkeyPatch) -> None:
    SAID.clear()
    notify = Console.notify

    def heard(app: Console, message: str, **options: Any) -> None:
        SAID.append(message)
        notify(app, message, **options)

    monkeypatch.setattr(Console, "notify", heard)


def lines(app: Console) -> list[str]:
    """What the console has said."""
    return SAID


async def sees(app: Console, pilot: Any, text: str, *, gone: bool = False) -> None:
    """Wait until a text is on the screen, or until it is gone."""
    for _ in range(100):
        if app.sees(text) is not gone:
            return
        assert app.is_running, trace()
        await pilot.pause()
    pytest.fail("\n".join(app.rows()))


async def still_works(app: Console, pilot: Any) -> None:
    """Other screens open, keys are heard, news arrive, and one line was said of what failed."""
    assert app.is_running
    assert "Planted: a defect" in trace()
    assert "Traceback" in trace()
    said = [line for line in lines(app) if "Planted" in line]
    assert len(said) == 1, lines(app)
    assert said[0].startswith("could not ")
    assert logs.shown_file() in said[0]
    await pilot.press("6")
    await pilot.pause()
    assert isinstance(app.screen, JournalScreen)
    await pilot.press("1")
    await pilot.pause()
    assert isinstance(app.screen, QueueScreen)
    before = app.screen.list.selected_key
    await pilot.press("G")
    await pilot.press("g")
    await pilot.press("j")
    await pilot.pause()
    assert app.screen.list.selected_key is not None
    assert before is not None
    app.feed.look()
    await pilot.pause()
    assert app.is_running


SIZE: dict[str, Any] = {"size": (110, 34), "notifications": True}


async def test_key_action(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "action_copy_id", plant)
            await pilot.press("y")
            await pilot.pause()
        assert "key y on Queue" in lines(app)[0]
        await still_works(app, pilot)


@pytest.mark.parametrize("name", ["on_key", "on_mouse_move", "on_click"])
async def test_event_of_a_widget(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(RowList, name, plant, raising=False)
            await pilot.press("j")
            await pilot.hover(RowList)
            await pilot.click(RowList, offset=(3, 3))
            await pilot.pause()
        await still_works(app, pilot)


async def test_message_handler(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        queue(app).on_custom = plant  # type: ignore[attr-defined]
        queue(app).post_message(events.Print("x"))
        queue(app).call_next(plant)
        after: list[int] = []
        queue(app).call_next(after.append, 1)
        await pilot.pause()
        assert after == [1], "what waits behind it is called too"
        await still_works(app, pilot)


async def test_widget_of_textual_goes_on_listening(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


async def test_timer(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        done = asyncio.Event()

        def once() -> None:
            done.set()
            plant()

        queue(app).set_timer(0.001, once)
        await asyncio.wait_for(done.wait(), 5)
        await pilot.pause()
        await still_works(app, pilot)


async def test_interval_that_fails_each_time_is_told_once(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


@pytest.mark.parametrize("thread", [True, False])
async def test_worker(console: MakeConsole, thread: bool) -> None:
    app = console()

    async def coroutine() -> None:
        plant()

    async with app.run_test(**SIZE) as pilot:
        worker = queue(app).run_worker(plant if thread else coroutine, thread=thread)
        while not worker.is_finished:
            await pilot.pause()
        await pilot.pause()
        await still_works(app, pilot)


async def test_thread_of_ours(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        thread = threading.Thread(target=plant)
        thread.start()
        await asyncio.to_thread(thread.join)
        await pilot.pause()
        await still_works(app, pilot)


async def test_task_that_nobody_waits_for(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        asyncio.get_running_loop().call_soon(plant)
        await pilot.pause()
        await still_works(app, pilot)


@pytest.mark.parametrize("name", ["render_line", "render_lines"])
async def test_render(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


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
    app = console()
    async with app.run_test(**SIZE) as pilot:
        widget = _Late()
        widget.fails = fails
        await queue(app).mount(widget)

        def change() -> None:
            widget.value = 1

        widget.call_later(change)
        await pilot.pause()
        await pilot.pause()
        await still_works(app, pilot)


async def test_recompose(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        widget = _Late()
        await queue(app).mount(widget)
        widget.fails = "compose"
        widget.refresh(recompose=True)
        await pilot.pause()
        await pilot.pause()
        await still_works(app, pilot)


async def test_layout_that_fails_puts_a_notice_on_the_screen(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


async def test_screen_that_cannot_be_composed(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


async def test_screen_that_cannot_be_made(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(JournalScreen, "__init__", plant)
            await pilot.press("6")
            await pilot.pause()
            assert isinstance(app.screen, QueueScreen)
        await still_works(app, pilot)


async def test_news_that_one_screen_cannot_show(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(QueueScreen, "show_snapshot", plant)
            (app.root / ".ddx" / "beads.jsonl").write_text('{"id": "demo-00000001", "title": "another"}\n')
            app.feed.look()
            await pilot.pause()
        await still_works(app, pilot)


async def test_snapshot_hook_in_the_thread_of_the_feed(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        app.prepare = plant
        app.feed.look()
        await pilot.pause()
        app.prepare = None
        await still_works(app, pilot)


async def test_screen_that_fails_again_and_again_is_replaced(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
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
        await still_works(app, pilot)


class _Broken(Sheet):
    """A sheet whose page cannot be written."""

    def write(self, page: Page) -> None:
        plant()


def _sheets() -> dict[str, Callable[[], Sheet]]:
    return {
        "written": lambda: _Broken("t"),
        "choice": lambda: ChoiceSheet("t", [Choice("enter", "a", "do", "", plant)]),
        "line": lambda: LineSheet("t", "lead", plant),
    }


@pytest.mark.parametrize("make", _sheets().values(), ids=_sheets())
async def test_sheet_that_fails_is_closed(console: MakeConsole, make: Callable[[], Sheet]) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        app.push_screen(make())
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        await still_works(app, pilot)


async def test_sheet_that_cannot_be_drawn_is_closed(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        sheet = LineSheet("t", "lead", plant)
        monkeypatch.setattr(sheet.caption, "render_line", plant)
        app.push_screen(sheet)
        await pilot.pause()
        await pilot.pause()
        assert len(app.screen_stack) == 1
        await still_works(app, pilot)


async def test_palette(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console()
    async with app.run_test(**SIZE) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(Palette, "_gather_commands", plant)
            await pilot.press("ctrl+p")
            await pilot.pause()
            assert not isinstance(app.screen, Palette)
        await still_works(app, pilot)


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
    app = console()
    async with app.run_test(**SIZE) as pilot:
        RECENT.clear()
        app.call_later(plant)
        await pilot.pause()
        assert [str(error) for error in RECENT] == ["a defect"]
