"""The lanes view: columns by state where there is room, one list with headings where there is none."""

from __future__ import annotations

import json

import pytest

from helix_tui.widgets.rows.lanes import LaneList
from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_queue import queue

pytestmark = pytest.mark.long


def board(app: Console) -> LaneList:
    return queue(app).lanes


def shown(app: Console) -> list[str]:
    return [column.lane.key for column in board(app).columns]


@pytest.mark.parametrize(("width", "least"), [(80, 3), (100, 3), (120, 4), (160, 5), (220, 6)])
async def test_lanes_stand_side_by_side_from_80_cells_on(console: MakeConsole, width: int, least: int) -> None:
    app = console()
    async with app.run_test(size=(width, 40)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        assert len(board(app).columns) >= least
        heading = next(line for line in app.rows() if "Ready  4" in line)
        assert "Running  0" in heading
        assert "Parked" in heading
        hidden = queue(app).lanes._lanes[len(board(app).columns) :]
        assert ("▸" in heading) == bool(hidden)
        assert width != 120 or hidden[0].title in heading


async def test_a_narrow_pane_has_one_list_with_headings(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(60, 40)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        assert not board(app).side_by_side
        assert sum("Ready  4" in line for line in app.rows()) == 1


async def test_h_and_l_move_between_lanes_and_j_stays_inside(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000004"
        await pilot.press("l")
        assert app.snapshot.queue.state(queue(app).selected_bead or "") == "proposed"
        await pilot.press("h")
        assert queue(app).selected_bead == "demo-00000004"
        await pilot.press("G", "j", "j")
        assert app.snapshot.queue.state(queue(app).selected_bead or "") == "ready"
        await pilot.press("g")
        assert (board(app).selected_key or "").startswith("lane:")


async def test_lanes_without_room_come_in_as_the_cursor_gets_there(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(80, 40)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        assert "fold:done" not in shown(app)
        for _ in range(6):
            await pilot.press("l")
        await pilot.pause()
        assert "fold:done" in shown(app)
        assert "lane:running" not in shown(app)
        for _ in range(6):
            await pilot.press("h")
        assert "lane:running" in shown(app)


async def test_a_lane_folds_into_its_heading(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        await pilot.press("g", "enter")
        await pilot.pause()
        ready = next(column for column in board(app).columns if column.lane.key == "lane:ready")
        assert len(ready.lane.rows) == 1
        assert app.sees("▹ Ready  4")
        await pilot.press("enter")
        await pilot.pause()
        assert app.sees("▾ Ready  4")


async def test_the_bead_is_held_over_reloads(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).show_view("lanes")
        queue(app).go_to("demo-00000005")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000005"
        tracker = app.root / ".ddx" / "beads.jsonl"
        row = {"id": "demo-new", "title": "New", "status": "open", "priority": 0, "schema_version": 1}
        tracker.write_text(json.dumps(row) + "\n" + tracker.read_text())
        app.feed.look()
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000005"


async def test_the_mouse_selects_in_a_column_and_the_wheel_scrolls_it_alone(console: MakeConsole) -> None:
    rows = [
        json.dumps({"id": f"d-{n:03}", "title": f"Bead {n}", "schema_version": 1, "priority": 1}) for n in range(60)
    ]
    rows += [json.dumps({"id": f"p-{n}", "title": "P", "status": "proposed", "schema_version": 1}) for n in range(3)]
    app = console(rows)
    async with app.run_test(size=(120, 30)) as pilot:
        queue(app).show_view("lanes")
        await pilot.pause()
        ready, asked = (
            next(column for column in board(app).columns if column.lane.key == f"lane:{name}")
            for name in ("ready", "parked")
        )
        await pilot.click(board(app), offset=(asked.x + 4, 2))
        assert queue(app).selected_bead == "p-1"
        board(app).scroll_at(ready.x + 1, 9)
        await pilot.pause()
        assert not app.sees("Bead 3 ")
        await pilot.click(board(app), offset=(ready.x + 4, 1))
        assert queue(app).selected_bead == "d-009"
        await pilot.click(board(app), offset=(asked.x + 4, 20))
        assert queue(app).selected_bead == "d-009", "nothing stands there"


async def test_a_resize_goes_to_one_list_and_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        queue(app).show_view("lanes")
        queue(app).go_to("demo-00000014")
        for width, side_by_side in ((48, False), (80, True), (60, False), (120, True)):
            await pilot.resize_terminal(width, 30)
            await pilot.pause()
            assert queue(app).selected_bead == "demo-00000014"
            assert board(app).side_by_side is side_by_side


async def test_z_expands_the_lane_under_the_cursor_and_h_and_l_go_on_between_lanes(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = queue(app)
        screen.show_view("lanes")
        await pilot.pause()
        screen.go_to("demo-00000005")
        await pilot.press("z")
        assert [column.lane.key for column in screen.lanes.columns] == ["lane:waiting"]
        assert screen.lanes.columns[0].width >= 118
        assert app.sees("Persist worker lifecycle apart")
        await pilot.press("l")
        assert [column.lane.key for column in screen.lanes.columns] == ["lane:set aside"]
        await pilot.press("h", "h", "h")
        assert [column.lane.key for column in screen.lanes.columns] == ["lane:ready"]
        await pilot.press("escape")
        await pilot.pause()
        assert len(screen.lanes.columns) > 2


async def test_a_lane_that_overflows_has_a_thumb_that_moves(console: MakeConsole) -> None:
    lines = [f'{{"id": "demo-{number:04d}", "title": "bead {number}", "status": "open"}}' for number in range(60)]
    app = console(lines)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = queue(app)
        screen.show_view("lanes")
        await pilot.pause()

        def thumb() -> list[int]:
            rows = app.rows()
            return [y for y, row in enumerate(rows) if "▐" in row]

        screen.list.select("demo-0000")
        await pilot.pause()
        first = thumb()
        assert first
        await pilot.press("G")
        assert thumb()[-1] > first[-1]
        assert len(thumb()) == len(first)


async def test_an_empty_lane_takes_no_more_cells_than_its_title(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = queue(app)
        screen.show_view("lanes")
        await pilot.pause()
        empty = next(column for column in screen.lanes.columns if column.lane.key == "lane:running")
        assert empty.width == len("running 0") + 5
        assert app.sees("▾ Running  0")
