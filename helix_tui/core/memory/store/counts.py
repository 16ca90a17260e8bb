"""Where counts are kept: in the plugin's row for the newest revision, in the history for an older one."""

from __future__ import annotations

from helix_tui.core.memory.records import Memory
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base


def is_newest(base: Base, memory_id: int, revision: int) -> bool:
    """Whether a memory stands in its table, in this revision."""
    row = base.database.execute(
        "SELECT coalesce(e.revision, 1) FROM memory m LEFT JOIN memory_extra e ON e.memory_id = m.id WHERE m.id = ?",
        [memory_id],
    ).fetchone()
    return row is not None and row[0] == revision


def credit(base: Base, memory: Memory, *, helped: float, failed: float, used_at: str | None) -> None:
    """Add to a revision's two counts, never below nothing; ``used_at`` is when it was of use, if it was."""
    values = (whole(helped), whole(failed), used_at)
    connection = base.database.conn
    changes = (
        # a hand or the plugin may have left NULL, or less than is taken back now
        " SET helped = max(0, coalesce(helped, 0) + ?), failed = max(0, coalesce(failed, 0) + ?),"
        " last_used = coalesce(?, last_used)"
    )
    if is_newest(base, memory.id, memory.revision):
        connection.execute(f"UPDATE memory{changes} WHERE id = ?", (*values, memory.id))
    else:
        connection.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?",
            (*values, memory.id, memory.revision),
        )


def discredit(base: Base, memory_id: int, revision: int, last_used: str | None) -> None:
    """Take one helped from a revision, and give it its last use back."""
    changes = " SET helped = max(0, helped - 1), last_used = ?"
    if is_newest(base, memory_id, revision):
        base.database.conn.execute(f"UPDATE memory{changes} WHERE id = ?", (last_used, memory_id))
    else:
        base.database.conn.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?",
            (last_used, memory_id, revision),
        )


def add_evidence(
    base: Base,
    memory: Memory,
    *,
    helped: float,
    failed: float,
    trial: float,
    residual: float,
    injected: int,
    used: int,
    passed: float,
) -> None:
    """Add what a verified outcome says to a revision."""
    values = (helped, failed, trial, residual, injected, used, passed)
    changes = (
        " SET verified_helped = verified_helped + ?, verified_failed = verified_failed + ?,"
        " lift_trials = lift_trials + ?, lift_residual = lift_residual + ?,"
        " lift_injected = lift_injected + ?, lift_used = lift_used + ?, lift_passed = lift_passed + ?"
    )
    connection = base.database.conn
    if is_newest(base, memory.id, memory.revision):
        connection.execute("INSERT OR IGNORE INTO memory_extra (memory_id) VALUES (?)", (memory.id,))
        connection.execute(f"UPDATE memory_extra{changes} WHERE memory_id = ?", (*values, memory.id))
        rows.bump(connection, [memory.id])
    else:
        connection.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?",
            (*values, memory.id, memory.revision),
        )


def whole(value: float) -> int | float:
    """Whole counts stay whole numbers in the plugin's columns."""
    return int(value) if value == int(value) else value
