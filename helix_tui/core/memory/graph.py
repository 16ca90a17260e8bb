"""Edges between memories: made, strengthened, followed, suggested (both versions' names,
docs/decisions/0016)."""

from __future__ import annotations

import math

import numpy as np

from helix_tui.core.memory.records import MORE_RELATIONS, RELATIONS, Connected, Edge, Memory, Related
from helix_tui.core.memory.reports import Suggestion
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.store.index import WHOLE

WEAKEST = 0.5
"""Edges of less weight are not followed (helix v1's code)."""

SUGGESTED = 0.6
"""Cosine of two whole memories at which an edge is suggested (helix v2's code)."""

MAX_HOPS = 10
_MOST = 10_000


def relate(base: Base, from_name: str, to_name: str, rel_type: str, weight: float = 1.0) -> Related:
    """Add an edge, or add to the weight of the existing one."""
    if rel_type not in RELATIONS + MORE_RELATIONS:
        return Related("rejected", reason=f"type must be one of {', '.join(RELATIONS + MORE_RELATIONS)}")
    if not math.isfinite(weight) or weight <= 0:
        return Related("rejected", reason="weight must be above 0")
    with base.writing():
        ends = [rows.find(base.database, name) for name in (from_name, to_name)]
        for name, end in zip((from_name, to_name), ends, strict=True):
            if end is None:
                return Related("rejected", reason=f"memory not found: {name}")
        one, other = (end.name for end in ends if end is not None)
        if one == other:
            return Related("rejected", reason="a memory is not related to itself")
        known = edges(base, one, rel_type, other)
        base.database.conn.execute(
            "INSERT INTO memory_edge (from_name, to_name, rel_type, weight, created_at)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT(from_name, to_name, rel_type)"
            " DO UPDATE SET weight = weight + excluded.weight",
            (one, other, rel_type, weight, rows.as_text(base.now())),
        )
        return Related("strengthened" if known else "added", edges(base, one, rel_type, other)[0])


def edges(base: Base, name: str = "", rel_type: str = "", to_name: str = "") -> list[Edge]:
    """Edges of a memory, of a kind, or from one memory to another, oldest first."""
    conditions, values = ["1 = 1"], []
    if name and to_name:
        conditions.append("from_name = ? AND to_name = ?")
        values += [name, to_name]
    elif name:
        found = rows.find(base.database, name)
        conditions.append("(from_name = ? OR to_name = ?)")
        values += [found.name if found else name] * 2
    if rel_type:
        conditions.append("rel_type = ?")
        values.append(rel_type)
    where = " AND ".join(conditions)
    return [
        Edge(row[0], row[1], row[2], row[3], rows.number(row[4]), rows.as_instant(row[5]))
        for row in base.database.execute(
            "SELECT id, from_name, to_name, rel_type, weight, created_at FROM memory_edge"
            f" WHERE {where} ORDER BY id LIMIT {_MOST}",
            values,
        )
    ]


def connected(base: Base, name: str, max_hops: int = 2) -> list[Connected]:
    """Memories reachable along edges in both directions, nearest first, each once (docs/formats/memory.md §3)."""
    start = rows.find(base.database, name)
    if start is None:
        return []
    reached: dict[str, tuple[int, str, float]] = {start.name: (0, "", 0.0)}
    border = [start.name]
    for hop in range(1, min(max_hops, MAX_HOPS) + 1):
        following = []
        for here in border:
            for edge in edges(base, here, ""):
                other = edge.to_name if edge.from_name == here else edge.from_name
                if edge.weight >= WEAKEST and other not in reached:
                    reached[other] = (hop, edge.rel_type, edge.weight)
                    following.append(other)
        border = following
    found = []
    for other, (hop, via, weight) in reached.items():
        memory = rows.find(base.database, other) if hop else None
        if memory is not None:
            found.append(Connected(memory, hop, via, weight))
    return found


def suggest(base: Base, name: str, limit: int = 5) -> list[Suggestion]:
    """Edges suggested by the similarity of memories, likeliest first (helix v2's code)."""
    with base.reading() as index:
        source = rows.find(base.database, name)
        vectors = index.vectors(base.database, WHOLE)
        if source is None or vectors is None or not vectors.present[index.place[source.id]]:
            return []
        alike = vectors.similarities(vectors.row(index.place[source.id]), index.size)
        alike[~(index.alive[: index.size] & vectors.present[: index.size])] = -1.0
        # a memory is nearest to itself
        alike[index.place[source.id]] = -1.0
        places = np.flatnonzero(alike >= SUGGESTED)
        order = places[np.argsort(-alike[places], kind="stable")]
        near = {int(index.ids[place]): float(alike[place]) for place in order}
        others = rows.fetch(base.database, near)
        known = {(edge.from_name, edge.to_name, edge.rel_type) for edge in edges(base, source.name, "")}
    found = [_suggestion(source, others[each], value) for each, value in near.items() if each in others]
    return [
        each
        for each in found
        if (each.from_name, each.to_name, each.rel_type) not in known
        # an edge in the other direction exists already
        and (each.to_name, each.from_name, each.rel_type) not in known
    ][: max(0, limit)]


def _suggestion(source: Memory, other: Memory, alike: float) -> Suggestion:
    failures = ("failure", "systemic")
    if source.type == "pattern" and other.type in failures:
        ends, kind, reason = (source.name, other.name), "solves", "pattern may solve this failure"
    elif source.type in failures and other.type == "pattern":
        ends, kind, reason = (other.name, source.name), "solves", "pattern may solve this failure"
    elif source.type == other.type:
        ends, kind, reason = (source.name, other.name), "similar", "they say nearly the same"
    else:
        ends, kind, reason = (source.name, other.name), "co_occurs", "they belong to the same topic"
    return Suggestion(*ends, kind, f"{reason} (similarity {alike:.2f})", alike)
