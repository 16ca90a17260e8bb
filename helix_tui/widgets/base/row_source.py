"""The content of a list and its painting: rows with keys, columns, the viewport, and the widget that paints them.

Rows are painted line by line when they come into view, and keep their lines for as long as they look the same.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.themes import Palette
from helix_tui.widgets.base.line import (
    Line,
    Span,
    ascii_only,
    cut,
    fit,
    palette_of,
    spread,
    to_strip,
    width_of,
    with_label,
    wrap_spans,
)

MIN_UNFOLDED_WIDTH = 16
"""The width below which a row does not unfold."""

MAX_UNFOLDED_LINES = 5
"""How many lines a selected row unfolds to at most."""

_INDENT = " " * 4

# home-row letters first
JUMP_LETTERS = "fjdkslaghrueiwoqptyvbncmxz"

CONTEXT = 2
"""Lines kept in view above and below the cursor."""

TINT_SECONDS = 1.5
"""How long a changed row stays tinted."""

_CACHED_ROWS = 300
"""How many painted rows a list keeps, 4 KB each, unless its view is higher: three screens, so that paging back
and forth paints nothing anew. More is never looked at again before the next change of the queue."""

_CACHED_LOOKS = 8
"""How many looks of a row are kept: with and without cursor, focus, tint and thumb."""


class RowSource(ABC):
    """A sequence of rows. Make a new source for a new state; it must not change once shown."""

    pinned = 0
    """How many of the first rows never scroll away."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def key(self, index: int) -> str:
        """The row's identity: unique in the source and stable in the next one."""

    @abstractmethod
    def index(self, key: str) -> int | None:
        """The index of the row with this key."""

    @abstractmethod
    def paint(self, index: int, width: int) -> Line:
        """The row as spans for ``width`` cells (longer is cut). Equal spans mean: nothing to repaint."""

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        """Further lines, shown only while the row is selected."""
        return ()

    def selectable(self, index: int) -> bool:
        """False for captions: the cursor steps over them."""
        return True

    def heads(self, index: int) -> bool:
        """The row is a heading: the answer to a question begins below it."""
        return False

    def leads(self, index: int) -> bool:
        """Enter leads somewhere from this row, which is one of few among lines of text."""
        return False

    def text(self, index: int) -> str:
        """The text that ``n`` and ``N`` search."""
        return ""

    def landmark(self, index: int, step: int) -> int | None:
        """The next row, after or before a row, with which a section begins."""
        return None


class Keyed(Protocol):
    """Anything with a key can be a row."""

    @property
    def key(self) -> str: ...


K = TypeVar("K", bound=Keyed)


