"""The list: it paints what is in view, keeps its place over reloads, and costs the same at any length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region

from helix_tui.themes import THEMES
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import Row, RowList, Rows
from tests.widgets.host import Host


def numbered(numbers: Iterable[int], suffix: str = "") -> Rows:
    return Rows(Row(f"r{number}", ((f"row {number}{suffix}", "text"),)) for number in numbers)


class Counting(Rows):
    """Counts how often a row is looked at."""

    looked = 0

    def key(self, index: int) -> str:
        self.looked += 1
        return super().key(index)

    def paint(self, index: int, width: int) -> Line:
        self.looked += 1
        return super().paint(index, width)


def y_of(rows: RowList) -> int:
    return rows._view.line_of(rows.selected_index) - rows._view.top


@pytest.mark.long
async def test_a_key_costs_what_the_view_costs_whatever_the_length() -> None:
    costs = []
    for length in (100, 10_000):
        rows = RowList()
        app = Host(rows)
        async with app.run_test(size=(60, 20)) as pilot:
            source = Counting(numbered(range(length)).rows)
            rows.show(source)
            rows.focus()
            await pilot.press(*"j" * 30)
            source.looked = 0
            rows.action_cursor_down()
            costs.append(source.looked)
    assert costs[1] <= costs[0] * 1.1


async def test_whoever_shows_the_rows_everybody_above_hears_where_the_cursor_came_to() -> None:
    rows, heard = RowList(), []

    class Panel(Vertical):
        def compose(self) -> ComposeResult:
            yield rows

    class Hearing(Host):
        def on_row_list_selected(self, event: RowList.Selected) -> None:
            heard.append(event.key)

    panel = Panel()
    async with Hearing(panel).run_test(size=(40, 10)) as pilot:
        panel.call_later(rows.show, numbered(range(3)))  # in the panel's own loop, as when its reading comes back
        await pilot.pause()
        await pilot.pause()
        assert heard == ["r0"]


async def test_captions_are_stepped_over() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)):
        rows.show(
            Rows(
                [
                    Row("a", (("A", "muted"),), selectable=False),
                    Row("1", (("1", "text"),)),
                    Row("b", (("B", "muted"),), selectable=False),
                    Row("2", (("2", "text"),)),
                ]
            )
        )
        assert rows.selected_key == "1"
        rows.action_cursor_down()
        assert rows.selected_key == "2"
        rows.action_cursor_down()
        assert rows.selected_key == "2"
        rows.action_first()
        assert rows.selected_key == "1"
        assert not rows.select("a")


async def test_a_reload_keeps_the_row_and_its_place_on_screen() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(100)))
        rows.select("r50")
        rows.scroll_lines(-3)
        y = y_of(rows)
        rows.show(numbered([*range(1000, 1020), *range(100)]))
        await pilot.pause()
        assert rows.selected_key == "r50"
        assert y_of(rows) == y
        rows.show(numbered(range(40, 100)))
        assert rows.selected_key == "r50"
        assert y_of(rows) == y


async def test_a_reload_keeps_the_rows_that_are_looked_at_when_the_cursor_is_elsewhere() -> None:
    rows = RowList()
    app = Host(rows)
    async with app.run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(100)))
        rows.scroll_lines(60)
        rows.show(numbered([*range(1000, 1007), *range(100)]))
        await pilot.pause()
        assert app.rows()[0].strip().startswith("row 60")


async def test_a_selected_row_that_goes_away_leaves_the_cursor_on_its_neighbour() -> None:
    rows = RowList()
    told: list[str | None] = []

    class Listening(Host):
        def on_row_list_selected(self, event: RowList.Selected) -> None:
            told.append(event.key)

    async with Listening(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(20)))
        rows.select("r7")
        rows.show(numbered(number for number in range(20) if number not in (7, 8)))
        await pilot.pause()
        assert rows.selected_key in ("r6", "r9")
        assert told[-1] == rows.selected_key
        rows.show(Rows())
        await pilot.pause()
        assert rows.selected_key is None
        assert told[-1] is None


async def test_the_newest_row_is_followed_only_from_the_top() -> None:
    rows = RowList(follow_top=True)
    async with Host(rows).run_test(size=(40, 10)):
        rows.show(numbered(range(5)))
        rows.show(numbered([9, *range(5)]))
        assert rows.selected_key == "r9"
        rows.select("r2")
        rows.show(numbered([10, 9, *range(5)]))
        assert rows.selected_key == "r2"


async def test_only_lines_that_differ_are_drawn_again() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(30)))
        await pilot.pause()
        kept = [*rows.render_lines(Region(0, 0, 40, 10))]
        changed = numbered(range(30)).rows
        rows.show(Rows(Row("r3", (("other", "text"),)) if row.key == "r3" else row for row in changed))
        again = [*rows.render_lines(Region(0, 0, 40, 10))]
        assert [y for y in range(10) if kept[y] is not again[y]] == [3]


async def test_a_changed_row_is_tinted_and_the_tint_goes() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(5)))
        rows.show(numbered(range(5), "!"), changed={"r2", "r99"})
        assert set(rows._tinted) == {"r2"}
        rows._untint(rows._tint_round)
        await pilot.pause()
        assert not rows._tinted


async def test_jump_labels_with_two_letters_where_one_is_not_enough() -> None:
    rows = RowList()
    app = Host(rows)
    async with app.run_test(size=(40, 40)) as pilot:
        rows.show(numbered(range(100)))
        rows.focus()
        await pilot.press("f", "f")
        assert rows.jumping
        await pilot.press("d")
        assert not rows.jumping
        assert rows.selected_key == "r2"


async def test_jump_labels_stay_on_their_rows_through_a_reload() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(5)))
        rows.focus()
        await pilot.press("f")
        rows.show(numbered([9, 8, *range(5)], "!"))
        assert rows.jumping
        await pilot.press("d")
        assert rows.selected_key == "r2"
        await pilot.press("f")
        rows.show(numbered([0, 1]))
        await pilot.press("d")
        assert not rows.jumping


async def test_matches_are_found_round_the_end() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)):
        rows.show(numbered(range(30)))
        rows.mark_matches(re.compile("row 2$|row 27"))
        rows.action_next_match()
        assert rows.selected_key == "r2"
        rows.action_next_match()
        assert rows.selected_key == "r27"
        rows.action_next_match()
        assert rows.selected_key == "r2"
        rows.action_previous_match()
        assert rows.selected_key == "r27"


async def test_a_row_can_have_a_second_line_while_it_is_selected() -> None:
    class Two(Rows):
        def paint_more(self, index: int, width: int) -> Sequence[Line]:
            return [[(f"more of {index}", "muted")]]

    rows = RowList()
    app = Host(rows)
    async with app.run_test(size=(40, 6)) as pilot:
        rows.show(Two(numbered(range(20)).rows))
        rows.action_cursor_down()
        await pilot.pause()
        assert [line.strip("▌▐ ") for line in app.rows()[:4]] == ["row 0", "row 1", "more of 1", "row 2"]
        rows.action_last()
        await pilot.pause()
        assert app.rows()[-1].strip("▌▐ ") == "more of 19"


async def test_a_row_that_lost_lines_since_the_view_counted_them_is_drawn() -> None:
    class Wrapping(Rows):
        lines = 4

        def paint_more(self, index: int, width: int) -> Sequence[Line]:
            return [[(f"more {part}", "muted")] for part in range(self.lines)]

    rows = RowList()
    app = Host(rows)
    async with app.run_test(size=(20, 6)) as pilot:
        source = Wrapping(numbered(range(20)).rows)
        rows.show(source)
        await pilot.pause()
        assert [line.strip("▌▐ ") for line in app.rows()] == ["row 0", *(f"more {part}" for part in range(4)), "row 1"]
        # as at a new width, which Textual draws before the list hears of it
        source.lines = 1
        rows._painted.clear()
        drawn = [strip.text.strip("▌▐ ") for strip in rows.render_lines(rows.size.region)]
        assert drawn == ["row 0", "more 0", "", "", "", "row 1"]
        await pilot.resize_terminal(60, 6)
        assert [line.strip("▌▐ ") for line in app.rows()][:3] == ["row 0", "more 0", "row 1"]


async def test_the_selection_shows_without_colour_and_in_ascii() -> None:
    rows = RowList()
    app = Host(rows)
    app.ascii_only = True
    async with app.run_test(size=(40, 6)) as pilot:
        rows.show(numbered(range(3)))
        rows.focus()
        await pilot.pause()
        assert app.rows()[0] == "|row 0"
        app.theme = THEMES[-1].name
        await pilot.pause()
        assert app.rows()[0] == "|row 0"


async def test_the_scrollbar_is_dragged() -> None:
    rows = RowList()
    async with Host(rows).run_test(size=(40, 10)) as pilot:
        rows.show(numbered(range(100)))
        await pilot.mouse_down(rows, offset=(39, 9))
        await pilot.mouse_up(rows, offset=(39, 9))
        assert rows._view.top == 90
        assert rows.selected_key == "r0"
