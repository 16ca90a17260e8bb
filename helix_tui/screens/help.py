"""Every key, from the registry, under its heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helix_tui.keymap import groups, shown_all
from helix_tui.screens.overlay import Overlay
from helix_tui.themes.alphabet import SIGNS
from helix_tui.widgets.lists.line import Span, rule, wrap_spans
from helix_tui.widgets.lists.rowsource import Row, Rows

if TYPE_CHECKING:
    from helix_tui.core.live import Change, Snapshot

_KEY_CELLS = 16


class HelpScreen(Overlay):
    """``?``"""

    TITLE_TEXT = "keys"
    FOOTER = ("go.back", "move.down", "move.up", "app.quit")

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Nothing in here depends on the queue."""
        self.on_resize()

    def on_resize(self) -> None:
        """Other widths break sentences elsewhere."""
        width = max(20, self.size.width - 3)
        self.list.show(Rows([*_keys(width, dict(self.console.keymap)), *_signs(width)]))


def _keys(width: int, keymap: dict[str, str]) -> list[Row]:
    rows = []
    for title, keys in groups().items():
        rows.append(Row(f"group:{title}", tuple(rule(title, width)), selectable=False))
        for key in keys:
            spans: list[Span] = [(shown_all(key, keymap).ljust(_KEY_CELLS), "running"), (key.help, "text")]
            for place, line in enumerate(wrap_spans(spans, width, _KEY_CELLS)):
                rows.append(Row(f"{key.id}/{place}" if place else key.id, line, selectable=not place))
    return rows


def _signs(width: int) -> list[Row]:
    rows = [Row("group:signs", tuple(rule("Signs", width)), selectable=False)]
    for state, sign in SIGNS.items():
        rows.append(Row(f"sign:{state}", ((sign.glyph.ljust(_KEY_CELLS), sign.ink), (sign.word, "text"))))
    rows.append(
        Row("sign:next", (("▸".ljust(_KEY_CELLS), "success bold"), ("what DDx will pick next", "text")))
    )
    return rows