class KeyedRows(RowSource, Generic[K]):
    """A source of things that each have a key."""

    def __init__(self, rows: Iterable[K]) -> None:
        self.rows = tuple(rows)
        self._places = {row.key: place for place, row in enumerate(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index].key

    def index(self, key: str) -> int | None:
        return self._places.get(key)


class Row(Struct, frozen=True):
    """A ready-made row, for lists short enough to be painted whole."""

    key: str
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()
    selectable: bool = True
    leads: bool = False
    """Enter leads somewhere from this row, which is one of few among lines of text."""
    landmark: bool = False
    """A section begins here."""


class Rows(KeyedRows[Row]):
    """A source of ready-made rows."""

    def __init__(self, rows: Iterable[Row] = (), *, unfold: bool = False) -> None:
        """Make a source; with ``unfold`` a selected row that is cut shows the rest below."""
        super().__init__(rows)
        self._unfold = unfold

    def paint(self, index: int, width: int) -> Line:
        return spread(self.rows[index].left, self.rows[index].right, width)

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        row = self.rows[index]
        room = width - (width_of(row.right) + 1 if row.right else 0)
        if not (self._unfold and row.selectable and room >= MIN_UNFOLDED_WIDTH and width_of(row.left) > room):
            return ()
        rest = [span for line in wrap_spans(row.left, room)[1:] for span in (*line, (" ", "text"))]
        lines = wrap_spans(rest[:-1], width - len(_INDENT))[:MAX_UNFOLDED_LINES]
        return [[(_INDENT, "text"), *line] for line in lines]

    def leads(self, index: int) -> bool:
        return self.rows[index].leads

    def selectable(self, index: int) -> bool:
        return self.rows[index].selectable

    def text(self, index: int) -> str:
        return "".join(text for text, _ in (*self.rows[index].left, *self.rows[index].right))

    def landmark(self, index: int, step: int) -> int | None:
        ahead = range(index + step, len(self.rows) if step > 0 else -1, step)
        return next((place for place in ahead if self.rows[place].landmark), None)


class JumpLabels:
    """The labels that are shown, if any; while they are, every key belongs to them."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        """The label on each row, by the row's key."""
        self._rows: dict[str, str] = {}
        self._typed = ""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def put(self, rows: Sequence[str]) -> None:
        """Put a label on each row; labels have two letters if one is not enough for all."""
        labels = list(JUMP_LETTERS)
        if len(rows) > len(labels):
            labels = [first + second for first in JUMP_LETTERS for second in JUMP_LETTERS]
        self._rows = dict(zip(labels, rows, strict=False))
        self.of = {key: label for label, key in self._rows.items()}
        self._typed = ""

    def drop(self) -> None:
        """Remove all labels."""
        self._rows, self.of, self._typed = {}, {}, ""

    def type(self, character: str) -> str | Literal[False] | None:
        """Handle a key: the row that it selects, None if there is none, False if another letter is needed."""
        typed = self._typed + character
        key = self._rows.get(typed)
        if key is None and character and any(label.startswith(typed) for label in self._rows):
            self._typed = typed
            return False
        self.drop()
        return key


class Column(Struct, frozen=True):
    """A column of figures."""

    title: str
    cells: int
    rank: int = 0
    """If there is no room for all, columns of higher rank go first; within a rank, the last."""
    name: str = ""
    """The name used in a column choice or saved view."""
    help: str = ""
    asked: bool = False
    """Shown only if chosen."""
    words: bool = False
    """Left-aligned text; figures are right-aligned."""

    def placed(self, text: str, ink: str = "muted") -> Span:
        """A text in its column, two blanks before it."""
        blank = " " * max(0, self.cells - cell_len(text := cut(text, self.cells)))
        return (f"  {text}{blank}" if self.words else f"  {blank}{text}"), ink

    @property
    def head(self) -> Span:
        """The title over the column."""
        return self.placed(self.title)


def sorted_first(columns: Iterable[Column], marks: Mapping[str, str]) -> list[Column]:
    """The columns; those by which the rows are sorted show, bear their mark, and stay when others are dropped.

    Args:
        columns: all columns.
        marks: name, or else title, to ``▾`` or ``▴``.
    """
    named = [(column, marks.get(column.name or column.title, "")) for column in columns]
    return [
        replace(column, title=mark + column.title, cells=max(column.cells, len(column.title) + 1), rank=-1, asked=False)
        if mark
        else column
        for column, mark in named
    ]


def fitting(columns: Sequence[Column], room: int, chosen: Sequence[str] | None = None) -> list[Column]:
    """The columns that fit in ``room`` cells, each preceded by two blanks, in display order.

    Args:
        columns: all columns.
        room: cells left by names or titles.
        chosen: names of those to show, in the order wanted, the first kept longest; None for those that show
            by themselves.
    """
    if chosen is None:
        wanted = sorted((column for column in columns if not column.asked), key=lambda column: column.rank)
    else:
        named = {column.name: column for column in columns}
        first = [column.name for column in columns if column.rank < 0 and column.name not in chosen]
        wanted = [named[name] for name in (*first, *chosen) if name in named]
    shown: list[Column] = []
    for column in wanted:
        room -= column.cells + 2
        if room < 0:
            break
        shown.append(column)
    return [column for column in columns if column in shown] if chosen is None else shown


class Viewport(Struct):
    """A window of ``height`` lines on ``rows`` rows; all have one line, except the one under the cursor.

    Attributes:
        cursor: the row under the cursor; -1 for none.
        more: extra lines of that row.
        top: how many lines are scrolled out of view, below the pinned ones.
        pinned: how many of the first rows stay at the top of the window.
    """

    rows: int = 0
    height: int = 0
    cursor: int = -1
    more: int = 0
    top: int = 0
    pinned: int = 0

    @property
    def lines(self) -> int:
        """Lines of the whole list."""
        return self.rows + (self.more if self.cursor >= 0 else 0)

    @property
    def overflows(self) -> bool:
        """Whether there is more than fits."""
        return self.lines > self.height > 0

    def line_of(self, row: int) -> int:
        """The first line of a row, counted from the top of the list."""
        return row if row <= self.cursor else row + self.more

    def locate(self, y: int) -> tuple[int, int] | None:
        """The row at a line of the window, and which of its lines; None below the last row."""
        line = y if y < self.pinned else y + self.top
        # only the row under the cursor has more than one line, so all rows below it are shifted by the extra lines
        if self.more and 0 <= self.cursor < line:
            if line <= self.cursor + self.more:
                return self.cursor, line - self.cursor
            line -= self.more
        return (line, 0) if 0 <= line < self.rows else None

    def in_view(self) -> Iterator[int]:
        """Rows whose first line is in the window."""
        for y in range(self.height):
            place = self.locate(y)
            if place is not None and place[1] == 0:
                yield place[0]

    def clamp(self) -> None:
        """Leave no blank lines below the last row while rows are above the window."""
        self.top = max(0, min(self.top, self.lines - self.height))

    def reveal(self) -> None:
        """Scroll just enough to show the cursor with some context."""
        if self.cursor >= self.pinned:
            last = self.cursor + self.more
            # in a window of a few lines the context must leave room for the cursor
            context = min(CONTEXT, max(0, (self.height - self.pinned - 1 - self.more) // 3))
            if self.cursor - context < self.top + self.pinned:
                self.top = self.cursor - context - self.pinned
            elif last + context >= self.top + self.height:
                # a row that is higher than the window shows its beginning
                self.top = min(self.cursor - self.pinned, last + context - self.height + 1)
        self.clamp()

    def scroll_to(self, share: float) -> None:
        """Scroll to a fraction of the list, 0 at the top and 1 at the end."""
        self.top = round(min(max(share, 0.0), 1.0) * (self.lines - self.height))
        self.clamp()

    def thumb(self) -> range:
        """Lines of the window that the scrollbar's thumb covers."""
        if not self.overflows:
            return range(0)
        size = max(1, self.height * self.height // self.lines)
        start = round(self.top / (self.lines - self.height) * (self.height - size))
        return range(start, start + size)


class Painted:
    """What a row looked like when it was last painted, for one width."""

    __slots__ = ("more", "spans", "strips", "width")

    def __init__(self, spans: Line, more: Iterable[Line], width: int) -> None:
        self.spans = tuple(spans)
        self.more = [tuple(line) for line in more]
        self.width = width
        self.strips: dict[tuple[object, ...], Strip] = {}

    def line(self, part: int) -> Iterable[Span]:
        """Its first line, or one of those that it unfolds to; empty if it has fewer than the view last counted."""
        lines = (self.spans, *self.more)
        return lines[part] if part < len(lines) else ()  # until a resize is handled, it is painted for another width

    def looks_like(self, other: Painted) -> bool:
        """Whether nothing of it needs painting again."""
        return (self.spans, self.more, self.width) == (other.spans, other.more, other.width)


class PaintedRows(Widget):
    """The part of a list on screen, and how it is painted."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "PaintedRows { height: 1fr; width: 1fr; background: $helix-ground; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.source: RowSource = Rows()
        self._view = Viewport()
        self._cursor_needs_focus = False
        self._painted: dict[str, Painted] = {}
        self._painted_for: tuple[object, ...] = ()
        self._blanks: dict[tuple[bool, int], Strip] = {}
        self._tinted: dict[str, int] = {}
        self._tint_round = 0
        self._pattern: re.Pattern[str] | None = None
        self._flags: Mapping[str, Span] = {}
        self._labels = JumpLabels()

    def mark_matches(self, pattern: re.Pattern[str] | None) -> None:
        """Highlight a pattern in the rows; ``n`` and ``N`` step through the matches."""
        if pattern != self._pattern:
            self._pattern = pattern
            self._forget_strips()
            self.refresh()

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The highlighted pattern."""
        return self._pattern

    def flag(self, flags: Mapping[str, Span]) -> None:
        """One-cell signs at the left edge of rows, by key: marked rows, rows being changed."""
        before, self._flags = self._look(), dict(flags)
        self._repaint(before)

    def _in_view(self) -> Iterable[int]:
        """The visible rows."""
        return self._view.in_view()

    @property
    def _text_width(self) -> int:
        """Cells of a row without the cursor's bar and the scrollbar."""
        return max(1, self.size.width - 2)

    def _width_for(self, index: int) -> int:
        """Cells that a row is painted for."""
        return self._text_width

    def _look(self) -> list[tuple[object, ...]]:
        """The content of each line in view: compared before and after, it shows what to repaint."""
        thumb = self._view.thumb()
        return [self._line_look(y, thumb) for y in range(self._view.height)]

    def _line_look(self, y: int, thumb: range) -> tuple[object, ...]:
        place = self._view.locate(y)
        if place is None:
            return (None, y in thumb)
        index, part = place
        key = self.source.key(index)
        tinted = bool(self._tinted) and key in self._tinted
        return (self._entry(index), part, index == self._view.cursor, tinted, y in thumb, self._flags.get(key))

    def _repaint(self, before: list[tuple[object, ...]]) -> None:
        after = self._look()
        # the height has changed: the lines cannot be compared one by one
        if len(before) != len(after):
            self.refresh()
            return
        width = self.size.width
        changed = [Region(0, y, width, 1) for y, line in enumerate(after) if line != before[y]]
        if changed:
            self.refresh(*changed)

    def _entry(self, index: int) -> Painted:
        key = self.source.key(index)
        entry = self._painted.get(key)
        if entry is None:
            # all at once: this frame repaints all rows in view
            if len(self._painted) >= max(_CACHED_ROWS, 3 * self._view.height):
                self._painted.clear()
            width = self._width_for(index)
            more = [fit(line, width) for line in self.source.paint_more(index, width)]
            entry = Painted(fit(self.source.paint(index, width), width), more, width)
            self._painted[key] = entry
        return entry

    def _keep_unchanged(self, stale: dict[str, Painted]) -> None:
        """Unchanged rows in view keep their strips."""
        for index in self._in_view():
            entry, key = self._entry(index), self.source.key(index)
            old = stale.get(key)
            # the old strips are still valid: nothing is sent to the terminal again
            if old is not None and old.looks_like(entry):
                self._painted[key] = old

    def _forget_strips(self) -> None:
        self._blanks.clear()
        for entry in self._painted.values():
            entry.strips.clear()

    def _tint(self, keys: Collection[str]) -> None:
        self._tint_round += 1
        mine = self._tint_round
        in_view = {self.source.key(index) for index in self._in_view()}
        fresh = in_view.intersection(keys)
        if fresh:
            self._tinted.update(dict.fromkeys(fresh, mine))
            self.set_timer(TINT_SECONDS, lambda: self._untint(mine))

    def _untint(self, mine: int) -> None:
        before = self._look()
        # a row that has changed again since belongs to a later change, and keeps its tint
        self._tinted = {key: other for key, other in self._tinted.items() if other != mine}
        self._repaint(before)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The strips of a part of the view. Rows keep theirs, so that a key costs little."""
        palette, plain = palette_of(self), ascii_only(self)
        # another theme, or ASCII: spans stay, strips hold colours
        if self._painted_for != (palette, plain):
            self._forget_strips()
            self._painted_for = (palette, plain)
        thumb = self._view.thumb()
        strips = [self._strip(y, y in thumb, palette, plain) for y in crop.line_range]
        for line_filter in self.get_line_filters():
            if not isinstance(line_filter, ANSIToTruecolor):  # palettes have no style for it
                behind = self.background_colors[1]
                strips = [strip.apply_filter(line_filter, behind) for strip in strips]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _strip(self, y: int, on_thumb: bool, palette: Palette, plain: bool) -> Strip:
        place = self._view.locate(y)
        if place is None:
            return self._blank(on_thumb, self.size.width, palette, plain)
        return self._row_strip(*place, self.size.width - 1, on_thumb, palette, plain)

    def _row_strip(self, index: int, part: int, width: int, on_thumb: bool, palette: Palette, plain: bool) -> Strip:
        """A line of a row with its mark at the left and the scrollbar at the right; cached by its look."""
        entry = self._entry(index)
        focused = self.has_focus
        current = index == self._view.cursor and (focused or not self._cursor_needs_focus)
        tinted = bool(self._tinted) and self.source.key(index) in self._tinted
        ground = "selection" if current else "tint" if tinted else ""
        label = self._labels.of.get(self.source.key(index), "") if self._labels and part == 0 else ""
        flag = self._flags.get(self.source.key(index)) if self._flags and part == 0 else None
        # everything that a strip depends on beside its spans
        look = (part, ground, focused and current, width, on_thumb, label, flag)
        strip = entry.strips.get(look)
        if strip is None:
            ink = "running" if focused else "edge"
            mark: Span = ("▌" if current else " ", ink)
            if flag is not None:
                mark = (flag[0], f"{flag[1]} reverse") if current else flag
            spans = [mark, *entry.line(part)]
            line = to_strip(spans, width, palette, ground=ground, pattern=self._pattern, plain=plain)
            if label:
                line = with_label(line, label, palette)
            strip = Strip.join([line, self._blank(on_thumb, 1, palette, plain)])
            if len(entry.strips) >= _CACHED_LOOKS:
                entry.strips.clear()
            entry.strips[look] = strip
        return strip

    def _blank(self, on_thumb: bool, width: int, palette: Palette, plain: bool) -> Strip:
        """An empty line with the scrollbar at the right edge."""
        strip = self._blanks.get((on_thumb, width))
        if strip is None:
            bar: Span = ("▐" if on_thumb else " ", "rule")
            strip = to_strip([(" " * (width - 1), "text"), bar], width, palette, plain=plain)
            self._blanks[on_thumb, width] = strip
        return strip


class Gesture(Message):
    """A message caused by a key or click; dropped if its screen is out of view."""
