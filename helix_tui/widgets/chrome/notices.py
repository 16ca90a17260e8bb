"""Notices of the last few seconds, in lines of their own below everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

Severity = Literal["information", "warning", "error"]


class PassingNotice(Struct, frozen=True, eq=False):
    """What the console says once."""

    message: str
    severity: Severity = "information"


class PassingNotices(Vertical):
    """The notices, the newest last; takes no lines without one."""

    DEFAULT_CSS = """
    PassingNotices { split: bottom; height: auto; max-height: 25%; overflow-y: hidden; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: Sequence[PassingNotice] = ()

    def show(self, told: Sequence[PassingNotice]) -> None:
        """Show these and no others."""
        if list(told) != list(self._told):
            self._told = tuple(told)
            if self.is_mounted:
                self._rewrite()

    def on_mount(self) -> None:
        """Show what was said before."""
        self._rewrite()

    def _rewrite(self) -> None:
        self.display = bool(self._told)
        self.remove_children(NoticeText)
        self.mount(*map(NoticeText, self._told))
        self.scroll_end(animate=False)


class NoticeText(Static):
    """The text of one notice, never parsed as markup."""

    DEFAULT_CSS = """
    NoticeText { background: $helix-tint; color: $helix-text; border-left: outer $helix-running; padding: 0 1; }
    NoticeText.-warning { border-left: outer $helix-waiting; }
    NoticeText.-error { border-left: outer $helix-error; }
    """

    def __init__(self, notice: PassingNotice) -> None:
        super().__init__(Content(notice.message), classes=f"-{notice.severity}")
