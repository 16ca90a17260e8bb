"""What every operation of the memory works on: one open database, an encoder or none, a clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlite_utils import Database

from helix_tui.core.embedding import Encoder
from helix_tui.core.ground.time import NS
from helix_tui.core.memory.records import Mode
from helix_tui.core.memory.store.database import writing
from helix_tui.core.memory.store.index import MemoryIndex

_MOST_KEPT = 512

WINDOW_DAYS = 7.0
"""The window of promotion by default (docs/formats/memory.md §6)."""


def window_days(env: Mapping[str, str] | None = None) -> float:
    """The window as HELIX_SYSTEMIC_DAYS sets it; the default where it is no number of days."""
    text = (os.environ if env is None else env).get("HELIX_SYSTEMIC_DAYS", "")
    try:
        days = float(text) if text else WINDOW_DAYS
    except ValueError:
        return WINDOW_DAYS
    return days if 0 < days < 100_000 else WINDOW_DAYS


Vector = NDArray[np.float32]


class Base(Struct):
    """One open memory."""

    path: Path
    database: Database
    encoder: Encoder | None
    detail: str
    """Which encoder this is, or why there is none."""
    clock: Callable[[], int]
    read_only: bool
    index: MemoryIndex
    window_days: float = WINDOW_DAYS
    """Days within which three occurrences make a failure systemic (docs/decisions/0013)."""
    _encoded: dict[str, Vector] = {}

    @property
    def mode(self) -> Mode:
        """How texts are compared."""
        return "keyword" if self.encoder is None else "semantic"

    @property
    def model(self) -> str:
        """The model of the vectors that can be compared; empty for none."""
        return "" if self.encoder is None else self.encoder.model_id

    def now(self) -> int:
        """The instant to judge by, nanoseconds."""
        return self.clock()

    def now_seconds(self) -> float:
        """The instant to judge by, seconds."""
        return self.clock() / NS

    def encode(self, texts: Sequence[str]) -> list[Vector] | None:
        """A unit vector for each text, None without an encoder; the latest texts are remembered."""
        if self.encoder is None:
            return None
        new = [text for text in dict.fromkeys(texts) if text not in self._encoded]
        if new:
            if len(self._encoded) + len(new) > _MOST_KEPT:
                known = {text: self._encoded[text] for text in texts if text in self._encoded}
                self._encoded = known
            self._encoded |= zip(new, self.encoder.encode(new), strict=True)
        return [self._encoded[text] for text in texts]

    @contextmanager
    def reading(self) -> Iterator[MemoryIndex]:
        """The index as of one state of the database, which stays as it is inside."""
        connection = self.database.conn
        nested = connection.in_transaction
        if not nested:
            connection.execute("BEGIN")
        try:
            self.index.refresh(self.database)
            yield self.index
        finally:
            if not nested and connection.in_transaction:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[MemoryIndex]:
        """The index inside one write transaction: no other process can write until it ends."""
        try:
            with writing(self.database):
                self.index.refresh(self.database)
                yield self.index
        except BaseException:  # a ctrl+c rolls the transaction back as well; it is raised again
            self.index.forget()  # it may have read what is now taken back
            raise
