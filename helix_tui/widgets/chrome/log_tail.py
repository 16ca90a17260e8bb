"""The end of a log under a thin rule: what somebody says who works in the background."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip
from textual.widget import Widget

from helix_tui.widgets.base.line import Line, Span, fit, rule, to_strip
from helix_tui.widgets.palette import ascii_only, palette_of


class LogTail(Widget):
    """A rule with a caption, a line on how it stands, and as many of the last lines as there is room for."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "LogTail { height: auto; width: 1fr; background: $helix-ground; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._caption = ("", "")
        self._standing: Span = ("", "text")
        self._lines: tuple[str, ...] = ()

    def show(self, caption: str, right: str, standing: Span, lines: Sequence[str]) -> None:
        """Say something else. All of it has been cleaned."""
        said = ((caption, right), standing, tuple(lines))
        if said != (self._caption, self._standing, self._lines):
            self._caption, self._standing, self._lines = said
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The rule, the standing, or one of the last lines."""
        width, room = self.size.width, self.size.height - 2
        spans: Line = []
        if y == 0:
            spans = rule(*self._rule(width))
        elif y == 1:
            spans = fit([("  ", "text"), self._standing], width)
        elif shown := self._lines[-room:]:
            spans = fit([("  ", "text"), (shown[y - 2], "muted")], width) if y - 2 < len(shown) else []
        return to_strip(spans, width, palette_of(self), plain=ascii_only(self))

    def _rule(self, width: int) -> tuple[str, int, str]:
        return self._caption[0], width, self._caption[1] if width >= 60 else ""
