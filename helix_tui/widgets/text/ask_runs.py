"""Questions of Ask as rows: running, asked before, suggested; and what a running one does."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.widgets.base.line import Line, Span, heading, spread
from helix_tui.widgets.base.row_source import KeyedRows
from helix_tui.widgets.figures import result_ink
from helix_tui.widgets.text.pane import Para

_DOING = {
    "seed_docs": "searched the documents",
    "expand_queries": "searched with other words",
    "widen_to_code": "searched the code",
    "search_open_slots": "searched for what was missing",
}

_STAGES = {
    "senses": "compared the senses of the word",
    "align": "followed names into the code",
    "compact": "chose the sources",
    "answer": "wrote the answer",
}

READY = "ready "
"""Prefix of the key of a suggested question."""

RUNNING = "running"
"""The key of the question being answered."""

_WIDE = 56


class StepDone(Struct, frozen=True):
    """A step of a question that is being answered."""

    words: str
    figures: str = ""
    """What it brought: spans, slots, confidence, reason."""


def doing_words(stage: str, text: str, action: str = "") -> StepDone:
    """A step in plain words, with what it brought; for a model its result."""
    words = _DOING.get(action) or _STAGES.get(stage)
    figures = clean_line(text, 300)
    return StepDone(words, figures) if words is not None else StepDone(f"{stage} {figures}")


def doing_paras(steps: Sequence[StepDone]) -> list[Para]:
    """The steps so far, each with what it brought below it."""
    paras = []
    for number, step in enumerate(steps):
        paras.append(Para(f"doing {number}", (("✓ ", "success"), (step.words, "text")), hang=2))
        if step.figures:
            paras.append(Para(f"brought {number}", ((f"  {step.figures}", "muted"),), hang=2))
    return paras


class RunRow(Struct, frozen=True):
    """One row; a caption if it has no question."""

    key: str
    question: str = ""
    result: str = ""
    """Its result in words."""
    seconds: float = 0.0
    asked_at: int = 0
    note: str = ""
    """The progress, or the caption's text."""
    marked: bool = False


class RunRows(KeyedRows[RunRow]):
    """Rows of questions."""

    def __init__(self, rows: Sequence[RunRow], now: int) -> None:
        super().__init__(rows)
        self._now = now

    def selectable(self, index: int) -> bool:
        return bool(self.rows[index].question)

    def text(self, index: int) -> str:
        return self.rows[index].question

    def paint(self, index: int, width: int) -> Line:
        row = self.rows[index]
        if not row.question:
            return heading(row.note, width)
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

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        row = self.rows[index]
        if not row.result or width >= _WIDE:
            return ()
        said = f"   {row.result} · {row.seconds:.2f} s"
        return [[(said, "muted")]]
