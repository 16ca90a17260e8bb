"""The last line: at most six keys, dropped from the right when it gets narrow, never wrapped."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.reactive import reactive

from helix_tui.keymap import BY_ID, names, shown
from helix_tui.widgets.base.line import Line, Span, SpanLine, width_of
from helix_tui.widgets.base.row_source import Gesture

MAX_KEYS = 6


class KeyLine(SpanLine):
    """The footer. Its last key (help) stays when others are dropped; a click on a key presses it."""

    class Pressed(Gesture):
        """A key was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name
            """In Textual's spelling."""

    key_ids: reactive[tuple[str, ...]] = reactive(())
    """The keys shown, in order; the last one stays when others do not fit."""
    note = reactive("")
    """Shown in place of the keys while it is not empty."""
    work = reactive("")
    """The present activity, shown first while it is not empty."""

    def __init__(self, key_ids: Sequence[str], keymap: dict[str, str] | None = None) -> None:
        super().__init__()
        self.set_reactive(KeyLine.key_ids, tuple(key_ids))
        self.keymap = keymap or {}

    def on_click(self, event: events.Click) -> None:
        """Press the key under the pointer."""
        at = 0
        for key_id, part in self._parts(self.size.width):
            at += width_of(part)
            if event.x < at:
                if key_id:
                    keys = self.keymap.get(key_id, BY_ID[key_id].keys)
                    self.post_message(self.Pressed(names(keys)[0]))
                return

    def spans(self, width: int) -> Line:
        """As many keys as fit."""
        return [span for _, part in self._parts(width) for span in part]

    def _parts(self, width: int) -> list[tuple[str, list[Span]]]:
        """The parts of the line, each with the id of its key; plain text has none."""
        # its room is reserved first: the others are dropped from the right, and the help key stays
        *others, last = [(key_id.partition("=")[0], self._key(key_id)) for key_id in self.key_ids[:MAX_KEYS]]
        if self.note:
            others = [("", [(f" {self.note}  ", "waiting")])]
        if self.work:
            others = [("", [(f" {self.work}  ", "waiting bold")]), *others]
        left = width - width_of(last[1])
        parts: list[tuple[str, list[Span]]] = []
        for key_id, part in others:
            left -= width_of(part)
            if left < 0:
                break
            parts.append((key_id, part))
        return [*parts, last]

    def _key(self, key_id: str) -> list[Span]:
        """The key with an id; ``id=word`` replaces the registry's label."""
        key_id, _, word = key_id.partition("=")
        key = BY_ID[key_id]
        return [(f" {shown(key, self.keymap)}", "running"), (f" {word or key.label} ", "muted")]
