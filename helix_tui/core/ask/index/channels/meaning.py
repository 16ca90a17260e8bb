"""What a file is about, compared with what the question is about: one vector a file (all-MiniLM-L6-v2).

Of a few words, which name a topic, the file's digest is compared: its folders, its opening comment and the names that
it defines. Of a long question, which asks for a place, the passage that says most of it: its header and comments.
Only the files that rank first without it are compared, so that a repository of any size has this channel: what is not
yet known of them is encoded then, and kept under a hash of its text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np

from helix_tui.core.ask.index.store.database import Database
from helix_tui.core.ask.parse.pieces import Pieces
from helix_tui.core.ask.records import Role
from helix_tui.core.ask.tokens import parts
from helix_tui.core.embedding import DIMENSIONS, Encoder, load_encoder

MOST_FILES = 40
MOST_PASSAGES = 30
"""Files that are compared. Forty unknown ones take .8 s."""
FEW_WORDS = 12
DIGEST = 240
PASSAGE = 260
"""Characters of a digest and of a passage: some sixty tokens."""
_COMMENTS = 170
_CODE = (6, 80)
"""Lines and characters of code that stand for a passage without a comment."""
_PROSE = re.compile(r"^\s*(?:#|//|\*|/\*|\"\"\"|''')|^\s*[A-Z][a-z]+ [a-z]")
_MARKS = re.compile(r"^[\s#/*\"']+|[\"*/]+$")
QUESTION = 400
_SILENT: frozenset[Role] = frozenset({"data", "config"})
_HELD = 1_000
"""Vectors in memory: 3 MB."""
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


def passage(path: str, header: str, lines: Sequence[str]) -> str:
    """What a passage is about, in words."""
    place = " ".join(word for step in path.split("/")[-2:] for word in parts(step.partition(".")[0]))
    prose = " ".join(_MARKS.sub("", line) for line in lines if _PROSE.match(line))[:_COMMENTS]
    code = " ".join(line.strip() for line in lines[: _CODE[0]])[: _CODE[1]]
    return f"{place}. {' '.join(parts(header))}. {prose or code}"[:PASSAGE]


def _tells(name: str, kind: str) -> bool:
    return kind not in ("field", "constant") and not name.startswith("__")


class Meanings:
    """The vectors of digests: those held, those kept in the database, and those made now."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """``database`` gives the one that is open: it may be made anew."""
        self._database = database
        self._held: dict[str, np.ndarray] = {}

    def score(self, text: str, digests: Sequence[str]) -> np.ndarray | None:
        """How far each digest's likeness to a text lies above the average, in standard deviations, float64 (digests,);
        None where there is no encoder.
        """
        asked = _encoded(text[:QUESTION])
        if asked is None or not digests:
            return None
        vectors = self._vectors(digests)
        alike = np.round((vectors * asked).sum(axis=1), _STEP)
        spread = float(alike.std())
        return np.clip((alike - alike.mean()) / spread, 0.0, None) if spread > 0 else np.zeros(len(digests))

    def _vectors(self, digests: Sequence[str]) -> np.ndarray:
        """float64 (digests, dimensions)."""
        keys = [_key(text) for text in digests]
        unknown = sorted({key for key in keys if key not in self._held})
        if len(self._held) + len(unknown) > _HELD:
            self._held.clear()
            unknown = sorted(set(keys))
        found = self._database().meanings(unknown)
        texts = dict(zip(keys, digests, strict=True))
        model = encoder()
        made = []
        for key in unknown:
            if key not in found and model is not None:
                # one text at a time: a batch's vectors depend in their last digits on what else is in it
                found[key] = model.encode([texts[key]])[0].astype("<f2").tobytes()
                made.append((key, found[key]))
        self._database().keep_meanings(made)
        self._held.update((key, np.frombuffer(packed, "<f2").astype(np.float64)) for key, packed in found.items())
        silent = np.zeros(DIMENSIONS)
        return np.array([self._held.get(key, silent) for key in keys])


@lru_cache(256)
def _encoded(text: str) -> np.ndarray | None:
    model = encoder()
    return None if model is None else model.encode([text])[0].astype(np.float64)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
