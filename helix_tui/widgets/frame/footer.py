"""The last line: at most six keys, dropped from the right when it gets narrow, never wrapped."""

from __future__ import annotations

from collections.abc import Sequence

from helix_tui.keymap import BY_ID, shown
from helix_tui.widgets.lists.line import Line, Span, width_of
from helix_tui.widgets.lists.spanline import SpanLine

MOST = 6


class KeyLine(SpanLine):
    """The footer. Its last key (help) stays when others go."""

    def __init__(self, key_ids: Sequence[str], keymap: dict[str, str] | None = None) -> None:
        super().__init__()
        self.key_ids = tuple(key_ids)
        self.keymap = keymap or {}
        self.note = ""
        """Said in place of the keys while it is not empty."""

    def show(self, key_ids: Sequence[str], note: str = "") -> None:
        """Show other keys, or a note in their place."""
        if (tuple(key_ids), note) != (self.key_ids, self.note):
            self.key_ids, self.note = tuple(key_ids), note
            self.refresh()

    def spans(self, width: int) -> Line:
        """As many keys as fit."""
        *others, last = [self._key(key_id) for key_id in self.key_ids[:MOST]]
        if self.note:
            others = [[(f" {self.note}  ", "waiting")]]
        room = width - width_of(last)
        line: list[Span] = []
        for key in others:
            if width_of(line) + width_of(key) > room:
                break
            line += key
        return [*line, *last]

    def _key(self, key_id: str) -> list[Span]:
        key = BY_ID[key_id]
        return [(f" {shown(key, self.keymap)}", "running"), (f" {key.label} ", "muted")]
