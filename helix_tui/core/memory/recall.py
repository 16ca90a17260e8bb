"""Recall: find memories by meaning, words and files, rank them, and report every term of a score.

With an encoder, relevance is the cosine of whole and trigger; names of code are still searched as words, as a model
cannot distinguish ``ImportError`` and ``KeyError`` (docs/formats/memory.md §5).

Without an encoder FTS5 finds candidates by the rarest words, and common words are weighted by rarity. Words with
similar vectors match in part (docs/formats/memory.md §9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlite_utils import Database

from helix_tui.core.embedding import word_vectors
from helix_tui.core.memory.ranking import RANKERS, Array, Ranked
from helix_tui.core.memory.records import MemoryFault, Recall, Recalled
from helix_tui.core.memory.store import indexing as paths
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.store.index import TRIGGER, WHOLE, MemoryIndex
from helix_tui.core.memory.words import identifiers, key, telling, words

MOST_WORDS = 32
MOST_POSTINGS = 6_000
MOST_CANDIDATES = 300

IN_RESOLUTION = 0.7
"""Weight of a word in the resolution relative to the trigger: a question describes a situation, like a trigger. Best
among .6, .8, .9 and 1 in seven of eight rounds of leave-one-out over question sets.
"""

WORDS_BESIDE = 0.6
"""Weight of the share of words relative to the cosine of the word sums."""

UNRELATED = 0.1
"""The values of both for unrelated texts, which count as 0."""

GATE = 0.25
"""Relevance at which a memory is a direct hit: with MiniLM unrelated texts score below 0.1, paraphrases between 0.15
and 0.74 (docs/formats/memory.md §5, §9).
"""

NAMED = 0.6
"""Relevance of a memory that has every name of code in the query: as much as a close paraphrase."""

ALMOST = 0.99
"""Maximum relevance of other matches when some memory has exactly the query's words as trigger."""

MOST_RECONSIDERED = 64
"""Number of nearest memories whose triggers are also compared with the query."""

BONUS_PER_WEIGHT = 0.1

MOST_BONUS = 0.2
"""What edges may add (helix v2's code)."""

MOST_RECALLED = 1_000
MAX_QUERY = 20_000


def coverage(database: Database, terms: Sequence[str], total: int) -> dict[int, float]:
    """Memory id -> share of the terms it has, each weighted by its rarity; 0 < share <= 1.

    Args:
        database: An open memory.
        terms: Words from `ranking.telling` or `ranking.identifiers`.
        total: The number of memories.
    """
    asked = _asked(database, terms[:MOST_WORDS], total, {term: {term: 1.0} for term in terms})
    return {} if asked is None else {each: share for each, has in asked.texts.items() if (share := asked.share({*has}))}


def nearness(database: Database, terms: Sequence[str], total: int) -> dict[int, float]:
    """Memory id -> its similarity in meaning to a question, by words alone; 0 < nearness <= 1.

    The sum of the question's word vectors is compared with the memory's and its trigger's, as recall does with an
    encoder's vectors. The share of words that a memory has, exactly or as a synonym, counts too, with trigger words
    weighted above resolution words: vectors know no names.
    """
    terms = terms[:MOST_WORDS]
    asked = _asked(database, terms, total, {term: {**word_vectors.near(term), term: 1.0} for term in terms})
    if asked is None:
        return {}
    ids = [*asked.texts]
    marks = ", ".join("?" * len(ids))
    keys = dict(database.execute(f"SELECT memory_id, key FROM memory_key WHERE memory_id IN ({marks})", ids).fetchall())
    triggers = [words(str(keys.get(bead_id, ""))) for bead_id in ids]
    wholes = [*asked.texts.values()]
    question, *sums = word_vectors.vectors([terms, *wholes, *triggers])
    found = {}
    for each, whole, trigger, *vectors in zip(ids, wholes, triggers, sums[: len(ids)], sums[len(ids) :], strict=True):
        own = asked.share({*trigger})
        share = own + IN_RESOLUTION * (asked.share({*whole, *trigger}) - own)
        cosine = sum(float(vector @ question) for vector in vectors) / 2
        near = (cosine + WORDS_BESIDE * share) / (1 + WORDS_BESIDE)
        if near > UNRELATED:
            found[each] = min(1.0, (near - UNRELATED) / (1 - UNRELATED))
    return found


