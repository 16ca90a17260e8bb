"""What a file is about, compared with what the question is about: one vector a file (all-MiniLM-L6-v2).

A file's digest is its folders, its opening comment and the names that it defines; encoding whole chunks
would take minutes and was not better. The channel speaks only where every file has its vector, and only in
repositories of at most `MOST_FILES` files, so that the same tree gives the same answer however far an index
has come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np

from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.database import Database
from helix_tui.core.ask.parse.pieces import Pieces
from helix_tui.core.ask.records import Role
from helix_tui.core.ask.tokens import parts
from helix_tui.core.embedding import DIMENSIONS, Encoder, load_encoder

MOST_FILES = 400
DIGEST = 240
"""Characters of a digest: some sixty tokens."""
QUESTION = 400
_SILENT: frozenset[Role] = frozenset({"data", "config"})
_AT_ONCE = 32
_STEP = 3
"""Decimals of a likeness that count: the rest differs from machine to machine."""


@cache
def encoder() -> Encoder | None:
    """The encoder of this process; None where there are no weights."""
    return load_encoder().encoder


def speaks_for(role: Role) -> bool:
    """Whether files of a role get a vector."""
    return role not in _SILENT


def digest(path: str, pieces: Pieces) -> str:
    """What a file is about, in words."""
    steps = path.split("/")
    place = " ".join(word for step in steps[-3:] for word in parts(step.partition(".")[0]))
    names = [" ".join(parts(one.name)) for one in pieces.definitions if _tells(one.name, one.kind)]
    names += [title.text for title in pieces.titles]
    return f"{place}. {pieces.summary[: DIGEST // 2]}. {', '.join(dict.fromkeys(names))}"[:DIGEST]


def _tells(name: str, kind: str) -> bool:
    return kind not in ("field", "constant") and not name.startswith("__")


class Meanings:
    """The vectors of a view's files."""

    def __init__(self, vectors: np.ndarray, heard: np.ndarray) -> None:
        self._vectors = vectors
        self._heard = heard

    def score(self, question: IndexQuery) -> np.ndarray:
        """How far each file's likeness lies above the average, in standard deviations; float64 (files,)."""
        scores = np.zeros(len(self._heard))
        asked = _encoded(question.text[:QUESTION])
        if asked is None:
            return scores
        alike = np.round((self._vectors * asked).sum(axis=1), _STEP)
        spread = float(alike.std())
        if spread > 0:
            scores[self._heard] = np.clip((alike - alike.mean()) / spread, 0.0, None)
        return scores


def gather(
    database: Database,
    digests: Sequence[str | None],
    report: Callable[[int, int], None],
    stop: Callable[[], bool],
) -> Meanings | None:
    """The vectors of some files, those that are not known made now; None where some are missing.

    ``digests`` are in order of file, None for a file that gets no vector.
    """
    wanted = [text for text in digests if text is not None]
    if not wanted or len(wanted) > MOST_FILES:
        return None
    known = database.meanings()
    missing = sorted({text for text in wanted if _key(text) not in known})
    model = encoder() if missing else None
    if missing and model is None:
        return None
    for at in range(0, len(missing), _AT_ONCE):
        if stop() or model is None:
            return None
        report(at, len(missing))
        # one text at a time: a batch's vectors depend in their last digits on what else is in it
        rows = [(_key(text), model.encode([text])[0].astype("<f2").tobytes()) for text in missing[at : at + _AT_ONCE]]
        database.add_meanings(rows)
        known.update(rows)
    packed = b"".join(known[_key(text)] for text in wanted)
    vectors = np.frombuffer(packed, "<f2").reshape(len(wanted), DIMENSIONS).astype(np.float64)
    return Meanings(vectors, np.array([text is not None for text in digests]))


@lru_cache(256)
def _encoded(text: str) -> np.ndarray | None:
    model = encoder()
    return None if model is None else model.encode([text])[0].astype(np.float64)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
