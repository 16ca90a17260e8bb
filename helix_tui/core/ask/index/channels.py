"""The channels of a search: each gives files in an order of its own, and their ranks are added (RRF).

``score(file) = prior · Σ weight / (K + rank)`` over the channels that have it (Cormack, Clarke and Büttcher, SIGIR
2009). Every order depends on the content alone: BM25 by SQLite, ties by path. What each channel gains on data that
nobody chose it for is in bench/ask.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from helix_tui.core.ask.index.database import Database, Field, Hit
from helix_tui.core.ask.question import Question
from helix_tui.core.ask.records import RankedFile, Role
from helix_tui.core.ask.tokens import STOP_WORDS, count_terms, stem, words

K = 8
"""The constant of reciprocal rank fusion; the 60 of its authors, who fuse hundreds of results, loses a tenth here."""
BEST, OTHER = 1.0, 0.5
"""The weight of the best passage's channel, and of every other."""
PRIORS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.75, "doc": 0.6, "example": 0.5, "config": 0.8, "data": 0.6, "vendored": 0.4, "record": 0.6,
}  # fmt: skip
MOST_TERMS = 100
"""Terms of a text that are searched, the most telling."""
MOST_PASSAGES = 2_000
MOST_FILES = 200
SECOND = 0.5
"""What a file's second-best passage adds to its best one."""
TITLE = 0.5
"""The weight of a text's title, searched by itself, beside the whole text."""
SHORTEST = 5
ALIKE = 0.5
"""Letters from which a word may be misspelt, and the share of trigrams (Dice) that two names must have in common."""
VOTERS = 30
"""Commits with messages like the question whose files count."""
_CAPITAL = re.compile(r"\b[A-Z][a-zA-Z0-9]{2,}\b")
_FRAME = re.compile(
    r'File "([^"\n]+)", line \d+|\bat (?:async )?[\w.$<>]+ \(([^():\n]+):\d+:\d+\)|\b([\w./-]+\.\w{1,4}):\d+'
)


class Found(Struct, frozen=True):
    """What the channels found for a question."""

    files: tuple[RankedFile, ...]
    """Best first."""
    hits: Mapping[str, Sequence[Hit]]
    """The passages of each file, the best first."""


def terms_for(text: str, database: Database, field: Field = "passage") -> list[str]:
    """The most telling terms of a text: often said in it, rare in the index; without those that nothing has."""
    counts = count_terms(text)
    having, all_passages = database.passages_with(counts, field), database.passages(field)
    weights = {
        # how often a term is said counts up to a limit, as in BM25's own formula
        term: counts[term] * 3 / (counts[term] + 2) * rarity(having[term], all_passages)
        for term in counts
        if term in having
    }
    return sorted(sorted(weights, key=lambda term: (-weights[term], term))[:MOST_TERMS])


def rarity(having: int, among: int) -> float:
    """The inverse document frequency of BM25, never negative (Lucene's form)."""
    return math.log(1.0 + (among - having + 0.5) / (having + 0.5))


def search(question: Question, database: Database) -> Found:
    """Every file with a place in any channel, best first."""
    terms = terms_for(question.text, database)
    whole = database.hits("passage", terms, MOST_PASSAGES)
    orders = orders_of(question, terms, whole, database)
    ids = {number for order in orders.values() for number, _ in order[1]}
    rows = database.by_id(ids)
    parts: dict[int, dict[str, float]] = {}
    hits: dict[str, list[Hit]] = {}
    for name, (weight, order) in orders.items():
        ranked = sorted((pair for pair in order if pair[0] in rows), key=lambda pair: (-pair[1], rows[pair[0]].path))
        for rank, (number, _) in enumerate(ranked[:MOST_FILES], 1):
            parts.setdefault(number, {})[name] = weight / (K + rank)
    for hit in sorted(whole, key=lambda hit: (-hit.score, hit.chunk)):
        if hit.file in rows:
            hits.setdefault(rows[hit.file].path, []).append(hit)
    ranked_files = [
        RankedFile(row.path, sum(of_channel.values()) * prior, of_channel, row.role, prior)
        for number, of_channel in parts.items()
        for row in (rows[number],)
        for prior in (PRIORS[row.role] * row.standing,)
    ]
    ranked_files.sort(key=lambda one: (-one.score, one.file))
    return Found(tuple(ranked_files), hits)


Order = list[tuple[int, float]]


def orders_of(
    question: Question, terms: Sequence[str], hits: Sequence[Hit], database: Database
) -> dict[str, tuple[float, Order]]:
    """Channel -> its weight, and (file, score); the terms and the passages are those of the whole question."""
    found: dict[str, tuple[float, Order]] = {}
    texts = [("", 1.0, terms, hits)]
    if question.title != question.text:
        of_title = terms_for(question.title, database)
        texts.append(("title ", TITLE, of_title, database.hits("passage", of_title, MOST_PASSAGES)))
    for prefix, share, said, having in texts:
        found[f"{prefix}passage"] = share * BEST, _best(having)
        found[f"{prefix}whole"] = share * OTHER, _whole(having)
        fields: tuple[Field, ...] = ("names", "place")
        for field in fields:
            found[f"{prefix}{field}"] = share * OTHER, database.matching(field, said, MOST_FILES)
    for name, order in (
        ("symbol", _symbols(question, database)),
        ("fuzzy", _fuzzy(question, database)),
        ("mention", _mentioned(question, database)),
        ("commits", _commits(question, database)),
    ):
        found[name] = OTHER, order
    return {name: one for name, one in found.items() if one[1]}


