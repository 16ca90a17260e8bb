"""Files that the question names outright: by path, by stack trace, by dotted module, or by their name's
words.
"""

from __future__ import annotations

import numpy as np

from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.view import IndexView, steps_of
from helix_tui.core.ask.tokens import stem

_SHORTEST_PREFIX = 4
_PREFIX_HIT = 0.7
_OTHER_FOLDER = 0.3
"""What a file counts for whose name alone is that of a path."""


def mentioned(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files whose path ends like one in the question, float64 (files,); a name that fits many counts for
    less.
    """
    scores = np.zeros(len(view))
    for path in question.paths:
        _give(scores, *_likely(path, view), 1.0)
    return scores


def in_traces(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files of stack traces, float64 (files,); the innermost frame counts most."""
    scores = np.zeros(len(view))
    for at, path in enumerate(question.frames):
        _give(scores, *_likely(path, view), 0.5 ** min(at, 4))
    return scores


def _likely(path: str, view: IndexView) -> tuple[list[int], float]:
    """The files that a path names and how sure that is: two paths that differ in a folder are two files."""
    files = view.files_ending(path)
    whole = "/" + "/".join(steps_of(path))
    sure = [at for at in files if whole.endswith(f"/{view.paths[at].lower()}")]
    ends = [at for at in files if f"/{view.paths[at].lower()}".endswith(whole)]
    return (sure or ends, 1.0) if sure or ends else (files, _OTHER_FOLDER)


def by_module(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files that a dotted name leads to, float64 (files,): ``package.module.Class`` to
    ``package/module.py``.
    """
    scores = np.zeros(len(view))
    for name in question.modules:
        steps = name.split(".")
        for size in range(len(steps), 0, -1):
            found = view.files_of_module("/".join(steps[:size]))
            if found and (size > 1 or len(found) == 1):
                _give(scores, found, 1.0, size / len(steps))
                break
    return scores


def by_stem(question: IndexQuery, view: IndexView) -> np.ndarray:
    """The share of each file name's words that the question says, float64 (files,)."""
    said = {term for term, _ in question.weights}
    begun = {term[:size] for term in said for size in range(_SHORTEST_PREFIX, len(term))}
    index = view.path_index
    hits = np.array([_hit(word, said, begun) for word in index.words], np.float64)
    sums = np.bincount(index.file_of_word, weights=hits[index.word_of], minlength=len(view))
    sizes = np.bincount(index.file_of_word, minlength=len(view))
    return sums / np.maximum(sizes, 1)


def _hit(word: str, said: set[str], begun: set[str]) -> float:
    """Whether a word of a file's name is said; less where only one of the two begins with the other."""
    if stem(word) in said:
        return 1.0
    if word[:_SHORTEST_PREFIX] not in begun and word[:_SHORTEST_PREFIX] not in said:
        return 0.0
    if word in begun or any(word[:size] in said for size in range(_SHORTEST_PREFIX, len(word))):
        return _PREFIX_HIT
    return 0.0


def _give(scores: np.ndarray, files: list[int], sure: float, weight: float) -> None:
    for at in files:
        scores[at] = max(scores[at], sure * weight / len(files) ** 0.5)
