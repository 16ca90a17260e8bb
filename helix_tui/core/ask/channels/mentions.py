"""Files that the question names outright: by path, by stack trace, by dotted module, or by their name's
words.
"""

from __future__ import annotations

import numpy as np

from helix_tui.core.ask.question import Question
from helix_tui.core.ask.store.view import View
from helix_tui.core.ask.tokens import STOP_WORDS, stem

_SHORTEST_PREFIX = 4


def mentioned(question: Question, view: View) -> np.ndarray:
    """Files whose path ends like one in the question, float64 (files,); a name that fits many counts for
    less.
    """
    scores = np.zeros(len(view))
    for path in question.paths:
        _give(scores, view.files_ending(path), 1.0)
    return scores


def in_traces(question: Question, view: View) -> np.ndarray:
    """Files of stack traces, float64 (files,); the innermost frame counts most."""
    scores = np.zeros(len(view))
    innermost = len(question.frames) - 1
    for at, path in enumerate(question.frames):
        _give(scores, view.files_ending(path), 0.5 ** min(innermost - at, 4))
    return scores


def by_module(question: Question, view: View) -> np.ndarray:
    """Files that a dotted name leads to, float64 (files,): ``package.module.Class`` to
    ``package/module.py``.
    """
    scores = np.zeros(len(view))
    for name in question.modules:
        steps = name.split(".")
        for size in range(len(steps), 0, -1):
            found = view.files_of_module("/".join(steps[:size]))
            if found and (size > 1 or len(found) == 1):
                _give(scores, found, size / len(steps))
                break
    return scores


def by_stem(question: Question, view: View) -> np.ndarray:
    """The share of each file name's words that the question says, float64 (files,)."""
    said = {term for term, _ in question.weights if term not in STOP_WORDS}
    shares: dict[tuple[str, ...], float] = {}
    for words in view.path_index.stems:
        if words not in shares:
            shares[words] = _share(words, said)
    return np.array([shares[words] for words in view.path_index.stems])


def _share(words: tuple[str, ...], said: set[str]) -> float:
    """How much of a file's name is said; a word counts when either begins with the other."""
    if not words:
        return 0.0
    hits = 0.0
    for word in words:
        if stem(word) in said:
            hits += 1.0
        elif len(word) >= _SHORTEST_PREFIX and any(
            len(term) >= _SHORTEST_PREFIX and (term.startswith(word) or word.startswith(term))
            for term in said
        ):
            hits += 0.7
    return hits / len(words)


def _give(scores: np.ndarray, files: list[int], weight: float) -> None:
    for at in files:
        scores[at] = max(scores[at], weight / len(files) ** 0.5)
