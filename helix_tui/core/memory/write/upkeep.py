"""Maintain the memory: dormant, unhelpful, duplicate and recurring memories, and the health of the store.

Removing returns every removed row, so that it can be undone. Consolidating merges near-duplicates. A failure is
systemic after three distinct occurrences of its kind within a window (docs/decisions/0013). Storing the same text again
is not an occurrence, nor is a repeat in another attempt at the same bead. Helix v2's code looks back seven days; here
that is a setting.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import NS
from helix_tui.core.memory.records import Memory, MemoryFault, proves
from helix_tui.core.memory.reports import Consolidated, Decayed, Health, Pruned, TypeCount
from helix_tui.core.memory.store import indexing, rows
from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.store.index import TRIGGER, WHOLE, MemoryIndex
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.words import key
from helix_tui.core.memory.write import alike
from helix_tui.core.memory.write.alike import INDISTINCT, worded_alike
from helix_tui.core.memory.write.same_problem import one_matter, resolve_alike

_OWNED = ("memory_extra", WHOLE, TRIGGER, "memory_variant", "memory_revision", "memory_occurrence")
_BLOCK = 512
_DAY = 86_400 * NS

SYSTEMIC_AT = 3
"""Occurrences that make a failure systemic (helix v2)."""

_NEAREST = 3
"""Near failures whose own neighbours are searched."""


def listed(base: Base, type_: str | None = None, uses: str = "", *values: float) -> list[Memory]:
    """Memories newest first: all, or those of a type, or those whose uses meet a condition in SQL."""
    conditions = [f"coalesce(m.helped, 0) + coalesce(m.failed, 0) {uses}"] if uses else []
    bound: list[object] = list(values)
    if type_ is not None:
        conditions.append("m.type = ?")
        bound.append(type_)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    found = base.database.execute(
        f"SELECT {rows.MEMORY_COLUMNS} FROM {rows.MEMORY_TABLES} {where} ORDER BY m.id DESC", bound
    )
    return [rows.as_memory(row) for row in found]


def decay(base: Base, *, days: float, min_uses: float, apply: bool) -> Decayed:
    """Memories unused for ``days`` with fewer than ``min_uses`` uses; a new one is not dormant.

    If applied, those that helped fade: the counts move halfway to even, with the same sum. Harmful ones do not fade.
    """
    if not math.isfinite(days):
        raise MemoryFault(f"{days} days is not a valid age", "Give a number of days, such as 30.")
    since = base.now() - int(days * _DAY)
    dormant = tuple(
        memory
        for memory in reversed(listed(base, None, "< ?", min_uses))
        if (memory.last_used or memory.created_at or 0) < since
    )
    if apply:
        with base.writing():
            for memory in dormant:
                _fade(base, memory)
    return Decayed(dormant, days, min_uses, apply)


def _fade(base: Base, memory: Memory) -> None:
    # a quarter of the difference, moved to the other side, halves it
    for change, helped, failed in (
        ("memory SET helped = helped - ?, failed = failed + ? WHERE id = ?", memory.helped, memory.failed),
        (
            "memory_extra SET verified_helped = verified_helped - ?, verified_failed = verified_failed + ?"
            " WHERE memory_id = ?",
            memory.verified_helped,
            memory.verified_failed,
        ),
    ):
        fade = max(0.0, helped - failed) / 4
        if fade:
            base.database.execute(f"UPDATE {change}", [fade, fade, memory.id])
    rows.bump(base.database.conn, [memory.id])


def prune(base: Base, *, threshold: float, min_uses: float, apply: bool) -> Pruned:
    """Remove memories used enough whose effectiveness is strictly below the threshold."""
    with base.writing() if apply else base.reading():
        used = [memory for memory in listed(base, None, ">= ?", min_uses) if memory.tried and memory.uses >= min_uses]
        bad = tuple(memory for memory in used if memory.effectiveness < threshold and not memory.protected)
        if apply:
            take_out(base, [memory.name for memory in bad])
        remaining = _number(base, "SELECT count(*) FROM memory")
    return Pruned(bad, remaining, apply)


def take_out(base: Base, names: Iterable[str], *, without: tuple[str, ...] = ()) -> dict[str, list[dict[str, Any]]]:
    """Remove memories with their edges; return every removed row, as plain JSON, for `put_back`.

    Rows of the tables in ``without`` already belong to others.
    """
    gone: dict[str, list[dict[str, Any]]] = {}
    with base.writing():
        for name in dict.fromkeys(names):
            memory = rows.find(base.database, name)
            if memory is None:
                continue
            for table, column, value in _places(memory):
                if table in without:
                    continue
                some = [dict(row) for row in base.database[table].rows_where(f"{column} = ?", [value])]
                known = gone.setdefault(table, [])
                # an edge between two of them is found at either end
                known += [row for row in map(_plain, some) if row not in known]
            base.database.execute(
                "DELETE FROM memory_edge WHERE from_name = ? OR to_name = ?", [memory.name, memory.name]
            )
            base.database.execute("DELETE FROM memory WHERE id = ?", [memory.id])
    return gone


def put_back(base: Base, gone: dict[str, list[dict[str, Any]]]) -> int:
    """Restore what `take_out` returned; return how many. A name in use again keeps its new memory."""
    with base.writing():
        returned = []
        for row in gone.get("memory", []):
            cursor = base.database.conn.execute(*_insert("memory", row))
            if cursor.rowcount > 0:
                returned.append(row)
        ids = {row["id"] for row in returned}
        for table in _OWNED:
            for row in gone.get(table, []):
                if row["memory_id"] in ids:
                    base.database.conn.execute(*_insert(table, row))
        for row in gone.get("memory_edge", []):
            base.database.conn.execute(*_insert("memory_edge", row))
        for row in returned:
            # words, paths and key were removed by the table's trigger, and are not among the rows
            draft = indexing.Draft(row["trigger"], row["resolution"], source=row["source"] or "")
            indexing.index_texts(base, row["id"], draft)
        rows.bump(base.database.conn, ids)
    return len(returned)


def consolidate(base: Base, threshold: float) -> Consolidated:
    """Merge memories of one type whose texts are nearly the same; the one with more feedback stays."""
    if base.encoder is None:
        return Consolidated((), base.database["memory"].count, f"embeddings unavailable: {base.detail}")
    merged = []
    with base.writing() as index:
        vectors = index.vectors(base.database, WHOLE)
        assert vectors is not None
        known = {memory.id: memory for memory in listed(base)}
        places = np.flatnonzero(index.alive[: index.size] & vectors.present[: index.size])
        for type_ in sorted({memory.type for memory in known.values()}):
            mine = places[index.of_type(type_)[places]]
            order = sorted(mine, key=lambda place: _standing(known[int(index.ids[place])]))
            ids = [int(index.ids[place]) for place in order]
            for gone, kept in _pairs(vectors.matrix(np.asarray(order, np.int64)), ids, threshold):
                alike = float(vectors.row(index.place[gone]) @ vectors.row(index.place[kept]))
                if alike >= INDISTINCT and not worded_alike(known[gone].trigger, known[kept].trigger):
                    continue
                if not _says_the_same(base, known[gone], known[kept]):
                    continue
                _absorb(base, known[gone], known[kept])
                merged.append((known[gone].name, known[kept].name))
    return Consolidated(tuple(merged), base.database["memory"].count)


def _says_the_same(base: Base, gone: Memory, kept: Memory) -> bool:
    """Whether one may be merged into the other: same specifics, agreeing resolutions, not entered by a person, and both
    wait for acceptance or neither does.
    """
    return (
        not (gone.protected or kept.protected)
        and gone.accepted == kept.accepted
        and one_matter(gone.trigger, kept.trigger)
        and resolve_alike(base, gone.resolution, kept.resolution)
    )


def forget_variant(base: Base, memory_id: int, trigger: str, source: str) -> None:
    """Remove a variant merged into a memory, so that its words no longer find it."""
    with base.writing():
        base.database.conn.execute(
            "DELETE FROM memory_variant WHERE memory_id = ? AND trigger = ? AND source = ?",
            (memory_id, trigger, source),
        )
        for memory in rows.fetch(base.database, [memory_id]).values():
            draft = indexing.Draft(memory.trigger, memory.resolution, source=memory.source)
            indexing.index_texts(base, memory_id, draft)
        rows.bump(base.database.conn, [memory_id])


def health(base: Base) -> Health:
    """The health of the store, with its issues in words."""
    with base.reading():
        by_type = {
            str(name): TypeCount(number, rows.number(helped), rows.number(failed))
            for name, number, helped, failed in _all(
                base, "SELECT type, count(*), sum(helped), sum(failed) FROM memory GROUP BY type ORDER BY type"
            )
        }
        ((helped, failed),) = _all(
            base,
            "SELECT sum(coalesce(v.verified_helped, m.helped)), sum(coalesce(v.verified_failed, m.failed))"
            f" FROM memory m LEFT JOIN ({rows.VERIFIED}) v ON v.memory_id = m.id",
        )
        outcomes = _all(
            base,
            f"SELECT v.verified_helped, v.verified_failed FROM memory m JOIN ({rows.VERIFIED}) v ON v.memory_id = m.id",
        )
        edge_types = dict(_all(base, "SELECT rel_type, count(*) FROM memory_edge GROUP BY rel_type ORDER BY rel_type"))
        with_feedback = _number(base, "SELECT count(*) FROM memory WHERE helped + failed > 0")
        verified = _number(base, "SELECT count(*) FROM memory_extra WHERE verified_helped + verified_failed > 0")
        vectors = _number(base, f"SELECT count(*) FROM {WHOLE} WHERE model = ?", base.model)
        injections = _number(base, "SELECT count(*) FROM injection")
        settled = _number(base, "SELECT count(*) FROM settlement")
        systemic = _all(base, "SELECT name FROM memory WHERE type = 'systemic' ORDER BY id DESC LIMIT 100")
    total = sum(each.count for each in by_type.values())
    lacking = total - vectors if base.encoder is not None else 0
    return Health(
        total=total,
        by_type=by_type,
        counted=(rows.number(helped), rows.number(failed)),
        proven=sum(proves(rows.number(helped), rows.number(failed)) for helped, failed in outcomes),
        with_feedback=with_feedback,
        with_verified_feedback=verified,
        relationships=sum(edge_types.values()),
        edge_types=edge_types,
        injections=injections,
        settled=settled,
        without_vector=lacking,
        mode=base.mode,
        detail=base.detail,
        systemic=tuple(name for (name,) in systemic),
        issues=tuple(_issues(base, total, with_feedback, lacking)),
    )


def _all(base: Base, sql: str) -> list[Any]:
    return base.database.execute(sql).fetchall()


def _number(base: Base, sql: str, *values: str) -> int:
    return int(base.database.execute(sql, list(values)).fetchone()[0])


def _issues(base: Base, total: int, with_feedback: int, lacking: int) -> list[str]:
    found = []
    if not total:
        found.append("No memories yet")
    elif not with_feedback:
        found.append("No feedback recorded - learning loop not closed")
    if base.encoder is None:
        found.append(f"Embeddings unavailable - recall is by keywords: {base.detail}")
    elif lacking:
        found.append(
            f"{counted(lacking, 'memory', 'memories')} without a vector of this model - run `helix-tui memory embed`"
        )
    return found


def _places(memory: Memory) -> list[tuple[str, str, str | int]]:
    owned: list[tuple[str, str, str | int]] = [(table, "memory_id", memory.id) for table in _OWNED]
    ends: list[tuple[str, str, str | int]] = [
        ("memory_edge", "from_name", memory.name),
        ("memory_edge", "to_name", memory.name),
    ]
    return [("memory", "id", memory.id), *owned, *ends]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in row.items()
    }


def _insert(table: str, row: dict[str, Any]) -> tuple[str, list[Any]]:
    values = [base64.b64decode(value["base64"]) if isinstance(value, dict) else value for value in row.values()]
    names = ", ".join(f'"{name}"' for name in row)
    return f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", values


def _standing(memory: Memory) -> tuple[float, int]:
    """Sort key for which memories are kept: most feedback first, then the oldest."""
    return -(memory.helped + memory.failed), memory.id


def _pairs(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float32]], ids: Sequence[int], threshold: float
) -> list[tuple[int, int]]:
    """(removed, kept) pairs for rows in the order of precedence; a removed one keeps no other."""
    found: dict[int, int] = {}
    for start in range(0, len(ids), _BLOCK):
        # in blocks: of 50,000 memories all cosines at once would be 10 GB
        alike = matrix[start : start + _BLOCK] @ matrix.T
        near_rows, near_columns = np.nonzero(alike >= threshold)
        for row, column in zip((near_rows + start).tolist(), near_columns.tolist(), strict=True):
            # rows are in order of precedence: the earlier one is kept
            if column > row and ids[row] not in found and ids[column] not in found:
                found[ids[column]] = ids[row]
    return list(found.items())


def _absorb(base: Base, gone: Memory, kept: Memory) -> None:
    """Add one memory's counts, edges and history to another one's, and remove it."""
    connection = base.database.conn
    connection.execute(
        "UPDATE memory SET helped = helped + ?, failed = failed + ? WHERE id = ?",
        (_count(gone.helped), _count(gone.failed), kept.id),
    )
    # as instants: the plugin's times are local without a zone; read again, as it may have absorbed others before
    (used,) = connection.execute("SELECT last_used FROM memory WHERE id = ?", (kept.id,)).fetchone()
    if gone.last_used is not None and gone.last_used > (rows.as_instant(used) or 0):
        connection.execute("UPDATE memory SET last_used = ? WHERE id = ?", (rows.as_text(gone.last_used), kept.id))
    connection.execute("INSERT OR IGNORE INTO memory_extra (memory_id) VALUES (?)", (kept.id,))
    connection.execute(
        "UPDATE memory_extra SET (verified_helped, verified_failed, seen, shown, lift_trials, lift_residual,"
        " lift_injected, lift_used, lift_passed) = (SELECT"
        " memory_extra.verified_helped + coalesce(g.verified_helped, 0),"
        " memory_extra.verified_failed + coalesce(g.verified_failed, 0),"
        " memory_extra.seen + coalesce(g.seen, 1), memory_extra.shown + coalesce(g.shown, 0),"
        " memory_extra.lift_trials + coalesce(g.lift_trials, 0),"
        " memory_extra.lift_residual + coalesce(g.lift_residual, 0),"
        " memory_extra.lift_injected + coalesce(g.lift_injected, 0),"
        " memory_extra.lift_used + coalesce(g.lift_used, 0),"
        " memory_extra.lift_passed + coalesce(g.lift_passed, 0)"
        " FROM (SELECT 1) LEFT JOIN memory_extra g ON g.memory_id = ?) WHERE memory_id = ?",
        (gone.id, kept.id),
    )
    connection.execute(
        "INSERT INTO memory_variant (memory_id, at, trigger, resolution, source) VALUES (?, ?, ?, ?, ?)",
        (kept.id, rows.as_text(base.now()), gone.trigger, gone.resolution, gone.source),
    )
    for column, other in (("from_name", "to_name"), ("to_name", "from_name")):
        connection.execute(
            f"INSERT INTO memory_edge ({column}, {other}, rel_type, weight, created_at)"
            f" SELECT ?, {other}, rel_type, weight, created_at FROM memory_edge"
            f" WHERE {column} = ? AND {other} NOT IN (?, ?)"
            " ON CONFLICT(from_name, to_name, rel_type) DO UPDATE SET weight = weight + excluded.weight",
            (kept.name, gone.name, kept.name, gone.name),
        )
    connection.execute("DELETE FROM memory_edge WHERE ? IN (from_name, to_name)", (gone.name,))
    # the ledger follows: later feedback must find what was shown and counted
    for table in ("injection_memory", "outcome"):
        connection.execute(
            f"UPDATE {table} SET memory_id = ?, revision = ? WHERE memory_id = ? AND revision = ?",
            (kept.id, kept.revision, gone.id, gone.revision),
        )
    for table in ("memory_variant", "memory_revision"):
        connection.execute(f"UPDATE {table} SET memory_id = ? WHERE memory_id = ?", (kept.id, gone.id))
    connection.execute(
        "INSERT OR IGNORE INTO memory_occurrence (memory_id, mark, at)"
        " SELECT ?, mark, at FROM memory_occurrence WHERE memory_id = ?",
        (kept.id, gone.id),
    )
    connection.execute("DELETE FROM memory WHERE id = ?", (gone.id,))
    indexing.index_texts(base, kept.id, indexing.Draft(kept.trigger, kept.resolution, source=kept.source))
    rows.bump(connection, [kept.id])


def _count(value: float) -> int | float:
    return int(value) if value == int(value) else value


def note(base: Base, memory_id: int, draft: Draft) -> bool:
    """Record an occurrence of a memory; False if it was counted before."""
    cursor = base.database.conn.execute(
        "INSERT OR IGNORE INTO memory_occurrence (memory_id, mark, at) VALUES (?, ?, ?)",
        (memory_id, mark(draft), rows.as_text(base.now())),
    )
    return cursor.rowcount > 0


def mark(draft: Draft) -> str:
    """The key of an occurrence: its bead, else its attempt, else its trigger, as another resolution is a correction."""
    if draft.bead or draft.attempt:
        return f"attempt {draft.bead or draft.attempt}"
    said = key(draft.trigger) or draft.trigger
    return f"text {hashlib.sha256(said.encode()).hexdigest()[:32]}"


def recurs(base: Base, index: MemoryIndex, draft: Draft, near: Mapping[int, float], own_id: int | None = None) -> bool:
    """Whether a failure, with those near it, has occurred often enough and none is systemic yet.

    Failures near the nearest ones are of the same kind too. ``own_id`` is the failure itself if already stored; else
    the draft counts as one more occurrence.
    """
    known = rows.fetch(base.database, near)
    if any(memory.type == "systemic" for memory in known.values()):
        return False
    group = dict(known)
    for other in list(known.values())[:_NEAREST]:
        vector = alike.own_trigger(base, index, other.id)
        own = Draft(other.trigger, other.resolution, other.type)
        further = alike.Kin(base, index, own, vector).failures(but=other.id)
        group |= rows.fetch(base.database, further)
    if any(memory.type == "systemic" for memory in group.values() if memory.id != own_id):
        return False
    met = _occurrences(base, {*group, *([own_id] if own_id is not None else [])})
    return len(met | ({mark(draft)} if own_id is None else set())) >= SYSTEMIC_AT


def _occurrences(base: Base, memory_ids: Iterable[int]) -> set[str]:
    """Keys of the occurrences within the window. The plugin's memories occurred when stored."""
    since = base.now() - int(base.window_days * 86_400 * NS)
    met: set[str] = set()
    for some, marks in rows.lots(memory_ids):
        found = base.database.execute(
            "SELECT coalesce(o.mark, 'memory ' || m.id), coalesce(o.at, m.created_at) FROM memory m"
            f" LEFT JOIN memory_occurrence o ON o.memory_id = m.id WHERE m.id IN ({marks})",
            some,
        )
        met |= {name for name, at in found if (instant := rows.as_instant(at)) is not None and instant >= since}
    return met
