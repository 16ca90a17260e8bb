"""A console that is used for days keeps nothing of a visit: what was made for it is gone with it."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
from collections import Counter
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.timer import Timer

from tests.screens.conftest import Console, MakeConsole

pytestmark = pytest.mark.long

VISITS = (
    "1 g j enter ] [ escape V escape o escape C escape a escape w escape slash r e a escape",
    "! g j a escape Z escape escape 2 g j enter ] [ escape space j space escape",
    "3 g j enter ] [ escape 4 i w h y escape ] [ escape 5 ] [ g j enter escape slash escape",
    "6 g j enter escape ? slash q escape escape L escape > escape",
    "ctrl+p q u escape colon f e escape colon t o u r enter ctrl+t ctrl+x 1",
)
"""Every screen, sheet, prompt and palette, looked into and left."""

FIRST, MORE = 2, 3
"""Rounds in which modules load and caches fill, and those counted."""


async def _round(app: Console, pilot: Any) -> None:
    for key in " ".join(VISITS).split():
        await pilot.press(key)
        while any(worker.is_running for worker in app.workers):
            await pilot.pause(0.005)
    await pilot.pause()


def _counted() -> tuple[Counter[str], dict[str, int]]:
    """Objects of classes that stand for a part of the console, and what the process holds of the system."""
    gc.collect()
    kinds = (MessagePump, StylesCache, Timer, sqlite3.Connection)
    alive = gc.get_objects()
    found = Counter(
        type(one).__qualname__
        for one in alive
        if isinstance(one, kinds) or str(type(one).__module__).startswith("helix_tui")
    )
    strips = sum(type(one) is Strip for one in alive)
    held = {"threads": threading.active_count(), "descriptors": len(os.listdir("/proc/self/fd")), "strips": strips}
    return found, held | {"tasks": len(asyncio.all_tasks())}


@pytest.mark.nightly
async def test_a_round_through_everything_leaves_nothing(console: MakeConsole) -> None:
    app = console()
    app.is_demo = True
    async with app.run_test(size=(140, 44)) as pilot:
        for _ in range(FIRST):
            await _round(app, pilot)
        before, held = _counted()
        for _ in range(MORE):
            await _round(app, pilot)
        after, holds = _counted()
        strips = holds.pop("strips") - held.pop("strips")
        assert {name: more for name, more in (after - before).items() if more >= MORE} == {}
        assert {name: more for name, more in holds.items() if more > held[name]} == {}
        assert strips < 20 * MORE


async def test_a_console_that_was_left_leaves_no_thread(console: MakeConsole) -> None:
    before = set(threading.enumerate())
    app = console()
    async with app.run_test(size=(140, 44)) as pilot:
        await pilot.press("1", "+")
        while any(worker.is_running for worker in app.workers):
            await pilot.pause(0.005)
        await pilot.press("escape", "4")
        await pilot.pause()
    shared = "asyncio_", "helix-encoder-idle"  # the loop's own, and one for the process
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith(shared):
            thread.join(5)
            assert not thread.is_alive(), thread.name
