"""What a list shows: rows with keys, painted one by one when they come into view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Row:
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
