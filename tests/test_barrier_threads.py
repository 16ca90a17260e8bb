"""The same for what runs beside the console: workers, jobs, and the threads that read and look out."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from helix_tui.core.ground.project import find_project
from helix_tui.core.snapshot.feed import Live
from tests.planting import _hear, _log, lines, plant, surviving
from tests.screens.conftest import Console, MakeConsole, console
from tests.screens.test_queue import queue

__all__ = ["_hear", "_log", "console"]

pytestmark = [pytest.mark.plants, pytest.mark.long]


@pytest.mark.parametrize("thread", [True, False])
async def test_worker(console: MakeConsole, thread: bool) -> None:
    async def coroutine() -> None:
        plant()

    async with surviving(console) as (app, pilot):
        worker = queue(app).run_worker(plant if thread else coroutine, thread=thread)
        while not worker.is_finished:
            await pilot.pause()
        await pilot.pause()


async def test_thread_of_ours(console: MakeConsole) -> None:
    async with surviving(console) as (_, pilot):
        thread = threading.Thread(target=plant)
        thread.start()
        await asyncio.to_thread(thread.join)
        await pilot.pause()


async def test_task_that_nobody_waits_for(console: MakeConsole) -> None:
    async with surviving(console) as (_, pilot):
        asyncio.get_running_loop().call_soon(plant)
        await pilot.pause()


async def test_job_of_a_screen(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        await pilot.press("4")
        await pilot.pause()
        why: list[str] = []
        app.screen._jobs.start("job", plant, plant, why.append)  # type: ignore[attr-defined]
        while not why:
            await pilot.pause()
        assert why == ["Planted: a defect"]


@pytest.mark.parametrize(
    "place",
    [
        "snapshot.feed.compare",
        "snapshot.feed.folders_to_watch",
        "snapshot.feed.Watcher.__init__",
        "snapshot.feed.Watcher.wait",
        "supervision.decide.monitor.BackgroundMonitor.look",
    ],
)
async def test_thread_that_reads_goes_on(console: MakeConsole, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A watch that fails, a monitor that stumbles: the next look finds what changed."""
    monkeypatch.setattr("helix_tui.core.ground.processes.threads.FIRST_REST_S", 0.01)
    root = console().root
    failed = threading.Event()

    def once(*_: object, **__: object) -> Any:
        patched.undo()
        failed.set()
        plant()

    def make() -> Console:
        app = Console(lambda tell: Live(find_project(root), tell), look_out="live")
        app.root = root
        return app

    async with surviving(make) as (app, pilot):
        while app.snapshot.condition == "loading" or app.monitor is None:
            await pilot.pause()
        with monkeypatch.context() as patched:
            patched.setattr(f"helix_tui.core.{place}", once)
            rows = root / ".ddx" / "beads.jsonl"
            rows.write_text('{"id": "demo-00000001", "title": "another title"}\n')
            await asyncio.to_thread(failed.wait, 30)
        rows.write_text('{"id": "demo-00000001", "title": "the next title"}\n')
        for _ in range(500):
            if app.sees("the next title") and any("Planted" in line for line in lines(app)):
                break
            await pilot.pause(0.05)


async def test_snapshot_hook_in_the_thread_of_the_feed(console: MakeConsole) -> None:
    async with surviving(console) as (app, pilot):
        app.prepare = plant
        app.feed.look()
        await pilot.pause()
        app.prepare = None


@pytest.mark.parametrize("thread", [True, False])
async def test_worker_that_fails_while_the_console_leaves(console: MakeConsole, thread: bool) -> None:
    """It is cancelled, and raises something else on its way out: the console leaves as it would have."""
    began, go_on = threading.Event(), threading.Event()

    def in_a_thread() -> None:
        began.set()
        go_on.wait(30)
        plant()

    async def in_the_loop() -> None:
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            plant()

    app = console()
    async with app.run_test() as pilot:
        queue(app).run_worker(in_a_thread if thread else in_the_loop, thread=thread)
        while not began.is_set():
            await pilot.pause()
        await pilot.press("q")
        go_on.set()
    assert app.return_code == 0
    assert not [line for line in lines(app) if "Traceback" in line]
