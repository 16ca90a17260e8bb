"""The line below the tabs where something must be known of the project before its queue is believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from helix_tui.widgets.base.line import Line, fit, spread, width_of
from helix_tui.widgets.base.span_line import SpanLine
from helix_tui.widgets.gesture import Gesture


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
