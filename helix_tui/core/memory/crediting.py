"""Feedback: which memories an outcome speaks for or against (rulings.md 18, reference/memory.md §4).

====================  =========  ==========  ========================
verification          claimed    injected    what changes
====================  =========  ==========  ========================
passed                yes        yes         helped + 1
failed                yes        yes         failed + 1
passed                no         yes         failed + 1 (did not help)
failed                no         yes         nothing
partial               yes        yes         helped + 0.3, failed + 0.7
partial               no         yes         nothing
any                   yes        no          nothing, and reported
none given            yes / no   yes         seed 004: helped + 1 / failed + 1, kept apart as unverified
====================  =========  ==========  ========================

Where the ledger knows what an attempt was shown, that is what was injected, whatever the caller says. An
attempt counts once; feedback without a verified outcome is taken back when the verified one arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from helix_tui.core.memory import ranking, rows
from helix_tui.core.memory.base import Base
from helix_tui.core.memory.records import Memory, Outcome, Verdict
from helix_tui.core.memory.reports import FeedbackReport

PARTIAL = 0.3
"""How much of a success a partial outcome is (the plugin's latest release)."""

_WORTH: dict[Verdict, float] = {"passed": 1.0, "failed": 0.0, "partial": PARTIAL}
_MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Round:
    """One round of feedback, as the caller gives it."""

    injected: tuple[str, ...] = ()
    utilized: tuple[str, ...] = ()
    verdict: Verdict | None = None
    attempt: str = ""
    bead: str = ""
    kind: str = ""
    revise: bool = False
    """Let this verified outcome replace an earlier one of the same attempt."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """Who was shown, who was claimed, and whose word was not taken."""

    injected: dict[int, Memory]
    claimed: frozenset[int]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    outside: tuple[str, ...]


def change(verdict: Verdict | None, claimed: bool) -> tuple[float, float]:
    """(helped, failed) that an injected memory gains: the table above."""
    if verdict is None or verdict == "passed":
        return (1.0, 0.0) if claimed else (0.0, 1.0)
    worth = _WORTH[verdict]
    return (worth, 1.0 - worth) if claimed else (0.0, 0.0)


def claim(base: Base, attempt: str, names: Iterable[str]) -> None:
    """Keep what an agent says it has used, until the outcome of its attempt is known."""
    with base.writing():
        base.database.conn.executemany(
            "INSERT OR IGNORE INTO claim (attempt, name, at) VALUES (?, ?, ?)",
            [(attempt, name, rows.as_text(base.now())) for name in names],
        )


def feedback(base: Base, said: Round) -> FeedbackReport:
    """Count one round of feedback, all of it or nothing."""
    with base.writing():
        sides = _sides(base, said)
        settled = _settled(base, said.attempt)
        replaced = False
        if settled:
            weaker = settled[0] is None and said.verdict is not None
            corrected = said.revise and said.verdict is not None and settled[0] != said.verdict
            if not (weaker or corrected):
                return FeedbackReport(
                    missing=sides.missing,
                    ignored=sides.ignored,
                    outside_ledger=sides.outside,
                    verdict=said.verdict,
                    attempt=said.attempt,
                    duplicate=True,
                )
            _take_back(base, said.attempt)
            replaced = True
        changes = {each: change(said.verdict, each in sides.claimed) for each in sides.injected}
        _apply(base, said, sides, changes)
        if said.attempt and (sides.injected or said.verdict is not None):
            _settle(base, said)
    names = {each: memory.name for each, memory in sides.injected.items()}
    return FeedbackReport(
        helped=tuple(names[each] for each, (helped, failed) in changes.items() if helped > failed),
        unhelpful=tuple(names[each] for each, (helped, failed) in changes.items() if failed > helped),
        unchanged=tuple(names[each] for each, gains in changes.items() if gains == (0.0, 0.0)),
        missing=sides.missing,
        ignored=sides.ignored,
        outside_ledger=sides.outside,
        verdict=said.verdict,
        attempt=said.attempt,
        replaced=replaced,
    )


def outcomes(base: Base, *, name: str, attempt: str) -> list[Outcome]:
    """What attempts did to a memory's counts, or to those of all memories of an attempt, newest first."""
    conditions: list[str] = []
    values: list[object] = []
    if name:
        memory = rows.find(base.database, name)
        conditions.append("memory_id = ?")
        values.append(memory.id if memory else -1)
    if attempt:
        conditions.append("attempt = ?")
        values.append(attempt)
    found = base.database.execute(
        "SELECT attempt, memory_id, name, at, verdict, claimed, helped, failed, bead FROM outcome"
        f" WHERE {' AND '.join(conditions) or '1 = 1'} ORDER BY id DESC LIMIT {_MOST_LISTED}",
        values,
    )
    return [
        Outcome(row[0], row[1], row[2], rows.as_instant(row[3]), row[4], bool(row[5]), row[6], row[7], row[8])
        for row in found
    ]


def _sides(base: Base, said: Round) -> _Sides:
    listed, missing = _resolve(base, said.injected)
    recorded = base.database.execute("SELECT name FROM claim WHERE attempt = ?", [said.attempt])
    claims = [*said.utilized, *(row[0] for row in recorded if said.attempt)]
    claimed, unknown = _resolve(base, claims)
    shown, possible = _ledger(base, said)
    known = shown | possible
    believed = {each: memory for each, memory in listed.items() if not known or each in known}
    injected = shown | (believed or ({} if shown else possible))
    return _Sides(
        injected=injected,
        claimed=frozenset(claimed) & frozenset(injected),
        missing=tuple(dict.fromkeys([*missing, *unknown])),
        ignored=tuple(memory.name for each, memory in claimed.items() if each not in injected),
        outside=tuple(memory.name for each, memory in listed.items() if each not in injected),
    )


def _ledger(base: Base, said: Round) -> tuple[dict[int, Memory], dict[int, Memory]]:
    """What the ledger says this attempt was shown, and what it may have been shown by way of its bead.

    A bead's own lines name no attempt. The newest is what the bead carries; a caller who knows when the
    attempt ran may name what an older one carried.
    """
    if not (said.attempt or said.bead):
        return {}, {}
    found = base.database.execute(
        "SELECT i.id, i.attempt, s.memory_id FROM injection i"
        " JOIN injection_memory s ON s.injection_id = i.id WHERE (i.attempt <> '' AND i.attempt = ?)"
        " OR (i.attempt = '' AND i.bead <> '' AND i.bead = ?)"
        " ORDER BY i.id, s.position",
        [said.attempt, said.bead or said.attempt],
    ).fetchall()
    own = [memory_id for _, attempt, memory_id in found if attempt]
    newest = max((number for number, attempt, _ in found if not attempt), default=0)
    carried = [
        memory_id
        for number, attempt, memory_id in found
        if not attempt and (said.injected or number == newest)
    ]
    return rows.fetch(base.database, own), rows.fetch(base.database, carried)


def _resolve(base: Base, names: Iterable[str]) -> tuple[dict[int, Memory], list[str]]:
    found: dict[int, Memory] = {}
    missing = []
    for name in dict.fromkeys(names):
        memory = rows.find(base.database, name)
        if memory is None:
            missing.append(name)
        else:
            found[memory.id] = memory
    return found, missing


def _settled(base: Base, attempt: str) -> tuple[Verdict | None] | None:
    if not attempt:
        return None
    row: tuple[Verdict | None] | None = base.database.execute(
        "SELECT verdict FROM settlement WHERE attempt = ?", [attempt]
    ).fetchone()
    return row


def _settle(base: Base, said: Round) -> None:
    base.database.execute(
        "INSERT INTO settlement (attempt, verdict, at, bead, kind) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT(attempt) DO UPDATE SET verdict = excluded.verdict, at = excluded.at",
        [said.attempt, said.verdict, rows.as_text(base.now()), said.bead, said.kind],
    )


def _apply(base: Base, said: Round, sides: _Sides, changes: dict[int, tuple[float, float]]) -> None:
    connection = base.database.conn
    now = rows.as_text(base.now())
    verified = said.verdict is not None
    surprise = _surprise(base, said) if said.verdict is not None else 0.0
    for each, (helped, failed) in changes.items():
        claimed = each in sides.claimed
        trial = ranking.exposure(claimed) if verified else 0.0
        connection.execute(
            "UPDATE memory SET helped = coalesce(helped, 0) + ?, failed = coalesce(failed, 0) + ?,"
            " last_used = CASE WHEN ? THEN ? ELSE last_used END WHERE id = ?",
            (_whole(helped), _whole(failed), helped > 0, now, each),
        )
        connection.execute(
            "INSERT INTO outcome (attempt, memory_id, name, at, verdict, claimed, helped, failed, bead,"
            " trial, residual) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                said.attempt,
                each,
                sides.injected[each].name,
                now,
                said.verdict,
                claimed,
                helped,
                failed,
                said.bead,
                trial,
                trial * surprise,
            ),
        )
        if verified:
            _add_evidence(base, each, helped, failed, trial, trial * surprise, 1, int(claimed))
    if verified:
        _count_task(base, said.kind, 1, _WORTH[said.verdict or "failed"])


