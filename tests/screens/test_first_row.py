"""A change of order, view or filter goes to the first row; a reload, and the way back, keep the selection."""

from __future__ import annotations

from typing import cast

import pytest
from textual.pilot import Pilot

from helix_tui.screens.queue.queue_screen import QueueScreen
from tests.screens.conftest import Console, MakeConsole

FAR = "demo-00000008"


def queue(app: Console) -> QueueScreen:
    return cast(QueueScreen, app.screen)


async def type_text(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*("space" if char == " " else char for char in text))


@pytest.mark.parametrize(
    "keys", [("o", "4"), ("V", "1"), ("V", "3"), ("right_square_bracket",), ("slash", "d", "enter")]
)
async def test_another_order_view_or_filter_starts_at_its_first_row(
    console: MakeConsole, keys: tuple[str, ...]
) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to(FAR)
        await pilot.press(*keys)
        await pilot.pause()
        assert queue(app).list.selected_index == 0
        second = queue(app).list.source.key(1)
        queue(app).list.select(second)
        app.feed.look()
        await pilot.pause()
        assert queue(app).list.selected_key == second


@pytest.mark.long
async def test_a_filter_that_is_left_gives_the_row_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to(FAR)
        await pilot.press("slash")
        await type_text(pilot, "status:open")
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).selected_bead == FAR
        await pilot.press("slash")
        await type_text(pilot, "status:open")
        await pilot.press("enter", "j")
        here = queue(app).selected_bead
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).filter.text == ""
        assert queue(app).selected_bead == here


@pytest.mark.parametrize("width", [80, 120, 160])
@pytest.mark.parametrize(("order", "head"), [("holds", "hold"), ("p", "P"), ("-age", "age"), ("updated", "upd")])
async def test_the_list_shows_what_it_is_ordered_by(console: MakeConsole, width: int, order: str, head: str) -> None:
    app = console()
    async with app.run_test(size=(width, 40)) as pilot:
        queue(app).filter_with(f"order:{order}")
        await pilot.pause()
        assert app.sees(f"{'▴' if order[0] == '-' else '▾'}{head}")


async def test_a_narrow_list_shows_the_figure_it_is_ordered_by(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(48, 40)) as pilot:
        assert not app.sees("P0      4")
        queue(app).filter_with("order:holds")
        await pilot.pause()
        assert app.sees("P0      4")


async def test_a_bead_that_closed_under_the_cursor_leaves_its_row_once_the_cursor_has(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        key = queue(app).selected_bead or ""
        tracker = app.root / ".ddx" / "beads.jsonl"
        lines = tracker.read_bytes().decode("utf-8", "surrogateescape").split("\n")
        rows = [
            line.replace('"status": "open"', '"status": "closed"') if f'"id": "{key}"' in line else line
            for line in lines
        ]
        assert rows != lines
        tracker.write_bytes("\n".join(rows).encode("utf-8", "surrogateescape"))
        app.feed.look()
        await pilot.pause()
        assert queue(app).selected_bead == key
        await pilot.press("j")
        await pilot.pause()
        assert queue(app).list.source.index(key) is None
