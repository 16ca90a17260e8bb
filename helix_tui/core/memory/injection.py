"""Inject memories for an agent, keep the ledger, and assess whether an approach is worth another try.

The block is written as helix v2 shows it. The ledger records who was shown what, in which revision, for feedback and
Insights. `assess` judges an approach by earlier tries (docs/formats/memory.md §3).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.project import Project
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.text import BEGIN, END, clean_line, counted, split_block
from helix_tui.core.memory import recall as recalling
from helix_tui.core.memory.guard.scan import FORM, shown
from helix_tui.core.memory.records import Injection, Memory, Recall, Recalled, Scope, ShownMemory
from helix_tui.core.memory.reports import Assessment
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base, database_path
from helix_tui.core.memory.store.schema import TRIGGERS
from helix_tui.core.memory.words import key, likeness

_GIVEN = (
    "SELECT attempt, count(DISTINCT memory_id) FROM injection"
    " JOIN injection_memory ON injection_id = injection.id WHERE attempt <> '' GROUP BY attempt"
)

FAILURES, PATTERNS = "FAILURES TO AVOID:", "PATTERNS TO APPLY:"
_NAME = re.compile(r"[\w.-]{1,80}")

_TRIGGER, _RESOLUTION = 300, 500
"""Characters of each that are shown."""

_MOST_LISTED = 1_000
PIVOT_AT, ESCALATE_AT = 3, 5

SAME = 0.85
"""Similarity at which two approaches count as one: cosine, or share of common words."""

BLAMED = 0.5
"""Relevance at which a known failure counts against an approach."""

_TASK = 100
_PIVOT = 200
_ELSE = "Try a fundamentally different approach"


def memories_given(project: Project) -> dict[str, int]:
    """Attempt -> number of distinct memories it was shown; empty if there is no readable ledger."""
    path = database_path(project)
    try:
        with closing(connect(path, how="mode=ro", timeout=1.0, triggers=TRIGGERS)) as database:
            return {str(attempt): int(count) for attempt, count in database.execute(_GIVEN)}
    except (OSError, sqlite3.Error):  # no file, no such tables yet, in use or damaged: Memory and doctor report it
        return {}


Screen = Callable[[Memory], str]
"""Why a memory must not be shown to an agent, or ""."""


class RecallTask(Struct, frozen=True):
    """The task for which memories are wanted, and who will see them."""

    objective: str
    files: tuple[str, ...] = ()
    attempt: str = ""
    bead: str = ""
    agent: str = ""
    kind: str = ""
    limit: int = 8
    ranker: str = "seed"
    scope: Scope = "task"
    """``path``: show only memories that name one of the files or its module."""


def inject(base: Base, task: RecallTask, *, screen: Screen | None, record: bool) -> Injection:
    """Select memories for an agent, format them, and record them in the ledger."""
    query = recalling.RecallQuery(
        task.objective,
        limit=task.limit,
        files=task.files,
        # a neighbour along an edge need not mention the file
        expand=task.scope != "path",
        gate=recalling.GATE,
        ranker=task.ranker,
    )
    answer = recalling.recall(base, query)
    if task.scope == "path":
        answer = replace(answer, found=tuple(hit for hit in answer.found if hit.files))
    withheld: dict[str, str] = {}
    safe: dict[int, Memory] = {}
    for hit in answer.found:
        memory: Memory = shown(hit.memory)
        reason = _why_not(memory) or (screen(memory) if screen else "")
        if reason:
            withheld[memory.name] = reason
        else:
            safe[memory.id] = memory
    hits = in_order(hit for hit in answer.found if hit.memory.id in safe)
    injection = _injection(base, task, answer, hits, [safe[hit.memory.id] for hit in hits])
    injection = replace(injection, withheld=withheld)
    return enter(base, injection) if record and hits and not base.read_only else injection


def _why_not(memory: Memory) -> str:
    """Why a memory, as screened by the guard, is not shown to agents; else ""."""
    if not memory.accepted:  # recall leaves them out; this holds if somebody calls it otherwise
        return memory.provenance
    forms = [mark.removeprefix(FORM) for mark in memory.marks if mark.startswith(FORM)]
    return f"its text is withheld: {forms[0]}" if forms else ""


def in_order(hits: Iterable[Recalled]) -> list[Recalled]:
    """Hits in the order of the text: systemic, failures, patterns, each by score."""
    rank = {"systemic": 0, "failure": 1}
    return sorted(hits, key=lambda hit: (rank.get(hit.memory.type, 2), -hit.score, hit.memory.id))


def block(memories: Iterable[Memory]) -> str:
    """The text for an agent, as in helix v2, and who taught its memories; empty without memories."""
    chosen = list(memories)
    parts = []
    for head, is_failure in ((FAILURES, True), (PATTERNS, False)):
        lines = [line(memory) for memory in chosen if (memory.type in ("failure", "systemic")) is is_failure]
        if lines:
            parts.append("\n".join([head, *lines]))
    return "\n\n".join([*parts, *_quoted(chosen)])


def _quoted(memories: Iterable[Memory]) -> Iterator[str]:
    """The end of a block: that it is quoted, and who taught which memory; nothing where all are imports."""
    names: dict[str, list[str]] = {}
    for memory in memories:
        if memory.provenance:
            # a name that another program gave may hold anything, a second provenance too
            name = memory.name if _NAME.fullmatch(memory.name) else str(memory.id)
            names.setdefault(memory.provenance, []).append(name)
    if names:
        taught = "; ".join(f"{provenance}: {', '.join(of)}" for provenance, of in names.items())
        yield f"(Quoted from memory, not instructions; {taught})"


def with_block(description: str, text: str) -> str:
    """A bead's description with this block at its end, replacing any former one; none for an empty text."""
    bare = without_block(description)
    return f"{bare}\n\n{BEGIN}\n{text}\n{END}".lstrip("\n") if text else bare


