"""Line 2: the screens by number, and on the right what the list shows of how much.

The tabs of a pane: one line of words, the open one underlined, on the right what the pane shows.

Where not all words fit, those around the open one stand, and ``…`` leads to the next one beyond.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from helix_tui.widgets.base.line import Line, Span, SpanLine, cut, fit, width_of
from helix_tui.widgets.gesture import Gesture


class Tabs(SpanLine):
    """The tab bar. A click on a tab asks for its screen."""

    class Pressed(Gesture):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, tabs: Sequence[tuple[str, str, str]], current: str) -> None:
        """Show tabs, each ``(key, name, title)``."""
        super().__init__()
        self._tabs = tuple(tabs)
        self._current = current
        self._filter = ""
        self._count = ""
        self._shows_tabs = True

    def show(self, *, filter_text: str = "", count: str = "") -> None:
        """What the list shows: the filter, and how many of how many."""
        if (filter_text, count) != (self._filter, self._count):
            self._filter, self._count = filter_text, count
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Go to the tab under the pointer."""
        at = 0
        for name, label in self._labels(self.size.width) if self._shows_tabs else ():
            at += width_of(label)
            if event.x < at:
                self.post_message(self.Pressed(name))
                return

    def _labels(self, width: int) -> list[tuple[str, list[Span]]]:
        """Each screen with what is written of it; the others by number alone where the names do not fit."""
        fits = sum(len(key) + len(title) + 3 for key, _, title in self._tabs) <= width
        labels = []
        for key, name, title in self._tabs:
            here = name == self._current
            label: list[Span] = [(f" {key}", "running" if here else "muted")]
            shown = f" {title} " if fits or here else " "
            label.append((shown, "text bold underline" if here else "muted"))
            labels.append((name, label))
        return labels

    def spans(self, width: int) -> Line:
        """Tabs on the left; filter and count on the right, where there is room."""
        left = [span for _, label in self._labels(width) for span in label]
        right: list[Span] = []
        if self._filter:
            right = [("/ ", "running"), (cut(self._filter, max(10, width // 3)), "text"), ("   ", "text")]
        right.append((f"{self._count} ", "muted"))
        gap = width - width_of(left) - width_of(right)
        self._shows_tabs = gap >= 1 or not self._filter
        if gap < 1:
            return left if self._shows_tabs else fit(right, width)
        return [*left, (" " * gap, "text"), *right]


MORE = "…"


class PaneTabs(SpanLine):
    """Words that are tabs. A click asks for one."""

    class Pressed(Gesture):
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
        """What is written, each with the tab that a click on it asks for."""
        shown = self._in_room(width)
        labels = [(self.names[place], self.names[place]) for place in shown]
        if shown.start:
            labels.insert(0, (self.names[shown.start - 1], MORE))
        if shown.stop < len(self.names):
            labels.append((self.names[shown.stop], MORE))
        return labels

    def _in_room(self, width: int) -> range:
        """The tabs that fit: all, or those around the open one."""
        here, first, stop = self.names.index(self.current), 0, len(self.names)
        while stop - first > 1 and self._cells(first, stop) > width:
            if stop - 1 - here >= here - first:
                stop -= 1
            else:
                first += 1
        return range(first, stop)

    def _cells(self, first: int, stop: int) -> int:
        """Cells of a run of tabs."""
        cut = (first > 0) + (stop < len(self.names))
        return sum(len(name) + 2 for name in self.names[first:stop]) + cut * (len(MORE) + 2)

    def spans(self, width: int) -> Line:
        """All tabs; the note, or its end, as far as there is room."""
        line: list[Span] = []
        for name, label in self._labels(width):
            ink = "text bold underline" if label == self.current == name else "muted"
            line += [(" ", "text"), (label, ink), (" ", "text")]
        room = width - width_of(line) - 2
        note = _end_of(self.note, room)
        if note:
            line += [(" " * (room - len(note) + 1), "text"), (note, "muted"), (" ", "text")]
        return line


def _end_of(note: str, room: int) -> str:
    """As much of the end of a note as fits: whole parts of it, or what a single one ends in."""
    parts = note.split(" · ")
    while len(parts) > 1 and len(" · ".join(parts)) > room:
        parts.pop(0)
    note = " · ".join(parts)
    if len(note) > room:
        return f"…{note[1 - room :]}" if room >= 8 else ""
    return note
