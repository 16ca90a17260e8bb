"""Word vectors, for search by meaning without weights: a text is the sum of its words.

``words.npy`` beside this file has a vector for each of 18,000 stems, so made that the sum of a text's words points
where all-MiniLM-L6-v2 (Apache-2.0) puts the whole text. `bench.word_vectors` makes it, without a look at any memory
or question (docs/decisions/0030). The file is mapped when first asked for, so that a text costs the pages of its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

DIMENSIONS = 128
STEM_BYTES = 16
"""Longer stems are names of code, which have no meaning to look up."""
TABLE = np.dtype([("stem", f"S{STEM_BYTES}"), ("vector", "i1", (DIMENSIONS,))])
"""A row of the table; rows are in the order of their stems. A vector's length is its word's weight."""

NEAREST = 8
"""Maximum words that may match one."""
CLOSE = 0.5
"""Minimum cosine of such a word."""


@cache
def _table() -> tuple[NDArray[np.bytes_], NDArray[np.int8]]:
    table = np.load(Path(__file__).with_name("words.npy"), mmap_mode="r")
    # stems are copied out: among the mapped rows nearly each of a search's 14 steps would read a page of the file
    return np.ascontiguousarray(table["stem"]), table["vector"]


def vectors(texts: Sequence[Sequence[str]]) -> Array:
    """A unit vector for each text, given as its stems, shape (n, 128); zeros where no word is known."""
    return unit(sums(texts))


def sums(texts: Sequence[Sequence[str]]) -> Array:
    """The sum of each text's word vectors, shape (n, 128): whole numbers, so that sums of sums are exact."""
    stems, rows = _table()
    words = [word for text in texts for word in text]
    places, known = _find(stems, words)
    text_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])[known]
    found = np.zeros((len(texts), DIMENSIONS), np.float32)
    np.add.at(found, text_of, rows[places[known]].astype(np.float32))
    return found


@lru_cache(maxsize=4_096)
def near(stem: str) -> Mapping[str, float]:
    """The words nearest in meaning to one, each with its cosine; none for a word that is not known."""
    stems, _ = _table()
    places, known = _find(stems, [stem])
    if not known.any():
        return {}
    whole = _all_units()
    alike = whole @ whole[places[0]]
    alike[places[0]] = 0.0
    best = np.argpartition(-alike, NEAREST)[:NEAREST]
    return {stems[place].decode(): float(alike[place]) for place in best if alike[place] >= CLOSE}


@cache
def _all_units() -> Array:
    return unit(_table()[1].astype(np.float32))


def _find(stems: NDArray[np.bytes_], words: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The positions of words in the table, and which of them are in it."""
    # a word that is too long or not ASCII becomes the empty one, which no row has
    sought = np.asarray([word.encode() if word.isascii() and len(word) <= STEM_BYTES else b"" for word in words], "S")
    places = np.minimum(np.searchsorted(stems, sought), len(stems) - 1)
    return places, stems[places] == sought


def unit(rows: Array) -> Array:
    """Each row at length 1, or zeros."""
    found: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found
