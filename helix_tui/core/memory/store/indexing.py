"""Making memories findable: their words, their paths, the vectors of their texts.

The plugin stores memories too, and some are stored while there is no encoder: what they lack is made later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from helix_tui.core.memory import guard as marks
from helix_tui.core.memory.ranking import key, words
from helix_tui.core.memory.records import USER_PROVIDED
from helix_tui.core.memory.store import paths, rows
from helix_tui.core.memory.store.database import Base, Vector
from helix_tui.core.memory.store.index import TRIGGER, WHOLE


class Draft(Struct, frozen=True):
    """A memory that somebody wants to store."""

    trigger: str
    resolution: str
    type: str = "failure"
    source: str = ""
    attempt: str = ""
    bead: str = ""
    """Whose attempt or which bead met it, where that is known: one bead is one occurrence."""

    @property
    def protected(self) -> bool:
        """Whether a person puts it in as their own."""
        return USER_PROVIDED in self.source

    @property
    def whole(self) -> str:
        """Trigger and resolution as one text: what recall compares a query with."""
        return f"{self.trigger} {self.resolution}"


def index_texts(base: Base, memory_id: int, draft: Draft, listed: Iterable[str] = ()) -> None:
    """Make a memory findable by its words, by its trigger as a whole and by the paths it mentions.

    Its trigger in other words, as a merged one had it, finds it too.
    """
    connection = base.database.conn
    variants = connection.execute("SELECT trigger FROM memory_variant WHERE memory_id = ?", (memory_id,))
    found_by = [draft.whole, *(str(row[0]) for row in variants)]
    connection.execute(
        "INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)",
        (memory_id, " ".join(word for text in found_by for word in words(text))),
    )
    texts = (draft.trigger, draft.resolution, draft.source)
    connection.execute(
        "INSERT OR REPLACE INTO memory_mark (memory_id, digest, rules) VALUES (?, ?, ?)",
        (memory_id, marks.digest(*texts), marks.verdict(*texts)),
    )
    connection.execute("DELETE FROM memory_path WHERE memory_id = ?", (memory_id,))
    connection.execute(
        "INSERT OR REPLACE INTO memory_key (memory_id, key) VALUES (?, ?)", (memory_id, key(draft.trigger))
    )
    paths.remember(base.database, memory_id, (draft.trigger, draft.resolution), listed)


def embed_missing(base: Base, limit: int | None) -> int:
    """Index the words and paths, and encode the texts, of memories that have none yet; how many were done.

    Such are what the plugin has stored, and what was stored while there was no encoder or another one.
    """
    done = _index_words(base)
    if base.encoder is None or base.read_only or not _vectors_lacking(base):
        return done
    table = " LEFT JOIN ".join(
        [
            "memory m",
            f"{WHOLE} v ON v.memory_id = m.id AND v.model = :model",
            f"{TRIGGER} t ON t.memory_id = m.id AND t.model = :model",
        ]
    )
    lacking = base.database.execute(
        f"SELECT m.id, m.trigger, m.resolution, m.type FROM {table}"
        " WHERE v.memory_id IS NULL OR t.memory_id IS NULL ORDER BY m.id DESC LIMIT :limit",
        {"model": base.model, "limit": -1 if limit is None else limit},
    ).fetchall()
    for start in range(0, len(lacking), 64):
        some = lacking[start : start + 64]
        drafts = {row[0]: Draft(str(row[1]), str(row[2])) for row in some}
        vectors = encode(base, list(drafts.values()))
        with base.writing():
            for memory_id, draft in drafts.items():
                put_vectors(base, memory_id, *vectors[draft])
            rows.bump(base.database.conn, drafts)
    return max(done, len(lacking))


def encode(base: Base, drafts: Sequence[Draft]) -> dict[Draft, tuple[Vector | None, Vector | None]]:
    """(vector of the trigger, vector of trigger and resolution) of each draft; none without an encoder."""
    vectors = base.encode([text for draft in drafts for text in (draft.trigger, draft.whole)])
    if vectors is None:
        return {}
    return dict(zip(drafts, zip(vectors[::2], vectors[1::2], strict=True), strict=True))


def put_vectors(base: Base, memory_id: int, trigger: Vector | None, whole: Vector | None) -> None:
    for table, vector in ((TRIGGER, trigger), (WHOLE, whole)):
        if vector is not None:
            base.database.conn.execute(
                f"INSERT OR REPLACE INTO {table} (memory_id, model, vector) VALUES (?, ?, ?)",
                (memory_id, base.model, np.asarray(vector, np.float32).tobytes()),
            )


def _index_words(base: Base) -> int:
    """Index the texts of memories that another program has stored."""
    if base.read_only:
        return 0
    if _count(base, "SELECT count(*) FROM memory_key") >= _count(base, "SELECT count(*) FROM memory"):
        return 0
    has_patterns = "file_patterns" in {column.name for column in base.database["memory"].columns}
    lacking = base.database.execute(
        f"SELECT id, trigger, resolution, {'file_patterns' if has_patterns else 'NULL'}, source FROM memory"
        " WHERE id NOT IN (SELECT memory_id FROM memory_key)"
    ).fetchall()
    if not lacking:
        return 0
    with base.writing():
        for memory_id, trigger, resolution, listed, source in lacking:
            draft = Draft(str(trigger), str(resolution), source=str(source or ""))
            index_texts(base, memory_id, draft, paths.listed_by_plugin(listed))
        rows.bump(base.database.conn, [row[0] for row in lacking])
    return len(lacking)


def _vectors_lacking(base: Base) -> bool:
    """Whether some memory has no vector of this model: by counting, which touches no vector."""
    every = _count(base, "SELECT count(*) FROM memory")
    return any(
        _count(base, f"SELECT count(*) FROM {table} WHERE model = ?", base.model) < every for table in (WHOLE, TRIGGER)
    )


def _count(base: Base, sql: str, *values: str) -> int:
    return int(base.database.execute(sql, list(values)).fetchone()[0])
