"""What of the evidence reaches the answer: the preference order, the budgets, and why the rest was dropped.

Definitions first, then entry points, contracts and tests (docs/formats/ask.md §1, phase 3), one or two
spans of a file. The best span of every covered slot is kept whatever its place in that order, so coverage
does not fall here either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.records import Span, SpanKey
from helix_tui.core.ask.retrieval.question import Slot, terms_in
from helix_tui.core.ask.retrieval.search import PoolEntry
from helix_tui.core.ask.retrieval.senses import defines
from helix_tui.core.ask.retrieval.trees import Policy

Part = Literal["definition", "entrypoint", "contract", "test", "other"]
"""What a span is to the answer."""

POLICY = "definition > entrypoint > contract > test; the best span of each slot first; at most {per_file} a file"

_WORTH: dict[Part, float] = {
    "definition": 0.35,
    "entrypoint": 0.2,
    "contract": 0.1,
    "test": 0.0,
    "other": 0.05,
}
"""What a part adds to a span's relevance, which is 0 to 1."""

MOST_ANSWERING = 4
"""Spans of one file that may answer: a manual in one file holds all there is to say."""

WEAK = 0.2
"""Share of the best relevance below which a span that adds nothing to coverage is dropped."""

_ENTRY_FILE = re.compile(r"(?:^|/)(?:__main__|main|cli|app|server|index|api|mod|lib)\.\w+$|(?:^|/)cmd/")
_CONTRACT_FILE = re.compile(
    r"(?:^|[/_.-])(?:contracts?|specs?|adrs?|rfcs?|polic(?:y|ies)|schemas?|design|protocols?|rules|rulings)(?:[/_.-]|$)",
    re.IGNORECASE,
)
_CONTRACT_TEXT = re.compile(
    r"\b(?:MUST|SHALL|MUST NOT|SHALL NOT)\b|^\s*(?:class \w+\(.*Protocol.*\)|interface \w+)", re.M
)


class Kept(Struct, frozen=True):
    """A span that reaches the answer."""

    entry: PoolEntry
    part: Part
    why: str


class DroppedSpan(Struct, frozen=True):
    """A span that does not."""

    entry: PoolEntry
    part: Part
    why: str


class Compaction(Struct, frozen=True):
    """The evidence of the answer, best first, and what was left out."""

    kept: tuple[Kept, ...]
    dropped: tuple[DroppedSpan, ...]
    rationale: tuple[tuple[str, str], ...]
    """(file, one line) for every file of which a span was dropped, in order of path."""
    policy: str
    budget: dict[str, int]

    @property
    def applied(self) -> bool:
        """Whether anything was left out."""
        return bool(self.dropped)


def compact(
    entries: Sequence[PoolEntry],
    slots: Sequence[Slot],
    policy: Policy,
    unwanted: frozenset[SpanKey] = frozenset(),
    answering: Sequence[SpanKey] = (),
) -> Compaction:
    """Choose what reaches the answer.

    Args:
        entries: the evidence, best first.
        slots: required and soft.
        policy: the budgets.
        unwanted: spans of senses that were not selected.
        answering: spans that answer, the best first: nothing weaker takes their room.
    """
    parts = {entry.span.key: part_of(entry, slots) for entry in entries}
    dropped: dict[tuple[str, int, int], str] = {}
    for key in unwanted:
        dropped[key] = "belongs to another sense"
    seen: dict[tuple[str, str, str], str] = {}
    for entry in entries:
        identity = (entry.span.file, entry.span.header, entry.span.hash)
        if identity in seen:
            dropped.setdefault(entry.span.key, f"same text as {seen[identity]}")
        seen.setdefault(identity, f"{entry.span.file}:{entry.span.start}")
    choice = _Choice(policy)
    able = [entry for entry in entries if entry.span.key not in dropped]
    able.sort(key=lambda entry: (-(entry.relevance + _WORTH[parts[entry.span.key]]), *entry.span.key))
    by_key = {entry.span.key: entry for entry in able}
    for key in answering:
        if key in by_key:
            choice.take(by_key[key], "answers best" if not choice.order else "answers", of_file=MOST_ANSWERING)
    for entry, why in _covering([*choice.order, *able], slots):
        choice.take(entry, why)
    for entry, why in _bridging(able):
        choice.take(entry, why)
    best = max((entry.relevance for entry in able), default=0.0)
    for entry in able:
        if entry.relevance < WEAK * best and entry.span.key not in choice.taken:
            dropped[entry.span.key] = "weak compared with the best"
        else:
            choice.take(entry, _said(parts[entry.span.key]))
    dropped |= {key: why for key, why in choice.refused.items() if key not in choice.taken}
    kept = tuple(Kept(entry, parts[entry.span.key], choice.taken[entry.span.key]) for entry in choice.order)
    left = [entry for entry in entries if entry.span.key not in choice.taken]
    out = tuple(DroppedSpan(entry, parts[entry.span.key], dropped.get(entry.span.key, "over budget")) for entry in left)
    return Compaction(
        kept,
        out,
        tuple(_rationale(kept, out)),
        POLICY.format(per_file=policy.max_spans_per_file),
        {name: getattr(policy, name) for name in ("max_items", "max_spans", "max_spans_per_file", "max_bytes")},
    )