class _Asked(Struct, frozen=True):
    """Search terms, their weights, and the candidate memories."""

    weight: Mapping[str, float]
    close: Mapping[str, Mapping[str, float]]
    """Term -> words that match it, and how well."""
    texts: Mapping[int, Sequence[str]]
    """Memory id -> its words."""

    def share(self, has: Set[str]) -> float:
        """The weighted share of terms that a text has, each as well as its closest word matches."""
        return sum(
            each * max((near for word, near in self.close[term].items() if word in has), default=0.0)
            for term, each in self.weight.items()
        ) / sum(self.weight.values())


def _asked(
    database: Database, terms: Sequence[str], total: int, close: Mapping[str, Mapping[str, float]]
) -> _Asked | None:
    """The terms and their candidate memories: those with the rarest words, or all in a small store."""
    if not terms or not total:
        return None
    frequency = _frequencies(database, list(dict.fromkeys(word for term in terms for word in close[term])))
    weight = {term: _rarity(frequency.get(term, 0), total) for term in terms}
    if not sum(weight.values()):
        return None
    # a small store is searched whole, as a memory may be similar without sharing a word
    if total > MOST_CANDIDATES:
        sought = _rarest(frequency, set(terms))
        where, values = "WHERE memory_words MATCH ? ORDER BY rank", [" OR ".join(f'"{term}"' for term in sought)]
    else:
        where, values = "", []
    found = database.execute(
        f"SELECT rowid, words FROM memory_words {where} LIMIT {MOST_CANDIDATES}", values
    ).fetchall()
    return _Asked(weight, close, {memory_id: text.split() for memory_id, text in found})


def _frequencies(database: Database, terms: Sequence[str]) -> dict[str, int]:
    marks = ", ".join("?" * len(terms))
    rows = database.execute(f"SELECT term, doc FROM memory_vocabulary WHERE term IN ({marks})", list(terms))
    return dict(rows.fetchall())


def _rarity(frequency: int, total: int) -> float:
    """The inverse document frequency of BM25, never below zero."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def _rarest(frequency: dict[str, int], own: Set[str]) -> list[str]:
    """The rarest words within the limit, the query's own first; at least one."""
    found: list[str] = []
    postings = 0
    for term in sorted(frequency, key=lambda term: (term not in own, frequency[term], term)):
        postings += frequency[term]
        if found and postings > MOST_POSTINGS:
            break
        found.append(term)
    return found


class RecallQuery(Struct, frozen=True):
    """A query for memories."""

    text: str
    type: str | None = None
    limit: int = 5
    min_effectiveness: float = 0.0
    files: tuple[str, ...] = ()
    expand: bool = False
    gate: float = 0.0
    """Relevance below which only memories that mention one of the files are returned."""
    ranker: str = "seed"
    waiting: bool = False
    """Whether memories that wait for acceptance are returned too."""


class _Field(Struct, frozen=True):
    """All memories against one query: one element per place of the index."""

    index: MemoryIndex
    relevance: Array
    similarity: NDArray[np.float32] | None
    compared: NDArray[np.bool_]
    """Places with a vector of this model."""
    keyword: Mapping[int, float]
    files: Mapping[int, tuple[str, ...]]
    ranked: Ranked
    known: NDArray[np.bool_]
    """Places of memories that the asker may see."""
    open: NDArray[np.bool_]
    """Places that meet the query's conditions."""
    direct: NDArray[np.bool_]


