"""Storing a memory: refused, merged into one that says the same, or added; the third of its kind is systemic.

What stands behind the rules: seed 004's checks and its threshold of 0.85, held against like texts, trigger
against trigger (the seeds compared a trigger with a trigger and resolution: reference/memory.md §0.4); seed
003's promotion at the third similar failure, here in code. Looking and writing are one write transaction, so
any number of processes may store the same at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from helix_tui.core.clock import NS, format_instant
from helix_tui.core.embedding import MODEL_ID
from helix_tui.core.memory import alike, indexing, rows
from helix_tui.core.memory.base import Base, Vector
from helix_tui.core.memory.index import Index
from helix_tui.core.memory.indexing import Draft
from helix_tui.core.memory.records import TYPES, Stored

SYSTEMIC_AT = 3
"""Similar failures that make a systemic one (seed 003)."""

CHUNK_SIMILARITY = 0.85
"""From here on a landed approach strengthens the pattern it resembles (seed 004, chunk)."""

MIN_TRIGGER = 10
MAX_TEXT = 20_000
MAX_NAME = 50

_NEAREST = 3
"""Near failures whose own kin is looked at."""

_SLUG = re.compile(r"[^a-z0-9]+")


def store(base: Base, draft: Draft) -> Stored:
    """Store one memory."""
    return store_many(base, [draft])[0]


def store_many(base: Base, drafts: Iterable[Draft]) -> list[Stored]:
    """Store several memories in one transaction, each judged with those before it."""
    clean = [_clean(base, draft) for draft in drafts]
    good = [draft for draft in clean if isinstance(draft, Draft)]
    vectors = indexing.encode(base, good)
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
        base, Draft(f"Task: {task.strip()}", f"Approach that worked: {approach.strip()}", "pattern", source)
    )
    if isinstance(clean, Stored):
        return clean
    if not approach.strip():
        return Stored("rejected", reason="approach empty", mode=base.mode)
    trigger, whole = indexing.encode(base, [clean]).get(clean, (None, None))
    with base.writing() as index:
        near = alike.Kin(base, index, clean, trigger).duplicate(CHUNK_SIMILARITY)
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


def slug(text: str) -> str:
    """A name for a text: lower case, words joined by dashes, at most 50 characters (seed 004)."""
    return _SLUG.sub("-", text.lower()).strip("-")[:MAX_NAME].strip("-")


def _clean(base: Base, draft: Draft) -> Draft | Stored:
    """The draft without surrounding blanks, or why it is refused; the order of checks is seed 004's."""
    trigger, resolution = _text(draft.trigger), _text(draft.resolution)
    reason = ""
    if draft.type not in TYPES:
        reason = f"type must be one of {TYPES}"
    elif len(trigger) < MIN_TRIGGER:
        reason = "trigger too short"
    elif not resolution:
        reason = "resolution empty"
    elif max(len(trigger), len(resolution)) > MAX_TEXT:
        reason = f"longer than {MAX_TEXT:,} characters"
    if reason:
        known = draft.type if draft.type in TYPES else ""
        return Stored("rejected", reason=reason, type=known, mode=base.mode)
    return Draft(trigger, resolution, draft.type, _text(draft.source)[:MAX_TEXT])


def _text(text: str) -> str:
    """A text that SQLite takes and gives back: no NUL, no lone surrogates, no blanks around it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _store(base: Base, index: Index, draft: Draft, trigger: Vector | None, whole: Vector | None) -> Stored:
    kin = alike.Kin(base, index, draft, trigger)
    duplicate = kin.duplicate()
    if duplicate is not None:
        return _merge(base, index, draft, *duplicate)
    near = kin.failures()
    promoted = draft.type == "failure" and _recurs(base, index, 1, near)
    draft = Draft(draft.trigger, draft.resolution, "systemic" if promoted else draft.type, draft.source)
    memory_id, name = _add(base, draft, trigger, whole)
    known = rows.fetch(base.database, near)
    _link(base, name, [(known[near_id].name, similarity) for near_id, similarity in near.items()])
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


def _recurs(base: Base, index: Index, seen: int, near: dict[int, float], but: int | None = None) -> bool:
    """Whether a failure seen so often, with those near it, is the third of a kind that has no systemic one.

    What hangs together is of a kind: those near the nearest ones belong to it too.
    """
    known = rows.fetch(base.database, near)
    if any(memory.type == "systemic" for memory in known.values()):
        return False
    group = dict(known)
    for other in list(known.values())[:_NEAREST]:
        vector = alike.own_trigger(base, index, other.id)
        draft = Draft(other.trigger, other.resolution, other.type)
        further = alike.Kin(base, index, draft, vector).failures(but=other.id)
        group |= rows.fetch(base.database, (memory_id for memory_id in further if memory_id != but))
    count = seen + sum(memory.seen for memory in group.values())
    return count >= SYSTEMIC_AT and not any(memory.type == "systemic" for memory in group.values())


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
    vector = alike.own_trigger(base, index, memory_id)
    known_draft = Draft(memory.trigger, memory.resolution, memory.type)
    near = alike.Kin(base, index, known_draft, vector).failures(but=memory_id)
    known = rows.fetch(base.database, near)
    promoted = memory.type == "failure" and (
        draft.type == "systemic" or _recurs(base, index, memory.seen, near, but=memory_id)
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
    indexing.index_texts(base, memory_id, draft)
    indexing.put_vectors(base, memory_id, trigger, whole)
    return memory_id, name


def _free_name(base: Base, draft: Draft) -> str:
    """A name that no memory has: the slug, or the slug with the first free number."""
    stamp = re.sub(r"\D", "", format_instant(base.now() // NS * NS))
    stem = slug(draft.trigger) or f"{draft.type}-{stamp}"
    if stem.isdigit() and len(stem) < MIN_TRIGGER:
        stem = f"{draft.type}-{stem}"  # a number alone would stand before the memory of that number
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
