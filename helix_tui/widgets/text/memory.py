"""Memories on screen: a table of them, and a page about one: its text, its effectiveness and why, who was shown it, and
the outcomes.

The bar of effectiveness is solid up to the lower end of the 95 % interval and shaded up to its upper end: the solid
part is sure, the shaded part possible. The figure is helix's own, ``helped / (helped + failed)`` of the verified
outcomes; with fewer than `FEW` it would promise too much, so their number is shown instead. Where no outcome is
verified, reports are drawn, muted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.memory.records import (
    PROVEN_AT,
    Edge,
    Injection,
    Memory,
    MemoryOutcome,
    Recalled,
    Revision,
    outcome_counts,
)
from helix_tui.widgets.base.line import Line, Span, cut, spread, width_of
from helix_tui.widgets.base.row_source import RowSource
from helix_tui.widgets.figures import BAR_LEGEND, share_bar
from helix_tui.widgets.text.pane import Para, TextPane, block, section

BAR_CELLS = 9
FEW = PROVEN_AT
_NARROW_BAR = 5
_KINDS = {"failure": "failure", "pattern": "pattern", "systemic": "systemic"}
_INKS = {"failure": "waiting", "pattern": "success", "systemic": "attention bold"}

_NOTE_CELLS = 14

_TIGHT = 46
"""The width below which there is no room for two texts."""

MAX_LINES_OF_KIND = 40
"""How many lines of one kind are shown."""

_TREND = "▁▂▃▄▅▆▇█"


class MemoryRow(Struct, frozen=True):
    """A memory's row in the table."""

    name: str
    title: str
    kind: str
    helped: float = 0.0
    failed: float = 0.0
    """Counted outcomes: the verified ones, or reports where none is (`Memory.counted`)."""
    effectiveness: float = 0.5
    low: float = 0.0
    high: float = 1.0
    """The interval of the effectiveness; 0 to 1 if nothing is known."""
    verified: float = 0.0
    """How many outcomes are verified."""
    recency: float = 1.0
    last_used: int | None = None
    score: float | None = None
    """Its search score; None without a search."""
    dormant: bool = False
    harmful: bool = False
    note: str = ""
    """A note at the end of the row."""

    @property
    def tried(self) -> bool:
        """Whether there is any feedback."""
        return self.helped + self.failed > 0


class MemoryRows(RowSource):
    """Memories in display order."""

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

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        """In a narrow list, the figures that do not fit in the row."""
        if width >= 76:
            return ()
        row = self.rows[index]
        parts = [row.kind, f"{count(row.helped)} helped", f"{count(row.failed)} failed", _age(row, self._now)]
        if row.score is not None:
            parts.insert(0, f"score {row.score:.2f}")
        return [[("   " + " · ".join([*parts, *([row.note] if row.note else [])]), "muted")]]


def heading(width: int, mode: str, *, searched: bool) -> Line:
    """The column headings for a list of this width; and how memories are searched."""
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


