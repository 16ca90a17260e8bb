"""The table of words close in meaning is made as `kin_of` reads it."""

from __future__ import annotations

import numpy as np

from bench.related_words import one_word_a_stem, table


def test_a_line_is_a_stem_and_what_is_near() -> None:
    vectors = np.array([[1, 0, 0.1], [0.9, 0.1, 0.1], [-1, 1, 0], [-1, -1, 0]], dtype=np.float32)
    made = dict(line.split(" ", 1) for line in table(["lock", "mutex", "tree", "sea"], vectors).split("\n"))
    assert made == {"lock": "mutex99", "mutex": "lock99"}


def test_the_first_word_of_a_stem_stands_for_it() -> None:
    assert one_word_a_stem(["locks", "locked", "Tree", "naïve", "a-b"]) == {"lock": "locks", "tree": "tree"}
