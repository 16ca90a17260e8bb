"""Revisions: earlier wordings of a memory, each with its own counts (docs/decisions/0016).

The row in the plugin's ``memory`` is the newest revision, so every reader of that table shows the current text. Each
older one is a row of ``memory_revision``, under the id it had while it was shown, so that a later outcome finds what
was shown. A superseded memory is in the history of its successor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from helix_tui.core.memory.provenance import teacher_of, text_digest
from helix_tui.core.memory.records import Memory, Revision
from helix_tui.core.memory.store import indexing, rows
from helix_tui.core.memory.store.database import Base, Vector
from helix_tui.core.memory.store.index import TRIGGER, WHOLE
from helix_tui.core.memory.store.indexing import Draft

Reason = Literal["revised", "edited", "superseded"]

_TEXTS = "name, type, trigger, resolution, source, created_at, last_used, helped, failed"
_EVIDENCE = (
    "verified_helped, verified_failed, shown, lift_trials, lift_residual, lift_injected, lift_used, lift_passed,"
    " teacher, accepted"
)
_SELECT = f"SELECT id, former_id, number, replaced_at, reason, {_TEXTS}, {_EVIDENCE} FROM memory_revision"


def history(base: Base, memory_id: int) -> list[Revision]:
    """Earlier revisions of a memory, newest first."""
    found = base.database.execute(f"{_SELECT} WHERE memory_id = ? ORDER BY id DESC", [memory_id])
    return [_revision(row) for row in found]


def former(base: Base, memory_id: int, number: int) -> Revision | None:
    """The revision shown under this id and number, if it is no longer the newest."""
    row = base.database.execute(f"{_SELECT} WHERE former_id = ? AND number = ?", [memory_id, number]).fetchone()
    return None if row is None else _revision(row)


def superseded(base: Base, name_or_id: str | int) -> Memory | None:
    """The memory of this name or id as it was when another one superseded it."""
    row = _superseded(base, name_or_id)
    return None if row is None else _revision(row[1:]).memory


def successor(base: Base, name_or_id: str | int) -> Memory | None:
    """The memory that superseded the one of this name or id, if any."""
    row = _superseded(base, name_or_id)
    return None if row is None else rows.fetch(base.database, [row[0]]).get(row[0])


def _superseded(base: Base, name_or_id: str | int) -> Any:
    text = str(name_or_id)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
    return base.database.execute(
        f"{_SELECT.replace('SELECT id', 'SELECT memory_id, id')} WHERE reason = 'superseded'"
        " AND (name = ? OR former_id = ?) ORDER BY id DESC LIMIT 1",
        [text, number],
    ).fetchone()


def revise(base: Base, memory: Memory, draft: Draft, vectors: tuple[Vector | None, ...], why: Reason) -> int:
    """Give a memory a new text; return the new revision's number."""
    number = next_number(base, memory.id)
    archive(base, memory.id, memory.id, why)
    connection = base.database.conn
    connection.execute(
        "UPDATE memory SET type = ?, source = ?, helped = 0, failed = 0, created_at = ?, last_used = NULL WHERE id = ?",
        (draft.type, draft.source, rows.as_text(base.now()), memory.id),
    )
    connection.execute(
        "INSERT INTO memory_extra (memory_id, revision) VALUES (?1, ?2) ON CONFLICT(memory_id) DO UPDATE SET"
        " revision = ?2, verified_helped = 0, verified_failed = 0, shown = 0, lift_trials = 0,"
        " lift_residual = 0, lift_injected = 0, lift_used = 0, lift_passed = 0",
        (memory.id, number),
    )
    reword(base, memory.id, draft, vectors)
    rows.teach(connection, memory.id, draft.taught_by, accepted=draft.accepted)
    return number


