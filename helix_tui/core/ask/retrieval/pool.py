"""The evidence gathered so far: it grows by union, and is trimmed without losing what covers a slot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from helix_tui.core.ask.records import Span, SpanKey, text_hash
from helix_tui.core.ask.retrieval.policy import Policy
from helix_tui.core.ask.retrieval.slots import Slot, covers

Via = Literal["docs", "heading", "tree", "code", "definition", "use", "slot", "sense", "alignment", "test"]
"""How a span came in."""


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """A span of evidence and how it came in."""

    span: Span
    via: Via
    step: int
    """The iteration that brought it first."""
    query: str
    relevance: float
    """0 to 1: its score beside the best of its own search, or what its way in is worth."""
    slots: frozenset[str]
    """Ids of the slots that its words cover, soft ones too."""

    @property
    def is_doc(self) -> bool:
        """Whether it stands in a document."""
        return self.span.role == "doc"

    @property
    def is_code(self) -> bool:
        """Whether it stands in source code that is no test."""
        return self.span.role in ("source", "example", "vendored") and self.span.kind != "section"

    @property
    def order(self) -> tuple[float, str, int, int]:
        """Best first; ties by place."""
        return (-self.relevance, *self.span.key)


@dataclass(frozen=True, slots=True)
class Pool:
    """Evidence by span; a new pool for every change."""

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
        """Share of the required slots that are covered; without slots, any evidence is enough."""
        required = sum(slot.required for slot in self.slots)
        return len(self.covered) / required if required else float(bool(self.entries))

    @property
    def files(self) -> list[str]:
        """Files with evidence, the best first."""
        return list(dict.fromkeys(entry.span.file for entry in self.ordered))

    def docs(self) -> list[PoolEntry]:
        """Spans of documents that speak of a slot, best first."""
        return [entry for entry in self.ordered if entry.is_doc and (entry.slots or not self.slots)]

    def with_spans(self, spans: Iterable[tuple[Span, Via, float]], *, step: int, query: str, policy: Policy) -> Pool:
        """The union with some spans and what each is worth; of the same span the better way in counts."""
        entries = dict(self.entries)
        for span, via, relevance in spans:
            span = cut_to(span, policy.max_span_bytes, self.slots)
            slots = frozenset(slot.id for slot in self.slots if covers(slot, span.text))
            entry = PoolEntry(span, via, step, query, round(min(1.0, relevance), 6), slots)
            held = entries.get(span.key)
            if held is None:
                entries[span.key] = entry
            elif entry.relevance > held.relevance:
                entries[span.key] = replace(held, relevance=entry.relevance, via=entry.via)
        return Pool(self.slots, entries)

    def within(self, most_files: int) -> Pool:
        """The pool with at most so many files: those that alone cover a slot first, then the best."""
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


def cut_to(span: Span, most_bytes: int, slots: Sequence[Slot]) -> Span:
    """A span of at most so many bytes.

    Its head, or lines from the first hit on where its head misses a slot.
    """
    if len(span.text.encode("utf-8", "surrogateescape")) <= most_bytes:
        return span
    lines = span.text.split("\n")
    first = 0
    head = "\n".join(_fitting(lines, 0, most_bytes))
    missed = [slot for slot in slots if covers(slot, span.text) and not covers(slot, head)]
    if missed:
        hits = (place for place, line in enumerate(lines) if any(covers(slot, line) for slot in missed))
        first = max(0, next(hits, 0) - 2)
    kept = _fitting(lines, first, most_bytes)
    text = "\n".join(kept)
    start = span.start + first
    return replace(span, start=start, end=start + len(kept) - 1, text=text, hash=text_hash(text))


def _fitting(lines: Sequence[str], first: int, most_bytes: int) -> list[str]:
    """Whole lines from one on, as many as fit; one that is too long alone is cut."""
    kept: list[str] = []
    room = most_bytes
    for line in lines[first:]:
        size = len(line.encode("utf-8", "surrogateescape")) + bool(kept)
        if size > room:
            break
        kept.append(line)
        room -= size
    return kept or [lines[first].encode("utf-8", "surrogateescape")[:most_bytes].decode("utf-8", "ignore")]
