"""Start a console that tells on SIGUSR1 what each of its tasks waits for, and all the time which keys are bound now.

Of a loop, threads show one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from textual.app import ScreenStackError

from helix_tui.app import HelixApp
from helix_tui.cli.program import main

BOUND_KEYS = "DRILL_BOUND_KEYS"
"""Names the file in which the keys are written down, with blanks between them."""


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
    for name in ("_batch_count", "_running", "leaving", "_closed", "_size", "_resize_event", "_resize_timer"):
        yield name, getattr(app, name)
    for screen in app.opened:
        for name in ("_layout_required", "_repaint_required", "_dirty_widgets", "_size", "is_current"):
            yield f"{screen} {name}", getattr(screen, name)


_apps: list[HelixApp] = []
"""Those that were made: to look for them among all objects from another thread meets tuples that are not done."""


def note_app(app: HelixApp, *given: Any, **options: Any) -> None:
    """Make an app, and remember it."""
    _apps.append(app)
    _make(app, *given, **options)


_make = HelixApp.__init__


def tell_keys(path: Path) -> None:
    """Write down ten times a second which keys the open screen has."""
    clock, other = threading.Event(), path.with_suffix(".new")
    while not clock.wait(0.1):
        # the screen may be leaving: the keys of before are still there then
        with contextlib.suppress(ScreenStackError, RuntimeError, KeyError, AttributeError):
            other.write_text(" ".join(sorted(_apps[-1].screen.active_bindings if _apps else ())))
            other.replace(path)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    if keys := os.environ.get(BOUND_KEYS):
        HelixApp.__init__ = note_app  # type: ignore[method-assign, assignment]
        threading.Thread(target=tell_keys, args=(Path(keys),), daemon=True).start()
    sys.exit(main())