def next_number(base: Base, memory_id: int) -> int:
    """The number of a memory's next revision."""
    # from the highest ever given, not the current one: an older one may have been restored
    return 1 + _number(
        base,
        "SELECT max(coalesce((SELECT max(number) FROM memory_revision WHERE former_id = ?1), 0),"
        " coalesce((SELECT revision FROM memory_extra WHERE memory_id = ?1), 1))",
        memory_id,
    )


def reword(base: Base, memory_id: int, draft: Draft, vectors: tuple[Vector | None, ...]) -> None:
    """Write a memory's texts and their index entries; counts and revision stay unchanged."""
    trigger, whole = vectors
    connection = base.database.conn
    connection.execute(
        "UPDATE memory SET trigger = ?, resolution = ?, embedding = NULL WHERE id = ?",
        (draft.trigger, draft.resolution, memory_id),
    )
    for table in (WHOLE, TRIGGER):
        connection.execute(f"DELETE FROM {table} WHERE memory_id = ?", (memory_id,))
    indexing.index_texts(base, memory_id, draft)
    indexing.put_vectors(base, memory_id, trigger, whole)
    rows.bump(connection, [memory_id])


def archive(base: Base, memory_id: int, owner: int, why: Reason) -> int:
    """Copy the current memory into the history of ``owner``; return the number of that row."""
    named = ", ".join(f"m.{name.strip()}" for name in _TEXTS.split(",")[:-2])
    evidence = ", ".join(f"coalesce(e.{name.strip()}, 0)" for name in _EVIDENCE.split(","))
    cursor = base.database.conn.execute(
        f"INSERT INTO memory_revision (memory_id, former_id, number, replaced_at, reason, {_TEXTS},"
        f" {_EVIDENCE}) SELECT ?, m.id, coalesce(e.revision, 1), ?, ?, {named}, coalesce(m.helped, 0),"
        f" coalesce(m.failed, 0), {evidence} FROM {rows.MEMORY_TABLES} WHERE m.id = ?",
        (owner, rows.as_text(base.now()), why, memory_id),
    )
    number = int(cursor.lastrowid or 0)
    # not the stored teacher: the text may be another than the one it was
    memory = rows.fetch(base.database, [memory_id])[memory_id]
    base.database.conn.execute(
        "UPDATE memory_revision SET teacher = ?, accepted = ? WHERE id = ?",
        (memory.taught_by, int(memory.accepted), number),
    )
    return number


def bring_back(base: Base, memory_id: int, number: int) -> int:
    """Restore an older revision of a memory with its own counts; the current one is kept in the history.

    Returns the number of the revision replaced.
    """
    row = base.database.execute(
        "SELECT id, trigger, resolution, teacher, accepted FROM memory_revision WHERE former_id = ? AND number = ?",
        [memory_id, number],
    ).fetchone()
    now = rows.fetch(base.database, [memory_id])[memory_id]
    draft = Draft(row[1], row[2], now.type)
    archive(base, memory_id, memory_id, "edited")
    _take_from_history(base, memory_id, row[0], number)
    reword(base, memory_id, draft, indexing.encode(base, [draft]).get(draft, (None, None)))
    rows.teach(base.database.conn, memory_id, teacher_of(row[3]), accepted=row[4] == 1)
    return now.revision


def _take_from_history(base: Base, memory_id: int, row_id: int, number: int) -> None:
    """Give a memory the counts of a row of its history, and remove that row."""
    connection = base.database.conn
    connection.execute(
        "UPDATE memory SET (type, source, created_at, last_used, helped, failed) = (SELECT type, source,"
        " coalesce(created_at, memory.created_at), last_used, helped, failed FROM memory_revision"
        " WHERE id = ?1) WHERE id = ?2",
        (row_id, memory_id),
    )
    connection.execute("INSERT OR IGNORE INTO memory_extra (memory_id) VALUES (?)", (memory_id,))
    connection.execute(
        f"UPDATE memory_extra SET revision = ?3, ({_EVIDENCE}) = (SELECT {_EVIDENCE} FROM memory_revision"
        " WHERE id = ?1) WHERE memory_id = ?2",
        (row_id, memory_id, number),
    )
    connection.execute("DELETE FROM memory_revision WHERE id = ?", (row_id,))


