"""When a failure is systemic: three distinct occurrences of its kind within a window (docs/decisions/0013).

The same text stored again is no occurrence, nor is what one bead met in several attempts. Helix v2's code
looks back seven days; how many is a setting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from helix_tui.core.ground.time import NS
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.base import Base
from helix_tui.core.memory.store.index import MemoryIndex
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.words import key
from helix_tui.core.memory.write import alike

SYSTEMIC_AT = 3
"""Occurrences that make a failure systemic (helix v2)."""

_NEAREST = 3
"""Near failures whose own kin is looked at."""


def note(base: Base, memory_id: int, draft: Draft) -> bool:
    """Enter an occurrence of a memory; False where it was counted before."""
    cursor = base.database.conn.execute(
        "INSERT OR IGNORE INTO memory_occurrence (memory_id, mark, at) VALUES (?, ?, ?)",
        (memory_id, mark(draft), rows.as_text(base.now())),
    )
    return cursor.rowcount > 0


def mark(draft: Draft) -> str:
    """What makes an occurrence one: its bead, else its attempt, else its text."""
    if draft.bead or draft.attempt:
        return f"attempt {draft.bead or draft.attempt}"
    said = f"{key(draft.trigger) or draft.trigger}\0{key(draft.resolution) or draft.resolution}"
    return f"text {hashlib.sha256(said.encode()).hexdigest()[:32]}"


def recurs(base: Base, index: MemoryIndex, draft: Draft, near: Mapping[int, float], own_id: int | None = None) -> bool:
    """Whether a failure, with those near it, has occurred often enough, and none of them is systemic yet.

    What hangs together is of a kind: those near the nearest ones belong to it too. ``own_id`` is the failure
    itself where it is remembered already; else the draft is one occurrence more.
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
    """Marks of what occurred within the window. What the plugin has stored occurred when it was stored."""
    wanted = list(memory_ids)
    since = base.now() - int(base.window_days * 86_400 * NS)
    marks = ", ".join("?" * len(wanted))
    found = base.database.execute(
        "SELECT m.id, coalesce(o.mark, 'memory ' || m.id), coalesce(o.at, m.created_at) FROM memory m"
        f" LEFT JOIN memory_occurrence o ON o.memory_id = m.id WHERE m.id IN ({marks})",
        wanted,
    ).fetchall()
    return {name for _, name, at in found if (instant := rows.as_instant(at)) is not None and instant >= since}