def _effect_cells(width: int) -> int:
    """The width of the bar with its figures: bar, percentage and, if there is room, the interval."""
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
        # as wide as bar and figures would be, so that the columns at the right stay under their headings
        dots = cells if interval else room - 9
        return [(" " + "·" * dots, "muted"), (f" {'unproven':<{room - dots - 1}}", "muted")]
    ink = "error" if row.harmful else "muted" if not row.verified else "success" if row.low > 0.5 else "waiting"
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
    """A count, without decimals if it is whole."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _age(row: MemoryRow, now: int) -> str:
    return "—" if row.last_used is None else format_age(max(0.0, (now - row.last_used) / NS))


class MemoryFacts(Struct, frozen=True):
    """The details of a memory."""

    memory: Memory
    row: MemoryRow
    edges: Sequence[Edge] = ()
    injections: Sequence[Injection] = ()
    """Newest first."""
    outcomes: Sequence[MemoryOutcome] = ()
    """Newest first."""
    hit: Recalled | None = None
    """How it matched the search, term by term."""
    now: int = 0
    trouble: str = ""
    revisions: Sequence[Revision] = ()
    """Its earlier revisions, newest first."""


class MemoryPane(TextPane):
    """The page. Lines that name another memory, a bead or an attempt are links."""

    class Followed(TextPane.LineFollowed):
        """Enter on a line that leads somewhere: ``memory``, ``attempt`` or ``bead``."""

    def action_open(self) -> None:
        """Go where the line leads."""
        para = self.para
        if para is not None and para.opens:
            kind, _, name = para.key.partition(" ")
            self.post_message(self.Followed(kind, name.partition("\t")[0]))


def memory_page(facts: MemoryFacts) -> list[Para]:
    """The page as paragraphs."""
    return [
        *_head(facts),
        section("trigger"),
        *block("trigger", clean_block(facts.memory.trigger, 8_000)),
        section("resolution"),
        *block("resolution", clean_block(facts.memory.resolution, 8_000)),
        *_worth(facts),
        *_history(facts),
        *_edges(facts),
        *_story(facts),
    ]


def _head(facts: MemoryFacts) -> Iterator[Para]:
    memory, row = facts.memory, facts.row
    ink = {"systemic": "attention bold", "failure": "waiting", "pattern": "success"}.get(memory.type, "muted")
    yield Para(
        "name",
        ((clean_line(memory.name, 300), "text bold"), (f"  #{memory.id}", "muted")),
        ((clean_line(memory.type, 40), ink),),
    )
    if not memory.accepted:
        said = f"{memory.provenance}: no agent is shown it; a accepts it"
        yield Para("provenance", ((said[0].upper() + said[1:], "attention"),))
    if memory.note:
        yield Para("note", ((memory.note, "attention"),))
    if row.harmful:
        yield Para("harmful", (("Failure follows it more often than success.", "error"),))
    if row.dormant:
        yield Para("dormant", (("Dormant: not used for a long time.", "muted"),))
    if memory.marks:
        yield Para("marks", ((f"Marked: {clean_line(', '.join(memory.marks), 300)}", "attention"),))
    if facts.trouble:
        yield Para("trouble", ((facts.trouble, "error"),))


def _worth(facts: MemoryFacts) -> Iterator[Para]:
    memory, row = facts.memory, facts.row
    yield section("effectiveness", f"n {count(memory.uses)}", key="worth")
    if not memory.tried:
        yield Para("unproven", ((f"unproven: {outcome_counts(facts.outcomes)}", "muted"),))
    else:
        spans: list[Span] = [*effect(row, 18, interval=True)]
        spans.append((f"   {count(row.helped)} helped · {count(row.failed)} failed", "text"))
        yield Para("bar", tuple(spans))
        reported = memory.helped + memory.failed - memory.verified
        said = f"{count(memory.verified)} verified"
        if reported > 0:
            said += f" · {count(reported)} only reported" + (", not counted" if memory.verified else "")
        yield Para("verified", ((f"{said} · {_standing(memory)}", "muted"),))
    if memory.lift is not None:
        yield Para("lift", ((f"{100 * memory.lift:+.0f} points against the same tasks without it", "muted"),))
    trend = _trend(facts.outcomes)
    if trend:
        yield Para("trend", (("trend ", "muted"), (trend, "text")))
    if facts.hit is not None:
        hit = facts.hit
        terms = (
            f"score {hit.score:.3f} = 0.5 × {hit.relevance:.2f} + 0.3 × {hit.effectiveness:.2f}"
            f" + 0.2 × {hit.recency:.2f}"
        )
        if hit.ranker != "seed":
            terms = f"score {hit.score:.3f} by {hit.ranker}: " + ", ".join(
                f"{name} {value:.2f}" for name, value in hit.terms.items()
            )
        yield Para("terms", ((terms, "muted"),))
    used = "never used" if memory.last_used is None else f"used {_ago(memory.last_used, facts.now)}"
    made = "" if memory.created_at is None else f" · remembered {_ago(memory.created_at, facts.now)}"
    source = f" · from {clean_line(memory.source, 120)}" if memory.source else ""
    source += f" · {memory.provenance}" if memory.accepted and memory.provenance else ""
    seen = f" · seen {memory.seen} times" if memory.seen > 1 else ""
    yield Para("age", ((f"{used}{made}{seen} · recency {row.recency:.2f}{source}", "muted"),))


def _history(facts: MemoryFacts) -> Iterator[Para]:
    """Its earlier revisions, each with its record."""
    if not facts.revisions:
        return
    yield section(f"history {len(facts.revisions)}", key="history")
    for older in facts.revisions[:MAX_LINES_OF_KIND]:
        memory = older.memory
        name = f" {clean_line(memory.name, 80)}" if older.reason == "superseded" else ""
        yield Para(
            f"revision {memory.id} {older.number}",
            (
                (f"revision {older.number}{name}  ", "muted"),
                (clean_line(memory.resolution, 1000), "text"),
                (f"  {count(memory.counted[0])} helped · {count(memory.counted[1])} failed", "muted"),
            ),
            ((f"{older.reason} {_ago(older.replaced_at, facts.now)}", "muted"),),
            hang=2,
        )


def _standing(memory: Memory) -> str:
    """Whether it is proven, and why."""
    if memory.proven:
        return "proven: the lower end of the interval is above 50 %"
    return f"not proven yet: {PROVEN_AT} verified outcomes and a lower end above 50 % needed"


def _trend(outcomes: Sequence[MemoryOutcome]) -> str:
    """The effectiveness from outcome to outcome, oldest first: from the verified ones, if there are any."""
    helped = failed = 0.0
    levels = []
    verified = [outcome for outcome in outcomes if outcome.verdict]
    for outcome in reversed(verified or outcomes):
        helped, failed = helped + outcome.helped, failed + outcome.failed
        if outcome.helped or outcome.failed:
            levels.append(helped / (helped + failed))
    if len(levels) < 2:
        return ""
    signs = "".join(_TREND[min(7, int(level * 8))] for level in levels[-MAX_LINES_OF_KIND:])
    return f"{signs}  {round(100 * levels[0])}% → {round(100 * levels[-1])}%"


def _edges(facts: MemoryFacts) -> Iterator[Para]:
    if not facts.edges:
        return
    yield section(f"edges {len(facts.edges)}", key="edges")
    for edge in facts.edges[:MAX_LINES_OF_KIND]:
        out = edge.from_name == facts.memory.name
        other = edge.to_name if out else edge.from_name
        word = edge.rel_type.replace("_", " ")
        lead = f"{word} →" if out else f"← {word}"
        yield Para(
            f"memory {other}\t{edge.id}",
            ((f"{lead:<14} ", "edge"), (clean_line(other, 200), "text")),
            ((f"{edge.weight:.2f}", "muted"),),
            opens=True,
        )


def _story(facts: MemoryFacts) -> Iterator[Para]:
    """Every injection with its outcome, and outcomes without an injection."""
    times = len(facts.injections)
    # the counts above are of the present revision
    every = " in all revisions" if facts.revisions else ""
    yield section(f"shown {times}×{every}: {outcome_counts(facts.outcomes)}", key="story")
    if not times and not facts.outcomes:
        yield Para("nowhere", (("Not shown to an agent yet.", "muted"),))
    seen: set[str] = set()
    for line in facts.injections[:MAX_LINES_OF_KIND]:
        outcome = _led_to(line, facts.outcomes, seen)
        seen.add(outcome.attempt if outcome is not None else line.attempt)
        yield _given(line, outcome, facts)
    # outcomes of no injection above
    for outcome in facts.outcomes[:MAX_LINES_OF_KIND]:
        if outcome.attempt not in seen:
            seen.add(outcome.attempt)
            yield Para(
                f"attempt {outcome.attempt}\t{outcome.memory_id}",
                (*_ending(outcome), (f" {clean_line(outcome.attempt, 60) or 'by hand'}", "text")),
                ((_ago(outcome.at, facts.now), "muted"),),
                opens=bool(outcome.attempt),
            )


def _led_to(line: Injection, outcomes: Sequence[MemoryOutcome], seen: set[str]) -> MemoryOutcome | None:
    """The outcome of the attempt that a line names; for a bead, the first after it that is no newer line's."""
    if line.attempt:
        return next((outcome for outcome in outcomes if outcome.attempt == line.attempt), None)
    later = [
        outcome
        for outcome in outcomes
        if line.bead and outcome.bead == line.bead and outcome.attempt not in seen
        if (outcome.at or 0) >= (line.at or 0)
    ]
    # outcomes are newest first: the last one is the first after the injection
    return later[-1] if later else None


