"""A few ways to go, at the bottom: stepping through them shows each, enter opens, esc goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.chrome.notice_line import Caption
from helix_tui.widgets.gesture import Gesture

MOST_LINES = 8


class Chooser(Vertical):
    """It is mounted when there is more than one way, and removed by whoever mounted it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("J", "step(1)", show=False, id="move.dependent"),
        Binding("K", "step(-1)", show=False, id="move.needed"),
        Binding("escape", "call_off", show=False, id="go.back"),
    ]
    DEFAULT_CSS = """
    Chooser { dock: bottom; height: auto; background: $helix-ground; layer: prompt; }
    Chooser RowList { height: auto; }
    """

    class Looked(Message):
        """The cursor is on another way."""

        def __init__(self, chooser: Chooser, key: str) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    class Done(Gesture):
        """One was chosen; none, where it was called off."""

        def __init__(self, chooser: Chooser, key: str | None) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    def __init__(self, caption: str, ways: Sequence[Row], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._caption = Caption(caption, "enter opens, esc goes back")
        self._list = RowList()
        self._ways = ways

    def compose(self) -> ComposeResult:
        """The caption above, the ways below."""
        yield self._caption
        yield self._list

    def on_mount(self) -> None:
        """The first way is looked at first."""
        self._list.styles.height = min(MOST_LINES, len(self._ways))
        self._list.show(Rows(self._ways))
        self._list.focus(scroll_visible=False)

    def action_step(self, step: int) -> None:
        """The next way, or the one before; round and round."""
        keys = [way.key for way in self._ways]
        self._list.select(keys[(self._list.selected_index + step) % len(keys)])

    def action_call_off(self) -> None:
        """Back to where it began."""
        self.post_message(self.Done(self, None))

    @on(RowList.Selected)
    def _look(self, event: RowList.Selected) -> None:
        event.stop()
        if event.key is not None:
            self.post_message(self.Looked(self, event.key))

    @on(RowList.Opened)
    def _choose(self, event: RowList.Opened) -> None:
        event.stop()
        self.post_message(self.Done(self, event.key))
