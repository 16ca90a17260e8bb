"""The queue's list: rows below each other or, if there is room, lanes side by side.

Side by side it is the same list of rows with the same cursor: a lane is a run of rows under a heading, drawn
as a column that scrolls by itself. A folded or empty lane is only as wide as its heading. If not all
lanes fit, those around the cursor show, and the line of headings ends with the names of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from rich.cells import cell_len
from textual.strip import Strip

from helix_tui.themes import Palette
from helix_tui.widgets.base.line import to_strip
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.rows.bead import QueueRows

MIN_LANES_WIDTH = 70
"""The width from which lanes are side by side."""

MIN_LANE_WIDTH = 32
"""The least width of a lane with rows: a title keeps about 27; below that, the lane at the edge is hidden."""
_MAX_EMPTY_LANE_WIDTH = 20

HEADING_CELLS = 5
"""Extra width of a folded or empty lane beyond its title: the fold, the cursor's bar, blanks."""


class Lane(Struct, frozen=True):
    """A run of rows: ``rows[0]`` is the heading."""

    key: str
    rows: range
    title: str

    @property
    def least(self) -> int:
        """The width that its column needs."""
        thin = min(_MAX_EMPTY_LANE_WIDTH, len(self.title) + HEADING_CELLS)
        return MIN_LANE_WIDTH if len(self.rows) > 1 else thin


class LaneColumn(Struct, frozen=True):
    """A visible lane: its place, and its width with the blank at its right."""

    lane: Lane
    x: int
    width: int


