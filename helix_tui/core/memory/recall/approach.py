"""Metacognition: whether to continue an approach, change it, or ask (docs/formats/memory.md §3)."""

from __future__ import annotations

from collections.abc import Sequence

from helix_tui.core.memory.guard.guard import shown
from helix_tui.core.memory.recall import recall as recalling
from helix_tui.core.memory.records import Memory, Recall
from helix_tui.core.memory.reports import Assessment
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.base import Base
from helix_tui.core.memory.words import key, likeness

PIVOT_AT, ESCALATE_AT = 3, 5
SAME = 0.85
"""From here on two approaches are one: cosine, or share of common words."""

BLAMED = 0.5
"""Relevance of a known failure to an approach from which on it speaks against it."""

_TASK = 100
_PIVOT = 200
_ELSE = "Try a fundamentally different approach"


def assess(base: Base, task: str, approach: str, history: Sequence[str] | None) -> Assessment:
    """Judge an approach by what was tried before; each call is one more attempt at the task.

    ``history`` is what was tried, oldest first; None takes what earlier calls have recorded.
    """
    name = key(task)[:_TASK]
    tried = [*(_recorded(base, name) if history is None else history), approach]
    if history is None and not base.read_only:
        with base.writing():
            base.database.execute(
                "INSERT INTO approach (task, approach, at) VALUES (?, ?, ?)",
                [name, approach, rows.as_text(base.now())],
            )
    attempts = len(tried)
    if attempts >= ESCALATE_AT:
        return Assessment("escalate", f"{attempts} attempts without success", attempts)
    if attempts >= PIVOT_AT and all(_same(base, approach, former) for former in tried[-PIVOT_AT:-1]):
        reason = f"Same approach attempted {attempts} times without success"
        return Assessment("pivot", reason, attempts, _way_out(base, task))
    against = recalling.recall(base, recalling.RecallQuery(approach, limit=3, gate=BLAMED))
    for memory in _open(against):
        if memory.type in ("failure", "systemic"):
            reason = f"Known failure: {memory.name}"
            return Assessment("pivot", reason, attempts, memory.resolution[:_PIVOT])
    return Assessment("continue", "nothing speaks against it", attempts)


def _recorded(base: Base, name: str) -> list[str]:
    return [row[0] for row in base.database.execute("SELECT approach FROM approach WHERE task = ? ORDER BY id", [name])]


def _same(base: Base, one: str, other: str) -> bool:
    if key(one) == key(other):
        return True
    vectors = base.encode([one, other])
    return (likeness(one, other) if vectors is None else float(vectors[0] @ vectors[1])) >= SAME


def _way_out(base: Base, task: str) -> str:
    """The pattern for this task that has helped most, else what a known failure says to do instead."""
    answer = recalling.recall(base, recalling.RecallQuery(task, limit=10, gate=recalling.GATE))
    found = _open(answer)
    patterns = [memory for memory in found if memory.type == "pattern"]
    if patterns:
        return max(patterns, key=lambda memory: memory.effectiveness).resolution[:_PIVOT]
    for memory in found:
        if {"instead", "try"} & set(memory.resolution.lower().split()):
            return memory.resolution[:_PIVOT]
    return _ELSE


def _open(answer: Recall) -> list[Memory]:
    """What was found, as it may be shown; nothing of what gives orders."""
    return [memory for hit in answer.found if not (memory := shown(hit.memory)).withheld]
