"""A line to type in."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Input


class Entry(Input):
    """A text field. ``take`` sees every key first and says whether it handled it."""

    def __init__(
        self,
        text: str = "",
        *,
        take: Callable[[str], bool],
        placeholder: str = "",
        select_on_focus: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(value=text, placeholder=placeholder, select_on_focus=select_on_focus, id=id)
        self.cursor_blink = False  # no blinking: nothing moves unless it changed
        self._take = take

    def on_key(self, event: events.Key) -> None:
        """Take a key before it is text."""
        if self._take(event.key):
            event.stop()
            event.prevent_default()
