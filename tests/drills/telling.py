"""Start a console that tells on SIGUSR1 what each of its tasks waits for: of a loop, threads show one line."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from helix_tui.app import HelixApp
from helix_tui.cli.program import main


def tell(_: int, __: FrameType | None) -> None:
    """Write every task's stack, and what decides whether a frame is drawn, to the terminal."""
    out = sys.__stderr__
    assert out is not None
    tasks: set[asyncio.Task[Any]] = set()
    with contextlib.suppress(RuntimeError):  # the loop has not begun, or has ended
        tasks = asyncio.all_tasks()
    for task in tasks:
        print("TASK", task.get_name(), task.get_coro(), file=out)
        task.print_stack(file=out)
    for app in (found for found in gc.get_objects() if isinstance(found, HelixApp)):
        print("APP", *(f"\n  {name}: {value}" for name, value in _state(app)), file=out)
    out.flush()


def _state(app: HelixApp) -> Iterator[tuple[str, object]]:
    for name in ("_batch_count", "_running", "_exit", "_closed", "_size", "_resize_event", "_resize_timer"):
        yield name, getattr(app, name)
    for screen in (screen for stack in app._screen_stacks.values() for screen in stack):
        for name in ("_layout_required", "_repaint_required", "_dirty_widgets", "_size", "is_current"):
            yield f"{screen} {name}", getattr(screen, name)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    sys.exit(main())
