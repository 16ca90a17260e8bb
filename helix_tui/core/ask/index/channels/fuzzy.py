"""Words that stand nowhere, taken for misspelt names: the nearest defined names by their trigrams."""

from __future__ import annotations

import numpy as np

from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.segment import NAME
from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.tokens import STOP_WORDS, terms_of, words

SHORTEST = 5
LEAST = 0.5
"""Trigram likeness (Dice) below which two names are strangers."""
_NEAREST = 3


def score(question: IndexQuery, view: IndexView) -> np.ndarray:
    """What each file defines that is spelt like an unknown word of the question, float64 (files,)."""
    scores = np.zeros(len(view))
    for word in unknown_words(question, view):
        for likeness, name in nearest(word, view)[:_NEAREST]:
            files = view.files_defining(name, any_case=True)
            for at in files:
                scores[at] += likeness / len(files) ** 0.7
    return scores


def unknown_words(question: IndexQuery, view: IndexView) -> list[str]:
    """The words of a question that stand in no file, in order."""
    found = {word for word in words(question.title) if len(word) >= SHORTEST and word.lower() not in STOP_WORDS}
    return sorted(word for word in found if not any(_known(term, view) for term in terms_of(word)))


def nearest(word: str, view: IndexView) -> list[tuple[float, str]]:
    """(likeness, name) of the defined names spelt most like a word, the likest first."""
    folded = word.lower()
    liked = [(_dice(_trigrams(folded), _trigrams(name)), name) for name in view.names_like(folded)]
    return sorted((pair for pair in liked if pair[0] >= LEAST), key=lambda pair: (-pair[0], pair[1]))


def _known(term: str, view: IndexView) -> bool:
    return len(view.postings(term)[0]) > 0 or len(view.postings(NAME + term)[0]) > 0


def _trigrams(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _dice(one: set[str], two: set[str]) -> float:
    return 2 * len(one & two) / (len(one) + len(two)) if one and two else 0.0
