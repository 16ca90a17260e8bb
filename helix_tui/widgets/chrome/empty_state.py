"""What stands where a list would be, when there is no list: why, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.widgets.base.line import Line, to_strip, width_of, wrap_spans
from helix_tui.widgets.palette import ascii_only, palette_of

_WIDEST = 72


class EmptyState(Widget):
    """A few paragraphs in the middle of the space, the first of them the headline."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "EmptyState { height: 1fr; width: 1fr; background: $helix-ground; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs: tuple[Line, ...] = ()
        self._lines: list[Line] = []
        self._laid_out_for: Size | None = None

    def show(self, paragraphs: Sequence[Line]) -> None:
        """Say something else; an empty paragraph is a blank line."""
        said = tuple(tuple(paragraph) for paragraph in paragraphs)
        if said != self._paragraphs:
            self._paragraphs = said
            self._laid_out_for = None
            self.refresh()

    def _lay_out(self) -> None:
        room = max(8, min(_WIDEST, self.size.width - 4))
        self._lines = []
        for paragraph in self._paragraphs:
            self._lines.extend(wrap_spans(paragraph, room))
        self._laid_out_for = self.size

    def render_line(self, y: int) -> Strip:
        """One line of the placard, or blank."""
        if self._laid_out_for != self.size:
            self._lay_out()
        width = self.size.width
        top = max(0, (self.size.height - len(self._lines)) // 3)
        spans: Line = self._lines[y - top] if 0 <= y - top < len(self._lines) else []
        block = max((width_of(line) for line in self._lines), default=0)
        indent = " " * max(1, (width - block) // 2)
        return to_strip([(indent, "text"), *spans], width, palette_of(self), plain=ascii_only(self))
