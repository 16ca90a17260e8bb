"""Fields of BM25: how long their units are, and the one field that is made in memory, of paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helix_tui.core.ask.tokens import count_terms, parts

_SAYS_NOTHING = frozenset({"__init__", "index", "mod", "lib", "main", "doc"})


@dataclass(frozen=True, slots=True)
class FieldLengths:
    """The lengths of one kind of unit (chunk, file, name list) and which of them count."""

    lengths: np.ndarray
    """float64 (n,)."""
    live: np.ndarray
    """bool (n,)."""
    count: int
    average: float

    @classmethod
    def of(cls, lengths: np.ndarray, live: np.ndarray) -> FieldLengths:
        """A field with its statistics over the live units."""
        count = int(live.sum())
        total = int(lengths[live].sum())
        return cls(lengths.astype(np.float64), live, count, max(total / count, 1e-9) if count else 1.0)


@dataclass(frozen=True, slots=True)
class PathIndex:
    """The words of all paths of a view."""

    field: FieldLengths
    postings: dict[str, tuple[np.ndarray, np.ndarray]]
    words: list[str]
    """The words that file names are made of, without endings; a folder's where the name says nothing."""
    word_of: np.ndarray
    """int64: a word of some file's name, by position in `words`…"""
    file_of_word: np.ndarray
    """…and that file."""


def index_paths(files: list[str]) -> PathIndex:
    """The postings of paths, by position in the list."""
    lists: dict[str, tuple[list[int], list[int]]] = {}
    numbers_of: dict[str, int] = {}
    word_of: list[int] = []
    file_of_word: list[int] = []
    lengths = np.zeros(len(files), np.int64)
    for at, path in enumerate(files):
        *folders, name = path.split("/")
        stem = name.partition(".")[0] or name
        counts = count_terms(" ".join((stem, stem, *folders[-3:])))
        lengths[at] = counts.total()
        for word in parts(folders[-1] if stem in _SAYS_NOTHING and folders else stem):
            word_of.append(numbers_of.setdefault(word, len(numbers_of)))
            file_of_word.append(at)
        for term, times in counts.items():
            numbers, tally = lists.setdefault(term, ([], []))
            numbers.append(at)
            tally.append(times)
    packed = {term: (np.array(numbers), np.array(tally, np.float64)) for term, (numbers, tally) in lists.items()}
    return PathIndex(
        FieldLengths.of(lengths, np.ones(len(files), bool)),
        packed,
        list(numbers_of),
        np.array(word_of, np.int64),
        np.array(file_of_word, np.int64),
    )
