"""The line below the tabs where something must be known of the project before its queue is believed.

A thin rule with a dim caption: what parts one pane from the next instead of a box.

The end of a log under a thin rule: what somebody says who works in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.widgets.base.line import Line, Span, SpanLine, fit, rule, spread, to_strip, width_of
from helix_tui.widgets.gesture import Gesture
from helix_tui.widgets.outcomes import ascii_only, palette_of


class NoticeLine(SpanLine):
    """The first notice in as many words as there is room for; not there while there is none.

    ``tab`` comes to it, and enter lists all notices in full.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "list_notices", show=False, id="go.open")]

    class Pressed(Gesture):
        """Somebody wants to read the notices in full."""

    def __init__(self) -> None:
        super().__init__()
        self._notices: tuple[tuple[str, ...], ...] = ()
        self.display = False

    def show(self, notices: Sequence[tuple[str, ...]]) -> None:
        """Show notices, each in its forms, the longest first."""
        if tuple(notices) != self._notices:
            self._notices = tuple(notices)
            self.display = self.can_focus = bool(notices)
            self.refresh()

    def action_list_notices(self) -> None:
        """List them in full."""
        self.post_message(self.Pressed())

    def on_click(self, event: events.Click) -> None:
        """A click does what enter does."""
        event.stop()
        self.post_message(self.Pressed())

    def on_focus(self) -> None:
        """Show where the focus is."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that it is elsewhere."""
        self.refresh()

    def spans(self, width: int) -> Line:
        """The longest form that fits; where that is not the whole, or not all, a sign that there is more."""
        if not self._notices:
            return ()
        more = len(self._notices) - 1
        forms = self._notices[0]
        ink = "attention reverse" if self.has_focus else "attention"
        for form in forms:
            told: Line = [("! ", "attention bold"), (form, ink)]
            rest = f"+{more} ▸" if more else "▸" if form != forms[0] else ""
            right: Line = [(rest, "attention bold")] if rest else []
            if width_of(told) + width_of(right) + 2 <= width:
                return spread(told, [*right, (" ", "text")], width)
        return (
            spread(told, [(f"+{more} ▸" if more else "▸", "attention bold")], width) if width > 8 else fit(told, width)
        )


MIN_CAPTION = 16
"""Cells that the words of a caption keep before the heads of columns go."""


class Caption(SpanLine):
    """One line: ``── dag ──────────── 18 of 188 ──``."""

    def __init__(self, text: str = "", right: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._right = text, right
        self._heads: Callable[[int], Line] = lambda width: ()

    def show(self, text: str, right: str = "") -> None:
        """Say something else."""
        if (text, right) != (self._text, self._right):
            self._text, self._right = text, right
            self.refresh()

    def show_heads(self, heads: Callable[[int], Line]) -> None:
        """Name the columns of the list below: ``heads`` of as many cells as its rows have, each over its column."""
        self._heads = heads
        self.refresh()

    def spans(self, width: int) -> Line:
        """The rule."""
        heads = self._heads(width - 2)
        taken = width_of(heads)
        if not taken or taken + MIN_CAPTION > width:
            return rule(self._text, width, self._right)
        return [*rule(self._text, width - taken - 1, self._right), *heads]


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
