"""The table of memories: effectiveness as a bar with its interval, and unproven looks unproven.

The bar is solid up to the lower end of the 95 % interval and shaded up to its upper end: what is solid is
sure, what is shaded may be. The figure is helix's own, ``helped / (helped + failed)``; with fewer outcomes
than `FEW` it would promise too much, and how many there are stands in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.memory.records import PROVEN_AT
from helix_tui.widgets.base.line import Line, Span, cut, spread, width_of
from helix_tui.widgets.base.row_source import RowSource
from helix_tui.widgets.figures import BAR_LEGEND, share_bar

BAR_CELLS = 9
FEW = PROVEN_AT
_NARROW_BAR = 5
_KINDS = {"failure": "failure", "pattern": "pattern", "systemic": "systemic"}
_INKS = {"failure": "waiting", "pattern": "success", "systemic": "attention bold"}


class MemoryRow(Struct, frozen=True):
    """What the table shows of one memory."""

    name: str
    title: str
    kind: str
    helped: float = 0.0
    failed: float = 0.0
    effectiveness: float = 0.5
    low: float = 0.0
    high: float = 1.0
    """The interval of the effectiveness; all of 0 to 1 where nothing is known."""
    verified: float = 0.0
    """How much of the feedback a verified outcome stands behind."""
    recency: float = 1.0
    last_used: int | None = None
    score: float | None = None
    """Its score for what is searched; None without a search."""
    dormant: bool = False
    harmful: bool = False
    note: str = ""
    """A word at the end of the row: what has to be known of it."""

    @property
    def tried(self) -> bool:
        """Whether there is any feedback."""
        return self.helped + self.failed > 0


class MemoryRows(RowSource):
    """Memories in the order in which they are to stand."""

    def __init__(self, rows: Sequence[MemoryRow] = (), now: int = 0) -> None:
        self.rows = tuple(rows)
        self._now = now
        self._places = {row.name: place for place, row in enumerate(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index].name

    def index(self, key: str) -> int | None:
        return self._places.get(key)

    def text(self, index: int) -> str:
        return self.rows[index].title

    def paint(self, index: int, width: int) -> Line:
        row = self.rows[index]
        title: Line = [(row.title, "muted" if row.dormant else "text")]
        sign: Span = ("! ", "error bold") if row.harmful else ("  ", "text")
        return spread([sign, *title], _figures(row, width, self._now), width)

    def paint_more(self, index: int, width: int) -> Line | None:
        """In a narrow list the figures that the row has no room for."""
        if width >= 76:
            return None
        row = self.rows[index]
        parts = [row.kind, f"{count(row.helped)} helped", f"{count(row.failed)} failed", _age(row, self._now)]
        if row.score is not None:
            parts.insert(0, f"score {row.score:.2f}")
        return [("   " + " · ".join([*parts, *([row.note] if row.note else [])]), "muted")]


def heading(width: int, mode: str, *, searched: bool) -> Line:
    """What the columns are called, over a list of this width; and how memories are searched."""
    right: list[Span] = []
    if width >= 76:
        right += [(" kind    ", "muted"), (" helped/failed", "muted")]
    right.append((" effectiveness".ljust(_effect_cells(width)), "muted"))
    if width >= 96:
        right.append((" score " if searched else " recent", "muted"))
    if width >= 60:
        right.append((" used", "muted"))
    if width >= 112:
        right.append((" " * _NOTE_CELLS, "muted"))
    left = "  ".join(filter(None, ["" if mode and width < _TIGHT else "memory", mode]))
    with_legend = f"{left}   {BAR_LEGEND}"
    room = len(with_legend) + 4 + width_of(right) <= width
    return spread([(f"   {with_legend if room else left}", "muted")], right, width)


_NOTE_CELLS = 14

_TIGHT = 46
"""Cells of a list in which there is no room for two words."""


def _effect_cells(width: int) -> int:
    """Cells of the bar with its words: bar, percentage, and where there is room the interval."""
    if width >= 96:
        return 1 + BAR_CELLS + 5 + 8
    return 1 + (BAR_CELLS if width >= 60 else _NARROW_BAR) + 5


def _figures(row: MemoryRow, width: int, now: int) -> list[Span]:
    spans: list[Span] = []
    if width >= 76:
        kind = _KINDS.get(row.kind, clean_line(row.kind, 8))
        spans.append((f" {cut(kind, 8):<8}", _INKS.get(row.kind, "muted")))
        both = f"{count(row.helped)} / {count(row.failed)}" if row.tried else "—"
        spans.append((f" {cut(both, 12):>13}", "text" if row.tried else "muted"))
    else:
        glyph = row.kind[:1].upper() or "?"
        spans.append((f" {glyph}", _INKS.get(row.kind, "muted")))
    spans += effect(row, BAR_CELLS if width >= 60 else _NARROW_BAR, interval=width >= 96)
    if width >= 96:
        figure = row.recency if row.score is None else row.score
        spans.append((f"   {figure:.2f}", "muted"))
    if width >= 60:
        spans.append((f" {_age(row, now):>4}", "muted"))
    if width >= 112:
        ink = "error" if row.harmful else "attention" if row.kind == "systemic" else "muted"
        spans.append((f"  {cut(row.note, _NOTE_CELLS - 2):<{_NOTE_CELLS - 2}}", ink))
    return spans


def effect(row: MemoryRow, cells: int, *, interval: bool) -> list[Span]:
    """The bar, the percentage, and the interval."""
    if not row.tried:
        room = cells + 5 + (8 if interval else 0)
        # as many cells as bar and figures would take, so that the columns at the right stay under their heads
        dots = cells if interval else room - 9
        return [(" " + "·" * dots, "muted"), (f" {'unproven':<{room - dots - 1}}", "muted")]
    ink = "error" if row.harmful else "success" if row.low > 0.5 else "waiting"
    uses = row.helped + row.failed
    few = uses < FEW
    figure = f"n {count(uses)}" if few else f"{round(100 * row.effectiveness):>3}%"
    spans: list[Span] = [
        (" ", "text"),
        *share_bar(row.low if few else row.effectiveness, row.low, row.high, cells=cells, ink=ink),
        (f" {figure:>4}", "muted" if few else ink),
    ]
    if interval:
        spans.append((f" {round(100 * row.low):>3}–{round(100 * row.high):<3}", "muted"))
    return spans


def count(value: float) -> str:
    """A count as people write it: whole where it is whole."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _age(row: MemoryRow, now: int) -> str:
    return "—" if row.last_used is None else format_age(max(0.0, (now - row.last_used) / NS))
