"""Makes the table of words close in meaning that search without an encoder uses (``core/memory/kin.xz``).

    python -m bench.related_words WORDS OUT.xz

``WORDS`` has one word a line, the more frequent first; the table in the package came from the 9,600 commonest stems of
descriptions of published packages. Needs the weights of all-MiniLM-L6-v2 (Apache-2.0).
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.embedding import load_encoder
from helix_tui.core.memory.ranking import stem

NEIGHBOURS = 8
"""How many words stand beside each."""
LEAST = 0.42
"""The cosine from which two words are close."""


def one_word_a_stem(words: Iterable[str]) -> dict[str, str]:
    """Stem -> the first word that has it; only words of ASCII letters and digits."""
    found: dict[str, str] = {}
    for word in words:
        if word.isascii() and word.isalnum():
            found.setdefault(stem(word.lower()), word.lower())
    return found


def table(stems: Sequence[str], vectors: NDArray[np.float32]) -> str:
    """A line a stem with neighbours: each neighbour, the nearest first, with its cosine in hundredths.

    Args:
        vectors: of the stems' words, shape (n, d); their mean is taken from each, which all words share.
    """
    centred = vectors - vectors.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    lines = []
    for place in np.argsort(stems):
        close = centred @ centred[place]
        close[place] = -1.0
        best = np.argsort(-close, kind="stable")[:NEIGHBOURS]
        near = [f"{stems[other]}{min(99, int(close[other] * 100))}" for other in best if close[other] >= LEAST]
        if near:
            lines.append(f"{stems[place]} {' '.join(near)}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Write the table; 1 where there are no weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args(words)
    loaded = load_encoder()
    if loaded.encoder is None:
        print(loaded.detail, file=sys.stderr)
        return 1
    chosen = one_word_a_stem(options.words.read_text("utf-8").split())
    made = table([*chosen], loaded.encoder.encode([*chosen.values()]))
    options.out.write_bytes(lzma.compress(made.encode("ascii"), preset=9))
    print(f"{made.count(chr(10)) + 1:,} words with neighbours, {options.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
