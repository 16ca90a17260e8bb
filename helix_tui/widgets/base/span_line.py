"""One line of spans that stands still: pulse, tabs, footer and captions are made of it."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from helix_tui.widgets.base.line import Line, fit, to_strip
from helix_tui.widgets.palette import ascii_only, palette_of


class SpanLine(Widget):
    """A widget of one line; subclasses say in `spans` what stands on it at a width."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "SpanLine { height: 1; width: 1fr; background: $helix-ground; }"

    def spans(self, width: int) -> Line:
        """The line for ``width`` cells; longer is cut."""
        return ()

    def render_line(self, y: int) -> Strip:
        """The line, cut and padded."""
        width = self.size.width
        return to_strip(fit(self.spans(width), width), width, palette_of(self), plain=ascii_only(self))
