"""The window on a list: the same answers as counting line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helix_tui.widgets.base.row_source import Viewport


@st.composite
def viewports(draw: st.DrawFn) -> Viewport:
    rows = draw(st.integers(0, 60))
    cursor = draw(st.integers(-1, rows - 1)) if rows else -1
    more = draw(st.integers(0, 6)) if cursor >= 0 else 0
    height = draw(st.integers(0, 30))
    pinned = draw(st.integers(0, min(rows, height // 2)))
    more = more if cursor >= pinned else 0
    return Viewport(rows, height, cursor, more, draw(st.integers(-5, 90)), pinned)


def all_lines(view: Viewport) -> list[tuple[int, int]]:
    return [(row, part) for row in range(view.rows) for part in range(1 + (view.more if row == view.cursor else 0))]


@given(viewports())
def test_every_line_of_the_window_is_the_line_of_the_list(view: Viewport) -> None:
    view.clamp()
    lines = all_lines(view)
    assert view.lines == len(lines)
    for y in range(view.height):
        line = y if y < view.pinned else view.top + y
        expected = lines[line] if line < len(lines) else None
        assert view.locate(y) == expected
    for row in range(view.rows):
        assert lines[view.line_of(row)] == (row, 0)


@given(viewports())
def test_revealing_shows_the_row_under_the_cursor_or_as_much_as_fits_of_its_beginning(view: Viewport) -> None:
    view.reveal()
    assert 0 <= view.top <= max(0, view.lines - view.height)
    if view.cursor >= 0:
        shown = {view.locate(y) for y in range(view.height)}
        assert {(view.cursor, part) for part in range(min(1 + view.more, view.height - view.pinned))} <= shown


@given(viewports())
def test_the_thumb_is_in_the_window_and_says_where(view: Viewport) -> None:
    view.clamp()
    thumb = view.thumb()
    assert bool(thumb) == view.overflows
    if thumb:
        assert 0 <= thumb.start < thumb.stop <= view.height
        assert (thumb.start == 0) == (round(view.top / (view.lines - view.height) * (view.height - len(thumb))) == 0)


@given(viewports(), st.floats(-1, 2))
def test_scrolling_to_a_share_stays_in_the_list(view: Viewport, share: float) -> None:
    view.scroll_to(share)
    assert 0 <= view.top <= max(0, view.lines - view.height)
