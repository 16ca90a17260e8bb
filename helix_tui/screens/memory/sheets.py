"""Sheets of the Memory screen: what can be done, and what a change would do before it is made."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from textual import on

from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.form import Page


class MemoryAction(Struct, frozen=True):
    """One thing that can be done."""

    key: str
    text: str
    why_not: str = ""
    """Why it cannot be done now."""


class MemoryActionSheet(Sheet):
    """What can be done; enter chooses, esc leaves."""

    FOOTER = ("go.open=choose", "go.back=leave it")

    def __init__(self, title: str, choices: Sequence[MemoryAction]) -> None:
        super().__init__(title)
        self.choices = tuple(choices)

    def write(self, page: Page) -> None:
        """One line a choice."""
        for choice in self.choices:
            ink = "muted" if choice.why_not else "text"
            page.line([(f" {choice.text}", ink)], [(choice.why_not, "muted")], key=choice.key)

    @on(RowList.Opened)
    def choose(self, event: RowList.Opened) -> None:
        """Tell which."""
        event.stop()
        chosen = next((choice for choice in self.choices if choice.key == event.key), None)
        if chosen is not None and not chosen.why_not:
            self.dismiss(chosen.key)


class MemoryPreviewSheet(Sheet):
    """What would happen; enter does it, esc leaves it."""

    FOOTER = ("go.open=do it", "go.back=leave it")

    def __init__(self, title: str, lines: Sequence[Line], note: str) -> None:
        super().__init__(title)
        self.lines = tuple(lines)
        self.note = note

    def write(self, page: Page) -> None:
        """The lines, then how to undo it."""
        for line in self.lines:
            page.line(line)
        page.blank()
        page.paragraph([(self.note, "muted")])

    @on(RowList.Opened)
    def do_it(self, event: RowList.Opened) -> None:
        """Yes."""
        event.stop()
        self.dismiss(True)