class _Choice:
    """Spans taken so far, within the budgets."""

    def __init__(self, policy: Policy) -> None:
        self.order: list[PoolEntry] = []
        self.taken: dict[tuple[str, int, int], str] = {}
        self.refused: dict[tuple[str, int, int], str] = {}
        self._policy = policy
        self._files: Counter[str] = Counter()
        self._bytes = 0

    def take(self, entry: PoolEntry, why: str, of_file: int = 0) -> None:
        """Take a span if there is room for it; else note which budget has none."""
        policy, span = self._policy, entry.span
        size = len(span.text.encode("utf-8", "surrogateescape"))
        if span.key in self.taken:
            return
        twin = next((other.span for other in self.order if _overlap(other.span, span)), None)
        if twin is not None:
            self.refused.setdefault(span.key, f"overlaps {twin.file}:{twin.start}-{twin.end}")
        elif len(self.order) >= policy.max_spans:
            self.refused.setdefault(span.key, f"over max_spans {policy.max_spans}")
        elif not self._files[span.file] and len(self._files) >= policy.max_items:
            self.refused.setdefault(span.key, f"over max_items {policy.max_items}")
        elif self._files[span.file] >= max(of_file, policy.max_spans_per_file):
            self.refused.setdefault(span.key, f"its file has {policy.max_spans_per_file} better ones")
        elif self._bytes + size > policy.max_bytes and self.order:
            self.refused.setdefault(span.key, f"over max_bytes {policy.max_bytes}")
        else:
            self.order.append(entry)
            self.taken[span.key] = why
            self._files[span.file] += 1
            self._bytes += size


def _overlap(one: Span, other: Span) -> bool:
    """Whether most of the shorter of two spans lies in the other one."""
    if one.file != other.file:
        return False
    shared = min(one.end, other.end) - max(one.start, other.start) + 1
    return 2 * shared > min(one.end - one.start, other.end - other.start) + 1


def _covering(entries: Sequence[PoolEntry], slots: Sequence[Slot]) -> Iterator[tuple[PoolEntry, str]]:
    """Few spans that cover every required slot that can be covered.

    Each covers the most that is still open.
    """
    open_slots = {slot.id: slot.label for slot in slots if slot.required}
    while open_slots:
        best = max(entries, key=lambda entry: len(entry.slots & open_slots.keys()), default=None)
        covered = best.slots & open_slots.keys() if best is not None else frozenset()
        if best is None or not covered:
            return
        labels = [label for ident, label in open_slots.items() if ident in covered]
        for ident in covered:
            del open_slots[ident]
        yield best, "covers " + ", ".join(labels)


def _bridging(entries: Sequence[PoolEntry]) -> Iterator[tuple[PoolEntry, str]]:
    """The best document, and the best code that a document names: an answer shows both sides."""
    for entry in [entry for entry in entries if entry.is_doc and entry.slots][:1]:
        yield entry, "best document"
    for entry in [entry for entry in entries if entry.via == "alignment"][:1]:
        yield entry, "code that a document names"


def part_of(entry: PoolEntry, slots: Sequence[Slot]) -> Part:
    """What a span is to the answer."""
    span = entry.span
    if span.role == "test":
        return "test"
    required = [slot for slot in slots if slot.required]
    if entry.via == "definition":
        return "definition"
    if entry.is_doc or span.kind == "section":
        head = terms_in(span.header.rpartition(" > ")[2])
        if any(head.issuperset(slot.terms) for slot in required) or any(
            defines(line, slot.terms) for slot in required for line in span.text.split("\n")
        ):
            return "definition"
    elif span.kind in ("function", "class"):
        head = terms_in(span.header.rpartition(".")[2])
        if any(head.issuperset(slot.terms) for slot in required if slot.source in ("name", "concept")):
            return "definition"
    if entry.via == "alignment" or (not entry.is_doc and _ENTRY_FILE.search(span.file)):
        return "entrypoint"
    if _CONTRACT_FILE.search(span.file) or _CONTRACT_TEXT.search(span.text):
        return "contract"
    return "other"


def _said(part: Part) -> str:
    words: dict[Part, str] = {"entrypoint": "entry point", "other": "relevant"}
    return words.get(part, part)


def _rationale(kept: Sequence[Kept], dropped: Sequence[DroppedSpan]) -> Iterator[tuple[str, str]]:
    """One line for every file of which something was dropped."""
    files = sorted({one.entry.span.file for one in dropped})
    for file in files:
        mine = [one for one in kept if one.entry.span.file == file]
        reasons = Counter(one.why for one in dropped if one.entry.span.file == file)
        total = len(mine) + sum(reasons.values())
        as_what = ", ".join(dict.fromkeys(one.part for one in mine))
        said = "; ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
        yield file, f"kept {len(mine)} of {total}{f' ({as_what})' if as_what else ''}; dropped {said}"
