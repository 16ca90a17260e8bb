"""Storing a memory: refused, merged into one that says the same, or added; the third of its kind is systemic.

What stands behind the rules: seed 004's checks and its threshold of 0.85, held against like texts, trigger
against trigger (the seeds compared a trigger with a trigger and resolution: reference/memory.md §0.4); seed
003's promotion at the third similar failure, here in code. Looking and writing are one write transaction, so
any number of processes may store the same at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from helix_tui.core.clock import NS, format_instant
from helix_tui.core.embedding import MODEL_ID
from helix_tui.core.memory import keywords, paths, rows
from helix_tui.core.memory.base import Base, Vector
from helix_tui.core.memory.index import TRIGGER, WHOLE, Index
from helix_tui.core.memory.records import TYPES, Similar, Stored
from helix_tui.core.memory.words import key, likeness, telling, words

DUPLICATE = 0.85
"""Cosine of two triggers from which on they are one memory (both seeds)."""

SIMILAR = 0.65
"""Cosine from which on two failures are of a kind; seed 003's own pair of like failures scores 0.68."""

ALIKE = 0.6
"""The same without an encoder: share of common words (Dice)."""

SYSTEMIC_AT = 3
"""Similar failures that make a systemic one (seed 003)."""

CHUNK_SIMILARITY = 0.85
"""From here on a landed approach strengthens the pattern it resembles (seed 004, chunk)."""

MIN_TRIGGER = 10
MAX_TEXT = 20_000
MAX_NAME = 50

