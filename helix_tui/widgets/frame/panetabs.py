"""The tabs of a pane: one line of words, the open one underlined, on the right what the pane shows."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from helix_tui.widgets.lists.line import Line, Span, width_of
from helix_tui.widgets.lists.spanline import SpanLine

SHORT = 4
"""Letters of a name where not all names fit."""


class PaneTabs(SpanLine):
    """Words that are tabs. A click asks for one."""

    class Pressed(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names = tuple(names)
        self.current = self.names[0]
        self.note = ""

    def show(self, current: str, note: str = "") -> None:
        """Another tab is open, or something else is to be said on the right."""
        if (current, note) != (self.current, self.note):
            self.current, self.note = current, note
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Ask for the tab under the pointer."""
        at = 0
        for name, label in self._labels(self.size.width):
            at += len(label) + 2
            if event.x < at:
                self.post_message(self.Pressed(name))
                return

    def _labels(self, width: int) -> list[tuple[str, str]]:
        """Each name with what is written of it: all of it, or its beginning where that is too long."""
        fits = sum(len(name) + 2 for name in self.names) <= width
        return [(name, name if fits or name == self.current else name[:SHORT]) for name in self.names]

    def spans(self, width: int) -> Line:
        """All tabs; the note, or its end, as far as there is room."""
        line: list[Span] = []
        for name, label in self._labels(width):
            ink = "text bold underline" if name == self.current else "muted"
            line += [(" ", "text"), (label, ink), (" ", "text")]
        room = width - width_of(line) - 2
        if self.note and room >= 8:
            note = self.note if len(self.note) <= room else f"…{self.note[1 - room :]}"
            line += [(" " * (room - len(note) + 1), "text"), (note, "muted"), (" ", "text")]
        return line
