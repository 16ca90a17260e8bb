"""A page of text as rows: captions, paragraphs that wrap, lines, choices."""

from __future__ import annotations

from rich.cells import cell_len

from helix_tui.widgets.base.line import Line, Span, heading, width_of, wrap_spans
from helix_tui.widgets.base.row_source import Row, Rows

HANG = 4
"""Cells by which the words of a choice are indented where they are below it."""


class Page:
    """Collects rows for a width; the cursor steps on paragraphs, not on captions."""

    def __init__(self, width: int) -> None:
        self.width = max(16, width)
        self._rows: list[Row] = []

    @property
    def rows(self) -> Rows:
        """The rows so far."""
        return Rows(self._rows, unfold=True)

    def caption(self, text: str, right: str = "") -> None:
        """Add a heading, below a blank line."""
        if self._rows:
            self.blank()
        self._add(tuple(heading(text, self.width, right)), selectable=False)

    def blank(self) -> None:
        """Add an empty line."""
        self._add((("", "text"),), selectable=False)

    def line(self, left: Line, right: Line = (), *, key: str = "") -> None:
        """Add a line, cut if it is too long."""
        self._add(tuple(left), tuple(right), key=key)

    def choice(self, lead: Line, words: Span, *, key: str) -> None:
        """Add a line to choose: what it is, and words on what it does, in full: below it if it is long."""
        wide = width_of(lead)
        lines: list[Line] = [lead, *([(" " * HANG, "text"), *line] for line in wrap_spans([words], self.width - HANG))]
        if wide + cell_len(words[0]) <= self.width:
            lines = [[*lead, words]]
        elif wide <= self.width // 2:
            lines = [*wrap_spans([*lead, words], self.width, wide)]
        for place, line in enumerate(lines):
            self._add(line, selectable=not place, key=f"{key}:{place}" if place else key)

    def paragraph(self, spans: Line, hang: int = 0, *, selectable: bool = True, key: str = "") -> None:
        """Add a wrapped paragraph; with a key the cursor steps on its first line only."""
        for place, line in enumerate(wrap_spans(spans, self.width, hang)):
            self._add(line, selectable=selectable and not (key and place), key="" if place else key)

    def _add(self, left: Line, right: Line = (), *, selectable: bool = True, key: str = "") -> None:
        self._rows.append(Row(key or f"page:{len(self._rows)}", tuple(left), tuple(right), selectable))