_SLUG = re.compile(r"[^a-z0-9]+")
_FAMILY = {"failure": ("failure", "systemic"), "systemic": ("failure", "systemic")}


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that somebody wants to store."""

    trigger: str
    resolution: str
    type: str = "failure"
    source: str = ""

    @property
    def whole(self) -> str:
        """Trigger and resolution as one text: what recall compares a query with."""
        return f"{self.trigger} {self.resolution}"


def store(base: Base, draft: Draft) -> Stored:
    """Store one memory."""
    return store_many(base, [draft])[0]


def store_many(base: Base, drafts: Iterable[Draft]) -> list[Stored]:
    """Store several memories in one transaction, each judged with those before it."""
    clean = [_clean(draft) for draft in drafts]
    good = [draft for draft in clean if isinstance(draft, Draft)]
    vectors = _encode(base, good)
    results: list[Stored] = []
    if not good:
        return [draft for draft in clean if isinstance(draft, Stored)]
    with base.writing() as index:
        for draft in clean:
            if isinstance(draft, Stored):
                results.append(draft)
                continue
            index.refresh(base.database)
            results.append(_store(base, index, draft, *vectors.get(draft, (None, None))))
    return results


def chunk(base: Base, task: str, outcome: str, approach: str, source: str) -> Stored:
    """A pattern from a landed task; one that resembles a known pattern strengthens that (seed 004, chunk)."""
    if not outcome.strip().lower().startswith("success"):
        return Stored("skipped", reason="only chunk successful outcomes", mode=base.mode)
    clean = _clean(
        Draft(f"Task: {task.strip()}", f"Approach that worked: {approach.strip()}", "pattern", source)
    )
    if isinstance(clean, Stored):
        return clean
    if not approach.strip():
        return Stored("rejected", reason="approach empty", mode=base.mode)
    trigger, whole = _encode(base, [clean]).get(clean, (None, None))
    with base.writing() as index:
        near = _duplicate(base, index, clean, trigger, CHUNK_SIMILARITY)
        if near is None:
            return _store(base, index, clean, trigger, whole)
        base.database.execute(
            "UPDATE memory SET helped = helped + 1, last_used = ? WHERE id = ?",
            [rows.as_text(base.now()), near[0]],
        )
        memory = rows.fetch(base.database, [near[0]])[near[0]]
        return Stored(
            "strengthened",
            memory.name,
            "similar pattern exists, reinforced it",
            memory.id,
            memory.type,
            similarity=near[1],
            mode=base.mode,
        )


def similar_recent(
    base: Base, trigger: str, threshold: float | None, days: float, type_: str | None
) -> list[Similar]:
    """Memories of the last days whose triggers resemble a text, most alike first (seed 003's code)."""
    vector = base.encode([trigger])
    with base.reading() as index:
        near = _near(
            base, index, trigger, vector[0] if vector else None, threshold, (type_,) if type_ else ()
        )
        since = base.now_seconds() - days * 86_400
        chosen = {memory_id: alike for memory_id, alike in near.items() if _created(base, memory_id) >= since}
        found = rows.fetch(base.database, chosen)
    return [Similar(found[memory_id], alike) for memory_id, alike in chosen.items()]


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
        vectors = _encode(base, list(drafts.values()))
        with base.writing():
            for memory_id, draft in drafts.items():
                _put_vectors(base, memory_id, *vectors[draft])
            rows.bump(base.database.conn, drafts)
    return max(done, len(lacking))


def index_texts(base: Base, memory_id: int, draft: Draft, listed: Iterable[str] = ()) -> None:
    """Make a memory findable by its words, by its trigger as a whole and by the paths it mentions."""
    connection = base.database.conn
    connection.execute(
        "INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)",
        (memory_id, " ".join(words(draft.whole))),
    )
    connection.execute(
        "INSERT OR REPLACE INTO memory_key (memory_id, key) VALUES (?, ?)", (memory_id, key(draft.trigger))
    )
    paths.remember(base.database, memory_id, (draft.trigger, draft.resolution), listed)


def slug(text: str) -> str:
    """A name for a text: lower case, words joined by dashes, at most 50 characters (seed 004)."""
    return _SLUG.sub("-", text.lower()).strip("-")[:MAX_NAME].strip("-")


def _clean(draft: Draft) -> Draft | Stored:
    """The draft without surrounding blanks, or why it is refused; the order of checks is seed 004's."""
    if draft.type not in TYPES:
        return Stored("rejected", reason=f"type must be one of {TYPES}")
    trigger, resolution = _text(draft.trigger), _text(draft.resolution)
    if len(trigger) < MIN_TRIGGER:
        return Stored("rejected", reason="trigger too short", type=draft.type)
    if not resolution:
        return Stored("rejected", reason="resolution empty", type=draft.type)
    if max(len(trigger), len(resolution)) > MAX_TEXT:
        return Stored("rejected", reason=f"longer than {MAX_TEXT:,} characters", type=draft.type)
    return Draft(trigger, resolution, draft.type, _text(draft.source)[:MAX_TEXT])


def _text(text: str) -> str:
    """A text that SQLite takes and gives back: no NUL, no lone surrogates, no blanks around it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _encode(base: Base, drafts: Sequence[Draft]) -> dict[Draft, tuple[Vector | None, Vector | None]]:
    """(vector of the trigger, vector of trigger and resolution) of each draft; none without an encoder."""
    vectors = base.encode([text for draft in drafts for text in (draft.trigger, draft.whole)])
    if vectors is None:
        return {}
    return dict(zip(drafts, zip(vectors[::2], vectors[1::2], strict=True), strict=True))


def _store(base: Base, index: Index, draft: Draft, trigger: Vector | None, whole: Vector | None) -> Stored:
    duplicate = _duplicate(base, index, draft, trigger, DUPLICATE)
    if duplicate is not None:
        return _merge(base, index, draft, *duplicate)
    near = _kin(base, index, draft, trigger)
    count = 1 + sum(_seen(base, memory_id) for memory_id in near)
    known = rows.fetch(base.database, near)
    crowd = draft.type == "failure" and count >= SYSTEMIC_AT
    promoted = crowd and not any(memory.type == "systemic" for memory in known.values())
    draft = Draft(draft.trigger, draft.resolution, "systemic" if promoted else draft.type, draft.source)
    memory_id, name = _add(base, draft, trigger, whole)
    _link(base, name, [(known[near_id].name, alike) for near_id, alike in near.items()])
    return Stored(
        "added",
        name,
        "",
        memory_id,
        draft.type,
        promoted=promoted,
        similar=tuple(memory.name for memory in known.values()),
        mode=base.mode,
    )


def _merge(base: Base, index: Index, draft: Draft, memory_id: int, similarity: float) -> Stored:
    """Count what was stored again; its words are kept as a variant where they differ."""
    connection = base.database.conn
    connection.execute(
        "INSERT INTO memory_extra (memory_id, seen) VALUES (?, 2)"
        " ON CONFLICT(memory_id) DO UPDATE SET seen = seen + 1",
        (memory_id,),
    )
    memory = rows.fetch(base.database, [memory_id])[memory_id]
    if (draft.trigger, draft.resolution) != (memory.trigger, memory.resolution):
        connection.execute(
            "INSERT INTO memory_variant (memory_id, at, trigger, resolution, source)"
            " SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM memory_variant"
            " WHERE memory_id = ? AND trigger = ? AND resolution = ?)",
            (
                memory_id,
                rows.as_text(base.now()),
                draft.trigger,
                draft.resolution,
                draft.source,
                memory_id,
                draft.trigger,
                draft.resolution,
            ),
        )
    vector = _own_trigger(base, index, memory_id)
    near = _kin(base, index, Draft(memory.trigger, memory.resolution, memory.type), vector, but=memory_id)
    known = rows.fetch(base.database, near)
    count = memory.seen + sum(each.seen for each in known.values())
    promoted = (
        memory.type == "failure"
        and count >= SYSTEMIC_AT
        and not any(each.type == "systemic" for each in known.values())
    )
    if promoted:
        connection.execute("UPDATE memory SET type = 'systemic' WHERE id = ?", (memory_id,))
    else:
        rows.bump(connection, [memory_id])
    return Stored(
        "merged",
        memory.name,
        "similar exists",
        memory_id,
        "systemic" if promoted else memory.type,
        promoted=promoted,
        similar=tuple(each.name for each in known.values()),
        similarity=similarity,
        mode=base.mode,
    )


def _duplicate(
    base: Base, index: Index, draft: Draft, vector: Vector | None, threshold: float
) -> tuple[int, float] | None:
    """(id, similarity) of the memory that says the same: its trigger's words, else the nearest trigger."""
    family = _FAMILY.get(draft.type, (draft.type,))
    marks = ", ".join("?" * len(family))
    same = base.database.execute(
        "SELECT m.id FROM memory_key k JOIN memory m ON m.id = k.memory_id"
        f" WHERE k.key = ? AND k.key <> '' AND m.type IN ({marks}) ORDER BY m.id LIMIT 1",
        [key(draft.trigger), *family],
    ).fetchone()
    if same:
        return same[0], 1.0
    alike = _similarities(base, index, vector, family)
    if alike is None or not alike.size:
        return None
    best = int(alike.argmax())
    return (int(index.ids[best]), float(alike[best])) if alike[best] >= threshold else None


def _kin(
    base: Base, index: Index, draft: Draft, vector: Vector | None, but: int | None = None
) -> dict[int, float]:
    """Failures of the same kind as this one, most alike first."""
    if draft.type not in _FAMILY:
        return {}
    near = _near(base, index, draft.trigger, vector, None, _FAMILY[draft.type])
    return {memory_id: alike for memory_id, alike in near.items() if memory_id != but}


def _near(
    base: Base,
    index: Index,
    text: str,
    vector: Vector | None,
    threshold: float | None,
    family: Sequence[str],
) -> dict[int, float]:
    """Memory id -> similarity of its trigger to a text, from the threshold on, most alike first."""
    alike = _similarities(base, index, vector, family)
    if alike is None:
        return _near_by_words(base, index, text, ALIKE if threshold is None else threshold, family)
    places = np.flatnonzero(alike >= (SIMILAR if threshold is None else threshold))
    order = places[np.argsort(-alike[places], kind="stable")]
    return {int(index.ids[place]): float(alike[place]) for place in order}


def _near_by_words(
    base: Base, index: Index, text: str, threshold: float, family: Sequence[str]
) -> dict[int, float]:
    candidates = keywords.coverage(base.database, telling(text), int(index.alive[: index.size].sum()))
    known = rows.fetch(base.database, candidates)
    alike = {
        memory_id: likeness(text, memory.trigger)
        for memory_id, memory in known.items()
        if not family or memory.type in family
    }
    return {
        memory_id: value
        for memory_id, value in sorted(alike.items(), key=lambda pair: (-pair[1], pair[0]))
        if value >= threshold
    }


def _similarities(
    base: Base, index: Index, vector: Vector | None, family: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    """Cosine with the trigger at every place, -1 where it is out of the question; None without vectors."""
    vectors = index.vectors(base.database, TRIGGER)
    if vector is None or vectors is None:
        return None
    alike = vectors.similarities(vector, index.size)
    fits = index.alive[: index.size] & vectors.present[: index.size]
    if family:
        types = index.types[: index.size]
        of_type = types == family[0]
        for name in family[1:]:
            of_type |= types == name
        fits &= of_type
    alike[~fits] = -1.0
    return alike


def _own_trigger(base: Base, index: Index, memory_id: int) -> Vector | None:
    vectors = index.vectors(base.database, TRIGGER)
    place = index.place.get(memory_id)
    if vectors is None or place is None or not vectors.present[place]:
        return None
    return vectors.row(place)


def _add(base: Base, draft: Draft, trigger: Vector | None, whole: Vector | None) -> tuple[int, str]:
    name = _free_name(base, draft)
    now = rows.as_text(base.now())
    published = whole is not None and base.model == MODEL_ID
    cursor = base.database.conn.execute(
        "INSERT INTO memory (name, type, trigger, resolution, embedding, created_at, source)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            name,
            draft.type,
            draft.trigger,
            draft.resolution,
            whole.tobytes() if published and whole is not None else None,
            now,
            draft.source,
        ),
    )
    memory_id = int(cursor.lastrowid or 0)
    index_texts(base, memory_id, draft)
    _put_vectors(base, memory_id, trigger, whole)
    return memory_id, name


def _put_vectors(base: Base, memory_id: int, trigger: Vector | None, whole: Vector | None) -> None:
    for table, vector in ((TRIGGER, trigger), (WHOLE, whole)):
        if vector is not None:
            base.database.conn.execute(
                f"INSERT OR REPLACE INTO {table} (memory_id, model, vector) VALUES (?, ?, ?)",
                (memory_id, base.model, np.asarray(vector, np.float32).tobytes()),
            )


def _free_name(base: Base, draft: Draft) -> str:
    """A name that no memory has: the slug, or the slug with the first free number."""
    stamp = re.sub(r"\D", "", format_instant(base.now() // NS * NS))
    stem = slug(draft.trigger) or f"{draft.type}-{stamp}"
    number = 1
    while True:
        name = stem if number == 1 else f"{stem}-{number}"
        if not base.database.execute("SELECT 1 FROM memory WHERE name = ?", [name]).fetchone():
            return name
        number += 1


def _link(base: Base, name: str, near: Iterable[tuple[str, float]]) -> None:
    """Edges from a new failure to those of its kind, weighted by how alike they are."""
    base.database.conn.executemany(
        "INSERT OR IGNORE INTO memory_edge (from_name, to_name, rel_type, weight, created_at)"
        " VALUES (?, ?, 'similar', ?, ?)",
        [(name, other, round(alike, 4), rows.as_text(base.now())) for other, alike in list(near)[:5]],
    )


def _seen(base: Base, memory_id: int) -> int:
    row = base.database.execute("SELECT seen FROM memory_extra WHERE memory_id = ?", [memory_id]).fetchone()
    return int(row[0]) if row else 1


def _created(base: Base, memory_id: int) -> float:
    row = base.database.execute("SELECT created_at FROM memory WHERE id = ?", [memory_id]).fetchone()
    instant = rows.as_instant(row[0]) if row else None
    return float("-inf") if instant is None else instant / NS


def _vectors_lacking(base: Base) -> bool:
    """Whether some memory has no vector of this model: by counting, which touches no vector."""
    every = _count(base, "SELECT count(*) FROM memory")
    return any(
        _count(base, f"SELECT count(*) FROM {table} WHERE model = ?", base.model) < every
        for table in (WHOLE, TRIGGER)
    )


def _count(base: Base, sql: str, *values: str) -> int:
    return int(base.database.execute(sql, list(values)).fetchone()[0])


def _index_words(base: Base) -> int:
    """Index the texts of memories that another program has stored."""
    if base.read_only:
        return 0
    if _count(base, "SELECT count(*) FROM memory_key") >= _count(base, "SELECT count(*) FROM memory"):
        return 0
    has_patterns = "file_patterns" in {column.name for column in base.database["memory"].columns}
    lacking = base.database.execute(
        f"SELECT id, trigger, resolution, {'file_patterns' if has_patterns else 'NULL'} FROM memory"
        " WHERE id NOT IN (SELECT memory_id FROM memory_key)"
    ).fetchall()
    if not lacking:
        return 0
    with base.writing():
        for memory_id, trigger, resolution, listed in lacking:
            draft = Draft(str(trigger), str(resolution))
            index_texts(base, memory_id, draft, paths.listed_by_plugin(listed))
        rows.bump(base.database.conn, [row[0] for row in lacking])
    return len(lacking)
