"""Rows of figures under column titles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.base.line import Line, Span, cut, fit, spread, width_of
from helix_tui.widgets.base.row_source import Column, RowSource, fitting

NAME_CELLS = 34
"""The least width of a name before a column is dropped."""


_SHADES = frozenset("█▓░")
"""Bar glyphs: the legend shows only if one is drawn."""


class Figured(Struct, frozen=True):
    """One row: its name, and the value of each column."""

    key: str
    name: Line
    figures: tuple[Line, ...]


class FiguredRows(RowSource):
    """Rows under a line of column titles. If room is short, columns of the lowest rank stay."""

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        rows: Iterable[Figured],
        *,
        empty: str = "",
        legend: str = "",
        note: str = "",
    ) -> None:
        """Make the rows.

        Args:
            title: the heading of the names.
            columns: the columns, the most important first.
            rows: the rows.
            empty: the text if there are none.
            legend: what the bars mean, below the last row where one is drawn.
            note: what other signs and the order mean, on the same line.
        """
        self.rows = tuple(rows)
        self._title, self._columns, self._empty = title, tuple(columns), empty
        self._legend, self._note = legend, note
        self._places = {row.key: place for place, row in enumerate(self.rows, 1)}
        self._name_cells = max(cell_len(title), *(width_of(row.name) for row in self.rows), 0) + 4

    def __len__(self) -> int:
        return len(self.rows) + 1 + bool((self._legend or self._note) and self.rows)

    def key(self, index: int) -> str:
        return "head:" if not index else self.rows[index - 1].key if index <= len(self.rows) else "legend:"

    def index(self, key: str) -> int | None:
        if key == "legend:":
            return len(self) - 1 if len(self) > len(self.rows) + 1 else None
        return 0 if key == "head:" else self._places.get(key)

    def selectable(self, index: int) -> bool:
        return 0 < index <= len(self.rows)

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.rows[index - 1].name) if self.selectable(index) else ""

    def row(self, key: str | None) -> Figured | None:
        """The row of a key."""
        place = self._places.get(key or "")
        return self.rows[place - 1] if place is not None else None

    def paint(self, index: int, width: int) -> Line:
        if index == 0:
            return self.head(width) if self.rows else [(f"  {self._empty}", "muted")]
        if index > len(self.rows):
            # the column with the bars may be dropped at this width
            drawn = "".join(text for text, _ in self.paint(1, width))
            bars = bool(self._legend) and not {*drawn}.isdisjoint(_SHADES)
            said = "   ".join(filter(None, (self._note, self._legend if bars else "")))
            return [(f" {said}", "muted")] if said else []
        shown = self._shown(width)
        row = self.rows[index - 1]
        figures: list[Span] = []
        for column, spans in zip(self._columns, row.figures, strict=True):
            if column not in shown:
                continue
            fitted = fit(spans, column.cells)
            figures += [(" " * (2 + column.cells - width_of(fitted)), "text"), *fitted]
        return spread(row.name, figures, width)

    def head(self, width: int) -> Line:
        """The titles of the columns."""
        heads: list[Span] = [(f"  {column.title:>{column.cells}}", "muted") for column in self._shown(width)]
        return spread([(self._title, "muted")], heads, width)

    def _shown(self, width: int) -> list[Column]:
        return fitting(self._columns, width - min(NAME_CELLS, width // 2, self._name_cells))


def cell(text: str, ink: str = "text") -> Line:
    """One figure."""
    return [(cut(clean_line(text, 60), 60), ink)]
