"""Makes the vectors of words that search without weights uses (``core/embedding/words.npy``).

    python -m bench.word_vectors WORDS TEXTS OUT.npy

``WORDS`` has a word and how often it occurs on a line, the word that stands for its stem first; ``TEXTS`` has a
sentence a line. The table in the package came from whole words of the encoder's own vocabulary, the commonest ones of
descriptions of published packages, and 14,497 sentences of such descriptions, of commit messages and of documents of
public repositories. Needs the weights of all-MiniLM-L6-v2 (Apache-2.0), and some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.embedding.word_vectors import DIMENSIONS, STEM_BYTES, TABLE
from helix_tui.core.memory.words import stem, telling, words

Array = NDArray[np.float32]

RIDGE = 0.5
"""Holds the map from words to texts small."""
OWN = 1.0
"""Holds each word near to where the map puts it: of a rare one few texts tell."""
ROUNDS = 12


class Bags:
    """Texts as sums of words: a sparse matrix with a row a text, and its transpose."""

    def __init__(self, texts: Sequence[Sequence[int]], weight: Array, start: Array) -> None:
        """``texts`` are places of words, none of them empty; ``start`` the vectors before anything is learnt."""
        self.words = np.concatenate([np.asarray(text, np.intp) for text in texts])
        self.text = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        self.first = np.flatnonzero(np.r_[True, np.diff(self.text) > 0])
        length = np.linalg.norm(np.add.reduceat(start[self.words], self.first), axis=1)
        self.share = (1 / np.maximum(length, 1e-6)).astype(np.float32)[self.text, None]
        self.gain = self.share * weight[self.words, None]
        self.order = np.argsort(self.words, kind="stable")
        ordered = self.words[self.order]
        self.run = np.flatnonzero(np.r_[True, np.diff(ordered) > 0])
        self.seen = ordered[self.run]
        self.size = len(start)

    def sums(self, rows: Array) -> Array:
        """Of the words of each text."""
        return np.add.reduceat(rows[self.words] * self.share, self.first)

    def weighted(self, rows: Array) -> Array:
        """The same, each word by its weight."""
        return np.add.reduceat(rows[self.words] * self.gain, self.first)

    def back(self, texts: Array) -> Array:
        """The transpose of `weighted`."""
        out = np.zeros((self.size, texts.shape[1]), np.float32)
        out[self.seen] = np.add.reduceat((texts[self.text] * self.gain)[self.order], self.run)
        return out


def learn(alone: Array, counts: Array, texts: Sequence[Sequence[int]], targets: Array, dimensions: int) -> Array:
    """A vector for each word, so that the sum of a text's words points where the encoder puts the text.

    One linear map for all words first, then what each word has of its own, by conjugate gradients.

    Args:
        alone: what the encoder says of each word alone; counts: how often each occurs.
        texts: the places of each text's words, one at least; targets: what the encoder says of it.
    """
    weight = (np.log(1 + counts.sum() / np.maximum(counts, 1)) / 10).astype(np.float32)
    centred = alone - alone.mean(axis=0)
    start = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9) * weight[:, None]
    aim = targets - targets.mean(axis=0)
    aim = aim @ np.linalg.svd(aim, full_matrices=False)[2][:dimensions].T
    bags = Bags(texts, weight, start)
    sums = bags.sums(start)
    ridge = RIDGE * np.eye(sums.shape[1], dtype=np.float32)
    mapped = start @ np.linalg.solve(sums.T @ sums + ridge, sums.T @ aim)
    left = bags.back(aim - bags.sums(mapped))
    own, towards, rest = np.zeros_like(left), left.copy(), (left * left).sum(axis=0)
    for _ in range(ROUNDS):
        ahead = bags.back(bags.weighted(towards)) + OWN * towards
        step = rest / np.maximum((towards * ahead).sum(axis=0), 1e-12)
        own += step * towards
        left = left - step * ahead
        now = (left * left).sum(axis=0)
        towards = left + now / np.maximum(rest, 1e-12) * towards
        rest = now
    learnt: Array = mapped + weight[:, None] * own
    return learnt


def table(stems: Sequence[str], rows: Array) -> NDArray[np.void]:
    """What `word_vectors` reads: stems in their order, vectors in steps of a 127th of nearly the largest figure."""
    step = np.quantile(np.abs(rows), 0.9999) / 127
    made = np.zeros(len(stems), TABLE)
    made["stem"] = [stem.encode("ascii") for stem in stems]
    made["vector"] = np.clip(np.rint(rows / step), -127, 127)
    sorted_rows: NDArray[np.void] = made[np.argsort(made["stem"])]
    return sorted_rows


def one_word_a_stem(lines: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Stem -> the first word that has it and the count of them all; no stop words, no names of code."""
    found: dict[str, tuple[str, int]] = {}
    for line in lines:
        word, _, count = line.lower().partition(" ")
        if word.isascii() and word.isalnum() and telling(word) and len(stem(word)) <= STEM_BYTES:
            first, before = found.get(stem(word), (word, 0))
            found[stem(word)] = first, before + int(count or 1)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table; 1 where there are no weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("words", "texts", "out"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args(arguments)
    encoder = load_encoder().encoder
    if encoder is None:
        print("no weights of all-MiniLM-L6-v2", file=sys.stderr)
        return 1
    known = one_word_a_stem(options.words.read_text("utf-8").splitlines())
    place = {each: number for number, each in enumerate(known)}
    lines = options.texts.read_text("utf-8").splitlines()
    bags = [[place[word] for word in words(line) if word in place] for line in lines]
    kept = [number for number, bag in enumerate(bags) if bag]
    made = learn(
        encoder.encode([word for word, _ in known.values()]),
        np.asarray([count for _, count in known.values()], np.float32),
        [bags[number] for number in kept],
        encoder.encode([lines[number] for number in kept]),
        DIMENSIONS,
    )
    np.save(options.out, table([*known], made))
    print(f"{len(known):,} words, {options.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
