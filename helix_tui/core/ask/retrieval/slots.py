"""What a question needs evidence for: its slots, where each came from, and which spans cover it.

Hard requirements come only from the user's own words and from concepts that the repository defines; headings
and trees are soft, they guide retrieval (docs/formats/ask.md §2). A slot is covered by the words of a
span, never by a path, a header that we made, or the text of a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from helix_tui.core.ask.retrieval.question import Question, name_parts
from helix_tui.core.ask.tokens import distinct_terms, stem

SlotSource = Literal["name", "quote", "concept", "word", "heading"]

MOST_SLOTS = 8
MOST_HINTS = 6
COMMON_SHARE = 0.35
"""Share of all files from which a word says nothing: it is asked for only where nothing better is."""

Frequency = Callable[[str], float]
"""Term -> share of the files that have it, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that the answer needs evidence for."""

    id: str
    """Lower-case words with dashes."""
    label: str
    """As people write it."""
    source: SlotSource
    required: bool
    terms: tuple[str, ...]
    """Stems, all of which a span must have; a name's parts must stand in one identifier or side by side."""

    @property
    def would_satisfy(self) -> str:
        """What evidence would cover it, in one sentence."""
        if self.source == "name":
            return f"a span that defines, documents or uses `{self.label}`"
        if self.source == "quote":
            return f"a span with the words “{self.label}”"
        return f"a span that speaks of “{self.label}”"


def slots_of(question: Question, frequency: Frequency, concepts: Sequence[str] = ()) -> tuple[Slot, ...]:
    """The required slots of a question; ``concepts`` are names of concepts in it, longest first."""
    found: dict[str, Slot] = {}

    def add(label: str, source: SlotSource, terms: tuple[str, ...]) -> None:
        ident = slug(label)
        if terms and ident and ident not in found and not any(slot.terms == terms for slot in found.values()):
            found[ident] = Slot(ident, label, source, True, terms)

    for name in question.names:
        add(name, "name", name_parts(name) or (name.lower(),))
    for quote in question.quoted:
        add(quote, "quote", tuple(stem(word.lower()) for word in re.findall(r"\w+", quote)))
    words = list(question.words)
    for concept in concepts:
        terms = tuple(dict.fromkeys(stem(word) for word in re.findall(r"\w+", concept.lower())))
        if len(terms) > 1 and set(terms) <= {stem(word) for word in words}:
            add(concept, "concept", terms)
            words = [word for word in words if stem(word) not in terms]
    room = MOST_SLOTS - len(found)
    for word in _telling(words, frequency, room if not question.is_long else min(room, 4)):
        add(word, "word", (stem(word),))
    return tuple(found.values())[:MOST_SLOTS]


def _telling(words: Sequence[str], frequency: Frequency, most: int) -> list[str]:
    """The words that tell most, in the question's order; common ones only where there is nothing else."""
    shares = {word: frequency(stem(word)) for word in words}
    telling = [word for word in words if shares[word] < COMMON_SHARE] or list(words)
    if len(telling) <= most:
        return telling
    kept = set(sorted(telling, key=lambda word: (shares[word] or 1.0, telling.index(word)))[: max(0, most)])
    return [word for word in telling if word in kept]


def hints_of(headings: Iterable[str], slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Soft slots: headings that share two terms or more with the required ones. They never fail a run."""
    known = {term for slot in slots for term in slot.terms}
    found: dict[str, Slot] = {}
    for heading in headings:
        terms = tuple(dict.fromkeys(stem(word) for word in re.findall(r"\w+", heading.lower())))
        if len(known.intersection(terms)) > 1 and len(found) < MOST_HINTS:
            found.setdefault(slug(heading), Slot(slug(heading), heading, "heading", False, terms))
    return tuple(found.values())


def slug(label: str) -> str:
    """``TS_ratio`` -> ts-ratio."""
    return "-".join(re.findall(r"[^\W_]+", label.lower()))


@lru_cache(maxsize=4096)
def terms_in(text: str) -> frozenset[str]:
    """The terms of a text, and what names it has."""
    return frozenset(distinct_terms((text,)))


@lru_cache(maxsize=512)
def _name_pattern(name: str) -> re.Pattern[str]:
    """The name, or its parts side by side: ``retry_after`` finds retryAfter and retry-after."""
    pieces = [re.escape(piece) for piece in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.rpartition(".")[2])]
    return re.compile(r"(?<![^\W_])" + r"[\W_]?".join(pieces or [re.escape(name)]) + r"(?![^\W_])", re.IGNORECASE)


def covers(slot: Slot, text: str) -> bool:
    """Whether the words of a span speak of a slot."""
    if slot.source == "name":
        return _name_pattern(slot.label).search(text) is not None
    if slot.source == "quote":
        wanted = r"\W+".join(map(re.escape, re.findall(r"\w+", slot.label)))
        return bool(wanted) and re.search(rf"(?<!\w){wanted}(?!\w)", text, re.IGNORECASE) is not None
    return terms_in(text).issuperset(slot.terms)
