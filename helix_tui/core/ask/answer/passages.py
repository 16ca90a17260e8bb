"""The passages that answer a question, best first.

A passage is the best window of lines of a span, cut to a whole unit. It is scored by the weight of the question's words
that adjacent lines cover together, how near these are in meaning by word vectors, its heading, and the standing of its
span in the search; the best are put in order by the encoder: ``z(score) + ALPHA · z(cosine of question and passage)``.
Without the encoder's weights they stay in the first order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.answer.quotes import cut_code, cut_document
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import Question
from helix_tui.core.ask.records import Role, Span, SpanKey, text_hash
from helix_tui.core.ask.tokens import distinct_terms, terms_of, words
from helix_tui.core.embedding import word_vectors
from helix_tui.core.embedding.minilm import Encoder, load_encoder

WINDOW = 8
"""Lines that count as one place."""
SPANS, OF_A_FILE, DOC_SPANS = 60, 6, 20
"""Spans of the search that are looked at, those of one file, and those of documents beside them."""
MOST_RANKED = 24
"""Passages that the encoder compares: what is new to it takes .02 s each."""
MOST_PASSAGES = 12
ALPHA = 2.0
"""Weight of the encoder beside the first order (bench/ask.md)."""
COMPARED = 200
"""Characters around its best line by which a passage is compared: some fifty tokens."""
ASKED = 400
LONG_LINE = 400
OPENING = 24
"""Lines of an introduction that are quoted."""
NEAR = 1.0
"""Weight of a window's nearness in meaning beside the words that it covers."""
_WORTH: Mapping[Role, float] = {"source": 1.0, "doc": 0.9, "record": 0.5, "example": 0.6, "config": 0.6, "test": 0.45}
_OTHER = 0.4
"""Weight of a file's role: tests and data say the words without what they mean."""
_STEP = 3
"""Decimals of a similarity that count: the others differ between machines."""


class Passage(Struct, frozen=True):
    """A run of lines that answers, as quoted."""

    span: Span
    """What is quoted."""
    found: Span
    """The span from which it was cut: the evidence."""
    score: float
    """By its words, before the encoder."""
    covered: float
    """The share of the question's words, by weight, that it has with its heading, 0 to 1."""
    line: int
    """Number of the line that has most of them."""
    likeness: float | None = None
    """Cosine with the question; None without an encoder."""


def passages_for(
    index: RepositoryIndex, question: Question, more: Iterable[Span] = (), skip: frozenset[str] = frozenset()
) -> tuple[Passage, ...]:
    """The best passages for a question, without overlaps and copies; empty if it has no words.

    Args:
        index: the repository.
        question: what is asked.
        more: spans that the loop found besides.
        skip: files that guide the search but never answer.
    """
    weights = {term: index.rarity(term) for term in sorted(_asked(question))}
    if not weights:
        return ()
    spans: dict[SpanKey, Span] = {span.key: span for span in more}
    for found in (
        index.search(question, spans=SPANS, per_file=OF_A_FILE),
        index.search(question, spans=DOC_SPANS, roles=("doc",)),
    ):
        for span in found.spans:
            if span.key not in spans or span.score > spans[span.key].score:
                spans[span.key] = span
    meant = word_vectors.vectors([_terms(" ".join([*question.words, *question.names]))])[0]
    standing = _standings(spans.values())
    judged = [
        _judge(index, span, weights, meant, standing[span.key]) for span in spans.values() if span.file not in skip
    ]
    ordered = sorted((one for one in judged if one.covered > 0), key=lambda one: (-one.score, one.span.key))
    return _by_meaning(index, question, _distinct(ordered, MOST_RANKED))[:MOST_PASSAGES]


def opening_of(span: Span) -> Passage:
    """The first lines of what introduces the repository, as a passage."""
    text = "\n".join(span.text.split("\n")[:OPENING]).rstrip("\n")
    return Passage(replace(span, end=span.start + text.count("\n"), text=text, hash=text_hash(text)), span, 1.0, 1.0, 1)


def _asked(question: Question) -> frozenset[str]:
    """The terms of what is asked about, without those of words that only ask."""
    return frozenset(distinct_terms([*question.words, *question.names, *question.quoted, *question.paths]))


def _standings(spans: Collection[Span]) -> dict[SpanKey, float]:
    """Each span's score as a share of the best one of its kind: files by reciprocal ranks, records by their words."""
    best = {
        records: max((span.score for span in spans if (span.role == "record") == records), default=0.0) or 1.0
        for records in (False, True)
    }
    return {span.key: span.score / best[span.role == "record"] for span in spans}


def _terms(text: str) -> list[str]:
    return [term for word in words(text[:LONG_LINE]) for term in terms_of(word)]


