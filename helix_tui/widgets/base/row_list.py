"""The base of every list: one line per row, painted only when in view.

A key costs what the viewport costs, whatever the length: rows are painted when they come into view, a moved
cursor repaints two lines, a reload repaints the lines that differ. The selection is a row's key, never its
number: a reload keeps the selected row and its place on screen. Another question (view, filter or order) starts at
the first row, where its answer is.

Use: subclass `RowSource` (the rows), call ``show(source, changed=keys, question=…)`` on every new state, and
listen to `RowList.Selected` and `RowList.Opened`. Lines are cached by row and look; no scrolling is animated.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from helix_tui.keymap import bindings
from helix_tui.widgets.base.row_source import CONTEXT, Gesture, PaintedRows, Row, Rows, RowSource

__all__ = ["Row", "RowList", "RowSource", "Rows"]

WHEEL_LINES = 3
_NEIGHBOURS = 200
"""How far from a removed row to look for a remaining one."""


class RowList(PaintedRows, can_focus=True):
    """A list of one-line rows with a cursor; see the module's docstring."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list")]

    class Selected(Message):
        """The cursor moved to another row, by hand or because its row disappeared."""

        def __init__(self, rows: RowList, key: str | None) -> None:
            super().__init__()
            # else the sender is the caller; if that is the list's parent, Textual bubbles no further
            self.set_sender(rows)
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            return self.rows

        def can_replace(self, message: Message) -> bool:
            """Only the cursor's latest row counts."""
            return isinstance(message, RowList.Selected) and message.rows is self.rows

    class Opened(Gesture):
        """Enter or a double click on a row."""

        def __init__(self, rows: RowList, key: str) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(
        self,
        *,
        id: str | None = None,
        classes: str | None = None,
        follow_top: bool = False,
        cursor_needs_focus: bool = False,
    ) -> None:
        """Make an empty list.

        Args:
            id: of the widget.
            classes: of the widget.
            follow_top: a cursor on the first row stays there when rows are added above it.
            cursor_needs_focus: draw the cursor only while the list has the focus (for text panes).
        """
        super().__init__(id=id, classes=classes)
        self._cursor_needs_focus = cursor_needs_focus
        self._wanted: str | None = None
        """The selected row that disappeared, as long as the cursor has not been moved since."""
        self._landed: str | None = None
        self._follow_top = follow_top
        self._question: Hashable = None

    # --- contents -----------------------------------------------------------------------------------------

    @property
    def selected_key(self) -> str | None:
        """The key of the row under the cursor."""
        cursor = self._view.cursor
        return self.source.key(cursor) if 0 <= cursor < len(self.source) else None

    @property
    def held_key(self) -> str | None:
        """The row that the user selected, even while it is gone and the cursor is on another."""
        here = self.selected_key
        return self._wanted if self._wanted is not None and here == self._landed else here

    @property
    def selected_index(self) -> int:
        """The index of the row under the cursor; -1 in an empty list."""
        return self._view.cursor

    def show(self, source: RowSource, *, changed: Collection[str] = (), question: Hashable = None) -> None:
        """Show a new state; cursor and view stay in place, rows in ``changed`` are tinted for a moment.

        If its row is gone, the cursor goes to the nearest remaining row, and back when its row appears
        again, unless the user has moved it meanwhile.

        Args:
            source: the rows.
            changed: keys of rows to tint.
            question: the view, filter and order that the rows answer; another one starts at the first row. None: the
                same as before.
        """
        # the anchor, before anything moves: the cursor's place on screen, else the row at the top
        before, selected, wanted, view = self._look(), self.selected_key, self.held_key, self._view
        place = view.line_of(view.cursor) - view.top
        was_in_view = view.pinned <= view.cursor and view.pinned <= place < max(1, view.height)
        at_top = self._follow_top and view.cursor == self._first()
        if question is not None and question != self._question:
            self._question, at_top = question, True
        top_row = view.locate(view.pinned)
        anchor = self.source.key(top_row[0]) if top_row is not None else None
        old, self.source = self.source, source
        stale, self._painted = self._painted, {}
        view.rows, view.pinned = len(source), source.pinned
        self._arrange()
        self._put_cursor(self._first() if at_top else self._find_again(old, wanted, selected))
        anchor_index = source.index(anchor) if anchor is not None else None
        # the cursor keeps its place on screen; if it was out of view, the row at the top keeps its own
        if at_top or wanted is None:
            view.top = 0
        elif was_in_view and view.cursor >= view.pinned:
            view.top = view.line_of(view.cursor) - max(place, view.pinned)
        elif anchor_index is not None:
            view.top = view.line_of(anchor_index) - view.pinned
        view.clamp()
        # nothing was selected before: the cursor, now on the first row, comes into view
        if selected is None:
            view.reveal()
        self._wanted, self._landed = (None if at_top else wanted), self.selected_key
        self._keep_unchanged(stale)
        if changed:
            self._tint(changed)
        self._repaint(before)
        if self.selected_key != selected:
            self.post_message(self.Selected(self, self.selected_key))

    def _arrange(self) -> None:
        """Lay the rows out again for another source or size: here, one below the other."""

    def empty(self) -> None:
        """Show nothing and select nothing: the next rows are shown from the top."""
        self._wanted = None
        self.show(Rows())
        self._wanted = None

    def select(self, key: str) -> bool:
        """Move the cursor to a row; False if there is no such row."""
        index = self.source.index(key)
        if index is None or not self.source.selectable(index):
            return False
        self._move_to(index)
        return True

    # --- the cursor ---------------------------------------------------------------------------------------

    def action_cursor_down(self) -> None:
        """Move one row down."""
        self._step(1)

    def action_cursor_up(self) -> None:
        """Move one row up."""
        self._step(-1)

    def action_half_down(self) -> None:
        """Move half a page down."""
        self._step(max(1, self._view.height // 2))

    def action_half_up(self) -> None:
        """Move half a page up."""
        self._step(-max(1, self._view.height // 2))

    def action_page_down(self) -> None:
        """Move a page down."""
        self._step(max(1, self._view.height - CONTEXT))

    def action_page_up(self) -> None:
        """Move a page up."""
        self._step(-max(1, self._view.height - CONTEXT))

    def action_first(self) -> None:
        """Go to the first row."""
        self._step(-len(self.source))

    def action_last(self) -> None:
        """Go to the last row."""
        self._step(len(self.source))

    def turn_part(self, step: int) -> None:
        """Go to the next or previous section, in a list that has sections."""
        index = self.source.landmark(max(0, self.selected_index), step) if len(self.source) else None
        if index is not None:
            if self._view.line_of(index) >= self._view.top + self._view.height:
                self.action_last()  # a target below the view is scrolled to the top, to continue reading there
            self.select(self.source.key(index))

    def action_open(self) -> None:
        """Open the row under the cursor."""
        if (key := self.selected_key) is not None:
            self.post_message(self.Opened(self, key))

    def action_next_match(self) -> None:
        """Go to the next row that matches."""
        self._step_to_match(1)

    def action_previous_match(self) -> None:
        """Go to the previous row that matches."""
        self._step_to_match(-1)

    def action_match_from_here(self) -> None:
        """Go to the next matching row, starting at the cursor."""
        index = max(0, self._view.cursor)
        if self._pattern is None or not len(self.source):
            return
        # if the row matches already, stay: typing must not move one match further with each key
        if not (self.source.selectable(index) and self._pattern.search(self.source.text(index))):
            self._step_to_match(1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a search, leave the key to the screen."""
        return action != "previous_match" or self._pattern is not None

    def action_jump(self) -> None:
        """Put a letter on every row in view, among text on the lines that lead somewhere; typing it goes there."""
        source = self.source
        rows = [index for index in self._in_view() if source.selectable(index)]
        leading = [index for index in rows if source.leads(index)]
        self._labels.put([source.key(index) for index in leading or rows])
        self.refresh()

    @property
    def jumping(self) -> bool:
        """Labels are shown and the next key belongs to them."""
        return bool(self._labels)

    def on_key(self, event: events.Key) -> None:
        """While labels are shown, every key belongs to them."""
        if not self.jumping:
            return
        event.stop()
        event.prevent_default()
        # any key that is not a label ends the jump, esc and arrows included
        key = self._labels.type(event.character or "" if event.is_printable else "")
        if key is not False:
            self.refresh()
        if key:
            self.select(key)

    def _step(self, count: int) -> None:
        reach = self._reach()
        if not reach or not count:
            return
        target = min(max(self._view.cursor + count, reach[0]), reach[-1])
        direction = 1 if count > 0 else -1
        index = self._selectable_from(target, direction)
        if index is None:
            index = self._selectable_from(target, -direction)
        if index is not None:
            self._move_to(index)

    def _reach(self) -> range:
        """The rows that can be selected."""
        return range(len(self.source))

    def _selectable_from(self, index: int, direction: int) -> int | None:
        while 0 <= index < len(self.source):
            if self.source.selectable(index):
                return index
            index += direction
        return None

    def _step_to_match(self, direction: int) -> None:
        total = len(self.source)
        if self._pattern is None or not total:
            return
        for offset in range(1, total + 1):
            index = (self._view.cursor + direction * offset) % total
            if self.source.selectable(index) and self._pattern.search(self.source.text(index)):
                self._move_to(index)
                return

    def _move_to(self, index: int) -> None:
        before, moved = self._look(), index != self._view.cursor
        self._wanted = None
        self._put_cursor(index)
        self._view.reveal()
        self._repaint(before)
        if moved:
            self.post_message(self.Selected(self, self.selected_key))

    def _put_cursor(self, index: int) -> None:
        view = self._view
        view.cursor, view.more = index, 0
        if index >= 0 and self.size.width:
            view.more = len(self.source.paint_more(index, self._width_for(index)))

    def _first(self) -> int:
        """The first row, below its heading if it has one; -1 if no row can be selected."""
        first = below = self._selectable_from(0, 1)
        while below is not None and self.source.heads(below):
            below = self._selectable_from(below + 1, 1)
        return next(index for index in (below, first, -1) if index is not None)

    def _find_again(self, old: RowSource, wanted: str | None, selected: str | None) -> int:
        """The selected row; if it is gone, the nearest remaining one."""
        index = self.source.index(wanted) if wanted is not None else None
        if index is not None and self.source.selectable(index):
            return index
        if selected is None:
            return self._first()
        # try the old neighbours of the row, near ones first
        place = old.index(selected) or 0
        for distance in range(_NEIGHBOURS):
            for near in (place + distance, place - distance):
                index = self.source.index(old.key(near)) if 0 <= near < len(old) else None
                if index is not None and self.source.selectable(index):
                    return index
        index = self._selectable_from(min(place, len(self.source) - 1), 1)
        return self._first() if index is None else index

    # --- the mouse and the size ---------------------------------------------------------------------------

    def scroll_lines(self, count: int) -> None:
        """Move the view, not the cursor."""
        before = self._look()
        self._view.top += count
        self._view.clamp()
        self._repaint(before)

    def scroll_at(self, x: int, count: int) -> None:
        """Move the view under a cell."""
        self.scroll_lines(count)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the view down."""
        event.stop()
        self.scroll_at(event.x, WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move the view up."""
        event.stop()
        self.scroll_at(event.x, -WHEEL_LINES)

    def on_click(self, event: events.Click) -> None:
        """Select the row that was clicked; open it on a second click."""
        index = self._index_at(event.x, event.y)
        if self._on_scrollbar(event) or index is None or not self.source.selectable(index):
            return
        self._move_to(index)
        if event.chain == 2:
            self.action_open()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A press on the scrollbar goes there and starts dragging."""
        if self._on_scrollbar(event):
            self.capture_mouse()
            self._scroll_to_pointer(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scrollbar."""
        if self.app.mouse_captured is self:
            self._scroll_to_pointer(event.y)

    def on_mouse_up(self) -> None:
        """End dragging the scrollbar."""
        self.release_mouse()

    def _index_at(self, x: int, y: int) -> int | None:
        """The row under a cell."""
        place = self._view.locate(y)
        return None if place is None else place[0]

    def _on_scrollbar(self, event: events.MouseEvent) -> bool:
        return self._view.overflows and event.x >= self.size.width - 1

    def _scroll_to_pointer(self, y: int) -> None:
        before = self._look()
        self._view.scroll_to(y / max(1, self._view.height - 1))
        self._repaint(before)

    def on_resize(self) -> None:
        """Keep the cursor in view at any size."""
        self._view.height = self.size.height
        # rows are painted for a width
        self._painted.clear()
        self._arrange()
        self._put_cursor(self._view.cursor)
        self._view.reveal()
        self.refresh()

    def on_focus(self) -> None:
        """Redraw the cursor's bar, which shows the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """Remove the labels: they belong to the focused list only."""
        self._labels.drop()
        self.refresh()