def discard(base: Base, memory_id: int, number: int) -> None:
    """Remove a revision from the history that was never shown and never counted."""
    base.database.conn.execute(
        "DELETE FROM memory_revision WHERE former_id = ? AND number = ? AND shown = 0 AND helped = 0 AND failed = 0",
        (memory_id, number),
    )


def supersede(base: Base, old: Memory, new: Memory) -> dict[str, Any]:
    """Move one memory, with its history, into the history of another; return what `separate` needs."""
    connection = base.database.conn
    earlier = [row[0] for row in _all(base, "SELECT id FROM memory_revision WHERE memory_id = ?", old.id)]
    archived = archive(base, old.id, new.id, "superseded")
    connection.execute("UPDATE memory_revision SET memory_id = ? WHERE memory_id = ?", (new.id, old.id))
    connection.execute(
        "INSERT OR IGNORE INTO memory_occurrence (memory_id, mark, at)"
        " SELECT ?, mark, at FROM memory_occurrence WHERE memory_id = ?",
        (new.id, old.id),
    )
    made = _inherit_edges(base, old.name, new.name)
    return {"archived": archived, "earlier": earlier, "edges": made, "by": new.id, "old": old.id}


def separate(base: Base, way: dict[str, Any]) -> None:
    """Remove a superseded memory, whose row was restored, from the history of its successor."""
    connection = base.database.conn
    row = base.database.execute("SELECT number FROM memory_revision WHERE id = ?", [way["archived"]]).fetchone()
    if row is not None:
        _take_from_history(base, way["old"], way["archived"], row[0])
    _move(connection, way["earlier"], way["old"])
    connection.executemany("DELETE FROM memory_edge WHERE id = ?", [(each,) for each in way["edges"]])
    rows.bump(connection, [way["by"], way["old"]])


def _move(connection: Any, row_ids: Iterable[int], owner: int) -> None:
    connection.executemany(
        "UPDATE memory_revision SET memory_id = ? WHERE id = ?", [(owner, bead_id) for bead_id in row_ids]
    )


def _inherit_edges(base: Base, old: str, new: str) -> list[int]:
    """Give a memory the edges of the one that it supersedes; return the ids of new ones."""
    connection = base.database.conn
    # rows inserted from here on are new, and are removed on undo
    before = _number(base, "SELECT coalesce(max(id), 0) FROM memory_edge")
    for column, other in (("from_name", "to_name"), ("to_name", "from_name")):
        connection.execute(
            f"INSERT OR IGNORE INTO memory_edge ({column}, {other}, rel_type, weight, created_at)"
            f" SELECT ?, {other}, rel_type, weight, created_at FROM memory_edge"
            f" WHERE {column} = ? AND {other} NOT IN (?, ?)",
            (new, old, new, old),
        )
    return [row[0] for row in _all(base, "SELECT id FROM memory_edge WHERE id > ?", before)]


def _revision(row: Any) -> Revision:
    _, former_id, number, replaced_at, reason = row[:5]
    name, type_, trigger, resolution, source, created_at, last_used, helped, failed = row[5:14]
    verified_helped, verified_failed, shown, trials, residual, *_, teacher, accepted = row[14:]
    memory = rows.as_memory(
        (
            *(former_id, name, type_, trigger, resolution, helped, failed, created_at, last_used, source),
            *(verified_helped, verified_failed, 1, shown, trials, residual, number, None, None, teacher, accepted),
            text_digest(name, trigger, resolution),
        )
    )
    return Revision(number, memory, rows.as_instant(replaced_at), reason)


def _all(base: Base, sql: str, *values: object) -> list[Any]:
    return base.database.execute(sql, list(values)).fetchall()


def _number(base: Base, sql: str, *values: object) -> int:
    return int(base.database.execute(sql, list(values)).fetchone()[0])