def _given(line: Injection, outcome: MemoryOutcome | None, facts: MemoryFacts) -> Para:
    whom = clean_line(line.bead or line.agent or line.attempt, 60) or "a look"
    what = clean_line(line.objective, 200)
    attempt = line.attempt or (outcome.attempt if outcome is not None else "")
    target = f"attempt {attempt}\t{line.id}" if attempt else f"bead {line.bead}\t{line.id}"
    return Para(
        target,
        (*_ending(outcome), (f" {whom}", "text"), (f"  {what}", "muted")),
        ((_ago(line.at, facts.now), "muted"),),
        opens=bool(attempt or line.bead),
    )


def _ending(outcome: MemoryOutcome | None) -> tuple[Span, ...]:
    """The outcome as a glyph and a word."""
    if outcome is None:
        return (("· open       ", "muted"),)
    used = "used" if outcome.claimed else "shown"
    if outcome.helped:
        return ((f"✓ helped {used:<5}"[:14].ljust(14), "success"),)
    if outcome.failed:
        return ((f"✗ failed {used:<5}"[:14].ljust(14), "error"),)
    return ((f"○ {outcome.verdict or 'said'} {used}".ljust(14), "muted"),)


def _ago(instant: int | None, now: int) -> str:
    return "—" if instant is None else f"{format_age(max(0.0, (now - instant) / NS))} ago"
