"""Work in threads leaves nothing behind once it is done."""

from __future__ import annotations

import gc
import weakref

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
