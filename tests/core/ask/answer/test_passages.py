"""The order of passages: by their words, then by the encoder, whose vectors are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from helix_tui.core.ask.answer import passages
from helix_tui.core.ask.answer.passages import MOST_PASSAGES, MOST_RANKED, passages_for
from helix_tui.core.ask.index import database
from helix_tui.core.ask.question import read_question
from helix_tui.core.embedding.minilm import Encoder
from tests.core.ask.test_index import FILES, index_of, make


class CountingEncoder(Encoder):
    """A vector says which letters a text has; how many texts were encoded is counted."""

    model_id = "letters"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        counted = np.array([[text.lower().count(chr(97 + at % 26)) for at in range(384)] for text in texts], np.float32)
        unit: np.ndarray = counted / np.maximum(np.linalg.norm(counted, axis=1, keepdims=True), 1e-9)
        return unit


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> CountingEncoder:
    counting = CountingEncoder()
    monkeypatch.setattr(passages, "encoder", lambda: counting)
    return counting


def test_the_encoder_compares_the_best_few_and_each_only_once(tmp_path: Path, encoder: CountingEncoder) -> None:
    names = [f"lease_{chr(97 + at % 26) * 3}{chr(97 + at // 26) * 2}" for at in range(90)]
    root = make(tmp_path / "r", {f"part/{name}.py": f"def {name}():\n    pass\n" for name in names})
    index = index_of(root)
    question = read_question("where is a lease")
    found = passages_for(index, question)
    assert len(found) == MOST_PASSAGES
    assert len(encoder.texts) == 1 + MOST_RANKED
    assert all(one.likeness is not None for one in found)
    index.close()
    again = index_of(root)
    assert passages_for(again, question) == found
    assert len(encoder.texts) == 2 + MOST_RANKED, "only the question is encoded again"


def test_without_an_encoder_the_order_is_that_of_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passages, "encoder", lambda: None)
    found = passages_for(index_of(make(tmp_path / "r", FILES)), read_question("who renews a lease"))
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(one.likeness is None for one in found)


def test_kept_vectors_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOST_VECTORS", 5)
    held = database.Database(tmp_path / "index.db")
    keys = [f"{turn} {number}" for turn in range(4) for number in range(3)]
    for at in range(0, len(keys), 3):
        held.keep_vectors([(key, b"v") for key in keys[at : at + 3]])
    assert 0 < len(held.vectors(keys)) <= 5


def test_neither_copies_nor_overlaps_are_shown_twice(tmp_path: Path) -> None:
    text = "# Leases\n\nA lease is renewed by its owner, who asks again.\n"
    files = {f"docs/v{n}/guide.md": text for n in range(4)} | {"src/lease.py": "def renew_lease(owner):\n    pass\n"}
    found = passages_for(index_of(make(tmp_path / "r", files)), read_question("who renews a lease"))
    texts = [one.span.text for one in found]
    assert len(texts) == len(set(texts))
    assert {"docs", "src"} == {one.span.file.partition("/")[0] for one in found}


def test_a_passage_shows_its_best_line(tmp_path: Path) -> None:
    lines = [f"    step_{n}()" for n in range(60)] + ["    renew(lease)  # the lease of the owner"]
    root = make(tmp_path / "r", {"long.py": "def run():\n" + "\n".join(lines) + "\n"})
    best = passages_for(index_of(root), read_question("where is the lease of an owner renewed"))[0]
    assert best.span.start <= best.line <= best.span.end
    assert "renew(lease)" in best.span.text
    assert best.found.start <= best.span.start <= best.span.end <= best.found.end
