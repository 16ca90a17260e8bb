"""One memory on a page: what it says, what it is worth and why, who was shown it, and what came of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.memory.records import PROVEN_AT, Edge, Injection, Memory, MemoryOutcome, Recalled, Revision
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.base.row_source import Gesture
from helix_tui.widgets.rows.memories import MemoryRow, count, effect
from helix_tui.widgets.text.pane import Para, TextPane, block, section

MOST = 40
"""Lines of one kind that are shown."""

_TREND = "▁▂▃▄▅▆▇█"


class MemoryFacts(Struct, frozen=True):
    """Everything that is shown of a memory."""

    memory: Memory
    row: MemoryRow
    edges: Sequence[Edge] = ()
    injections: Sequence[Injection] = ()
    """Newest first."""
    outcomes: Sequence[MemoryOutcome] = ()
    """Newest first."""
    hit: Recalled | None = None
    """How it answered what is searched, term by term."""
    now: int = 0
    trouble: str = ""
    revisions: Sequence[Revision] = ()
    """What it said before, newest first."""


class MemoryPane(TextPane):
    """The page. Lines that name another memory, a bead or an attempt lead there."""

    class Followed(Gesture):
        """Enter on a line that leads somewhere: ``memory``, ``attempt`` or ``bead``."""

        def __init__(self, kind: str, name: str) -> None:
            super().__init__()
            self.kind = kind
            self.name = name

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
    if memory.note:
        yield Para("note", ((memory.note, "attention"),))
    if row.harmful:
        yield Para("harmful", (("Followed by failure more often than by success.", "error"),))
    if row.dormant:
        yield Para("dormant", (("Dormant: not used for a long time.", "muted"),))
    if memory.marks:
        yield Para("marks", ((f"Marked: {clean_line(', '.join(memory.marks), 300)}", "attention"),))
    if facts.trouble:
        yield Para("trouble", ((facts.trouble, "error"),))


def _worth(facts: MemoryFacts) -> Iterator[Para]:
    memory, row = facts.memory, facts.row
    uses = memory.helped + memory.failed
    yield section("effectiveness", f"n {count(uses)}", key="worth")
    if not memory.tried:
        said = "no outcome for or against it" if facts.outcomes else "no outcome yet"
        yield Para("unproven", ((f"unproven: {said}", "muted"),))
    else:
        spans: list[Span] = [*effect(row, 18, interval=True)]
        spans.append((f"   {count(memory.helped)} helped · {count(memory.failed)} failed", "text"))
        yield Para("bar", tuple(spans))
        unverified = uses - memory.verified_helped - memory.verified_failed
        said = f"{count(memory.verified_helped + memory.verified_failed)} verified"
        if unverified > 0:
            said += f" · {count(unverified)} only reported"
        yield Para("verified", ((f"{said} · {_standing(memory)}", "muted"),))
    if memory.lift is not None:
        yield Para("lift", ((f"lift {memory.lift:+.2f} over the base rate of its tasks", "muted"),))
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
    seen = f" · seen {memory.seen} times" if memory.seen > 1 else ""
    yield Para("age", ((f"{used}{made}{seen} · recency {row.recency:.2f}{source}", "muted"),))


def _history(facts: MemoryFacts) -> Iterator[Para]:
    """What it said before, each with what it did."""
    if not facts.revisions:
        return
    yield section(f"history {len(facts.revisions)}", key="history")
    for older in facts.revisions[:MOST]:
        memory = older.memory
        name = f" {clean_line(memory.name, 80)}" if older.reason == "superseded" else ""
        yield Para(
            f"revision {memory.id} {older.number}",
            (
                (f"revision {older.number}{name}  ", "muted"),
                (clean_line(memory.resolution, 1000), "text"),
                (f"  {count(memory.helped)} helped · {count(memory.failed)} failed", "muted"),
            ),
            ((f"{older.reason} {_ago(older.replaced_at, facts.now)}", "muted"),),
            hang=2,
        )


def _standing(memory: Memory) -> str:
    """Whether it is proven, and what that rests on."""
    if memory.proven:
        return "proven: the lower end of the interval is above 50 %"
    return f"not proven: needs {PROVEN_AT} verified outcomes and a lower end above 50 %"


def _trend(outcomes: Sequence[MemoryOutcome]) -> str:
    """How effectiveness went from outcome to outcome, oldest first."""
    helped = failed = 0.0
    levels = []
    for outcome in reversed(outcomes):
        helped, failed = helped + outcome.helped, failed + outcome.failed
        if outcome.helped or outcome.failed:
            levels.append(helped / (helped + failed))
    if len(levels) < 2:
        return ""
    signs = "".join(_TREND[min(7, int(level * 8))] for level in levels[-MOST:])
    return f"{signs}  {round(100 * levels[0])}% → {round(100 * levels[-1])}%"


def _edges(facts: MemoryFacts) -> Iterator[Para]:
    if not facts.edges:
        return
    yield section(f"edges {len(facts.edges)}", key="edges")
    for edge in facts.edges[:MOST]:
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
    """Every injection with the outcome that it led to, and outcomes without one."""
    times = len(facts.injections)
    yield section(f"shown {times}, outcomes {len(facts.outcomes)}", key="story")
    if not times and not facts.outcomes:
        yield Para("nowhere", (("Not shown to an agent yet.", "muted"),))
    seen: set[str] = set()
    for line in facts.injections[:MOST]:
        outcome = _led_to(line, facts.outcomes, seen)
        seen.add(outcome.attempt if outcome is not None else line.attempt)
        yield _given(line, outcome, facts)
    # outcomes that no injection above has led to
    for outcome in facts.outcomes[:MOST]:
        if outcome.attempt not in seen:
            seen.add(outcome.attempt)
            yield Para(
                f"attempt {outcome.attempt}\t{outcome.memory_id}",
                (*_ending(outcome), (f" {clean_line(outcome.attempt, 60) or 'by hand'}", "text")),
                ((_ago(outcome.at, facts.now), "muted"),),
                opens=bool(outcome.attempt),
            )


def _led_to(line: Injection, outcomes: Sequence[MemoryOutcome], seen: set[str]) -> MemoryOutcome | None:
    """The outcome of the attempt that a line names; of a bead, the first after it that no newer line has."""
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
    """How it ended, in a glyph and a word."""
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
