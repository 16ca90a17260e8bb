"""How a screen's room is shared out: zoom, split, columns; and that it is kept for the next start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from helix_tui.core.beads.readiness import classify
from helix_tui.core.ground.time import NS
from helix_tui.core.supervision.decide.need_view import grouped
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.loop.attempt_stream import TABLE_CELLS
from helix_tui.screens.needs.need_list import need_rows
from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.settings.layout import Layout
from helix_tui.widgets.rows.bead import RowContext
from helix_tui.widgets.text.bead import DetailFacts, detail_rows
from tests.programs import parse_rows
from tests.screens.conftest import Console, MakeConsole


def queue(app: Console) -> QueueScreen:
    return cast(QueueScreen, app.screen)


def said(app: Console) -> str:
    return "\n".join(notice.message for notice in app.told)


def test_old_needs_show_as_soon_as_there_is_room_for_them() -> None:
    needs = [Need("proposed", f"p-{number}", "", 0, since=0) for number in range(9)]
    needs += [Need("orphaned_claim", f"c-{number}", "", 0, since=0) for number in range(5)]
    groups = grouped(needs, 40 * 86_400 * NS)

    def kinds(lines: int, closed: tuple[str, ...] = ()) -> list[str]:
        return [row.kind for row in need_rows(groups, closed, (), lines=lines)]

    assert kinds(0).count("fold") == 2
    assert [len(kinds(lines)) for lines in range(10, 18)] == [10, 11, 12, 13, 14, 15, 16, 16], "as much as fits"
    assert kinds(12).count("fold") == 1, "those that do not fit stay folded"
    assert (kinds(16).count("fold"), len(kinds(16))) == (0, 16)
    assert kinds(99, ("proposals", "stale claims")) == ["group", "group"], "what somebody closed stays so"


async def test_old_needs_stay_folded_only_where_no_line_is_left(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("exclamation_mark")
        screen = cast(NeedsScreen, app.screen)
        groups = grouped([Need("proposed", f"p-{n}", "why", 0, since=0) for n in range(50)], 40 * 86_400 * NS)
        rows = screen._arranged(groups)
        said = max(len(screen._about(row, 118)) for row in rows)
        assert rows[-1].kind == "fold"
        assert len(rows) == 40 - 5 - said


def test_every_label_shows_and_the_parent_is_said_once() -> None:
    labels = [f"area:number-{number}" for number in range(7)]
    bead = {"id": "b-1", "title": "One", "labels": labels, "parent": "b-2", "created_at": "2026-08-01T00:00:00Z"}
    rows = parse_rows(json.dumps(bead).encode() + b'\n{"id":"b-2","title":"Above"}')
    world = RowContext(classify(rows.beads, now=0), {}, 0)
    lines = ["".join(text for text, _ in row.left) for row in detail_rows(DetailFacts(rows.beads["b-1"], world), 48)]
    assert all(any(label in line for line in lines) for label in labels)
    assert sum("Above" in line for line in lines) == 1
    assert any("Part of" in line and "0 of 1 closed" in line for line in lines)


async def test_z_gives_the_list_all_the_room_and_gives_it_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 30)) as pilot:
        before = queue(app).list.size.width
        await pilot.press("z")
        assert queue(app).list.size.width >= 118
        assert not queue(app).detail.size.width
        await pilot.press("z")
        assert queue(app).list.size.width == before


async def test_esc_and_tab_end_a_zoom(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("tab", "z")
        assert queue(app).detail.size.width >= 118
        await pilot.press("escape")
        assert queue(app).list.size.width
        assert queue(app).focused is queue(app).detail
        await pilot.press("z", "shift+tab")
        await pilot.pause()
        assert queue(app).list.size.width
        assert queue(app).focused is queue(app).list


async def test_a_pane_that_is_alone_is_not_zoomed(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(48, 30)) as pilot:
        await pilot.press("z")
        assert not queue(app).zoomed
        assert "nothing to zoom" in said(app)


@pytest.mark.parametrize("size", [(120, 30), (80, 30)])
@pytest.mark.long
async def test_the_split_moves_as_far_as_it_goes_and_says_so(console: MakeConsole, size: tuple[int, int]) -> None:
    app = console()
    async with app.run_test(size=size) as pilot:

        def room() -> int:
            return queue(app).list.size.width if size[0] == 120 else queue(app).list.size.height

        told: list[str] = []

        async def press(key: str) -> int:
            await pilot.press(key)
            told.append(said(app))
            app.clear_notifications()  # a notice takes a line
            await pilot.pause()
            return room()

        seen = [room(), *[await press("vertical_line") for _ in range(7)]]
        assert seen == sorted(seen)
        assert seen[0] < seen[1]
        assert seen[-1] == seen[-2]
        assert "that is the most" in told[-1]
        for _ in range(9):
            await press("backslash")
        assert room() < seen[0]
        assert "that is the least" in told[-1]


async def test_the_split_is_kept_for_the_next_start_on_its_screen_alone(console: MakeConsole, tmp_path: Path) -> None:
    file = tmp_path / "state" / "layout.json"
    app = console(kept=Layout(file))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("vertical_line")
        wider = queue(app).list.size.width
        await app.workers.wait_for_complete()
    assert json.loads(file.read_text())["split"] == {"queue": Layout(file).split("queue")}
    again = console(name="again", kept=Layout(file))
    async with again.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert queue(again).list.size.width == wider


async def test_columns_are_chosen_moved_and_kept(console: MakeConsole, tmp_path: Path) -> None:
    file = tmp_path / "layout.json"
    app = console(kept=Layout(file))
    async with app.run_test(size=(160, 40)) as pilot:
        assert app.kept.columns("queue") is None
        await pilot.press("C")
        rows = app.screen.list  # type: ignore[attr-defined]
        rows.select("id")
        await pilot.press("space")
        assert "id" in (app.kept.columns("queue") or ())
        await pilot.press("plus", "plus", "plus", "plus", "plus", "escape")
        assert (app.kept.columns("queue") or ())[0] == "id"
        await app.workers.wait_for_complete()
        heads = queue(app).list_caption.spans(90)
        assert "".join(text for text, _ in heads).split()[-5:] == ["id", "labels", "epic", "P", "age"]
    assert Layout(file).columns("queue") == app.kept.columns("queue")


async def test_r_leaves_the_columns_to_the_width_again(console: MakeConsole) -> None:
    app = console()
    app.kept.choose_columns("queue", ["type"])
    async with app.run_test(size=(120, 30)) as pilot:
        assert app.sees("  type ")
        await pilot.press("C", "r", "escape")
        assert app.kept.columns("queue") is None
        assert not app.sees("  type ")


@pytest.mark.long
async def test_more_room_shows_more_of_a_title_and_more_columns(console: MakeConsole) -> None:
    """At 220 columns more than at 160, there more than at 120, and there more than at 80."""
    title = " ".join(f"word{number}" for number in range(40))
    line = json.dumps({"id": "demo-1", "title": title, "status": "open", "labels": ["area:sea"], "issue_type": "task"})
    shown: dict[int, tuple[int, int]] = {}
    attempts: dict[int, int] = {}
    for width in (80, 120, 160, 220, 260):
        app = console([line], name=f"w{width}")
        async with app.run_test(size=(width, 40)) as pilot:
            await pilot.pause()
            row = next(text for text in app.rows() if "word0" in text)
            cells = len(row[row.index("word0") : queue(app).list.size.width].partition("…")[0])
            shown[width] = cells, sum(line.strip() != "" for line in app.rows())
            attempts[width] = queue(app).third.size.width
            assert ("sea" in row) == (width >= 160)
    assert 58 <= shown[80][0] <= shown[120][0] <= shown[160][0] < shown[220][0]
    assert attempts[160] < attempts[220]
    assert min(attempts[160], attempts[260]) > TABLE_CELLS, "attempts keep their headings"


async def test_a_layout_that_somebody_broke_costs_a_notice_and_not_the_start(
    console: MakeConsole, tmp_path: Path
) -> None:
    file = tmp_path / "layout.json"
    for text in (
        "{",
        "[]",
        '{"columns": 3, "split": {"queue": "wide", "loop": 400}}',
        '{"columns": {"queue": [1, "age"]}}',
    ):
        file.write_text(text)
        app = console(name=f"p{len(text)}", kept=Layout(file))
        async with app.run_test(size=(120, 30)):
            assert app.sees("Dag")
            assert bool(Layout(file).problem) == (text == "{")


async def test_a_layout_that_cannot_be_written_is_said(console: MakeConsole, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    app = console(kept=Layout(tmp_path / "state" / "layout.json"))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("vertical_line")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "not saved for the next start" in said(app)


async def test_o_sorts_the_queue_and_once_more_turns_it_round(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("o", "2")
        assert queue(app).filter_text == "order:p"
        assert app.sees("List by p · 21")
        await pilot.press("o", "2")
        assert queue(app).filter_text == "order:-p"
        await pilot.press("escape")
        assert queue(app).filter_text == ""
        assert app.sees("Dag 21")


@pytest.mark.parametrize(
    ("key", "left"), [("1", "#left"), ("2", "#attempts"), ("4", "#asked-pane"), ("6", "#changes-pane")]
)
async def test_in_a_low_terminal_no_pane_stands_above_another(console: MakeConsole, key: str, left: str) -> None:
    app = console()
    async with app.run_test(size=(80, 12)) as pilot:
        for height, alone in ((12, True), (30, False), (15, True), (16, False)):
            await pilot.resize_terminal(80, height)
            await pilot.press(key)
            await pilot.pause()
            screen = cast(HelixScreen, app.screen)
            assert screen.breakpoint == ("side" if alone else "stack"), height
            assert (screen.has_class("-side"), screen.has_class("-stack")) == (alone, not alone), height
            # in place of an empty list words stand, which are not looked at here
            pane = screen.query_one(left)
            assert not alone or not pane.size.height or pane.size.height >= height - 3, height


async def test_the_bead_says_what_it_holds_up(console: MakeConsole) -> None:
    lines = [
        '{"id": "demo-1", "title": "First", "status": "open"}',
        '{"id": "demo-2", "title": "Second", "status": "open", "dependencies": [{"depends_on_id": "demo-1"}]}',
        '{"id": "demo-3", "title": "Third", "status": "open", "dependencies": [{"depends_on_id": "demo-2"}]}',
    ]
    app = console(lines)
    app.kept.choose_columns("queue", ["holds", "age"])
    async with app.run_test(size=(160, 40)) as pilot:
        queue(app).show_detail()
        await pilot.pause()
        assert app.sees("2 beads, 1 of them directly, on the critical path")
        assert next(row for row in app.rows() if "First" in row)[: queue(app).list.size.width].split()[-1] == "2"


async def test_the_bead_shows_once_there_is_room_beside_the_list_though_it_came_on_another_screen(
    console: MakeConsole,
) -> None:
    app = console()
    async with app.run_test(size=(48, 24)) as pilot:
        await pilot.press("exclamation_mark")
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape")
        for _ in range(200):  # the detail follows a moment after the rows
            if len(queue(app).detail.source):
                break
            await pilot.pause()
        assert app.sees(" Bead")
