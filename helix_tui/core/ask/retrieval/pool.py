"""The evidence of a run so far: its spans within their budgets, and what of the question they cover."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.question import Slot, covers
from helix_tui.core.ask.records import Span, SpanKey, text_hash
from helix_tui.core.ask.retrieval.tree_walk import Policy

Via = Literal[
    "docs",
    "heading",
    "tree",
    "code",
    "definition",
    "use",
    "slot",
    "sense",
    "alignment",
    "test",
    "record",
    "passage",
    "earlier",
]
"""How a span was found."""


class PoolEntry(Struct, frozen=True):
    """A span of evidence, and how it was found."""

    span: Span
    via: Via
    step: int
    """The iteration that found it first."""
    query: str
    relevance: float
    """0 to 1: its score relative to the best one, or a fixed value for how it was found."""
    slots: frozenset[str]
    """Ids of the slots that its words cover, soft ones too."""

    @property
    def is_doc(self) -> bool:
        """Whether it is in a document."""
        return self.span.role == "doc"

    @property
    def is_code(self) -> bool:
        """Whether it is in source code other than tests."""
        return self.span.role in ("source", "example", "vendored") and self.span.kind != "section"

    @property
    def order(self) -> tuple[float, str, int, int]:
        """Best first; ties by place."""
        return (-self.relevance, *self.span.key)


class Pool(Struct, frozen=True):
    """Evidence by span; every change returns a new pool."""

    slots: tuple[Slot, ...]
    entries: dict[SpanKey, PoolEntry]

    @property
    def ordered(self) -> list[PoolEntry]:
        """Every entry, best first."""
        return sorted(self.entries.values(), key=lambda entry: entry.order)

    @property
    def covered(self) -> frozenset[str]:
        """Ids of the required slots that some span covers."""
        found = {ident for entry in self.entries.values() for ident in entry.slots}
        return frozenset(slot.id for slot in self.slots if slot.required and slot.id in found)

    @property
    def missing(self) -> tuple[Slot, ...]:
        """Required slots that no span covers."""
        covered = self.covered
        return tuple(slot for slot in self.slots if slot.required and slot.id not in covered)

    @property
    def coverage(self) -> float:
        """Share of the required slots that are covered, by weight; without slots, any evidence is enough."""
        return coverage_of(self.slots, self.covered) if any_required(self.slots) else float(bool(self.entries))

    @property
    def files(self) -> list[str]:
        """Files with evidence, best first."""
        return list(dict.fromkeys(entry.span.file for entry in self.ordered))

    def docs(self) -> list[PoolEntry]:
        """Spans of documents that cover a slot, best first; without slots, all spans of documents."""
        return [entry for entry in self.ordered if entry.is_doc and (entry.slots or not self.slots)]

    def with_spans(self, spans: Iterable[tuple[Span, Via, float]], *, step: int, query: str, policy: Policy) -> Pool:
        """Add spans with their relevance; a span already there keeps the higher one."""
        entries = dict(self.entries)
        for span, via, relevance in spans:
            span = cut_to(span, policy.max_span_bytes, self.slots)
            slots = frozenset(slot.id for slot in self.slots if covers(slot, span.text))
            entry = PoolEntry(span, via, step, query, round(min(1.0, relevance), 6), slots)
            held = entries.get(span.key)
            if held is None:
                entries[span.key] = entry
            # the step and query that found it first stay: they explain the run
            elif entry.relevance > held.relevance:
                entries[span.key] = replace(held, relevance=entry.relevance, via=entry.via)
        return Pool(self.slots, entries)

    def within(self, most_files: int) -> Pool:
        """Limit the pool to some files: first those needed to cover slots, then the best."""
        ordered = self.ordered
        kept: dict[str, None] = {}
        covered: set[str] = set()
        for entry in ordered:
            new = {slot for slot in entry.slots if slot not in covered}
            if new and len(kept) < most_files:
                covered |= new
                kept.setdefault(entry.span.file)
        for entry in ordered:
            if len(kept) < most_files:
                kept.setdefault(entry.span.file)
        return Pool(self.slots, {key: entry for key, entry in self.entries.items() if entry.span.file in kept})


def any_required(slots: Iterable[Slot]) -> bool:
    """Whether any slot needs evidence; a question without one asks about everything."""
    return any(slot.required for slot in slots)


def coverage_of(slots: Sequence[Slot], covered: Collection[str]) -> float:
    """The share, by weight, of the required slots whose ids are covered; 1 without any."""
    total = sum(slot.weight for slot in slots if slot.required)
    return sum(slot.weight for slot in slots if slot.required and slot.id in covered) / total if total else 1.0


def cut_to(span: Span, most_bytes: int, slots: Sequence[Slot], line: int = 0) -> Span:
    """Cut a span to ``most_bytes``.

    Its head is kept, or the lines around the first hit if the head misses a slot; ``line``, if given, stays in it.
    """
    if len(span.text.encode("utf-8", "surrogateescape")) <= most_bytes:
        return span
    lines = span.text.split("\n")
    first = 0
    head = "\n".join(_fitting(lines, 0, most_bytes))
    missed = [slot for slot in slots if covers(slot, span.text) and not covers(slot, head)]
    if missed:
        hits = (place for place, line in enumerate(lines) if any(covers(slot, line) for slot in missed))
        # with two lines before the hit, which often name its subject
        first = max(0, next(hits, 0) - 2)
    kept = _fitting(lines, first, most_bytes)
    at = line - span.start
    if line and not first <= at < first + len(kept):
        first = at
        kept = _fitting(lines, first, most_bytes)
    text = "\n".join(kept)
    start = span.start + first
    return replace(span, start=start, end=start + len(kept) - 1, text=text, hash=text_hash(text))


def _fitting(lines: Sequence[str], first: int, most_bytes: int) -> list[str]:
    """As many whole lines as fit, from index ``first``; if that line alone is too long, it is cut."""
    kept: list[str] = []
    room = most_bytes
    for line in lines[first:]:
        size = len(line.encode("utf-8", "surrogateescape")) + bool(kept)
        if size > room:
            break
        kept.append(line)
        room -= size
    return kept or [lines[first].encode("utf-8", "surrogateescape")[:most_bytes].decode("utf-8", "ignore")]
