"""The table of word vectors is made so that sums of words point where texts do, and is read as it was made."""

from __future__ import annotations

import numpy as np

from bench.word_vectors import learn, one_word_a_stem, table
from helix_tui.core.embedding import word_vectors


def test_sums_of_learnt_words_point_where_the_encoder_puts_the_texts() -> None:
    chance = np.random.default_rng(3)
    alone = chance.normal(size=(40, 12)).astype(np.float32)
    mixed = alone @ chance.normal(size=(12, 12)).astype(np.float32)
    texts = [chance.choice(40, 4, replace=False).tolist() for _ in range(300)]
    targets = np.stack([mixed[text].sum(axis=0) for text in texts]).astype(np.float32)
    learnt = learn(alone, np.ones(40, np.float32), texts[:250], targets[:250], 12)
    centred = targets - targets[:250].mean(axis=0)
    expected = centred[250:] @ centred[250:].T
    got = np.stack([learnt[text].sum(axis=0) for text in texts[250:]])
    assert np.corrcoef((got @ got.T).ravel(), expected.ravel())[0, 1] > 0.95


def test_the_first_word_of_a_stem_stands_for_all_of_them_and_names_of_code_for_none() -> None:
    lines = ["locks 3", "locked 2", "the 9", "Tree 1", "naïve 1", "a-b 1", "antidisestablishmentarianistic 1"]
    assert one_word_a_stem(lines) == {"lock": ("locks", 5), "tree": ("tree", 1)}


def test_rows_stand_in_the_order_of_their_stems() -> None:
    rows = np.eye(2, word_vectors.DIMENSIONS, dtype=np.float32)
    made = table(["tree", "lock"], rows)
    assert made["stem"].tolist() == [b"lock", b"tree"]
    assert made["vector"][:, :2].tolist() == [[0, 127], [127, 0]]
