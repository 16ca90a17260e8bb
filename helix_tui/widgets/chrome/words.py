"""One line of a screen that is told what it shows."""

from __future__ import annotations

from collections.abc import Callable

from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.span_line import SpanLine


class Words(SpanLine):
    """One line that is told what to say."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._say: Callable[[int], Line] = lambda width: ()

    def show(self, say: Callable[[int], Line]) -> None:
        """Say something else, by the width."""
        self._say = say
        self.refresh()

    def spans(self, width: int) -> Line:
        return self._say(width)
