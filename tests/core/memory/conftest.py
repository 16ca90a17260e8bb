"""A memory in a temporary folder, with an encoder whose geometry the test chooses, and a clock it sets."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from helix_tui.core.embedding.minilm import Encoder, Loaded
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.provenance import Teacher

START = parse_now("2026-06-01T12:00:00Z")
DAY = 86_400 * NS


class Plane(Encoder):
    """An encoder for tests: texts lie where `put` says, others far from all but themselves."""

    def __init__(self, model_id: str = "plane-1", dimensions: int = 384) -> None:
        self.model_id = model_id
        self.encoded: list[str] = []
        self._dimensions = dimensions
        self._known: dict[str, NDArray[np.float32]] = {}

    def put(self, text: str, like: str, cosine: float) -> None:
        """Place a text at a cosine from another one, in a direction of its own."""
        base = self._vector(like)
        away = self._own(text)
        away = away - (away @ base) * base
        away /= np.linalg.norm(away)
        self._known[text] = (cosine * base + np.sqrt(1 - cosine**2) * away).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, dimensions)."""
        self.encoded += texts
        if not texts:
            return np.zeros((0, self._dimensions), np.float32)
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> NDArray[np.float32]:
        if text not in self._known:
            # a trigger lies where a text that begins with it was put
            longer = (vector for known, vector in self._known.items() if known.startswith(f"{text} "))
            self._known[text] = next(longer, self._own(text))
        return self._known[text]

    def _own(self, text: str) -> NDArray[np.float32]:
        vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self._dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def forward(self, days: float) -> None:
        """Let days pass."""
        self.now += int(days * DAY)


Opener = Callable[..., MemoryStore]


@pytest.fixture
def plane() -> Plane:
    return Plane()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opener(tmp_path: Path, clock: Clock) -> Iterator[Opener]:
    """Open memories; all are closed at the end."""
    opened: list[MemoryStore] = []

    def make(
        encoder: Encoder | Loaded | None = None,
        path: Path | None = None,
        *,
        read_only: bool = False,
        window_days: float = 7,
        teacher: Teacher = "person",
    ) -> MemoryStore:
        memory = open_memory(
            path or tmp_path / ".helix" / "helix.db",
            encoder,
            read_only=read_only,
            clock=clock,
            busy_seconds=30,
            window_days=window_days,
            teacher=teacher,
        )
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(opener: Opener, plane: Plane) -> MemoryStore:
    """A memory with the test's encoder."""
    return opener(plane)


@pytest.fixture
def words_only(opener: Opener) -> MemoryStore:
    """A memory without an encoder."""
    return opener(Loaded(None, "no weights here", "get some"))


def name_of(memory: MemoryStore, trigger: str, resolution: str = "do it otherwise", type: str = "failure") -> str:
    """Store something and return its name."""
    stored = memory.store(trigger, resolution, type)
    assert stored.status == "added", stored
    return stored.name
