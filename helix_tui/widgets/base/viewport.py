"""Which rows of a list are in view: plain arithmetic, at a cost that does not depend on the list's length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CONTEXT = 2
"""Lines kept in view above and below the cursor."""


@dataclass(slots=True)
class Viewport:
    """A window of ``height`` lines on ``rows`` rows, each of one line but the one under the cursor.

    Attributes:
        cursor: the row under the cursor; -1 for none.
        more: extra lines of that row.
        top: the line of the list at the top of the window.
    """

    rows: int = 0
    height: int = 0
    cursor: int = -1
    more: int = 0
    top: int = 0

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
        line = y + self.top
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
        """No blank below the last row while rows lie above the window."""
        self.top = max(0, min(self.top, self.lines - self.height))

    def reveal(self) -> None:
        """Scroll as little as shows the cursor with some context."""
        if self.cursor >= 0:
            last = self.cursor + self.more
            context = min(CONTEXT, max(0, (self.height - 1) // 3))
            if self.cursor - context < self.top:
                self.top = self.cursor - context
            elif last + context >= self.top + self.height:
                self.top = last + context - self.height + 1
        self.clamp()

    def scroll_to(self, share: float) -> None:
        """Scroll to a share of the way, 0 at the top and 1 at the end."""
        self.top = round(min(max(share, 0.0), 1.0) * (self.lines - self.height))
        self.clamp()

    def thumb(self) -> range:
        """Lines of the window that the scrollbar's thumb covers."""
        if not self.overflows:
            return range(0)
        size = max(1, self.height * self.height // self.lines)
        start = round(self.top / (self.lines - self.height) * (self.height - size))
        return range(start, start + size)
