"""Feedback: count an outcome for or against memories (docs/decisions/0014, docs/formats/memory.md §4).

====================  =========  ==========  ========================
verification          claimed    injected    what changes
====================  =========  ==========  ========================
passed                yes        yes         helped + 1
failed                yes        yes         failed + 1
passed                no         yes         failed + 1 (did not help)
passed                no         for a path  nothing: shown for a file, not for a task
failed                no         yes         nothing
partial               yes        yes         helped + 0.3, failed + 0.7
partial               no         yes         nothing
any                   yes        no          nothing, and reported
none given            yes / no   yes         helix v1: helped + 1 / failed + 1, kept apart as unverified
====================  =========  ==========  ========================

If the ledger records what an attempt was shown, that counts as injected, whatever the caller says. An attempt counts
once; unverified feedback is undone when a verified outcome arrives. Counts go to the revision that was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from helix_tui.core.memory.credit import Tally, attribute, base_rate, exposure
from helix_tui.core.memory.records import Memory, MemoryOutcome, Verdict
from helix_tui.core.memory.reports import FeedbackReport
from helix_tui.core.memory.store import revisions, rows
from helix_tui.core.memory.store.database import Base, add_evidence, credit

PARTIAL = 0.3
"""The share of a success that a partial outcome counts as (the plugin's latest release)."""

_WORTH: dict[Verdict, float] = {"passed": 1.0, "failed": 0.0, "partial": PARTIAL}
_MOST_LISTED = 1_000


class Round(Struct, frozen=True):
    """One round of feedback, as the caller gives it."""

    injected: tuple[str, ...] = ()
    utilized: tuple[str, ...] = ()
    verdict: Verdict | None = None
    attempt: str = ""
    bead: str = ""
    kind: str = ""
    revise: bool = False
    """Whether this verified outcome replaces an earlier one of the same attempt, even with the same verdict if more was
    shown or claimed since.
    """


class _Sides(Struct, frozen=True):
    """Which memories were shown, which claimed, and which reports were rejected."""

    injected: dict[int, Memory]
    claimed: frozenset[int]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    outside: tuple[str, ...]
    aside: frozenset[int]
    """Shown only for a path."""


def change(verdict: Verdict | None, claimed: bool) -> tuple[float, float]:
    """The (helped, failed) added to an injected memory: the table above."""
    if verdict is None or verdict == "passed":
        return (1.0, 0.0) if claimed else (0.0, 1.0)
    worth = _WORTH[verdict]
    return (worth, 1.0 - worth) if claimed else (0.0, 0.0)


def claim(base: Base, attempt: str, names: Iterable[str]) -> None:
    """Keep what an agent reports as used, until the outcome of its attempt is known."""
    with base.writing():
        base.database.conn.executemany(
            "INSERT OR IGNORE INTO claim (attempt, name, at) VALUES (?, ?, ?)",
            [(attempt, name, rows.as_text(base.now())) for name in names],
        )


def feedback(base: Base, said: Round) -> FeedbackReport:
    """Count one round of feedback in one transaction."""
    with base.writing():
        sides = _sides(base, said)
        settled = _settled(base, said.attempt)
        replaced = False
        if settled:
            # an attempt counts once: a verified outcome replaces an unverified one, a revised outcome another
            weaker = settled[0] is None and said.verdict is not None
            corrected = (
                said.revise
                and said.verdict is not None
                and (settled[0] != said.verdict or _counted(base, said.attempt) != _sides_counted(sides))
            )
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
        changes = {
            each: (0.0, 0.0)
            if each in sides.aside and each not in sides.claimed
            else change(said.verdict, each in sides.claimed)
            for each in sides.injected
        }
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


def outcomes(base: Base, name: str = "", attempt: str = "") -> list[MemoryOutcome]:
    """The effects of outcomes on a memory's counts, or on those of all memories of an attempt, newest first."""
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
        "SELECT attempt, memory_id, name, at, verdict, claimed, helped, failed, bead,"
        " revision FROM outcome"
        f" WHERE {' AND '.join(conditions) or '1 = 1'} ORDER BY id DESC LIMIT {_MOST_LISTED}",
        values,
    )
    return [
        MemoryOutcome(
            attempt=row[0],
            memory_id=row[1],
            name=row[2],
            at=rows.as_instant(row[3]),
            verdict=row[4],
            claimed=bool(row[5]),
            helped=row[6],
            failed=row[7],
            bead=row[8],
            revision=row[9],
        )
        for row in found
    ]


