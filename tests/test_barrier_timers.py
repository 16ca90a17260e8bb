"""A timer that fires once does so however busy the machine is: what is drawn may wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from textual import _time
from textual.events import Resize
from textual.geometry import Size

from tests.screens.conftest import MakeConsole, console

__all__ = ["console"]


@pytest.fixture(autouse=True)
def _held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a timer that fires once loses the processor for a second just then."""
    now: Callable[[], float] = _time.get_time
    begun: set[object] = set()

    def get_time() -> float:
        task = asyncio.current_task()
        name = task.get_name() if task is not None else ""
        if not name.startswith(("set_timer", "delay_update")):
            return now()
        is_first = task not in begun
        begun.add(task)
        return now() - 1.0 if is_first else now()

    monkeypatch.setattr(_time, "get_time", get_time)


async def until(holds: Callable[[], bool]) -> bool:
    for _ in range(100):
        if holds():
            return True
        await asyncio.sleep(0.02)  # a pilot's pause would lay out and draw the screen itself
    return False


async def test_what_waits_for_a_timer_comes(console: MakeConsole) -> None:
    fired: list[int] = []
    async with console().run_test() as pilot:
        pilot.app.set_timer(0.05, lambda: fired.append(1))
        assert await until(lambda: fired == [1])


async def test_drawing_goes_on_after_a_command_of_the_palette(console: MakeConsole) -> None:
    async with console().run_test() as pilot:
        pilot.app.delay_update()
        assert await until(lambda: not pilot.app._batch_count)


async def test_a_new_size_is_drawn(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)):
        for size in ((80, 24), (90, 20)):
            app.post_message(Resize(Size(*size), Size(*size)))
            assert await until(lambda: app.screen.size == size and not app._resize_timer)  # noqa: B023
