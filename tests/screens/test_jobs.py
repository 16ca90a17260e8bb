"""Work in threads leaves nothing behind once it is done."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from helix_tui.screens.editing.change_runner import ChangeRunner
from tests.screens.conftest import MakeConsole


class Held:
    """Something that work has in hand."""


async def test_what_a_worker_worked_on_is_gone_without_the_collector(console: MakeConsole) -> None:
    app = console()
    async with app.run_test() as pilot:
        held = Held()
        gone = weakref.ref(held)
        gc.disable()
        try:
            worker = app.run_worker(lambda held=held: id(held), thread=True)
            await worker.wait()
            del worker, held
            await pilot.pause()
            assert gone() is None
        finally:
            gc.enable()


async def test_a_worker_is_named_without_writing_out_what_it_works_on(console: MakeConsole) -> None:
    class Large:
        def __repr__(self) -> str:
            raise AssertionError("a key would wait for this")

    app = console()
    async with app.run_test():
        worker = app.run_worker(partial(id, Large()), thread=True, group="figures")
        await worker.wait()
        assert worker.description == "figures"


def test_a_change_sent_after_the_stop_leaves_the_one_that_runs_stopped() -> None:
    curator: Any = SimpleNamespace(progress=None)
    host: Any = SimpleNamespace(call_later=lambda call, *args: call(*args), show_pending=lambda: None)
    runner = ChangeRunner(host, lambda: curator)
    began, sent = threading.Event(), threading.Event()
    goes_on: list[bool] = []

    def first(*_: object) -> None:
        began.set()
        assert sent.wait(10)
        goes_on.append(curator.progress(1, 2))

    def run(work: Any) -> None:
        runner.run(cast(Any, SimpleNamespace(beads=(), run=work)), cast(Any, None), lambda _: None, lambda _: None)

    run(first)
    assert began.wait(10)
    assert runner.stop()
    run(lambda *_: goes_on.append(curator.progress(1, 2)))
    sent.set()
    assert runner.settle(10)
    assert goes_on == [False, True]
    assert not runner.stop()
    runner.end()
