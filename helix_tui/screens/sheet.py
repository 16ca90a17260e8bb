"""Sheets and overlays, which open over a screen and close with esc.

A `Sheet` covers the lower part, or all of a narrow screen: a caption, a page, its keys. An `OverlayScreen` covers all:
status bar, caption, one list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from helix_tui.core.editing.execute.trust import NotAllowed, allow
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import bindings
from helix_tui.screens.base import HelixScreen, ThreadHost, TooSmall
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Rows
from helix_tui.widgets.chrome.header import Caption
from helix_tui.widgets.text.page import Page

SHARE = 0.75
"""The largest share of the screen that a sheet takes, unless it takes all of it."""


class Sheet(HelixScreen, ModalScreen[Any]):
    """Subclasses write the page; the screen underneath stays live."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("sheet")]
    BLANK = False
    AROUND: ClassVar[int] = 4
    """Lines of the sheet beside its page: a rule, its caption, its keys, a notice."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.caption = Caption(title)
        self.list = RowList(id="page")

    def compose(self) -> ComposeResult:
        """The sheet alone: everything around it belongs to the screen underneath."""
        self.console.opened.add(self)
        self.take_breakpoint()
        with Vertical(id="sheet"):
            yield self.caption
            yield from self.compose_body()
            yield self.footer
        yield self.told
        yield TooSmall()

    def compose_body(self) -> ComposeResult:
        """The page."""
        yield self.list

    def on_screen_resume(self) -> None:
        """Catch up; the screen underneath keeps preparing snapshots."""
        self.catch_up()

    def show_pulse(self) -> None:
        """Do nothing: the top line belongs to the screen underneath."""

    def panes(self) -> list[Widget]:
        """The page."""
        return [self.list]

    def write(self, page: Page) -> None:
        """Rewrite the page."""

    def on_resize(self) -> None:
        """Wrap the page for the new width."""
        self.rewrite()

    def rewrite(self) -> None:
        """Write the page for the present width, as high as needed."""
        page = Page(self.app.size.width - 2)
        self.write(page)
        self.fill(page.rows)

    @property
    def _most_lines(self) -> int:
        """Lines that the page may take, as Textual rounds: the footer stays."""
        height = self.app.size.height
        return (height if self.is_narrow else int(height * SHARE)) - self.AROUND

    def fill(self, rows: Rows) -> None:
        """Show rows, on as many lines as they need and the sheet may take; all in the side pane."""
        if self.is_narrow:
            self.list.styles.height = "1fr"
        else:
            # room for the selected row to unfold, so that the sheet does not grow as the cursor moves
            width = self.app.size.width - 2
            unfolds = max((len(rows.paint_more(index, width)) for index in range(len(rows))), default=0)
            self.list.styles.height = max(1, min(len(rows) + unfolds, self._most_lines))
        self.list.show(rows)


class LinesSheet(Sheet):
    """Preview of an action outside the queue; enter confirms, esc cancels."""

    FOOTER = ("go.open=confirm", "go.back=cancel")

    def __init__(self, title: str, lines: Sequence[Line], note: str, confirmed: Callable[[], object]) -> None:
        """``confirmed`` is called once the sheet has closed; never if it is cancelled."""
        super().__init__(title)
        self.lines = tuple(lines)
        self.note = note
        self._confirmed = confirmed

    def write(self, page: Page) -> None:
        """The lines, then how to undo it."""
        for line in self.lines:
            page.line(line)
        page.blank()
        page.paragraph([(self.note, "muted")])

    @on(RowList.Opened)
    def do_it(self, event: RowList.Opened) -> None:
        """Confirm."""
        event.stop()
        self.dismiss()
        self._confirmed()


def ask_to_allow(host: ThreadHost, refused: NotAllowed, then: Callable[[], object]) -> None:
    """Show what the repository brings that would run; once a person allows it, do what was refused."""

    def work() -> None:
        try:
            allow(refused.waiting)
        except (HelixError, OSError) as error:
            host.call_from_thread(host.say, clean_line(f"nothing was allowed: {error}", 400), "error")
        else:
            host.call_from_thread(then)

    lines = [[(line, "text")] for brought in refused.waiting for line in brought.describe()]
    note = "Enter allows it for this repository, as it is now, and continues; `helix-tui trust --revoke` forgets it."
    confirmed = partial(host.run_worker, work, thread=True, group="allow")
    host.push_screen(LinesSheet("run what this repository brings?", lines, note, confirmed))


class OverlayScreen(HelixScreen):
    """A screen over another one, with a caption and one list, filled in `show_snapshot` and on resize."""

    TITLE_TEXT = ""

    def __init__(self) -> None:
        super().__init__()
        self.caption = Caption(self.TITLE_TEXT)
        self.list = self.make_list()

    def make_list(self) -> RowList:
        """The list of this screen."""
        return RowList(id="overlay")

    def compose_body(self) -> ComposeResult:
        """Caption and list."""
        yield self.caption
        yield self.list

    def panes(self) -> list[Widget]:
        """The list alone."""
        return [self.list]
