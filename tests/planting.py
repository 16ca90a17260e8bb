"""What tests need that plant an exception: the exception, what was said and logged of it, what must go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from helix_tui.core.ground import log as logs
from helix_tui.screens.journal import JournalScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from tests.screens.conftest import Console, MakeConsole, console

__all__ = ["console"]


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


async def rests(app: Console, pilot: Any) -> None:
    """Wait until nothing runs; what was planted may fail while it is waited for."""
    for _ in range(3):
        await pilot.pause()
        with suppress(WorkerFailed):
            await app.workers.wait_for_complete()
    await pilot.pause()


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
    if hasattr(app, "feed"):
        app.feed.look()
        await pilot.pause()
    assert app.is_running


@asynccontextmanager
async def surviving(make: MakeConsole) -> AsyncIterator[tuple[Console, Any]]:
    """A console in which something is planted; at the end of the block everything else of it must work."""
    app = make()
    async with app.run_test(size=(110, 34), notifications=True) as pilot:
        _give_to_console(app, pilot)
        yield app, pilot
        await pilot.pause()
        await still_works(app, pilot)


def _give_to_console(app: Console, pilot: Pilot[int]) -> None:
    """What fails while a pilot pauses goes where it would have gone.

    A pilot draws the screen itself if it is quicker than the screen's own timer, whose exceptions come to the app.
    """
    pause = pilot.pause

    async def paused(delay: float | None = None) -> None:
        try:
            await pause(delay)
        except Planted as error:
            app.failed(error)

    pilot.pause = paused  # type: ignore[method-assign]
