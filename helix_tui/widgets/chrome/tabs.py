"""Line 2: the screens by number, and on the right what the list shows of how much."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from helix_tui.widgets.base.line import Line, Span, cut, fit, width_of
from helix_tui.widgets.base.span_line import SpanLine
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
