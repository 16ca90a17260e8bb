"""The keyword leg: FTS5 finds candidates by their rarest words, rarity weighs what they have in common.

Bounded whatever the query: as many words, from the rarest on, as have at most :data:`MOST_POSTINGS` memories
between them, and at most :data:`MOST_CANDIDATES` memories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlite_utils import Database

from helix_tui.core.memory.recall.thesaurus import RELATED, related

MOST_WORDS = 32
MOST_POSTINGS = 6_000
MOST_CANDIDATES = 300


def coverage(database: Database, terms: Sequence[str], total: int, *, kin: bool = False) -> dict[int, float]:
    """Memory id -> share of the terms it has, each weighted by its rarity; 0 < share <= 1.

    With ``kin`` another word of the same group counts for a term, though less (`thesaurus`).

    Args:
        database: An open memory.
        terms: Words as `words.telling` or `words.identifiers` gives them.
        total: How many memories there are.
    """
    terms = terms[:MOST_WORDS]
    if not terms or not total:
        return {}
    others = {term: related(term) for term in terms} if kin else {}
    frequency = _frequencies(
        database, [*dict.fromkeys([*terms, *(w for some in others.values() for w in some)])]
    )
    weight = {term: _rarity(frequency.get(term, 0), total) for term in terms}
    sought = _rarest(frequency)
    if not sought:
        return {}
    expression = " OR ".join(f'"{term}"' for term in sought)
    rows = database.execute(
        "SELECT rowid, words FROM memory_words WHERE memory_words MATCH ? ORDER BY rank LIMIT ?",
        [expression, MOST_CANDIDATES],
    ).fetchall()
    whole = sum(weight.values())
    found = {}
    for memory_id, text in rows:
        has = set(text.split())
        met = sum(weight[term] * _met(term, has, others) for term in terms)
        if met:
            found[memory_id] = met / whole
    return found


def _met(term: str, has: set[str], others: Mapping[str, frozenset[str]]) -> float:
    """How much of a term a memory has: all of it, what a related word is worth, or nothing."""
    if term in has:
        return 1.0
    return RELATED if others and not has.isdisjoint(others[term]) else 0.0


def _frequencies(database: Database, terms: Sequence[str]) -> dict[str, int]:
    marks = ", ".join("?" * len(terms))
    rows = database.execute(f"SELECT term, doc FROM memory_vocabulary WHERE term IN ({marks})", list(terms))
    return dict(rows.fetchall())


def _rarity(frequency: int, total: int) -> float:
    """The inverse document frequency of BM25, never below zero."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def _rarest(frequency: dict[str, int]) -> list[str]:
    """Words from the rarest on, as many as stay within the bound; one at least."""
    found: list[str] = []
    postings = 0
    for term in sorted(frequency, key=lambda term: (frequency[term], term)):
        postings += frequency[term]
        if found and postings > MOST_POSTINGS:
            break
        found.append(term)
    return found
