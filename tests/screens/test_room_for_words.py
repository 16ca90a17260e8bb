"""Nothing lies over text that one is told to read: notices, prompts, choosers and the tour have lines of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widget import Widget

from helix_tui.screens.help import STEPS, TourCard
from helix_tui.settings.layout import Layout
from helix_tui.widgets.chrome.notices import NoticeText
from tests.screens.conftest import Console, MakeConsole


def overlapping(app: Console) -> list[tuple[Widget, Widget]]:
    """Pairs of shown widgets without children that share a cell."""
    leaves = [leaf for leaf in app.screen.query("*") if leaf.region.area and leaf.visible and not leaf.children]
    return [
        (first, second)
        for place, first in enumerate(leaves)
        for second in leaves[place + 1 :]
        if first.region.intersection(second.region).area
    ]


@pytest.mark.parametrize("size", [(48, 40), (80, 24), (120, 40), (160, 48)])
@pytest.mark.parametrize("keys", [(), ("slash",), ("N",), ("w",), ("o",), ("J",), ("colon",), ("exclamation_mark",)])
async def test_a_notice_lies_over_nothing(console: MakeConsole, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    app = console()
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press(*keys)
        app.say("memories: 1 credited, 1 proposed", "warning")
        await pilot.pause()
        await pilot.pause()
        toast = app.screen.query_one(NoticeText)
        assert toast.region.height
        assert not [pair for pair in overlapping(app) if toast in pair]


@pytest.mark.long
async def test_a_notice_is_shown_on_the_screen_that_one_goes_to_and_gone_on_the_one_that_one_comes_back_to(
    console: MakeConsole,
) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        app.say("kept for a moment")
        await pilot.pause()
        assert app.sees("kept for a moment")
        await pilot.press("2")
        await pilot.pause()
        assert app.sees("kept for a moment")
        app.clear_notifications()
        await pilot.press("1")
        await pilot.pause()
        assert not app.sees("kept for a moment")


@pytest.mark.long
async def test_the_tour_stays_readable_while_one_types_what_it_says(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.is_demo = True
        await app.action_tour()
        for _ in range(3):
            await pilot.press("ctrl+t")
        assert STEPS[3].title == "finding"
        await pilot.press("slash")
        await pilot.pause()
        card = app.screen.query_one(TourCard)
        assert app.sees("Press /, type ready:yes and enter")
        assert not [pair for pair in overlapping(app) if card in pair]
        await pilot.press(*"ready", "colon", *"yes", "enter")
        assert app.tour is not None
        assert app.tour.place == 3
        await pilot.press("escape")
        assert app.tour.place == 4


async def test_a_tour_that_was_asked_for_is_not_replaced_by_its_offer(console: MakeConsole, tmp_path: Path) -> None:
    app = console(kept=Layout(tmp_path / "layout.json"))
    async with app.run_test(size=(120, 40)):
        app.is_demo = True
        app.begin_tour()
        app.offer_tour()
        assert app.tour is not None
        assert not app.tour.offered
        assert not app.kept.first_start


async def test_a_tour_without_room_says_what_it_needs(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(48, 40), notifications=True) as pilot:
        app.begin_tour()
        await pilot.pause()
        await pilot.pause()
        assert app.sees("The tour needs 60 columns and 20 lines")


@pytest.mark.long
async def test_a_place_that_does_not_exist_is_called_not_found_while_it_is_typed(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"zzqx")
        await pilot.pause()
        assert app.sees("nothing found")
        await pilot.press(*["backspace"] * 4)
        await pilot.pause()
        assert not app.sees("nothing found")


async def test_a_notice_that_is_over_gives_its_lines_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        panes = app.screen.query_one("#panes")
        before = panes.region
        app.notify("memories: 1 credited")
        await pilot.pause()
        await pilot.pause()
        assert panes.region.height == before.height - 1
        await pilot.press("w")  # a sheet over it
        app.clear_notifications()
        await pilot.pause()
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        await pilot.pause()
        assert panes.region == before