def _add_evidence(
    base: Base,
    memory_id: int,
    helped: float,
    failed: float,
    trial: float,
    residual: float,
    injected: int,
    used: int,
) -> None:
    base.database.conn.execute(
        "INSERT INTO memory_extra (memory_id, verified_helped, verified_failed, lift_trials, lift_residual,"
        " lift_injected, lift_used) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(memory_id) DO UPDATE SET"
        " verified_helped = verified_helped + ?2, verified_failed = verified_failed + ?3,"
        " lift_trials = lift_trials + ?4, lift_residual = lift_residual + ?5,"
        " lift_injected = lift_injected + ?6, lift_used = lift_used + ?7",
        (memory_id, helped, failed, trial, residual, injected, used),
    )
    rows.bump(base.database.conn, [memory_id])


def _surprise(base: Base, said: Round) -> float:
    """How this outcome differs from the base rate of its kind, as it was before it (engines.md §2.5)."""
    row = base.database.execute("SELECT tried, passed FROM task_kind WHERE kind = ?", [said.kind]).fetchone()
    tried, passed = row or (0, 0)
    return ranking.surprise(_WORTH[said.verdict or "failed"], tried, passed)


def _count_task(base: Base, kind: str, tried: int, passed: float) -> None:
    """Count a task to its kind and to all tasks together, the base rate where the kind is unknown."""
    base.database.conn.executemany(
        "INSERT INTO task_kind (kind, tried, passed) VALUES (?1, ?2, ?3) ON CONFLICT(kind) DO UPDATE SET"
        " tried = tried + ?2, passed = passed + ?3",
        [(each, tried, passed) for each in dict.fromkeys([kind, ""])],
    )


