"""The keyword leg: FTS5 finds candidates by their rarest words, rarity weighs what they have in common.

Bounded whatever the query: as many words, from the rarest on, as have at most :data:`MOST_POSTINGS` memories
between them, and at most :data:`MOST_CANDIDATES` memories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set

from sqlite_utils import Database

from helix_tui.core.memory.recall.thesaurus import kin_of
from helix_tui.core.memory.words import words

MOST_WORDS = 32
MOST_POSTINGS = 6_000
MOST_CANDIDATES = 300

MOST_REFINED = 64
"""The best candidates, of which is looked at where they have a word: in the trigger or in the resolution."""

IN_RESOLUTION = 0.7
"""What a word of the resolution is worth against one of the trigger: a question tells of a situation, as
triggers do. Chosen over .6, .8, .9 and 1 in seven of eight rounds that leave one set of questions out."""


def coverage(database: Database, terms: Sequence[str], total: int, *, kin: bool = False) -> dict[int, float]:
    """Memory id -> share of the terms it has, each weighted by its rarity; 0 < share <= 1.

    With ``kin`` a word that is close in meaning counts for a term, by how close it is (`thesaurus`), and a
    word of the trigger more than one of the resolution.

    Args:
        database: An open memory.
        terms: Words as `words.telling` or `words.identifiers` gives them.
        total: How many memories there are.
    """
    terms = terms[:MOST_WORDS]
    if not terms or not total:
        return {}
    close = {term: {**(kin_of(term) if kin else {}), term: 1.0} for term in terms}
    frequency = _frequencies(database, list(dict.fromkeys(word for each in close.values() for word in each)))
    weight = {term: _rarity(frequency.get(term, 0), total) for term in terms}
    sought = _rarest(frequency, set(terms))
    whole = sum(weight.values())
    if not sought or not whole:
        return {}
    expression = " OR ".join(f'"{term}"' for term in sought)
    rows = database.execute(
        "SELECT rowid, words FROM memory_words WHERE memory_words MATCH ? ORDER BY rank LIMIT ?",
        [expression, MOST_CANDIDATES],
    ).fetchall()
    texts = {memory_id: set(text.split()) for memory_id, text in rows}
    found = {memory_id: _share(weight, close, has) / whole for memory_id, has in texts.items()}
    if kin:
        _refine(database, found, texts, lambda has: _share(weight, close, has) / whole)
    return {memory_id: value for memory_id, value in found.items() if value}


def _share(weight: Mapping[str, float], close: Mapping[str, Mapping[str, float]], has: Set[str]) -> float:
    """The weight of the terms that a text has, each as far as the closest of its words goes."""
    return sum(
        each * max((near for word, near in close[term].items() if word in has), default=0.0)
        for term, each in weight.items()
    )


def _refine(
    database: Database,
    found: dict[int, float],
    texts: Mapping[int, Set[str]],
    share: Callable[[Set[str]], float],
) -> None:
    """Let the words of triggers count for more, in the best candidates."""
    best = sorted(found, key=lambda memory_id: -found[memory_id])[:MOST_REFINED]
    marks = ", ".join("?" * len(best))
    keys = database.execute(f"SELECT memory_id, key FROM memory_key WHERE memory_id IN ({marks})", best)
    triggers = {memory_id: set(words(str(key))) & texts[memory_id] for memory_id, key in keys.fetchall()}
    for memory_id in found:
        trigger = share(triggers[memory_id]) if memory_id in triggers else 0.0
        found[memory_id] = trigger + IN_RESOLUTION * (found[memory_id] - trigger)


def _frequencies(database: Database, terms: Sequence[str]) -> dict[str, int]:
    marks = ", ".join("?" * len(terms))
    rows = database.execute(f"SELECT term, doc FROM memory_vocabulary WHERE term IN ({marks})", list(terms))
    return dict(rows.fetchall())


def _rarity(frequency: int, total: int) -> float:
    """The inverse document frequency of BM25, never below zero."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def _rarest(frequency: dict[str, int], own: Set[str]) -> list[str]:
    """Words from the rarest on, as many as stay within the bound, the query's own first; one at least."""
    found: list[str] = []
    postings = 0
    for term in sorted(frequency, key=lambda term: (term not in own, frequency[term], term)):
        postings += frequency[term]
        if found and postings > MOST_POSTINGS:
            break
        found.append(term)
    return found