def recall(base: Base, query: RecallQuery) -> Recall:
    """Answer a query.

    Raises:
        MemoryFault: the ranker is unknown.
    """
    if query.ranker not in RANKERS:
        raise MemoryFault(f"no ranker “{query.ranker}”", f"There are: {', '.join(RANKERS)}.")
    text = query.text[:MAX_QUERY]
    vectors = base.encode([text]) if text.strip() else None
    with base.reading() as index:
        total = int(index.alive[: index.size].sum())
        if not total:
            return Recall((), base.mode, base.detail, "NO_PRIOR_MEMORY")
        field = _field(base, index, query, text, vectors[0] if vectors else None, total)
        chosen = _direct_and_fillers(field, query)
        bonus: dict[int, float] = {}
        via: dict[int, tuple[str, ...]] = {}
        if query.expand:
            chosen = _with_neighbours(base, field, query, chosen, bonus, via)
        found = _records(base, field, query, chosen, bonus, via)
    return Recall(tuple(found), base.mode, _detail(base, field), "" if found else "NO_MATCHING")


def _field(
    base: Base, index: MemoryIndex, query: RecallQuery, text: str, vector: NDArray[np.float32] | None, total: int
) -> _Field:
    size = index.size
    vectors = index.vectors(base.database, WHOLE)
    similarity, compared = None, np.zeros(size, np.bool_)
    relevance = np.zeros(size)
    if vectors is not None and vector is not None:
        similarity = vectors.similarities(vector, size)
        compared = vectors.present[:size]
        np.clip(similarity, 0.0, 1.0, out=relevance)
        _reconsider(base, index, vector, relevance)
    keyword = _keyword_leg(base, index, text, compared, total)
    files = paths.matches(base.database, query.files) if query.files else {}
    for memory_id, value in keyword.items():
        place = index.place.get(memory_id)
        if place is not None:
            relevance[place] = max(relevance[place], value)
    ranked = RANKERS[query.ranker](index.evidence(relevance, base.now_seconds()))
    direct = relevance >= max(query.gate, GATE)
    for memory_id in files:
        if memory_id in index.place:
            direct[index.place[memory_id]] = True
    known = np.array(index.alive[:size])
    if not query.waiting:
        known[[index.place[row[0]] for row in base.database.execute(rows.WAITING) if row[0] in index.place]] = False
    allowed = known & (ranked.effectiveness >= query.min_effectiveness)
    if query.type is not None:
        allowed &= index.of_type(query.type)
    # without a gate, places are filled with weaker hits, as in helix; an injection has one
    if query.gate > 0:
        allowed &= direct
    return _Field(index, relevance, similarity, compared, keyword, files, ranked, known, allowed, direct)


def _reconsider(base: Base, index: MemoryIndex, vector: NDArray[np.float32], relevance: Array) -> None:
    """Rescore the nearest memories by the mean of the trigger's cosine and that of the whole text.

    A query describes a situation, like a trigger; a resolution describes something else, and blurs the situation in the
    joint vector.
    """
    size = len(relevance)
    if size > MOST_RECONSIDERED:
        nearest = np.argpartition(-relevance, MOST_RECONSIDERED)[:MOST_RECONSIDERED]
    else:
        nearest = np.arange(size)
    # these rows from the file: the index would load and keep the vectors of every trigger
    ids = index.ids[nearest].tolist()
    found = base.database.execute(
        f"SELECT memory_id, vector FROM {TRIGGER} WHERE model = ? AND memory_id IN ({', '.join('?' * len(ids))})",
        [base.model, *ids],
    ).fetchall()
    for memory_id, blob in found:
        place = index.place.get(memory_id)
        if place is None or not isinstance(blob, bytes) or len(blob) != vector.nbytes:
            continue
        own = float(np.frombuffer(blob, np.float32) @ vector)
        if np.isfinite(own):  # a corrupted vector is ignored
            relevance[place] = (relevance[place] + min(1.0, max(0.0, own))) / 2


