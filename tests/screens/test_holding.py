"""The cursor is held by id: through filters, a tracker that comes and goes, and views that hide it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_queue import queue, type_text

pytestmark = pytest.mark.long


def without(tracker: Path, *ids: str) -> str:
    """The tracker's text without some of its beads."""
    lines = tracker.read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if not any(f'"id": "{bead_id}"' in line for bead_id in ids))


async def news(app: Console, text: str | None) -> None:
    """Another tracker lies there; None for none."""
    tracker = app.root / ".ddx" / "beads.jsonl"
    tracker.unlink() if text is None else tracker.write_text(text)
    app.feed.look()


async def test_a_filter_called_off_gives_back_the_bead_from_before(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000008")
        await pilot.press("slash")
        await type_text(pilot, "diamond")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-0000000d"
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000008"


async def test_a_filter_without_a_match_gives_the_bead_back_too(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000008")
        await pilot.press("slash")
        await type_text(pilot, "zzz")
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert not queue(app).filter.tests
        assert queue(app).selected_bead == "demo-00000008"


@pytest.mark.parametrize("wrong", ["colour:red", "p<=x", "label<3", "age>soon", "ready:perhaps"])
async def test_a_wrong_term_keeps_the_last_good_result(console: MakeConsole, wrong: str) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.press("slash")
        await type_text(pilot, "route ")
        screen = queue(app)
        screen.prompt._field.value = f"route {wrong}"  # type: ignore[union-attr]
        await pilot.pause()
        assert screen._view.matching == 2
        assert screen.filter_problem(f"route {wrong}")
        assert app.sees(screen.filter_problem(f"route {wrong}")[:30])
        await pilot.press("enter")
        await pilot.pause()
        assert screen.prompt is not None, "it goes on being typed"
        await pilot.press("escape")
        await pilot.pause()
        assert screen.prompt is None
        assert not screen.filter.tests


async def test_the_loop_says_of_a_field_that_it_has_none(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("2", "slash")
        await type_text(pilot, "colour:red")
        await pilot.pause()
        assert app.sees("no field “colour”; there are outcome")


async def test_the_cursor_comes_back_with_the_tracker(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000014")
        await pilot.pause()
        y = queue(app).list.selected_index - queue(app).list._view.top
        text = (app.root / ".ddx" / "beads.jsonl").read_text()
        await news(app, None)
        await pilot.pause()
        assert queue(app).selected_bead is None
        await news(app, text)
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000014"
        assert queue(app).list.selected_index - queue(app).list._view.top == y


async def test_a_bead_that_comes_back_closed_is_still_held(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000014")
        text = (app.root / ".ddx" / "beads.jsonl").read_text()
        await news(app, None)
        await pilot.pause()
        rows = [json.loads(line) if line.endswith("}") else line for line in text.splitlines()]
        for row in rows:
            if isinstance(row, dict) and row["id"] == "demo-00000014":
                row["status"] = "closed"
        await news(app, "".join((json.dumps(row) if isinstance(row, dict) else row) + "\n" for row in rows))
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000014"


async def test_a_bead_that_goes_leaves_the_cursor_near_and_takes_it_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000014")
        place = queue(app).list.selected_index
        tracker = app.root / ".ddx" / "beads.jsonl"
        text = tracker.read_text()
        await news(app, without(tracker, "demo-00000014"))
        await pilot.pause()
        near = queue(app).selected_bead
        assert near not in (None, "demo-00000014")
        assert abs(queue(app).list.selected_index - place) <= 1
        await news(app, text)
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000014"


async def test_whoever_moved_on_meanwhile_stays_there(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000014")
        tracker = app.root / ".ddx" / "beads.jsonl"
        text = tracker.read_text()
        await news(app, without(tracker, "demo-00000014"))
        await pilot.pause()
        await pilot.press("g")
        await news(app, text)
        await pilot.pause()
        assert queue(app).list.selected_index == 0


async def test_a_filter_that_hides_the_bead_for_a_while_gives_it_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).filter_with("state:ready")
        queue(app).go_to("demo-00000014")
        tracker = app.root / ".ddx" / "beads.jsonl"
        text = tracker.read_text()
        lines = text.splitlines()
        blocked = [line.replace('"open"', '"blocked"') if "00000014" in line else line for line in lines]
        await news(app, "\n".join(blocked))
        await pilot.pause()
        assert queue(app).selected_bead != "demo-00000014"
        await news(app, text)
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000014"
