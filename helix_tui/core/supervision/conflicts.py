"""Conflicts between governing documents: what can be resolved, what cannot both hold, and what is missing.

Taxonomy and heuristic: reference/helix.md §4. Only statements under a heading of constraints or
requirements are read; the order of authority comes first (a higher document decides over a lower one, so
only two of the same tier can contradict each other for good); what nothing makes sure of is resolvable.
Outcomes of ddx are never classified here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.supervision.check.authority import documents
from helix_tui.core.text import clean_line

Class = Literal["physics-level", "resolvable", "gap"]

TIERS = (
    ("vision", 0),
    ("prd", 1),
    ("feat", 2),
    ("us", 3),
    ("adr", 4),
    ("arch", 4),
    ("sd", 5),
    ("td", 6),
    ("tp", 7),
    ("test", 8),
    ("plan", 9),
)
"""Beginning of a document's name or id -> its authority; 0 decides over all."""

LOWEST = 10
MAX_DOCUMENT = 1 << 20
MOST_STATEMENTS = 2000

EXCLUSIVE = (
    (r"\breal[- ]?time\b", r"\bbatch[- ]only\b|\bonly (in )?batch"),
    (r"\boffline[- ]only\b|\bwithout (a |any )?network\b", r"\bonline[- ]only\b|\brequires? (a )?network\b"),
    (r"\bsingle[- ]user only\b", r"\bmulti(ple)?[- ]user"),
    (r"\bsynchronous(ly)? only\b|\bonly synchronous", r"\basynchronous(ly)? only\b|\bonly asynchronous"),
    (r"\bread[- ]only\b", r"\bmust (be able to )?write\b"),
    (r"\bstateless\b", r"\bmust (keep|hold) state\b|\bstateful\b"),
)
"""Pairs of patterns that cannot both be demanded of one thing."""

_HEADING = re.compile(r"^#{1,6}\s+(.*)")
_WANTED = re.compile(r"\b(constraints?|requirements?)\b", re.IGNORECASE)
_NOT = re.compile(
    r"\b(must not|shall not|should not|may not|cannot|can not|never|must never|no longer|not)\b", re.I
)
_MODAL = re.compile(
    r"\b(must|shall|should|will|may|has to|have to|needs? to|always|only|is|are|be|the|a|an|to)\b", re.I
)
_CHOICE = re.compile(r"\buses?\s+(?P<what>[\w.+-]+)\s+(?:for|as)\s+(?P<why>[\w -]{3,60})", re.IGNORECASE)
_LINK = re.compile(r"\[\[([A-Za-z][\w.-]*)\]\]")


@dataclass(frozen=True, slots=True)
class Statement:
    """One demand of one document."""

    document: str
    tier: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Two demands that differ, or one that leads nowhere."""

    kind: Class
    text: str
    documents: tuple[str, ...]
    """The deciding one first, where there is one."""

    @property
    def key(self) -> str:
        """The same for the same finding."""
        return f"{self.kind}:{self.text}"[:400]


def find_conflicts(root: Path) -> tuple[Finding, ...]:
    """Every conflict and gap in a repository's documents, what cannot both hold first."""
    statements: list[Statement] = []
    named: set[str] = set()
    links: list[tuple[str, str]] = []
    for path in documents(root):
        text = (read_bytes(path, MAX_DOCUMENT) or b"").decode("utf-8", "replace")
        name = str(path.relative_to(root))
        identity = _identity(text) or path.stem
        named |= {identity.lower(), path.stem.lower(), path.stem.split("-")[0].lower()}
        named.add("-".join(path.stem.lower().split("-")[:2]))
        tier = tier_of(identity, name)
        statements += [Statement(name, tier, line) for line in demands(text)]
        links += [(name, link) for link in dict.fromkeys(_LINK.findall(text))]
    found = list(_between(statements[:MOST_STATEMENTS]))
    found += [
        Finding("gap", f"{name} refers to {clean_line(link, 60)}, which is not there", (name,))
        for name, link in links
        if link.lower() not in named
    ]
    order = {"physics-level": 0, "resolvable": 1, "gap": 2}
    return tuple(sorted(found, key=lambda each: (order[each.kind], each.text)))