def _sides(base: Base, said: Round) -> _Sides:
    listed, missing = _resolve(base, said.injected)
    recorded = base.database.execute("SELECT name FROM claim WHERE attempt = ?", [said.attempt])
    # the agent's claims during its work count in addition to the caller's
    claims = [*said.utilized, *(row[0] for row in recorded if said.attempt)]
    claimed, unknown = _resolve(base, claims)
    shown, possible, for_task = _ledger(base, said)
    # `possible`: what the bead's block contained, which any attempt at it may have seen
    known = shown | possible
    # the ledger outranks the caller, who counts only if the ledger has no line
    believed = {each: memory for each, memory in listed.items() if not known or each in known}
    # the bead's block counts only if neither the attempt's own lines nor the caller say more
    injected = shown | (believed or ({} if shown else possible))
    return _Sides(
        injected=injected,
        claimed=frozenset(claimed) & frozenset(injected),
        missing=tuple(dict.fromkeys([*missing, *unknown])),
        ignored=tuple(memory.name for each, memory in claimed.items() if each not in injected),
        outside=tuple(memory.name for each, memory in listed.items() if each not in injected),
        aside=frozenset(known) - for_task,
    )


def _ledger(base: Base, said: Round) -> tuple[dict[int, Memory], dict[int, Memory], frozenset[int]]:
    """What this attempt was shown by the ledger, what it may have seen in its bead, and which of them were for its
    task.

    A bead's own lines name no attempt, or the one that saw them; the newest line is the bead's current block. A caller
    who knows when the attempt ran may name those of an older one.
    """
    if not (said.attempt or said.bead):
        return {}, {}, frozenset()
    found = base.database.execute(
        "SELECT i.at, i.id, i.attempt, s.memory_id, s.revision, i.scope FROM injection i"
        " JOIN injection_memory s ON s.injection_id = i.id WHERE (i.attempt <> '' AND i.attempt = ?)"
        " OR ((i.attempt = '' OR i.scope = 'bead') AND i.bead <> '' AND i.bead = ?)"
        " ORDER BY i.at, i.id, s.position",
        [said.attempt, said.bead or said.attempt],
    ).fetchall()
    own = {row[3]: row[4] for row in found if row[2] and row[2] == said.attempt}
    beads = [row for row in found if row[2] != said.attempt or not row[2]]
    newest = beads[-1][1] if beads else 0
    carried = {row[3]: row[4] for row in beads if said.injected or row[1] == newest}
    for_task = frozenset(memory_id for _, _, _, memory_id, _, scope in found if scope != "path")
    return _as_shown(base, own), _as_shown(base, carried), for_task


def _as_shown(base: Base, shown: Mapping[int, int]) -> dict[int, Memory]:
    """Memories by id, in the revision that was shown."""
    found = rows.fetch(base.database, shown)
    for memory_id, number in shown.items():
        memory = found.get(memory_id)
        if memory is None or memory.revision != number:
            older = revisions.former(base, memory_id, number)
            if older is not None:
                found[memory_id] = older.memory
    return {memory_id: found[memory_id] for memory_id in shown if memory_id in found}


def _resolve(base: Base, names: Iterable[str]) -> tuple[dict[int, Memory], list[str]]:
    found: dict[int, Memory] = {}
    missing = []
    for name in dict.fromkeys(names):
        memory = rows.find(base.database, name) or revisions.superseded(base, name)
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


def _counted(base: Base, attempt: str) -> set[tuple[int, bool]]:
    """The memories counted by an attempt's earlier feedback, and whether each was claimed."""
    found = base.database.execute("SELECT memory_id, claimed FROM outcome WHERE attempt = ?", [attempt])
    return {(row[0], bool(row[1])) for row in found}