def _best(hits: Iterable[Hit]) -> Order:
    """Files by their best passage and, for less, the second."""
    scores: dict[int, list[float]] = {}
    for hit in hits:
        scores.setdefault(hit.file, []).append(hit.score)
    return [(number, one[0] + SECOND * sum(one[1:2])) for number, one in scores.items()]


def _whole(hits: Iterable[Hit]) -> Order:
    """Files by all of their passages that match."""
    scores: dict[int, float] = {}
    for hit in hits:
        scores[hit.file] = scores.get(hit.file, 0.0) + hit.score
    return list(scores.items())


def _symbols(question: Question, database: Database) -> Order:
    """Files that define a name of the question, written as code, capitalised, or as two or three words of its title."""
    weights: dict[str, float] = {}
    said = [word.lower() for word in words(question.title) if word.lower() not in STOP_WORDS]
    for size in (2, 3):
        for at in range(len(said) - size + 1):
            run = said[at : at + size]
            weights |= dict.fromkeys(("_".join(run), "".join(run)), 0.2)
    weights |= {name.lower(): 0.5 for name in _CAPITAL.findall(question.text)}
    weights |= {name.rpartition(".")[2].lower(): 1.0 for name in question.names}
    defining: dict[str, set[int]] = {}
    for folded, _, number in database.defining(weights):
        defining.setdefault(folded, set()).add(number)
    scores: dict[int, float] = {}
    for folded, files in sorted(defining.items()):
        for number in files:
            # a name that many files define says little of each
            scores[number] = scores.get(number, 0.0) + weights[folded] * len(files) ** -0.7
    return list(scores.items())


def _fuzzy(question: Question, database: Database) -> Order:
    """Files that define a name spelt nearly like a word that nothing has."""
    said = [*question.words, *(name.lower() for name in question.names)]
    unknown = [word for word in said if len(word) >= SHORTEST and not database.passages_with([stem(word)])]
    scores: dict[int, float] = {}
    for word in unknown:
        alike = [(_dice(_trigrams(word), _trigrams(name)), name) for name in database.names_like(word)]
        for likeness, name in sorted((pair for pair in alike if pair[0] >= ALIKE), key=lambda one: (-one[0], one[1]))[
            :3
        ]:
            files = {number for _, _, number in database.defining([name])}
            for number in files:
                scores[number] = scores.get(number, 0.0) + likeness / len(files) ** 0.7
    return list(scores.items())


def _trigrams(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _dice(one: set[str], two: set[str]) -> float:
    return 2 * len(one & two) / (len(one) + len(two)) if one and two else 0.0


def _mentioned(question: Question, database: Database) -> Order:
    """Files whose path the question names: a path, a file, a frame of a stack trace, a dotted module, a number."""
    scores: dict[int, float] = {}
    frames = [next(filter(None, groups)) for groups in _FRAME.findall(question.text)]
    dotted = [name.replace("::", ".") for name in question.names if "." in name.replace("::", ".")]
    for at, path in enumerate(dict.fromkeys((*question.paths, *frames))):
        steps = [step for step in path.lower().replace("\\", "/").split("/") if step not in ("", ".", "..")]
        if steps:
            _vote(scores, _ending(steps, database), 0.9**at)
    for name in dotted:
        steps = name.lower().split(".")
        for size in range(len(steps), 1, -1):
            if _vote(scores, _modules(steps[:size], database), size / len(steps)):
                break
    return list(scores.items())


def _ending(steps: Sequence[str], database: Database) -> list[int]:
    """Files whose path ends in the longest tail of some steps; a number without a dot may be a part of a name."""
    name = steps[-1]
    if "." not in name and len(steps) == 1:
        # FEAT-003 is not FEAT-0031
        whole = re.compile(rf"{re.escape(name)}(?!\d)")
        return [row.id for row in database.files("instr(name, ?)", (name,)) if whole.search(row.path.lower())]
    found = database.files("name = ?", (name,))
    for size in range(2, len(steps) + 1):
        tail = "/" + "/".join(steps[-size:])
        closer = [row for row in found if f"/{row.path.lower()}".endswith(tail)]
        if not closer:
            break
        found = closer
    return [row.id for row in found]


def _modules(steps: Sequence[str], database: Database) -> list[int]:
    """Files whose path without extension ends in a module's steps; a package's own file stands for its folder."""
    tail = "/" + "/".join(steps)
    rows = database.files("name LIKE ? OR name LIKE '\\_\\_init\\_\\_.%' ESCAPE '\\'", (f"{steps[-1]}.%",))
    wholes = ((row, f"/{row.path.lower().rpartition('.')[0].removesuffix('/__init__')}") for row in rows)
    return [row.id for row, whole in wholes if whole.endswith(tail)]


def _vote(scores: dict[int, float], files: Sequence[int], weight: float) -> bool:
    for number in files:
        scores[number] = max(scores.get(number, 0.0), weight / len(files) ** 0.5)
    return bool(files)


def _commits(question: Question, database: Database) -> Order:
    """Files that the commits with the most similar messages changed; one that changed many says little of each."""
    found = dict(database.matching("message", terms_for(question.text, database, "message"), VOTERS))
    votes: dict[str, float] = {}
    for one in database.past(found):
        for path in one.files:
            votes[path] = votes.get(path, 0.0) + found[one.id] / len(one.files) ** 0.5
    return [(row.id, votes[row.path]) for row in database.at(votes)]