def demands(text: str) -> Iterator[str]:
    """The items under headings of constraints and requirements."""
    inside = False
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        if heading:
            inside = _WANTED.search(heading.group(1)) is not None
            continue
        item = re.match(r"\s*(?:[-*•]|\d+[.)])\s+(.*\S)", line)
        if inside and item:
            yield clean_line(re.sub(r"[*`_]", "", item.group(1)), 400)


def tier_of(identity: str, path: str) -> int:
    """The authority of a document, by its id or name; the lower the number, the more it decides."""
    for word in (identity.lower(), Path(path).stem.lower()):
        for start, tier in TIERS:
            if re.match(rf"(helix\.)?(product-)?{start}([-.\d]|$)", word):
                return tier
    return LOWEST


def classify(one: Statement, other: Statement) -> Finding | None:
    """Whether two demands are in conflict, and which class it is."""
    if contradict(one.text, other.text):
        return _judged(one, other, certain=True)
    first, second = _CHOICE.search(one.text), _CHOICE.search(other.text)
    if not (first and second) or _words(first["why"]) != _words(second["why"]):
        return None
    return _judged(one, other, certain=False) if first["what"].lower() != second["what"].lower() else None


def contradict(one: str, other: str) -> bool:
    """Whether two demands cannot both hold: one the negation of the other, or a pair that excludes itself."""
    for left, right in EXCLUSIVE:
        for first, second in ((one, other), (other, one)):
            if re.search(left, first, re.I) and re.search(right, second, re.I):
                return True
    if (_NOT.search(one) is None) == (_NOT.search(other) is None):
        return False
    first_words, second_words = _words(one), _words(other)
    union = first_words | second_words
    return len(union) >= 2 and len(first_words & second_words) / len(union) >= 0.8


def _between(statements: list[Statement]) -> Iterator[Finding]:
    by_word: dict[str, list[Statement]] = {}
    special = [
        each for each in statements if any(re.search(p, each.text, re.I) for pair in EXCLUSIVE for p in pair)
    ]
    for each in statements:
        for word in _words(each.text):
            by_word.setdefault(word, []).append(each)
    seen: set[frozenset[Statement]] = set()
    groups: Iterable[list[Statement]] = (*(group for group in by_word.values() if len(group) < 60), special)
    for group in groups:
        for one, other in combinations(group, 2):
            pair = frozenset((one, other))
            if pair in seen or one == other:
                continue
            seen.add(pair)
            finding = classify(one, other)
            if finding is not None:
                yield finding


def _judged(one: Statement, other: Statement, *, certain: bool) -> Finding:
    if one.tier != other.tier:
        high, low = sorted((one, other), key=lambda each: each.tier)
        text = f"“{high.text}” ({high.document}) decides over “{low.text}” ({low.document})"
        return Finding("resolvable", text, (high.document, low.document))
    text = f"“{one.text}” ({one.document}) and “{other.text}” ({other.document})"
    if certain:
        return Finding("physics-level", f"{text} cannot both hold", (one.document, other.document))
    return Finding("resolvable", f"{text} choose differently for one goal", (one.document, other.document))


def _words(text: str) -> frozenset[str]:
    plain = _MODAL.sub(" ", _NOT.sub(" ", text.lower()))
    return frozenset(word.rstrip("s") for word in re.findall(r"[\w+.-]*\w", plain))


def _identity(text: str) -> str:
    front = text[3:].partition("\n---")[0] if text.startswith("---") else ""
    found = re.search(r"(?m)^\s*id:\s*[\"']?([\w.-]+)", front)
    return found.group(1) if found else ""