def _sides_counted(sides: _Sides) -> set[tuple[int, bool]]:
    return {(each, each in sides.claimed) for each in sides.injected}


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
    surprises, bare = _attributed(base, said, sides.injected) if verified and changes else ({}, 0.0)
    for each, (helped, failed) in changes.items():
        claimed = each in sides.claimed
        trial = exposure(claimed) if verified else 0.0
        surprise = surprises.get(each, 0.0)
        memory = sides.injected[each]
        # only helping counts as use: a memory claimed before a failed check must not look fresh
        used_at = now if helped > 0 else None
        credit(base, memory, helped=helped, failed=failed, used_at=used_at)
        connection.execute(
            "INSERT INTO outcome (attempt, memory_id, name, at, verdict, claimed, helped, failed, bead,"
            " trial, residual, passed, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                said.attempt,
                each,
                memory.name,
                now,
                said.verdict,
                claimed,
                helped,
                failed,
                said.bead,
                trial,
                trial * surprise,
                bare,
                memory.revision,
            ),
        )
        if verified:
            add_evidence(
                base,
                memory,
                helped=helped,
                failed=failed,
                trial=trial,
                residual=trial * surprise,
                injected=1,
                used=int(claimed),
                passed=bare,
            )
    if verified:
        _count_task(base, said.kind, 1, _WORTH[said.verdict or "failed"])


def _attributed(base: Base, said: Round, injected: dict[int, Memory]) -> tuple[dict[int, float], float]:
    """Attribute this outcome to each memory and to the task without them (`credit.attribute`)."""
    row = base.database.execute("SELECT tried, passed FROM task_kind WHERE kind = ?", [said.kind]).fetchone()
    marks = ", ".join("?" * len(injected))
    found = base.database.execute(
        "SELECT memory_id, lift_trials, lift_residual, lift_injected, lift_passed FROM memory_extra"
        f" WHERE memory_id IN ({marks})",
        list(injected),
    ).fetchall()
    known = {row[0]: Tally(*map(rows.number, row[1:])) for row in found}
    nothing = Tally(0.0, 0.0, 0.0, 0.0)
    shown = {each: known.get(each, nothing) for each in injected}
    return attribute(base_rate(*(row or (0, 0))), _WORTH[said.verdict or "failed"], shown)


def _count_task(base: Base, kind: str, tried: int, passed: float) -> None:
    """Count a task for its kind and for all tasks, the base rate of unknown kinds."""
    base.database.conn.executemany(
        "INSERT INTO task_kind (kind, tried, passed) VALUES (?1, ?2, ?3) ON CONFLICT(kind) DO UPDATE SET"
        " tried = tried + ?2, passed = passed + ?3",
        [(kind_tried, tried, passed) for kind_tried in dict.fromkeys([kind, ""])],
    )


def _take_back(base: Base, attempt: str) -> None:
    """Undo the counts of an attempt's earlier feedback."""
    connection = base.database.conn
    former = connection.execute(
        "SELECT memory_id, revision, helped, failed, claimed, trial, residual, verdict, passed FROM outcome"
        " WHERE attempt = ?",
        (attempt,),
    ).fetchall()
    verdict: Verdict | None
    for memory_id, revision, helped, failed, claimed, trial, residual, verdict, passed in former:
        memory = _as_shown(base, {memory_id: revision}).get(memory_id)
        if memory is None:
            continue  # it has been removed since
        credit(base, memory, helped=-helped, failed=-failed, used_at=None)
        if verdict is not None:
            add_evidence(
                base,
                memory,
                helped=-helped,
                failed=-failed,
                trial=-trial,
                residual=-residual,
                injected=-1,
                used=-claimed,
                # NULL in a row of a release that summed the plain verdict (`_PASSED` in store/schema)
                passed=-(_WORTH[verdict] if passed is None else passed),
            )
    row = connection.execute("SELECT verdict, kind FROM settlement WHERE attempt = ?", (attempt,)).fetchone()
    if row and row[0] is not None:
        verdict = row[0]
        _count_task(base, row[1], -1, -_WORTH[verdict])
    connection.execute("DELETE FROM outcome WHERE attempt = ?", (attempt,))
