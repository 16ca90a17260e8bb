"""BM25 over chunks, whole files, names (definitions, headings) and paths (docs/formats/ask.md §8).

weight · idf · tf·(k1+1) / (tf + k1·(1 - b + b·length/average)), idf = ln(1 + (N - n + ½)/(n + ½)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.segment import NAME, FieldLengths
from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.tokens import STOP_WORDS, stem, words

K1 = 1.2
B = 0.75
LONG_WORD = 6
SHORT_FORM = 3
"""Letters of a word that has a short form, of the short form, and how many it leaves out, at least."""
LEAST_FILES = 2
MOST_SHARE = 0.08
"""Files that have a short form among their names: one alone may be chance, a word of many tells none of them."""
BEST = (1.0, 0.5)
"""What the best chunks of a file count for."""


class Lexical(Struct, frozen=True):
    """Scores by words. The first four are float64 (files,), the last float64 (chunks,)."""

    best: np.ndarray
    whole: np.ndarray
    names: np.ndarray
    path: np.ndarray
    chunks: np.ndarray


def score(weights: Sequence[tuple[str, float]], view: IndexView) -> Lexical:
    """The lexical scores of every file, for (term, weight) in order of term."""
    chunks = np.zeros(len(view.chunks.lengths))
    whole = np.zeros(len(view.whole.lengths))
    names = np.zeros(len(view.names.lengths))
    for term, weight in weights:
        numbers, counts = view.postings(term)
        if len(numbers):
            _add(chunks, view.chunks, numbers, counts, weight)
            rows, sums = _by_row(view.row_of[numbers], counts)
            _add(whole, view.whole, rows, sums, weight)
        rows, counts = view.postings(NAME + term)
        if len(rows):
            _add(names, view.names, rows, counts, weight)
    best = best_chunks(chunks, view)
    return Lexical(best[view.row], whole[view.row], names[view.row], paths(weights, view), chunks)


def best_chunks(chunks: np.ndarray, view: IndexView) -> np.ndarray:
    """Per row the sum of its best chunks, each further one counting for less."""
    best = np.zeros(len(view.whole.lengths))
    hits = np.flatnonzero(chunks > 0)
    if not len(hits):
        return best
    order = hits[np.lexsort((-chunks[hits], view.row_of[hits]))]
    rows = view.row_of[order]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    for at, share in enumerate(BEST):
        of_rank = rank == at
        best[rows[of_rank]] += share * chunks[order[of_rank]]
    return best


def paths(weights: Sequence[tuple[str, float]], view: IndexView) -> np.ndarray:
    """BM25 over the words of each path: its name counts twice, its last three folders once."""
    index = view.path_index
    scores = np.zeros(len(view))
    for term, weight in weights:
        found = index.postings.get(term)
        if found is not None:
            _add(scores, index.field, found[0], found[1], weight)
    return scores


def shortened(question: IndexQuery, view: IndexView) -> np.ndarray:
    """What names and paths say in short of the question's words, float64 (files,): ``expr`` of "expression".

    A short form is the beginning of a long word that names in this repository have, and not most of them.
    """
    said = {term for term, _ in question.weights}
    forms: set[str] = set()
    for word in {found.lower() for found in words(question.title)}:
        if not word.isalpha() or len(word) < LONG_WORD or word in STOP_WORDS:
            continue
        for size in range(SHORT_FORM, len(word) - SHORT_FORM + 1):
            form = word[:size]
            files = len(view.postings(NAME + form)[0]) if form not in STOP_WORDS and stem(form) not in said else 0
            if LEAST_FILES <= files <= max(2 * LEAST_FILES, MOST_SHARE * len(view)):
                forms.add(form)
    found = score([(form, 1.0) for form in sorted(forms)], view) if forms else None
    total = np.zeros(len(view))
    for scores in (found.names, found.path) if found is not None else ():
        most = scores.max(initial=0.0)
        total += scores / most if most > 0 else scores
    return total


def _by_row(rows: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of chunks summed by row; the chunks of a row stand together."""
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return rows[begins], np.add.reduceat(counts, begins)


def _add(scores: np.ndarray, field: FieldLengths, units: np.ndarray, counts: np.ndarray, weight: float) -> None:
    found = len(units)
    idf = np.log(1.0 + (field.count - found + 0.5) / (found + 0.5))
    norm = K1 * (1.0 - B + B * field.lengths[units] / field.average)
    scores[units] += weight * idf * counts * (K1 + 1.0) / (counts + norm)
