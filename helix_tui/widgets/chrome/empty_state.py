"""The text shown instead of a list when there is none, or where a part of the console failed.

It says why, and what to do about it: for a missing queue what was looked for, for a failed screen where
its trace is, for a widget that cannot be drawn which key tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.core.ground.text import clean_line, counted
from helix_tui.widgets.base.line import Line, ascii_only, palette_of, to_strip, width_of, wrap_spans

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Snapshot

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
        """Show other paragraphs; an empty one is a blank line."""
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
        """One line of an empty state, or blank."""
        if self._laid_out_for != self.size:
            self._lay_out()
        width = self.size.width
        top = max(0, (self.size.height - len(self._lines)) // 3)
        spans: Line = self._lines[y - top] if 0 <= y - top < len(self._lines) else []
        block = max((width_of(line) for line in self._lines), default=0)
        indent = " " * max(1, (width - block) // 2)
        return to_strip([(indent, "text"), *spans], width, palette_of(self), plain=ascii_only(self))


class Failure(EmptyState):
    """Shown in place of a screen that failed repeatedly."""

    def tell(self, name: str, times: int, log: str, key: str) -> None:
        """Name the screen, how often it failed, where the trace is, and the key that tries again."""
        often = f"It failed {times:,} times within a short time" if times > 1 else "It could not be shown"
        lines: list[Line] = [
            [(f"{name} has failed.", "error bold")],
            [],
            [(f"{often} because of a bug in helix-tui. Other screens keep working.", "text")],
            [("trace  ", "muted"), (log, "text")],
            [],
            [(key, "running"), ("  try again", "text")],
            [("helix-tui doctor --bundle FILE", "running"), ("  packs a bug report", "text")],
        ]
        self.show(lines)


class DrawGuard:
    """Replaces ``render_lines`` of a widget that could not be drawn, and draws a message where it fails."""

    def __init__(self, widget: Widget, limit: int, failed: Callable[[Widget, Exception], None], key: str) -> None:
        """``failed`` is called on every further failure; after ``limit`` failures only ``key`` tries again."""
        self._widget, self._limit, self._failed = widget, limit, failed
        self._render = widget.render_lines
        self.failures = 0
        self._key = key

    def __call__(self, crop: Region) -> list[Strip]:
        """The widget's lines, or the message in their place."""
        if self.failures < self._limit:
            try:
                return self._render(crop)
            except Exception as error:  # noqa: BLE001 - the barrier logs it
                self.failures += 1
                self._failed(self._widget, error)
        text = f" could not be drawn; {self._key} tries again"
        lines = [text if y == 0 else "" for y in range(crop.y, crop.bottom)]
        return [Strip([Segment(line[crop.x : crop.right].ljust(crop.width))], crop.width) for line in lines]


def empty_state(snapshot: Snapshot) -> list[Line] | None:
    """The paragraphs for a state without a queue; None if there is one."""
    if snapshot.has_queue:
        return None
    project, tracker = snapshot.project, snapshot.tracker
    file = clean_line(str(project.beads_file), 300)
    if snapshot.condition == "loading":
        return [[("Reading the queue …", "text bold")], [(file, "muted")]]
    if snapshot.condition == "no-ddx":
        return [
            [("No DDx queue here.", "text bold")],
            [],
            [("Looked for ", "muted"), (file, "text")],
            [],
            [("ddx init", "running"), ("              creates one in this repository", "muted")],
            [("helix-tui -C DIR", "running"), ("      opens another project", "muted")],
            [("helix-tui demo", "running"), ("        shows the console on a throw-away project", "muted")],
            [],
            [("This screen fills as soon as the file exists.", "muted")],
        ]
    if snapshot.condition == "gone":
        return [
            [("The tracker is gone.", "attention bold")],
            [],
            [(file, "text"), (" was here and is gone: moved, deleted, or not on this branch.", "muted")],
            [("The screen fills again when the file is back.", "muted")],
        ]
    if snapshot.condition == "unreadable":
        return [
            [("The tracker cannot be read.", "error bold")],
            [],
            [(clean_line(tracker.problem, 300), "text")],
            [(file, "muted")],
        ]
    lines: list[Line] = [[("The queue is empty.", "text bold")], [], [(file, "muted")], []]
    if tracker.dropped:
        count = len(tracker.dropped)
        lines[0] = [(f"None of the {counted(count, 'line')} of the tracker can be read.", "error bold")]
        lines.append([("!", "running"), ("  lists them with the reason for each", "muted")])
    lines += [
        [("N", "running"), ("  creates the first bead, checked as you type", "muted")],
        [("i", "running"), ("  asks the repository", "muted")],
        [("?", "running"), ("  every key", "muted")],
    ]
    return lines
