"""Every key that changes the queue on several marked beads: one command a bead, shown before it runs."""

from __future__ import annotations

from typing import cast

import pytest

from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.queue.queue_screen import QueueScreen
from tests.screens.conftest import MakeConsole
from tests.screens.test_curating import ahead, press, thought, toasts, tracker

pytestmark = pytest.mark.long

MARKED = ("demo-a", "demo-c", "demo-d")

KEYS: dict[str, tuple[list[str], list[str]]] = {
    "e": (["e"], [f"bead update {it} --set execution-eligible=false" for it in MARKED]),
    "+": (["+"], [f"bead update {it} --priority {n}" for it, n in zip(MARKED, (0, 1, 1), strict=True)]),
    "s": (["s", *"phi", "enter"], [f"bead update {it} --set superseded-by=demo-f" for it in MARKED]),
    "d": (["d", *"phi", "enter"], [f"bead dep add {it} demo-f" for it in MARKED]),
    "d the other way": (
        ["d", "tab", *"phi", "enter"],
        [f"bead dep add demo-f {it}" for it in MARKED],
    ),
    "p": (["p", *"epsi", "enter"], [f"bead update {it} --parent demo-e" for it in ("demo-a", "demo-c")]),
    "p none": (["p", "enter"], ["bead update demo-d --parent ''"]),
    "#": (["#", *"new", "enter"], ["bead update demo-a --labels area:one,new"]),
    "c": (["c"], [f"bead update {it} --claim" for it in MARKED]),
    "x": (["x", "x"], [f"bead close {it}" for it in MARKED]),
    "w": (["w"], [f"bead close {it}" for it in MARKED]),
}


async def test_marked_beads_are_changed_together(console: MakeConsole) -> None:
    app = console(tracker())
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        queue = cast(QueueScreen, app.screen)
        stands = (app.root / ".ddx" / "beads.jsonl").read_bytes()
        for name, (keys, commands) in KEYS.items():
            queue.marked = frozenset(MARKED)
            await press(pilot, *keys)
            assert isinstance(app.screen, PreviewSheet), (name, toasts(app))
            shown = ahead(app).split("\n")
            assert {f"ddx {command}" for command in commands} <= set(shown), (name, shown)
            await press(pilot, "y")
            assert app.clipboard == "\n".join(shown), name
            await press(pilot, "escape")
            assert queue.marked == frozenset(MARKED), "what was left may still be wanted"
        assert (app.root / ".ddx" / "beads.jsonl").read_bytes() == stands
