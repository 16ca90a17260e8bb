"""A screen that lies on another one: a caption, a list, and esc leads back."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from helix_tui.screens.base import HelixScreen, TooSmall
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.caption import Caption


class OverlayScreen(HelixScreen):
    """Status bar, notices, caption, one list. Subclasses fill the list in `show_snapshot` and on resize."""

    TITLE_TEXT = ""

    def __init__(self) -> None:
        super().__init__()
        self.caption = Caption(self.TITLE_TEXT)
        self.list = self.make_list()

    def make_list(self) -> RowList:
        """The list of this screen."""
        return RowList(id="overlay")

    def compose(self) -> ComposeResult:
        """No tabs: esc leads back to them."""
        yield self.pulse
        yield self.notices
        yield self.caption
        yield from self.compose_body()
        yield self.footer
        yield TooSmall()

    def compose_body(self) -> ComposeResult:
        """The list."""
        yield self.list

    def panes(self) -> list[Widget]:
        """The list alone."""
        return [self.list]
