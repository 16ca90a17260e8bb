"""sentence-transformers and the light encoder make the same vectors of the same weights.

Skipped where sentence-transformers is not installed; `make test-semantic` installs it into a venv of its own.
"""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from helix_tui.core.embedding.minilm import Encoder, load_encoder
from helix_tui.core.embedding.weights import find_weights
from helix_tui.core.memory.memory_store import open_memory

pytest.importorskip("sentence_transformers")

TEXTS = [
    "authentication failing silently",
    "auth errors swallowed without logging",
    "Circular import when editing src/auth.py",
    "ImportError: cannot import name 'User' from partially initialized module 'app.models'",
    "a",
    "",
    "   \n\t ",
    "MiXeD CaSe, Ünïcödé, ﬁ ligature, ½",
    "データベース接続がタイムアウトする",
    "🔥 the build is on fire 🔥",
    "def f(x):\n    return {k: v for k, v in x.items() if v is not None}",
    "x" * 400,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    " ".join(["connection pool exhausted under load"] * 12),
    " ".join(f"word{number}" for number in range(600)),
    "The quick brown fox. " * 200,
]


@pytest.fixture(scope="module")
def pair() -> tuple[Encoder, Encoder]:
    """(the light encoder, the encoder of record) on the weights that the venv carries."""
    weights = find_weights(env={"HOME": ""}).weights
    assert weights is not None, "make test-semantic installs the weights"
    found = [load_encoder(choice, folder=weights.folder).encoder for choice in ("light", "sentence-transformers")]
    light, record = found
    assert light is not None
    assert record is not None
    return light, record


def test_vectors_are_the_same_to_three_decimals(pair: tuple[Encoder, Encoder]) -> None:
    light, record = (encoder.encode(TEXTS) for encoder in pair)
    assert light.shape == record.shape == (len(TEXTS), 384)
    assert light.dtype == record.dtype == np.float32
    assert float(np.abs(light - record).max()) < 5e-4
    assert np.allclose(np.linalg.norm(record, axis=1), 1, atol=1e-5)


def test_similarities_are_the_same_to_three_decimals(pair: tuple[Encoder, Encoder]) -> None:
    light, record = (encoder.encode(TEXTS) for encoder in pair)
    assert float(np.abs(light @ light.T - record @ record.T).max()) < 5e-4
    assert float(record[0] @ record[1]) == pytest.approx(0.680, abs=0.001)  # docs/formats/memory.md §9


def test_both_carry_the_same_model_id_because_their_vectors_may_be_compared(
    pair: tuple[Encoder, Encoder], tmp_path: Path
) -> None:
    light, record = pair
    assert light.model_id == record.model_id
    path = tmp_path / "helix.db"
    with open_memory(path, light, teacher="person") as memory:
        name = memory.store("authentication failing silently", "log every auth error").name
        memory.store("the timetable of the ferry has no Sundays", "read the footnotes")
    with open_memory(path, record, teacher="person") as memory:
        found = memory.recall("auth errors swallowed without logging", limit=1).found[0]
        assert (found.memory.name, found.direct) == (name, True)
        assert memory.store("Authentication is failing silently", "log every auth error").status == "merged"
        assert memory.health().without_vector == 0


def test_loading_asks_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("somebody asked the network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    loaded = load_encoder("sentence-transformers")
    assert loaded.encoder is not None, loaded.detail
    assert "sentence-transformers" in loaded.detail
    assert loaded.encoder.encode(["without a wire"]).shape == (1, 384)
