"""The Loop screen's list in other orders and other columns, as keys choose them."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.settings.layout import Layout
from helix_tui.widgets.rows.attempt_table import SORTS
from tests.screens.loop_host import Busy, open_loop, settled

pytestmark = pytest.mark.long


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Every kind of end."""
    Busy(tmp_path)
    return tmp_path


async def test_o_orders_the_list_and_the_same_again_turns_it_round(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        for expected in (12.34, 0.02):
            await pilot.press("o", "c")
            await settled(pilot)
            known = [attempt.cost_usd for attempt in app.loop.stream.order.attempts if attempt.cost_usd is not None]
            assert known[0] == expected
            assert app.sees("by cost")
        await pilot.press("o", "m")
        await settled(pilot)
        assert app.sees(" sonnet")
        await pilot.press("o", "t")
        await settled(pilot)
        assert app.sees(" Today")


async def test_columns_are_chosen_and_kept(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        assert "bead" not in [column.name for column in app.loop.list.board.columns(100)]
        await pilot.press("C")
        await settled(pilot)
        await pilot.press("G", "space")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert app.loop.chosen_columns is not None
        added = app.loop.chosen_columns[-1]
        assert added in [column.name for column in app.loop.list.board.columns(160)]


async def test_h_folds_a_day_to_its_sums(project: Path) -> None:
    app = open_loop(project)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("G", "h")
        await settled(pilot)
        assert app.sees("▸ Yesterday")
        assert not app.sees("quantum")
        await pilot.press("l")
        await settled(pilot)
        assert app.sees("quantum")


async def test_the_order_is_kept_for_the_next_start(project: Path) -> None:
    file = project / "layout.json"
    app = open_loop(project, kept=Layout(file))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("o", "c", "o", "c")
        await settled(pilot)
    again = open_loop(project, kept=Layout(file))
    async with again.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert again.loop.stream.sort == (SORTS["cost"], True)
        assert again.sees("by cost")
