"""Questions as rows: what runs, what was asked before, and what could be asked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.widgets.base.line import Line, Span, rule, spread
from helix_tui.widgets.base.row_source import RowSource
from helix_tui.widgets.figures import result_ink

READY = "ready "
"""Begins the key of a question that nobody has asked yet."""

RUNNING = "running"
"""The key of the question that is being answered."""

_WIDE = 56


class RunRow(Struct, frozen=True):
    """One row; a caption where it has no question."""

    key: str
    question: str = ""
    result: str = ""
    """What came of it, in words."""
    seconds: float = 0.0
    asked_at: int = 0
    note: str = ""
    """What is being done, or the caption's words."""
    marked: bool = False


class RunRows(RowSource):
    """Rows of questions."""

    def __init__(self, rows: Sequence[RunRow], now: int) -> None:
        self.rows = tuple(rows)
        self._now = now
        self._places = {row.key: place for place, row in enumerate(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index].key

    def index(self, key: str) -> int | None:
        return self._places.get(key)

    def selectable(self, index: int) -> bool:
        return bool(self.rows[index].question)

    def text(self, index: int) -> str:
        return self.rows[index].question

    def paint(self, index: int, width: int) -> Line:
        row = self.rows[index]
        if not row.question:
            return rule(row.note, width)
        question = clean_line(row.question, 300)
        if row.key == RUNNING:
            return spread([("◉ ", "running bold"), (question, "text")], [(row.note, "running")], width)
        if row.key.startswith(READY):
            return [("○ ", "muted"), (question, "text")]
        glyph, ink = result_ink(row.result)
        mark: list[Span] = [("┃", "attention bold")] if row.marked else [(" ", "text")]
        age = format_age((self._now - row.asked_at) / NS) if row.asked_at else ""
        right = f"{row.result}  {age}" if width >= _WIDE else age
        return spread([*mark, (f"{glyph} ", ink), (question, "text")], [(right, "muted")], width)

    def paint_more(self, index: int, width: int) -> Line | None:
        row = self.rows[index]
        if not row.result or width >= _WIDE:
            return None
        said = f"   {row.result} · {row.seconds:.2f} s"
        return [(said, "muted")]
