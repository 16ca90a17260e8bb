"""What is shown in place of a part of the console that failed."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.widgets.base.line import Line
from helix_tui.widgets.chrome.empty_state import EmptyState


class Failure(EmptyState):
    """In place of a screen that failed again and again."""

    def tell(self, name: str, times: int, log: str, key: str) -> None:
        """Say which screen, how often, where the trace is, and the key that tries again."""
        often = f"It failed {times:,} times in a short while" if times > 1 else "It could not be shown"
        lines: list[Line] = [
            [(f"{name} has failed.", "error bold")],
            [],
            [(f"{often}, because of a defect of helix-tui. Other screens keep working.", "text")],
            [("trace  ", "muted"), (log, "text")],
            [],
            [(key, "running"), ("  try again", "text")],
            [("helix-tui doctor --bundle FILE", "running"), ("  packs a report of it", "text")],
        ]
        self.show(lines)


class DrawGuard:
    """Stands in for ``render_lines`` of a widget that could not be drawn, and draws a line where it fails."""

    def __init__(self, widget: Widget, limit: int, failed: Callable[[Widget, Exception], None]) -> None:
        """``failed`` hears of every further failure; after ``limit`` the widget is not asked again."""
        self._widget, self._limit, self._failed = widget, limit, failed
        self._render = widget.render_lines
        self.failures = 0
        self.key = "f5"

    def __call__(self, crop: Region) -> list[Strip]:
        """The widget's lines, or what stands in their place."""
        if self.failures < self._limit:
            try:
                return self._render(crop)
            except Exception as error:  # noqa: BLE001 - the barrier logs it
                self.failures += 1
                self._failed(self._widget, error)
        text = f" could not be drawn; {self.key} tries again"
        lines = [text if y == 0 else "" for y in range(crop.y, crop.bottom)]
        return [Strip([Segment(line[crop.x : crop.right].ljust(crop.width))], crop.width) for line in lines]
