"""A thin rule with a dim caption: what parts one pane from the next instead of a box."""

from __future__ import annotations

from helix_tui.widgets.base.line import Line, rule
from helix_tui.widgets.base.span_line import SpanLine


class Caption(SpanLine):
    """One line: ``── dag ──────────── 18 of 188 ──``."""

    def __init__(self, text: str = "", right: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._right = text, right

    def show(self, text: str, right: str = "") -> None:
        """Say something else."""
        if (text, right) != (self._text, self._right):
            self._text, self._right = text, right
            self.refresh()

    def spans(self, width: int) -> Line:
        """The rule."""
        return rule(self._text, width, self._right)