def _keyword_leg(
    base: Base, index: MemoryIndex, text: str, compared: NDArray[np.bool_], total: int
) -> dict[int, float]:
    """Memory id -> relevance by words: all words where there is no vector, names of code everywhere.

    A query in exactly the words of a trigger means that memory: the model hardly distinguishes word order or a single
    word.
    """
    found = _named_leg(base, index, text, compared, total)
    asked = _asked_for(base, text)
    return {each: min(value, ALMOST) for each, value in found.items()} | asked if asked else found


def _asked_for(base: Base, text: str) -> dict[int, float]:
    said = key(text)
    known = base.database.execute("SELECT memory_id FROM memory_key WHERE key = ?", [said]).fetchall()
    return {row[0]: 1.0 for row in known} if said else {}


def _named_leg(base: Base, index: MemoryIndex, text: str, compared: NDArray[np.bool_], total: int) -> dict[int, float]:
    if base.encoder is None:
        return nearness(base.database, telling(text), total)
    named = coverage(base.database, identifiers(text), total)
    found = {memory_id: NAMED * value for memory_id, value in named.items()}
    # words judge only what the encoder cannot compare
    if not bool((compared | ~index.alive[: index.size]).all()):
        for memory_id, value in coverage(base.database, telling(text), total).items():
            place = index.place.get(memory_id)
            if place is not None and not compared[place]:
                found[memory_id] = max(found.get(memory_id, 0.0), value)
    return found