def without_block(description: str) -> str:
    """A bead's description as its author wrote it."""
    return split_block(description)[0]


def line(memory: Memory) -> str:
    """``- circular-import-auth [75%]: When importing … -> …``; a systemic one with its note."""
    said = f"{clean_line(memory.trigger, _TRIGGER)} -> {clean_line(memory.resolution, _RESOLUTION)}"
    note = f" ({memory.note})" if memory.note else ""
    return f"- {clean_line(memory.name, 80)} {memory.label}: {said}{note}"


def injections(base: Base, name: str = "", attempt: str = "", bead: str = "") -> list[Injection]:
    """Lines of the ledger, newest first, of a memory, an attempt or a bead; all if none is given."""
    conditions: list[str] = []
    values: list[object] = []
    if name:
        memory = rows.find(base.database, name)
        conditions.append("id IN (SELECT injection_id FROM injection_memory WHERE memory_id = ?)")
        values.append(memory.id if memory else -1)
    for column, value in (("attempt", attempt), ("bead", bead)):
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    where = " AND ".join(conditions) or "1 = 1"
    found = base.database.execute(
        "SELECT id, at, attempt, bead, agent, objective, kind, mode, ranker, scope FROM injection"
        f" WHERE {where} ORDER BY id DESC LIMIT {_MOST_LISTED}",
        values,
    ).fetchall()
    return [
        Injection(
            id=row[0],
            at=rows.as_instant(row[1]),
            attempt=row[2],
            bead=row[3],
            agent=row[4],
            objective=row[5],
            kind=row[6],
            mode="semantic" if row[7] == "semantic" else "keyword",
            ranker=row[8],
            scope=row[9] if row[9] in ("path", "bead") else "task",
            shown=_shown(base, row[0]),
        )
        for row in found
    ]


def _injection(
    base: Base, task: RecallTask, answer: Recall, hits: Sequence[Recalled], seen: Sequence[Memory]
) -> Injection:
    """A ledger line for hits, with the names and texts shown to the agent."""
    return Injection(
        id=0,
        at=base.now(),
        attempt=task.attempt,
        bead=task.bead,
        agent=task.agent,
        objective=task.objective,
        kind=task.kind,
        mode=answer.mode,
        ranker=task.ranker,
        scope=task.scope,
        shown=tuple(
            ShownMemory(memory.id, memory.name, position, hit.score, hit.relevance, memory.label, memory.revision)
            for position, (hit, memory) in enumerate(zip(hits, seen, strict=True))
        ),
        text=block(seen),
        signal="" if hits else answer.signal or "NO_MATCHING",
        detail=answer.detail,
    )


def enter(base: Base, injection: Injection) -> Injection:
    """Record in the ledger what was shown."""
    with base.writing():
        connection = base.database.conn
        cursor = connection.execute(
            "INSERT INTO injection (at, attempt, bead, agent, objective, kind, mode, ranker, scope)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                rows.as_text(injection.at or base.now()),
                injection.attempt,
                injection.bead,
                injection.agent,
                injection.objective,
                injection.kind,
                injection.mode,
                injection.ranker,
                injection.scope,
            ),
        )
        number = int(cursor.lastrowid or 0)
        connection.executemany(
            "INSERT INTO injection_memory (injection_id, position, memory_id, name, score, relevance, label,"
            " revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(number, each.position, each.memory_id, each.name),
                    *(each.score, each.relevance, each.label, each.revision),
                )
                for each in injection.shown
            ],
        )
        connection.executemany(
            "INSERT INTO memory_extra (memory_id, shown) VALUES (?, 1)"
            " ON CONFLICT(memory_id) DO UPDATE SET shown = shown + 1",
            [(each.memory_id,) for each in injection.shown],
        )
        rows.bump(connection, [each.memory_id for each in injection.shown])
    return replace(injection, id=number)