class LaneList(RowList):
    """A `RowList` that can show lanes as columns."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lanes: tuple[Lane, ...] = ()
        """Empty while rows are below each other."""
        self._columns: tuple[LaneColumn, ...] = ()
        self._tops: dict[str, int] = {}
        self._first_lane = 0
        self._expanded = False

    def expand_lane(self, *, on: bool) -> None:
        """Zoom the lane under the cursor, or show the lanes side by side again."""
        if on != self._expanded:
            before = self._look()
            self._expanded = on
            self._set_columns()
            self._put_cursor(self.selected_index)
            self._repaint(before)
            self.refresh()

    @property
    def side_by_side(self) -> bool:
        """Whether lanes are side by side."""
        return bool(self._lanes)

    @property
    def columns(self) -> tuple[LaneColumn, ...]:
        """The lanes in view."""
        return self._columns

    def move_lane(self, step: int) -> bool:
        """Go to the next or previous lane at the same height; False if there is none."""
        here = self._lane_of(self.selected_index)
        target = (self._lanes.index(here) if here is not None else 0) + step
        if here is None or not 0 <= target < len(self._lanes):
            return False
        there = self._lanes[target]
        place = self.selected_index - here.rows[0]
        # at the same height on screen: each lane is scrolled by itself; the heading leads to the heading
        place += self._top(there) - self._top(here) if place else 0
        index = there.rows[0] + place
        self._move_to(min(index, there.rows[-1]))
        return True

    def action_first(self) -> None:
        """Go to the heading of this lane; without lanes, to the first row."""
        lane = self._lane_of(self.selected_index)
        if lane is None:
            super().action_first()
        else:
            self._move_to(lane.rows[0])

    def action_last(self) -> None:
        """Go to the last row of this lane."""
        lane = self._lane_of(self.selected_index)
        if lane is None:
            super().action_last()
        else:
            self._move_to(lane.rows[-1])

    # --- layout -------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        source = self.source
        in_lanes = isinstance(source, QueueRows) and source.view.kind == "lanes"
        self._lanes = tuple(_lanes(source)) if in_lanes and self.size.width >= MIN_LANES_WIDTH else ()  # type: ignore[arg-type]
        self._first_lane = min(self._first_lane, max(0, len(self._lanes) - 1))
        self._set_columns()

    def _set_columns(self) -> None:
        """Show as many lanes as fit, from the first one on; spare width goes to those with rows.

        While one is expanded, that under the cursor alone.
        """
        if self._expanded and self._lanes:
            lane = self._lane_of(self.selected_index) or self._lanes[0]
            self._show_columns([LaneColumn(lane, 0, self.size.width)])
            return
        lanes: list[Lane] = []
        left = self.size.width
        for lane in self._lanes[self._first_lane :]:
            if lanes and lane.least > left:
                break
            lanes.append(lane)
            left -= lane.least
        wide = [lane for lane in lanes if len(lane.rows) > 1] or lanes
        columns, x = [], 0
        for lane in lanes:
            extra = 0
            if lane in wide and left > 0:
                extra = left // len(wide) + (wide.index(lane) < left % len(wide))
            columns.append(LaneColumn(lane, x, lane.least + extra))
            x += lane.least + extra
        self._show_columns(columns)

    def _show_columns(self, columns: list[LaneColumn]) -> None:
        # rows are painted for the width of their column
        if [column.width for column in columns] != [column.width for column in self._columns]:
            self._painted.clear()
        self._columns = tuple(columns)

    def _put_cursor(self, index: int) -> None:
        super()._put_cursor(index)
        lane = self._lane_of(index)
        if lane is None:
            return
        if self._expanded:
            self._set_columns()
            self._tops[lane.key] = self._top(lane, index)
            return
        number = self._lanes.index(lane)
        # one lane at a time: how many fit depends on which they are
        while number < self._first_lane or lane not in (column.lane for column in self._columns):
            self._first_lane += -1 if number < self._first_lane else 1
            self._set_columns()
        self._tops[lane.key] = self._top(lane, index)

    def _top(self, lane: Lane, shown: int | None = None) -> int:
        """How many rows of a lane are scrolled out above its column; ``shown`` is a row that must be in view."""
        room = max(1, self.size.height - 1)
        top = self._tops.get(lane.key, 0)
        if shown is not None and shown > lane.rows[0]:
            place = shown - lane.rows[0] - 1
            top = min(max(top, place - room + 1), place)
        return max(0, min(top, len(lane.rows) - 1 - room))

    def _on_thumb(self, lane: Lane, y: int) -> bool:
        """Whether a line of a lane is on the thumb of its scrollbar; a lane that fits has none."""
        room, rows = self.size.height - 1, len(lane.rows) - 1
        if not 0 < room < rows or not y:
            return False
        size = max(1, room * room // rows)
        start = round(self._top(lane) / (rows - room) * (room - size))
        return start <= y - 1 < start + size

    def _lane_of(self, index: int) -> Lane | None:
        return next((lane for lane in self._lanes if index in lane.rows), None)

    def _row_in(self, lane: Lane, y: int) -> int | None:
        place = 0 if y == 0 else y + self._top(lane)
        return lane.rows[place] if place < len(lane.rows) else None

    def _index_at(self, x: int, y: int) -> int | None:
        if not self._lanes:
            return super()._index_at(x, y)
        column = self._column_at(x)
        return None if column is None else self._row_in(column.lane, y)

    def _column_at(self, x: int) -> LaneColumn | None:
        return next((column for column in self._columns if column.x <= x < column.x + column.width), None)

    def _in_view(self) -> Iterator[int]:
        if not self._lanes:
            yield from super()._in_view()
            return
        for column in self._columns:
            for y in range(self.size.height):
                index = self._row_in(column.lane, y)
                if index is None:
                    break
                yield index

    def _width_for(self, index: int) -> int:
        lane = self._lane_of(index)
        if lane is None:
            return super()._width_for(index)
        width = next((column.width for column in self._columns if column.lane is lane), lane.least)
        return max(1, width - 2)

    # --- moving -------------------------------------------------------------------------------------------

    def _reach(self) -> range:
        lane = self._lane_of(self.selected_index)
        return super()._reach() if lane is None else lane.rows

    def scroll_at(self, x: int, count: int) -> None:
        """Move the column under a cell."""
        column = self._column_at(x) if self._lanes else None
        if column is None:
            super().scroll_at(x, count)
            return
        before = self._look()
        self._tops[column.lane.key] = self._top(column.lane) + count
        # `_top` holds it between the first row and the last page
        self._tops[column.lane.key] = self._top(column.lane)
        self._repaint(before)

    def _on_scrollbar(self, event: object) -> bool:
        return not self._lanes and super()._on_scrollbar(event)  # type: ignore[arg-type]

    # --- painting -----------------------------------------------------------------------------------------

    def _line_look(self, y: int, thumb: range) -> tuple[object, ...]:
        if not self._lanes:
            return super()._line_look(y, thumb)
        cursor, tinted = self._view.cursor, self._tinted
        looks: list[object] = []
        for column in self._columns:
            index = self._row_in(column.lane, y)
            if index is None:
                looks.append((None, column.width))
                continue
            tint = bool(tinted) and self.source.key(index) in tinted
            looks.append((self._entry(index), index == cursor, tint, column.width, self._on_thumb(column.lane, y)))
        return (self._out_of_view(), *looks) if not y else tuple(looks)

    def _out_of_view(self) -> str:
        """The hidden lanes before and after the visible ones: by name or, if room is short, their number."""
        if self._expanded or not self._columns:
            return ""
        ends = [self._lanes.index(self._columns[end].lane) for end in (0, -1)]
        before, after = self._lanes[: ends[0]], self._lanes[ends[1] + 1 :]
        room = self._columns[-1].width - len(self._columns[-1].lane.title) - HEADING_CELLS
        named = _beyond(", ".join(lane.title for lane in before), ", ".join(lane.title for lane in after))
        counted = _beyond(*(str(len(part)) if part else "" for part in (before, after)))
        return named if cell_len(named) <= room else counted if cell_len(counted) <= room else ""

    def _strip(self, y: int, on_thumb: bool, palette: Palette, plain: bool) -> Strip:
        if not self._lanes:
            return super()._strip(y, on_thumb, palette, plain)
        pieces = []
        for column in self._columns:
            index = self._row_in(column.lane, y)
            if index is None:
                pieces.append(self._blank(False, column.width, palette, plain))
            else:
                on_lane_thumb = self._on_thumb(column.lane, y)
                pieces.append(self._row_strip(index, 0, column.width - 1, on_lane_thumb, palette, plain))
        beyond = self._out_of_view() if not y else ""
        others = f"   {beyond}" if beyond else ""
        strip = Strip.join(pieces).adjust_cell_length(self.size.width - cell_len(others), palette.style("text"))
        end = to_strip([(others, "muted")], cell_len(others), palette, plain=plain)
        return Strip.join([strip, end]) if others else strip


def _beyond(before: str, after: str) -> str:
    return "  ".join(filter(None, (f"◂ {before}" if before else "", f"{after} ▸" if after else "")))


def _lanes(source: QueueRows) -> Iterator[Lane]:
    starts = [place for place, row in enumerate(source.rows) if row.kind == "heading"]
    for start, end in zip(starts, [*starts[1:], len(source.rows)], strict=True):
        row = source.rows[start]
        yield Lane(row.key, range(start, end), f"{row.text} {row.count:,}")