def _direct_and_fillers(field: _Field, query: RecallQuery) -> list[int]:
    """The best places: some reserved for systemic memories and for those mentioning the files, the rest by score."""
    limit = min(max(0, query.limit), MOST_RECALLED)
    if not limit:
        return []
    index = field.index
    relevant = np.flatnonzero(field.open & field.direct)
    recurring = relevant[index.of_type("systemic")[relevant]]
    mentioned = [index.place[file] for file in field.files if file in index.place]
    # reserved: by score alone, systemic memories and those naming the files could be crowded out
    kept = [
        *_top(field, _only(field, recurring), max(1, limit // 4)),
        *_top(field, _only(field, mentioned), max(1, limit // 2)),
        *_top(field, field.open, limit),
    ]
    return list(dict.fromkeys(kept))[:limit]


def _only(field: _Field, places: Sequence[int] | NDArray[np.intp]) -> NDArray[np.bool_]:
    """Those of these places that meet the query's conditions."""
    chosen = np.zeros(field.index.size, np.bool_)
    chosen[places] = True
    return chosen & field.open


def _top(field: _Field, allowed: NDArray[np.bool_], limit: int) -> list[int]:
    """The places with the highest scores, best first; the older memory first for equal scores."""
    places = np.flatnonzero(allowed)
    if limit <= 0 or not places.size:
        return []
    scores = field.ranked.score[places]
    if places.size > limit:
        # keep every place that ties with the last one until the order is exact
        least = np.partition(scores, places.size - limit)[places.size - limit]
        keep = scores >= least
        places, scores = places[keep], scores[keep]
    order = np.lexsort((field.index.ids[places], -scores))[:limit]
    return [int(place) for place in places[order]]


def _with_neighbours(
    base: Base,
    field: _Field,
    query: RecallQuery,
    chosen: Sequence[int],
    bonus: dict[int, float],
    via: dict[int, tuple[str, ...]],
) -> list[int]:
    """The selection, with neighbours of its direct hits in places not taken by direct hits."""
    index = field.index
    hits = [place for place in chosen if field.direct[place]]
    known = rows.fetch(base.database, [int(index.ids[place]) for place in hits])
    weights = _neighbours(base, [memory.name for memory in known.values()])
    ids = {row[0]: row[1] for row in _ids(base, weights)}
    for name, sources in weights.items():
        place = index.place.get(ids.get(name, -1))
        if place is None or not _admissible(field, query, place):
            continue
        bonus[place] = min(MOST_BONUS, BONUS_PER_WEIGHT * sum(sources.values()))
        via[place] = tuple(sorted(sources))
    limit = min(max(0, query.limit), MOST_RECALLED)
    others = [place for place in {*chosen, *bonus} if place not in hits]
    others.sort(key=lambda place: (-_total(field, place, bonus), int(index.ids[place])))
    return hits + others[: max(0, limit - len(hits))]


def _admissible(field: _Field, query: RecallQuery, place: int) -> bool:
    """Whether a neighbour meets the query's conditions; relevance is not one of them."""
    if not (field.known[place] and (query.type is None or field.index.of_type(query.type)[place])):
        return False
    return bool(field.ranked.effectiveness[place] >= query.min_effectiveness)


def _neighbours(base: Base, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Neighbour -> (hit -> weight of all edges between them)."""
    if not names:
        return {}
    marks = ", ".join("?" * len(names))
    found: dict[str, dict[str, float]] = {}
    for hit, other, weight in base.database.execute(
        # edges count in both directions
        f"SELECT from_name, to_name, weight FROM memory_edge WHERE from_name IN ({marks})"
        f" UNION ALL SELECT to_name, from_name, weight FROM memory_edge WHERE to_name IN ({marks})",
        [*names, *names],
    ):
        if other == hit:
            continue
        weights = found.setdefault(other, {})
        weights[hit] = weights.get(hit, 0.0) + rows.number(weight)
    return found


def _ids(base: Base, names: Iterable[str]) -> list[tuple[str, int]]:
    wanted = list(names)[:MOST_RECALLED]
    marks = ", ".join("?" * len(wanted))
    return base.database.execute(f"SELECT name, id FROM memory WHERE name IN ({marks})", wanted).fetchall()


def _total(field: _Field, place: int, bonus: Mapping[int, float]) -> float:
    return float(field.ranked.score[place]) + bonus.get(place, 0.0)


def _records(
    base: Base,
    field: _Field,
    query: RecallQuery,
    chosen: Iterable[int],
    bonus: Mapping[int, float],
    via: Mapping[int, tuple[str, ...]],
) -> list[Recalled]:
    """The selection as records, best first; relevant systemic memories come before all others."""
    index, ranked = field.index, field.ranked
    places = list(chosen)
    known = rows.fetch(base.database, [int(index.ids[place]) for place in places])
    found = []
    for place in places:
        memory_id = int(index.ids[place])
        # its text may be another than the one that was accepted
        if memory_id not in known or not (query.waiting or known[memory_id].accepted):
            continue
        hit = Recalled(
            memory=known[memory_id],
            score=_total(field, place, bonus),
            relevance=float(field.relevance[place]),
            effectiveness=float(ranked.effectiveness[place]),
            recency=float(ranked.recency[place]),
            bonus=bonus.get(place, 0.0),
            similarity=_similarity(field, place),
            keyword=field.keyword.get(memory_id, 0.0),
            files=field.files.get(memory_id, ()),
            via=() if field.direct[place] else via.get(place, ()),
            direct=bool(field.direct[place]),
            ranker=query.ranker,
            terms={name: float(values[place]) for name, values in ranked.terms.items()},
        )
        found.append(hit)
    found.sort(key=lambda hit: (not (hit.direct and hit.memory.type == "systemic"), -hit.score, hit.memory.id))
    return found


def _similarity(field: _Field, place: int) -> float | None:
    if field.similarity is None or not field.compared[place]:
        return None
    return float(field.similarity[place])


def _detail(base: Base, field: _Field) -> str:
    """The encoder, and how many memories it cannot compare."""
    if base.encoder is None:
        return base.detail
    lacking = int((field.index.alive[: field.index.size] & ~field.compared).sum())
    if not lacking or field.similarity is None:
        return base.detail
    return f"{base.detail}; {lacking} without a vector of this model, found by words (`helix-tui memory embed`)"
