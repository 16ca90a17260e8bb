"""What a list shows: rows with keys, painted one by one when they come into view.

Jump labels: a letter on every row in view, and what typing one means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.widgets.base.line import Line, Span, fit, spread, width_of, wrap_spans

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