def _judge(
    index: RepositoryIndex, span: Span, weights: Mapping[str, float], meant: np.ndarray, standing: float
) -> Passage:
    """The best window of a span, cut as it would be quoted, with its score."""
    total = sum(weights.values())

    def share(terms: Iterable[str]) -> float:
        return sum(weights[term] for term in sorted(terms)) / total

    lines = span.text.split("\n")
    terms = [_terms(line) for line in lines]
    said = [weights.keys() & set(each) for each in terms]
    # a record is named by its id, a file's path says less than its words
    head = weights.keys() & distinct_terms([span.header, span.file if span.role == "record" else ""])
    near = _nearness(word_vectors.sums([_terms(span.header), *terms]), meant)
    best, begin = -1.0, 0
    for at in range(max(1, len(lines) - WINDOW + 1)):
        window = set().union(*said[at : at + WINDOW])
        score = 0.5 * share(window) + 0.5 * share(window | head) + NEAR * near[at]
        # the first of equal windows wins, whatever the last digit of a sum is on this machine
        if score > best + 1e-9:
            best, begin = score, at
    line = max(range(begin, min(begin + WINDOW, len(lines))), key=lambda at: (share(said[at]), -at))
    whole = share(head.union(*said))
    score = 0.6 * best + 0.25 * whole + 0.15 * share(head) + 0.35 * standing
    cut = _cut(index, span, begin, line)
    covered = share(head | (weights.keys() & distinct_terms(cut.text.split("\n"))))
    return Passage(cut, span, round(score * _WORTH.get(span.role, _OTHER), 6), round(covered, 4), span.start + line)


def _nearness(sums: np.ndarray, meant: np.ndarray) -> list[float]:
    """For each window of lines, with the heading before them, its cosine with what is meant, not below 0."""
    head, lines = sums[0], np.vstack([np.zeros_like(sums[:1]), np.cumsum(sums[1:], axis=0)])
    first = np.arange(max(1, len(lines) - WINDOW))
    windows = lines[np.minimum(first + WINDOW, len(lines) - 1)] - lines[first] + head
    alike: list[float] = np.round(np.clip(word_vectors.unit(windows) @ meant, 0.0, None), _STEP).tolist()
    return alike


def _cut(index: RepositoryIndex, span: Span, begin: int, line: int) -> Span:
    """The unit around a window of a span that begins at index ``begin``; ``line`` is its best line."""
    first, best = span.start - 1 + begin, span.start - 1 + line
    last = min(first + WINDOW, span.end) - 1
    lines = index.lines(span.file)
    header = span.header
    if len(lines) < span.end:
        # a commit, or a file that has become shorter since it was read
        own, before = span.text.split("\n"), span.start - 1
        start, end = cut_document(own, first - before, last - before)
        text = "\n".join(own[start : end + 1])
        start, end = start + before, end + before
    else:
        if span.role in ("doc", "record") or span.kind == "section":
            start, end = cut_document(lines, first, last)
        else:
            around = [one for one in index.definitions_in(span.file) if one.start <= best + 1 <= one.end > one.start]
            around.sort(key=lambda one: one.end - one.start)
            start, end = cut_code(lines, first, last, [(one.start - 1, one.end - 1) for one in around])
            # named after the largest definition whose first line is quoted
            inside = [one.header for one in around if one.start - 1 >= start]
            header = inside[-1] if inside else around[0].header if around else header
        text = "\n".join(lines[start : end + 1])
    return Span(
        span.file, start + 1, end + 1, span.kind, header, text, text_hash(text), span.score, span.channels, span.role
    )


def _distinct(ordered: Iterable[Passage], most: int) -> list[Passage]:
    """The first passages that neither overlap nor repeat a better one."""
    passages: list[Passage] = []
    texts: set[str] = set()
    for one in ordered:
        span = one.span
        overlaps = any(
            other.span.file == span.file and other.span.start <= span.end and span.start <= other.span.end
            for other in passages
        )
        said = " ".join(span.text.split())
        if not overlaps and said not in texts:
            passages.append(one)
            texts.add(said)
        if len(passages) >= most:
            break
    return passages


# -- the encoder ---------------------------------------------------------------------------------------------


def encoder() -> Encoder | None:
    """The encoder of this process, or None without its weights."""
    return load_encoder().encoder


def _by_meaning(index: RepositoryIndex, question: Question, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    model = encoder()
    if model is None or len(passages) < 2:
        return tuple(passages)
    asked = model.encode([question.text[:ASKED]])[0].astype(np.float64)
    vectors = _vectors(index, model, [_compared(passage) for passage in passages])
    alike = np.round((vectors * asked).sum(axis=1), _STEP)
    order = _z(np.array([passage.score for passage in passages])) + ALPHA * _z(alike)
    ranked = sorted(range(len(passages)), key=lambda at: (-round(float(order[at]), 6), at))
    return tuple(replace(passages[at], likeness=float(alike[at])) for at in ranked)


def _z(values: np.ndarray) -> np.ndarray:
    """How far each value is above the average, in standard deviations."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _compared(one: Passage) -> str:
    """The characters of a passage around its best line."""
    lines = one.span.text.split("\n")
    before = len("\n".join(lines[: max(0, one.line - one.span.start)]))
    start = max(0, before - COMPARED // 2)
    return one.span.text[start : start + COMPARED]


def _vectors(index: RepositoryIndex, model: Encoder, texts: Sequence[str]) -> np.ndarray:
    """float64 (texts, dimensions); a text met before has its stored vector."""
    keys = [hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32] for text in texts]
    found = index.vectors(keys)
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    if new:
        # apart: a text then ranks the same in every question
        made = model.encode_apart(list(new.values()))
        rows = [(key, vector.astype("<f2").tobytes()) for key, vector in zip(new, made, strict=True)]
        index.keep_vectors(rows)
        found.update(rows)
    # a new vector is read back from its half floats, so that it ranks as it will from the database
    return np.array([np.frombuffer(found[key], "<f2").astype(np.float64) for key in keys])
