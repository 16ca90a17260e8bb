"""The figures and vectors of all memories as arrays, kept in step with the database.

A process loads them once, then reads only what any process, including the plugin, has changed, from ``memory_change``.
Vectors are in one float32 matrix, one row per memory, as many as `MOST_HELD`; vectors of another model are not loaded,
so they cannot be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from sqlite_utils import Database

from helix_tui.core.memory.ranking import Array, RankingEvidence, mean_use
from helix_tui.core.memory.store.rows import MOST_COUNTED, VERIFIED

WHOLE, TRIGGER = "memory_vector", "memory_trigger_vector"
"""Tables of vectors: of trigger and resolution together, and of the trigger alone."""

_COUNTS = """SELECT id, type, coalesce(last_used, created_at), CAST(coalesce(helped, 0) AS REAL),
CAST(coalesce(failed, 0) AS REAL) FROM memory"""
"""An index of ours has all of these columns: so the rows themselves, each with a vector, are not read."""
_COLUMNS = """SELECT json_group_array(id), json_group_array(type),
json_group_array(CAST(coalesce(last_used, created_at) AS TEXT)),
json_group_array(min(1e12, CAST(coalesce(helped, 0) AS REAL))),
json_group_array(min(1e12, CAST(coalesce(failed, 0) AS REAL))) FROM memory"""
"""The same for all memories, one column each: creating and reading five texts takes a third of the time of rows."""

_LIFT = """SELECT memory_id, lift_trials, lift_residual, lift_injected, lift_used FROM memory_extra
WHERE lift_injected > 0"""
_FIGURES = 6
_LOT = 1_000
_FEW = 400
"""Maximum changes for which rows are read one by one; beyond, everything is read again."""
_MOST_GONE = 256
"""Places of removed memories, 3 KB each with both vectors, beyond which everything is read again: otherwise an open
console would keep every removed memory.
"""


MOST_HELD = 50_000
"""Maximum vectors of a table in memory, 77 MB: a recall compares that many within 15 ms (bench/memory_speed). Further
ones are read from the file in batches at each comparison.
"""


class Vectors:
    """One growing float32 matrix of unit rows; a row of zeros means no vector."""

    def __init__(self, table: str, model: str) -> None:
        self.table = table
        self.model = model
        self._rows: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self.present: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._far: dict[int, int] = {}
        """Rows of memories that are not held in memory, by id."""

    def load(self, database: Database, place: dict[int, int], size: int) -> None:
        """Read every vector of the model, up to the limit."""
        self._database = database
        self._far = {memory_id: row for memory_id, row in place.items() if row >= MOST_HELD}
        self._rows, self.present = np.zeros((0, 0), np.float32), np.zeros(size, np.bool_)
        # in small lots: all blobs at once would cost twice their memory, and the time to get it
        for lot in self._lots(min(place, default=0)):
            if not self._rows.size:
                # the most common width: one corrupted row must not decide it
                wide = Counter(len(vector) for _, vector in lot).most_common(1)[0][0] // 4
                self._reserve(size, max(1, wide))
            rows, found = self._fitting(lot, place)
            self.present[rows] = True
            held = sum(row < MOST_HELD for row in rows)  # places go by id here, as the lots do
            run = slice(rows[0], rows[0] + held) if held and rows[held - 1] - rows[0] + 1 == held else rows[:held]
            self._rows[run] = found[:held]

    def update(self, database: Database, memory_id: int, row: int) -> None:
        """Read one memory's vector again."""
        self._database = database
        found = self._read(memory_id)
        self._reserve(row + 1, len(found) if found is not None else 0)
        fits = found is not None and len(found) == self._rows.shape[1]
        self.present[row] = fits
        if row >= MOST_HELD:
            self._far[memory_id] = row
        else:
            self._rows[row] = found if fits and found is not None else 0.0

    def similarities(self, query: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        """Cosine of the query with each of the first ``size`` rows; 0 without a vector."""
        alike = np.zeros(size, np.float32)
        if self._rows.shape[1] != len(query):
            return alike
        alike[:MOST_HELD] = self._rows[: min(size, MOST_HELD)] @ query
        for lot in self._lots(min(self._far)) if self._far else ():
            rows, found = self._fitting(lot, self._far)
            alike[rows] = found @ query
        if not np.isfinite(alike.sum()):  # a corrupted vector
            np.nan_to_num(alike, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        return alike

    def row(self, row: int) -> NDArray[np.float32]:
        """One vector; zeros if there is none."""
        vector: NDArray[np.float32] = self.matrix(np.asarray([row]))[0]
        return vector

    def matrix(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some of the vectors, in the order asked for."""
        chosen: NDArray[np.float32] = self._rows[np.minimum(rows, MOST_HELD - 1)]
        if (beyond := np.flatnonzero(rows >= MOST_HELD)).size:
            ids = {row: memory_id for memory_id, row in self._far.items()}
            for place in beyond:
                found = self._read(ids[int(rows[place])])
                chosen[place] = found if found is not None and len(found) == self._rows.shape[1] else 0.0
        return chosen

    def _lots(self, least: int) -> Iterator[list[tuple[int, bytes]]]:
        """Ids and vectors from an id on, in order."""
        found = self._database.execute(
            f"SELECT memory_id, vector FROM {self.table} WHERE model = ? AND memory_id >= ? ORDER BY memory_id",
            [self.model, least],
        )
        while lot := found.fetchmany(_LOT):
            yield lot

    def _fitting(
        self, lot: Sequence[tuple[int, bytes]], place: dict[int, int]
    ) -> tuple[list[int], NDArray[np.float32]]:
        """Rows and vectors that have a place and the common width."""
        width = self._rows.shape[1]
        fits = [pair for pair in lot if pair[0] in place and len(pair[1]) == width * 4]
        flat = np.frombuffer(b"".join(vector for _, vector in fits), np.float32)
        return [place[memory_id] for memory_id, _ in fits], flat.reshape(-1, width)

    def _read(self, memory_id: int) -> NDArray[np.float32] | None:
        found = self._database.execute(
            f"SELECT vector FROM {self.table} WHERE memory_id = ? AND model = ?", [memory_id, self.model]
        ).fetchone()
        return np.frombuffer(found[0], np.float32) if found else None

    def _reserve(self, size: int, width: int) -> None:
        have, wide = self._rows.shape
        if size <= len(self.present) and (wide or not width):
            return
        # with some spare: memories come one by one, and growing copies everything
        room = size + size // 4 + 64
        grown = np.zeros((max(min(room, MOST_HELD), have), wide or width), np.float32)
        grown[:have, :wide] = self._rows
        self._rows = grown
        self.present = np.concatenate([self.present, np.zeros(max(0, room - len(self.present)), np.bool_)])


class MemoryIndex:
    """All memories of one database, as arrays with one place for each."""

    def __init__(self, model: str | None) -> None:
        """An empty index; ``model`` is that of the vectors to load, None for none."""
        self.seq = -1
        self.size = 0
        self.ids: NDArray[np.int64] = np.zeros(0, np.int64)
        self._types: NDArray[np.int32] = np.zeros(0, np.int32)
        self._codes: dict[object, int] = {}
        """Numbers that stand for types: comparing 50,000 texts takes 2 ms a query."""
        self.alive: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.seconds: Array = np.zeros(0)
        self._figures: Array = np.zeros((_FIGURES, 0))
        self.place: dict[int, int] = {}
        self._vectors = {table: Vectors(table, model) for table in (WHOLE, TRIGGER)} if model else {}
        self._loaded: set[str] = set()

    def refresh(self, database: Database) -> None:
        """Read what any process changed since the last call."""
        newest = database.execute("SELECT coalesce(max(seq), 0) FROM memory_change").fetchone()[0]
        if newest == self.seq:
            return
        changed = []
        if 0 <= self.seq < newest:
            changed = database.execute(
                "SELECT memory_id, gone FROM memory_change WHERE seq > ? ORDER BY seq LIMIT ?", [self.seq, _FEW + 1]
            ).fetchall()
        # asked for one more than `_FEW`, to tell that there are more
        if changed and len(changed) <= _FEW and self._gone <= max(_MOST_GONE, self.size // 4):
            self._apply(database, changed)
        else:
            self._load(database)
        self.seq = newest

    @property
    def _gone(self) -> int:
        """Number of places whose memory is gone."""
        return self.size - int(self.alive[: self.size].sum())

    def forget(self) -> None:
        """Read everything again next time."""
        self.seq = -1

    def vectors(self, database: Database, table: str) -> Vectors | None:
        """The vectors of one table, loaded on first use; None without a model."""
        vector = self._vectors.get(table)
        if vector is not None and table not in self._loaded:
            vector.load(database, self.place, self.size)
            self._loaded.add(table)
        return vector

    def of_type(self, *types: str) -> NDArray[np.bool_]:
        """Whether the memory at each place is of one of these types."""
        here, fits = self._types[: self.size], np.zeros(self.size, np.bool_)
        for name in types:
            fits |= here == self._codes.get(name, -1)
        return fits

    def _code(self, type_: object) -> int:
        return self._codes.setdefault(type_, len(self._codes))

    def evidence(self, relevance: Array, now_seconds: float) -> RankingEvidence:
        """The rankers' input, for every place."""
        helped, failed, trials, residual, injected, used = self._figures[:, : self.size]
        alive = self.alive[: self.size]
        return RankingEvidence(
            relevance=relevance,
            helped=helped,
            failed=failed,
            age_days=(now_seconds - self.seconds[: self.size]) / 86_400,
            trials=trials,
            residual=residual,
            injected=injected,
            used=used,
            mean_use=mean_use(float(injected[alive].sum()), float(used[alive].sum())),
        )

    def _load(self, database: Database) -> None:
        ids, types, times, *counts = map(msgspec.json.decode, database.execute(_COLUMNS).fetchone())
        order = np.argsort(np.asarray(ids, np.int64))  # by id, like the vectors in the file
        self.size = len(order)
        self._reserve(self.size, keep=False)
        self.ids[: self.size] = np.asarray(ids, np.int64)[order]
        self.place = {memory_id: place for place, memory_id in enumerate(self.ids[: self.size].tolist())}
        self.alive[: self.size] = True
        self._types[: self.size] = np.asarray([self._code(kind) for kind in types], np.int32)[order]
        self.seconds[: self.size] = np.asarray(_all_seconds(times))[order]
        figures = np.clip(np.asarray(counts, np.float64), 0.0, MOST_COUNTED)
        self._figures[:2, : self.size] = figures[:, order]
        for query, rows in ((_LIFT, slice(2, None)), (VERIFIED, slice(2))):
            for memory_id, *found in database.execute(query):
                if memory_id in self.place:
                    self._figures[rows, self.place[memory_id]] = found
        for table in self._loaded:
            self._vectors[table].load(database, self.place, self.size)

    def _apply(self, database: Database, changed: Sequence[tuple[int, int]]) -> None:
        for memory_id, gone in changed:
            row = None
            if not gone:
                row = database.execute(f"{_COUNTS} WHERE id = ?", [memory_id]).fetchone()
            place = self.place.get(memory_id)
            if row is None:
                if place is not None:
                    self.alive[place] = False
                continue
            if place is None:
                place = self.place[memory_id] = self.size
                self.size += 1
                self._reserve(self.size, keep=True)
            self._put(place, row)
            lift, verified = (
                database.execute(f"{query} AND memory_id = ?", [memory_id]).fetchone() for query in (_LIFT, VERIFIED)
            )
            self._figures[2:, place] = lift[1:] if lift else 0.0
            if verified:
                self._figures[:2, place] = verified[1:]
            for table in self._loaded:
                self._vectors[table].update(database, memory_id, place)

    def _put(self, place: int, row: Sequence[Any]) -> None:
        self.ids[place], self._types[place], self.alive[place] = row[0], self._code(row[1]), True
        self.seconds[place] = _all_seconds([row[2]])[0]
        self._figures[:2, place] = np.clip(row[3:], 0.0, MOST_COUNTED)

    def _reserve(self, size: int, *, keep: bool) -> None:
        have = len(self.ids)
        if keep and size <= have:
            return
        room = size + size // 4 + 64
        old = self.ids, self._types, self.alive, self.seconds, self._figures
        self.ids, self._types = np.zeros(room, np.int64), np.zeros(room, np.int32)
        self.alive, self.seconds = np.zeros(room, np.bool_), np.zeros(room)
        self._figures = np.zeros((_FIGURES, room))
        if keep:
            self.ids[:have], self._types[:have], self.alive[:have], self.seconds[:have] = old[:4]
            self._figures[:, :have] = old[4]


def _all_seconds(texts: Sequence[object]) -> list[float]:
    """Seconds since the epoch of stored times (those without a zone are local); NaN for invalid ones."""
    known: dict[object, float] = {}
    found = []
    for text in texts:
        seconds = known.get(text)
        if seconds is None:
            try:
                seconds = datetime.fromisoformat(str(text)).timestamp()
            except (ValueError, OverflowError, OSError):
                seconds = float("nan")
            known[text] = seconds
        found.append(seconds)
    return found
