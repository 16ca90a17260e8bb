"""A page of text as rows: captions, paragraphs that wrap, lists; what sheets are written on."""

from __future__ import annotations

from helix_tui.widgets.base.line import Line, rule, wrap_spans
from helix_tui.widgets.base.row_source import Row, Rows


class Page:
    """Collects rows for a width; the cursor steps on paragraphs, not on captions."""

    def __init__(self, width: int) -> None:
        self.width = max(16, width)
        self._rows: list[Row] = []

    @property
    def rows(self) -> Rows:
        """What was written so far."""
        return Rows(self._rows, unfold=True)

    def caption(self, text: str, right: str = "") -> None:
        """A thin rule with words in it."""
        self._add(tuple(rule(text, self.width, right)), selectable=False)

    def blank(self) -> None:
        """An empty line."""
        self._add((("", "text"),), selectable=False)

    def line(self, left: Line, right: Line = (), *, key: str = "") -> None:
        """One line, cut where it is too long."""
        self._add(tuple(left), tuple(right), key=key)

    def paragraph(self, spans: Line, hang: int = 0) -> None:
        """As many lines as it takes."""
        for line in wrap_spans(spans, self.width, hang):
            self._add(line)

    def _add(self, left: Line, right: Line = (), *, selectable: bool = True, key: str = "") -> None:
        self._rows.append(Row(key or f"page:{len(self._rows)}", tuple(left), tuple(right), selectable))
