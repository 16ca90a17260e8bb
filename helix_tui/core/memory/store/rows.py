"""Convert rows to records and back. Times are written in UTC; the plugin's, without a zone, are local."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlite_utils import Database

from helix_tui.core.ground.time import format_instant
from helix_tui.core.memory.guard.scan import verdict_of
from helix_tui.core.memory.provenance import Teacher, teacher_of, text_digest
from helix_tui.core.memory.ranking import LIFT_SHRINKAGE
from helix_tui.core.memory.records import Memory

MEMORY_COLUMNS = """m.id, m.name, m.type, m.trigger, m.resolution, m.helped, m.failed, m.created_at,
m.last_used, m.source, e.verified_helped, e.verified_failed, e.seen, e.shown, e.lift_trials,
e.lift_residual, e.revision, k.digest, k.rules, e.teacher, e.accepted,
e.taught"""

MEMORY_TABLES = "memory m LEFT JOIN memory_extra e ON e.memory_id = m.id LEFT JOIN memory_mark k ON k.memory_id = m.id"

VERIFIED = """SELECT memory_id, verified_helped, verified_failed FROM memory_extra
WHERE verified_helped + verified_failed > 0"""
"""The memories that are judged by verified outcomes, as `Memory.counted`."""

MOST_COUNTED = 1e12
"""Maximum of a count: one corrupted by hand may be infinite, but sums and shares must stay finite."""

# SQLite before 3.32 takes at most 999 variables in a statement
_MOST_VARIABLES = 500

WAITING = """SELECT m.id FROM memory m LEFT JOIN memory_extra e ON e.memory_id = m.id
WHERE coalesce(e.accepted, 0) <> 1"""
"""The memories that wait for acceptance."""


def as_memory(row: Sequence[Any]) -> Memory:
    """The record of a row of :data:`MEMORY_COLUMNS`; corrupted values become defaults."""
    trials = number(row[14])
    texts = (str(row[3]), str(row[4]), str(row[9] or ""))
    # another program that changes the text changes who taught it: an agent's, which waits
    as_taught = row[21] == text_digest(str(row[1]), texts[0], texts[1])
    return Memory(
        id=row[0],
        name=str(row[1]),
        type=str(row[2]),
        trigger=texts[0],
        resolution=texts[1],
        helped=number(row[5]),
        failed=number(row[6]),
        created_at=as_instant(row[7]),
        last_used=as_instant(row[8]),
        source=texts[2],
        verified_helped=number(row[10]),
        verified_failed=number(row[11]),
        seen=int(row[12] or 1),
        shown=int(row[13] or 0),
        lift=float(row[15] or 0.0) / (trials + LIFT_SHRINKAGE) if trials else None,
        trials=trials,
        revision=int(row[16] or 1),
        verdict=verdict_of(texts, row[17], row[18]),
        taught_by=teacher_of(row[19] if as_taught else ""),
        accepted=as_taught and row[20] == 1,
    )


def number(value: object) -> float:
    """A count from a row; null, text and negative values become 0, too large ones the maximum."""
    return min(MOST_COUNTED, max(0.0, float(value))) if isinstance(value, int | float) else 0.0


def as_instant(text: object) -> int | None:
    """Nanoseconds for a stored time. A time without a zone is the plugin's, in local time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return int(moment.timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError, OSError):
        return None


def as_text(instant: int) -> str:
    """An instant as stored: RFC 3339 in UTC."""
    return format_instant(instant)


def lots(ids: Iterable[int]) -> Iterator[tuple[list[int], str]]:
    """Distinct ids in batches that a statement may bind, with their placeholders."""
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _MOST_VARIABLES):
        some = wanted[start : start + _MOST_VARIABLES]
        yield some, ", ".join("?" * len(some))


def fetch(database: Database, ids: Iterable[int]) -> dict[int, Memory]:
    """Memories by id; missing ids are left out."""
    found: dict[int, Memory] = {}
    for some, marks in lots(ids):
        rows = database.execute(f"SELECT {MEMORY_COLUMNS} FROM {MEMORY_TABLES} WHERE m.id IN ({marks})", some)
        found |= {row[0]: as_memory(row) for row in rows}
    return found


def find(database: Database, name_or_id: str | int) -> Memory | None:
    """The memory of this name, else of this id (docs/decisions/0016)."""
    row = None
    if isinstance(name_or_id, str):
        row = _one(database, "m.name = ?", name_or_id)
    # nineteen digits may exceed SQLite's 64 bits
    if row is None and str(name_or_id).isascii() and str(name_or_id).isdigit() and len(str(name_or_id)) < 19:
        row = _one(database, "m.id = ?", int(name_or_id))
    return None if row is None else as_memory(row)


def _one(database: Database, where: str, value: str | int) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = database.execute(
        f"SELECT {MEMORY_COLUMNS} FROM {MEMORY_TABLES} WHERE {where}", [value]
    ).fetchone()
    return row


def teach(connection: sqlite3.Connection, memory_id: int, taught_by: Teacher, *, accepted: bool) -> None:
    """Record who taught a memory its present text, and whether agents are shown it."""
    row = connection.execute("SELECT name, trigger, resolution FROM memory WHERE id = ?", (memory_id,)).fetchone()
    connection.execute(
        "INSERT INTO memory_extra (memory_id, teacher, accepted, taught) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT(memory_id) DO UPDATE SET teacher = ?2, accepted = ?3, taught = ?4",
        (memory_id, taught_by, int(accepted), text_digest(*map(str, row))),
    )


def bump(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Signal to every process that data of these memories outside their own row has changed."""
    connection.executemany(
        "UPDATE memory_change SET seq = (SELECT max(seq) + 1 FROM memory_change) WHERE memory_id = ?",
        [(memory_id,) for memory_id in ids],
    )