def _take_back(base: Base, attempt: str) -> None:
    """Undo what an attempt's earlier feedback has counted."""
    connection = base.database.conn
    former: Sequence[tuple[int, float, float, int, float, float, Verdict | None]] = connection.execute(
        "SELECT memory_id, helped, failed, claimed, trial, residual, verdict FROM outcome WHERE attempt = ?",
        (attempt,),
    ).fetchall()
    for memory_id, helped, failed, claimed, trial, residual, verdict in former:
        connection.execute(
            "UPDATE memory SET helped = max(0, helped - ?), failed = max(0, failed - ?) WHERE id = ?",
            (_whole(helped), _whole(failed), memory_id),
        )
        if verdict is not None:
            _add_evidence(base, memory_id, -helped, -failed, -trial, -residual, -1, -claimed)
    row = connection.execute("SELECT verdict, kind FROM settlement WHERE attempt = ?", (attempt,)).fetchone()
    if row and row[0] is not None:
        verdict = row[0]
        _count_task(base, row[1], -1, -_WORTH[verdict])
    connection.execute("DELETE FROM outcome WHERE attempt = ?", (attempt,))


def _whole(value: float) -> int | float:
    """Whole counts stay whole numbers in the plugin's columns."""
    return int(value) if value == int(value) else value
