"""The tabs of a pane: one line of words, the open one underlined, on the right what the pane shows."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from helix_tui.widgets.line import Line, Span, cut, width_of
from helix_tui.widgets.spanline import SpanLine


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
        for name in self.names:
            at += len(name) + 2
            if event.x < at:
                self.post_message(self.Pressed(name))
                return

    def spans(self, width: int) -> Line:
        """All tabs; the note as far as there is room."""
        line: list[Span] = []
        for name in self.names:
            here = name == self.current
            line += [(" ", "text"), (name, "text bold underline" if here else "muted"), (" ", "text")]
        room = width - width_of(line) - 2
        if self.note and room >= 8:
            note = cut(self.note, room)
            line += [(" " * (room - len(note) + 1), "text"), (note, "muted"), (" ", "text")]
        return line
