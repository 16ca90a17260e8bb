"""An exception planted in the handlers of Needs me, notifications, questions, comparison, tour and saved views."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.statements.notifications import NewsWatch
from helix_tui.screens.help import Tour, TourCard
from helix_tui.screens.needs.actions import BesideQueue, QuestionSheet
from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.screens.watch import Notifier
from helix_tui.settings.views import SavedView, ViewBook
from helix_tui.widgets.text.attempt_evidence import ComparisonPane
from tests.planting import _hear, _log, lines, plant, rests, surviving
from tests.screens.conftest import Console, MakeConsole, console
from tests.screens.loop_host import Attempts

__all__ = ["_hear", "_log", "console"]

pytestmark = [pytest.mark.plants, pytest.mark.long]

BEAD = json.dumps({"id": "demo-00000001", "title": "a bead"})


@pytest.mark.parametrize(
    ("keys", "handler"),
    [
        (["A"], "action_accept"),
        (["a"], "action_actions"),
        (["space"], "action_mark"),
        (["slash", "x"], "filter_with"),
        (["escape"], "action_step_back"),
        ([], "show_snapshot"),
        ([], "compose_body"),
    ],
)
async def test_needs_me(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, keys: list[str], handler: str) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(NeedsScreen, handler, plant)
            await pilot.press("exclamation_mark", *keys)
            app.feed.look()
            await rests(app, pilot)
        assert "Needs" in lines(app)[-1]
        await pilot.press("escape", "escape")


@pytest.mark.parametrize("in_thread", [True, False])
async def test_job_of_needs_me(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, in_thread: bool) -> None:
    async with surviving(console) as (app, pilot):
        await pilot.press("exclamation_mark")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, NeedsScreen)
        with monkeypatch.context() as patched:
            if not in_thread:
                patched.setattr(NeedsScreen, "_did", plant)
            screen._job(BesideQueue(plant if in_thread else lambda: "done", plant))
            await rests(app, pilot)
        await pilot.press("escape")


@pytest.mark.parametrize("handler", ["see", "tick", "_tell", "_say"])
async def test_notifications(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, handler: str) -> None:
    note: Any = type("Note", (), {"keys": ("k",), "event": "run", "document": lambda *_: {}})()
    async with surviving(partial(console, look_out="live")) as (app, pilot):
        notifier = app.notifier
        with monkeypatch.context() as patched:
            patched.setattr(Notifier, handler, plant)
            patched.setattr(NewsWatch, "see", lambda *_, **__: [note])
            if handler == "tick":
                app.call_later(app._tick)
            else:
                app.call_later(lambda: notifier.see(app.snapshot, app.needs))
            await rests(app, pilot)


@pytest.mark.parametrize("handler", ["_read", "_take", "write", "_write_attempt"])
async def test_question_sheet(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, handler: str) -> None:
    async with surviving(console) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(QuestionSheet, handler, plant)
            about = Attempt("20260821T100000-aaaa0001", "demo-00000001")
            app.push_screen(QuestionSheet("answer", [], "which?", attempt=about, root=app.root))
            await rests(app, pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize("handler", ["show_comparison", "build"])
async def test_comparison(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, handler: str) -> None:
    def make() -> Console:
        app = console([BEAD])
        attempts = Attempts(app.root)
        for number in range(2):
            attempts.attempt(f"20260821T19000{number}-aaaa0001", "demo-00000001", result={"status": "execution_failed"})
        return app

    async with surviving(make) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(ComparisonPane, handler, plant)
            await pilot.press("2", "left_square_bracket")
            for _ in range(200):
                await rests(app, pilot)
                if lines(app):
                    break


@pytest.mark.parametrize(
    ("handler", "keys"),
    [
        ("go_on", ["ctrl+t"]),
        ("pressed", ["j"]),
        ("show_on", ["2", "1", "5"]),
        ("said", ["ctrl+t"]),
        ("leave", ["ctrl+x"]),
    ],
)
async def test_a_tour_that_fails_is_over(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, handler: str, keys: list[str]
) -> None:
    async with surviving(console) as (app, pilot):
        app.is_demo = True
        app.begin_tour()
        await pilot.pause()
        with monkeypatch.context() as patched:
            patched.setattr(Tour, handler, plant)
            await pilot.press(*keys)
            await rests(app, pilot)
        assert app.tour is None
        assert bool(app.screen.query(TourCard)) == (handler == "leave")


@pytest.mark.parametrize("handler", ["render_line", "show", "on_resize"])
async def test_card_of_the_tour(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, handler: str) -> None:
    async with surviving(console) as (app, pilot):
        app.is_demo = True
        with monkeypatch.context() as patched:
            patched.setattr(TourCard, handler, plant)
            app.call_later(app.begin_tour)
            await pilot.pause()
            await pilot.resize_terminal(100, 40)
            await rests(app, pilot)
        app.end_tour()
        await pilot.pause()


@pytest.mark.parametrize(
    ("owner", "handler", "keys"),
    [
        (QueueScreen, "action_views", ["V"]),
        (QueueScreen, "show_saved", ["V", "1"]),
        (QueueScreen, "show_saved", ["f6"]),
        (QueueScreen, "_save", ["V", "S", "b", "enter"]),
        (QueueScreen, "_remove", ["V", "D"]),
        (ViewBook, "write", ["V", "S", "b", "enter"]),
        (QueueScreen, "action_sort", ["o"]),
    ],
)
async def test_saved_views(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, owner: type, handler: str, keys: list[str]
) -> None:
    book = ViewBook([SavedView("mine", "type:bug", key="f6")])
    book.keep(SavedView("kept", "type:task"))
    async with surviving(partial(console, view_book=book)) as (app, pilot):
        with monkeypatch.context() as patched:
            patched.setattr(owner, handler, plant)
            await pilot.press(*keys)
            await rests(app, pilot)