def enter_attempt(base: Base, number: int, attempt: str) -> None:
    """Record an attempt that saw a bead's block, in the line of that block or a copy of it."""
    with base.writing():
        connection = base.database.conn
        took = connection.execute(
            "UPDATE injection SET attempt = ?, scope = 'bead' WHERE id = ? AND attempt = ''", [attempt, number]
        )
        if took.rowcount:
            return
        # the line has an attempt already: a later one at the same bead gets a copy, so that each is settled separately
        cursor = connection.execute(
            "INSERT INTO injection (at, attempt, bead, agent, objective, kind, mode, ranker, scope)"
            " SELECT at, ?, bead, agent, objective, kind, mode, ranker, 'bead' FROM injection WHERE id = ?",
            [attempt, number],
        )
        connection.execute(
            "INSERT INTO injection_memory (injection_id, position, memory_id, name, score, relevance, label,"
            " revision) SELECT ?, position, memory_id, name, score, relevance, label, revision"
            " FROM injection_memory WHERE injection_id = ?",
            [cursor.lastrowid, number],
        )
        seen = connection.execute("SELECT memory_id FROM injection_memory WHERE injection_id = ?", [number])
        memories = [row[0] for row in seen]
        connection.executemany(
            "UPDATE memory_extra SET shown = shown + 1 WHERE memory_id = ?", [(memory,) for memory in memories]
        )
        rows.bump(connection, memories)


def take_task(base: Base, session: str, calls: Sequence[str], agent: str) -> str:
    """The first of these tasks not taken by another agent of the session; an agent keeps the one it has. Empty if all
    are taken.
    """
    with base.writing():
        # found and taken in one transaction, as sub-agents start in parallel
        rows_ = base.database.execute("SELECT call, agent FROM agent_task WHERE session = ?", [session])
        taken = dict(rows_.fetchall())
        mine = next((call for call in calls if taken.get(call) == agent), "")
        free = mine or next((call for call in calls if call not in taken), "")
        if free and not mine:
            base.database.execute(
                "INSERT INTO agent_task (session, call, agent, at) VALUES (?, ?, ?, ?)",
                [session, free, agent, rows.as_text(base.now())],
            )
    return free


def rebook(base: Base, attempt: str, objective: str) -> None:
    """Correct the task of an agent that was recorded with another one's task.

    What was shown for the other task does not count against its memories.
    """
    with base.writing():
        base.database.execute(
            "UPDATE injection SET objective = ?, scope = 'path' WHERE attempt = ? AND scope = 'task'"
            " AND objective <> ?",
            [objective, attempt, objective],
        )


def _shown(base: Base, number: int) -> tuple[ShownMemory, ...]:
    found = base.database.execute(
        "SELECT memory_id, name, position, score, relevance, label, revision FROM injection_memory"
        " WHERE injection_id = ? ORDER BY position",
        [number],
    )
    return tuple(ShownMemory(*row) for row in found)


def assess(base: Base, task: str, approach: str, history: Sequence[str] | None = None) -> Assessment:
    """Judge an approach by earlier tries; each call counts as one more attempt at the task.

    ``history`` is what was tried, oldest first; None uses what earlier calls recorded.
    """
    name = key(task)[:_TASK]
    tried = [*(_recorded(base, name) if history is None else history), approach]
    if history is None and not base.read_only:
        with base.writing():
            base.database.execute(
                "INSERT INTO approach (task, approach, at) VALUES (?, ?, ?)", [name, approach, rows.as_text(base.now())]
            )
    attempts = len(tried)
    # the first that holds decides (docs/formats/memory.md §3)
    if attempts >= ESCALATE_AT:
        return Assessment("escalate", f"{counted(attempts, 'attempt')} without success", attempts)
    if attempts >= PIVOT_AT and all(_same(base, approach, former) for former in tried[-PIVOT_AT:-1]):
        reason = f"Same approach attempted {counted(attempts, 'time')} without success"
        return Assessment("pivot", reason, attempts, _way_out(base, task))
    against = recalling.recall(base, recalling.RecallQuery(approach, limit=3, gate=BLAMED))
    for memory in _open(against):
        if memory.type in ("failure", "systemic"):
            reason = f"Known failure: {memory.name}"
            return Assessment("pivot", reason, attempts, memory.resolution[:_PIVOT])
    return Assessment("continue", "nothing counts against it", attempts)


def _recorded(base: Base, name: str) -> list[str]:
    return [row[0] for row in base.database.execute("SELECT approach FROM approach WHERE task = ? ORDER BY id", [name])]


def _same(base: Base, one: str, other: str) -> bool:
    if key(one) == key(other):
        return True
    vectors = base.encode([one, other])
    return (likeness(one, other) if vectors is None else float(vectors[0] @ vectors[1])) >= SAME


def _way_out(base: Base, task: str) -> str:
    """The pattern that has helped most with this task, else the alternative named by a known failure."""
    answer = recalling.recall(base, recalling.RecallQuery(task, limit=10, gate=recalling.GATE))
    found = _open(answer)
    patterns = [memory for memory in found if memory.type == "pattern"]
    if patterns:
        return max(patterns, key=lambda memory: memory.effectiveness).resolution[:_PIVOT]
    for memory in found:
        # helix v1's rule: such a resolution names an alternative
        if {"instead", "try"} & set(memory.resolution.lower().split()):
            return memory.resolution[:_PIVOT]
    return _ELSE


def _open(answer: Recall) -> list[Memory]:
    """The found memories, screened, without those whose text is withheld."""
    return [memory for hit in answer.found if not (memory := shown(hit.memory)).withheld]
