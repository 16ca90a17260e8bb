"""What a list shows: rows with keys, painted one by one when they come into view.

Jump labels: a letter on every row in view, and what typing one means.

Rows with a name on the left and figures in columns on the right; columns without room go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from rich.cells import cell_len

from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.base.line import Line, Span, cut, fit, spread, width_of, wrap_spans

LEAST_UNFOLDED = 16
"""Cells below which a row is not continued on a second line."""


class RowSource(ABC):
    """A sequence of rows. Make a new source for a new state; it must not change once shown."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def key(self, index: int) -> str:
        """The row's identity: unique in the source, the same in the next one."""

    @abstractmethod
    def index(self, key: str) -> int | None:
        """Where the row with this key stands."""

    @abstractmethod
    def paint(self, index: int, width: int) -> Line:
        """The row as spans for ``width`` cells (longer is cut). Equal spans mean: nothing to repaint."""

    def paint_more(self, index: int, width: int) -> Line | None:
        """A second line that the row has only while it is selected."""
        return None

    def selectable(self, index: int) -> bool:
        """False for captions: the cursor steps over them."""
        return True

    def text(self, index: int) -> str:
        """What ``n`` and ``N`` search in."""
        return ""


class Row(Struct, frozen=True):
    """A ready-made row, for lists short enough to be painted whole."""

    key: str
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()
    selectable: bool = True


class Rows(RowSource):
    """A source of ready-made rows."""

    def __init__(self, rows: Iterable[Row] = (), *, unfold: bool = False) -> None:
        """Make a source; with ``unfold`` a selected row that is cut says the rest on a second line."""
        self.rows = tuple(rows)
        self._unfold = unfold
        self._places = {row.key: place for place, row in enumerate(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index].key

    def index(self, key: str) -> int | None:
        return self._places.get(key)

    def paint(self, index: int, width: int) -> Line:
        return spread(self.rows[index].left, self.rows[index].right, width)

    def paint_more(self, index: int, width: int) -> Line | None:
        row = self.rows[index]
        room = width - (width_of(row.right) + 1 if row.right else 0)
        if not (self._unfold and row.selectable and room >= LEAST_UNFOLDED and width_of(row.left) > room):
            return None
        rest = [span for line in wrap_spans(row.left, room)[1:] for span in (*line, (" ", "text"))]
        return fit([("    ", "text"), *rest[:-1]], width)

    def selectable(self, index: int) -> bool:
        return self.rows[index].selectable

    def text(self, index: int) -> str:
        return "".join(text for text, _ in (*self.rows[index].left, *self.rows[index].right))


JUMP_LETTERS = "fjdkslaghrueiwoqptyvbncmxz"


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
        """Put a label on each row; labels have two letters where one is not enough for all."""
        labels = list(JUMP_LETTERS)
        if len(rows) > len(labels):
            labels = [first + second for first in JUMP_LETTERS for second in JUMP_LETTERS]
        self._rows = dict(zip(labels, rows, strict=False))
        self.of = {key: label for label, key in self._rows.items()}
        self._typed = ""

    def drop(self) -> None:
        """Show none any more."""
        self._rows, self.of, self._typed = {}, {}, ""

    def type(self, character: str) -> str | Literal[False] | None:
        """Take a key: the row that it leads to, None where it leads nowhere, False while more is to come."""
        typed = self._typed + character
        key = self._rows.get(typed)
        if key is None and character and any(label.startswith(typed) for label in self._rows):
            self._typed = typed
            return False
        self.drop()
        return key


NAME_CELLS = 34
"""Cells that a name has at least before a column goes."""


_SHADES = frozenset("█▓░")
"""Signs of a bar: a legend shows only where one is drawn."""


class Column(Struct, frozen=True):
    """A column of figures."""

    title: str
    cells: int
    rank: int = 0
    """Where there is no room for all, those of a higher rank go first, of one rank the last."""
    name: str = ""
    """What a choice of columns and a saved view name it by."""
    help: str = ""
    asked: bool = False
    """Shown only where somebody chose it."""
    words: bool = False
    """Words, which begin at the left of the column; figures end at its right."""

    def placed(self, text: str, ink: str = "muted") -> Span:
        """A text in its column, two blanks before it."""
        blank = " " * max(0, self.cells - cell_len(text := cut(text, self.cells)))
        return (f"  {text}{blank}" if self.words else f"  {blank}{text}"), ink

    @property
    def head(self) -> Span:
        """The title over the column."""
        return self.placed(self.title)


def fitting(columns: Sequence[Column], room: int, chosen: Sequence[str] | None = None) -> list[Column]:
    """The columns that ``room`` cells hold, each with two blanks before it, in the order in which they stand.

    Args:
        columns: all that there are.
        room: cells that names or titles leave.
        chosen: names of those to show, in the order wanted, the first kept longest; None for those that show
            by themselves.
    """
    if chosen is None:
        wanted = sorted((column for column in columns if not column.asked), key=lambda column: column.rank)
    else:
        named = {column.name: column for column in columns}
        wanted = [named[name] for name in chosen if name in named]
    shown: list[Column] = []
    for column in wanted:
        room -= column.cells + 2
        if room < 0:
            break
        shown.append(column)
    return [column for column in columns if column in shown] if chosen is None else shown


class Figured(Struct, frozen=True):
    """One row: its name, and what stands in each column."""

    key: str
    name: Line
    figures: tuple[Line, ...]


class FiguredRows(RowSource):
    """Rows under a line of column titles. Where there is little room, the columns of the first rank stay."""

    def __init__(
        self, title: str, columns: Sequence[Column], rows: Iterable[Figured], *, empty: str = "", legend: str = ""
    ) -> None:
        """Make the rows.

        Args:
            title: what the names are.
            columns: the columns, the most important first.
            rows: the rows.
            empty: what is said where there are none.
            legend: what the signs in the columns mean, said below the last row.
        """
        self.rows = tuple(rows)
        self._title, self._columns, self._empty, self._legend = title, tuple(columns), empty, legend
        self._places = {row.key: place for place, row in enumerate(self.rows, 1)}
        self._name_cells = max(cell_len(title), *(width_of(row.name) for row in self.rows), 0) + 4

    def __len__(self) -> int:
        return len(self.rows) + 1 + bool(self._legend and self.rows)

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
            drawn = "".join(text for text, _ in self.paint(1, width))
            return [(f" {self._legend}", "muted")] if not {*drawn}.isdisjoint(_SHADES) else []
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
