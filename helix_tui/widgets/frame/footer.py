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
        self.work = ""
        """What goes on, said before everything else while it is not empty."""

    def show(self, key_ids: Sequence[str], note: str = "") -> None:
        """Show other keys, or a note in their place."""
        if (tuple(key_ids), note) != (self.key_ids, self.note):
            self.key_ids, self.note = tuple(key_ids), note
            self.refresh()

    def show_work(self, work: str) -> None:
        """Say what goes on, or with an empty text that nothing does."""
        if work != self.work:
            self.work = work
            self.refresh()

    def spans(self, width: int) -> Line:
        """As many keys as fit."""
        *others, last = [self._key(key_id) for key_id in self.key_ids[:MOST]]
        if self.note:
            others = [[(f" {self.note}  ", "waiting")]]
        if self.work:
            others = [[(f" {self.work}  ", "waiting bold")], *others]
        room = width - width_of(last)
        line: list[Span] = []
        for key in others:
            if width_of(line) + width_of(key) > room:
                break
            line += key
        return [*line, *last]

    def _key(self, key_id: str) -> list[Span]:
        """The key of an id; ``id=word`` says another word than the registry's for what it does here."""
        key_id, _, word = key_id.partition("=")
        key = BY_ID[key_id]
        return [(f" {shown(key, self.keymap)}", "running"), (f" {word or key.label} ", "muted")]
