"""The memory of a project as one object: every operation of helix v1 and v2, under both of their names.

An operation is a function of its module on the open database; as a method it has the lock, and what it returns has
passed the guard: nothing of a memory leaves unscreened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from msgspec.structs import replace
from sqlite_utils import Database

from helix_tui.core.embedding.minilm import Encoder, Loaded
from helix_tui.core.embedding.weights import use_one_thread
from helix_tui.core.ground.files import is_file
from helix_tui.core.ground.time import now_ns
from helix_tui.core.memory import feedback as crediting
from helix_tui.core.memory import graph, records, reports
from helix_tui.core.memory import injection as approach
from helix_tui.core.memory import injection as injecting
from helix_tui.core.memory import recall as recalling
from helix_tui.core.memory.guard.scan import outward, shown
from helix_tui.core.memory.injection import Screen
from helix_tui.core.memory.provenance import ACCEPTED_AT_ONCE, Teacher
from helix_tui.core.memory.records import Correction, DatabaseReadOnly, MemoryEdit, MemoryFault
from helix_tui.core.memory.store import indexing, revisions, rows
from helix_tui.core.memory.store.database import BUSY_SECONDS, Base, discredit, empty_database, guarded, open_database
from helix_tui.core.memory.store.database import window_days as set_window
from helix_tui.core.memory.store.index import MemoryIndex
from helix_tui.core.memory.write import alike, storing, upkeep

CATCH_UP = 16
"""Maximum memories without a vector that an ordinary call encodes; `embed` encodes all."""


P = ParamSpec("P")
R = TypeVar("R")


def _operation(
    function: Callable[Concatenate[Base, P], R], *, writes: bool = False, catches_up: bool = False
) -> Callable[Concatenate[MemoryStore, P], R]:
    """A function on the open database as a method: under the lock, and screened by the guard.

    Args:
        writes: refused where the memory is open read-only.
        catches_up: index first what another program has stored.
    """

    @wraps(function)
    def method(self: MemoryStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._changing() if writes else self._using():
            if catches_up:
                self._catch_up()
            result: R = shown(function(self._base, *args, **kwargs))
        return result

    return method


class MemoryStore:
    """An open memory. Close it, or use it as a context manager."""

    def __init__(self, base: Base) -> None:
        """Use :func:`open_memory`."""
        self._base = base
        # re-entrant: operations are called inside `write` of the same thread
        self._lock = threading.RLock()
        self._caught_up = -1

    def __enter__(self) -> Self:
        return self

    def close(self, *error: object) -> None:
        """Close the database."""
        with self._lock:
            self._base.database.close()

    __exit__ = close

    @property
    def path(self) -> Path:
        """The file."""
        return self._base.path

    @property
    def read_only(self) -> bool:
        """Whether it is open read-only."""
        return self._base.read_only

    @property
    def db(self) -> Database:
        """The sqlite-utils database, for tables of the same file owned by others; change it inside `write`."""
        return self._base.database

    @property
    def mode(self) -> records.Mode:
        """``semantic``, or ``keyword`` without an encoder."""
        return self._base.mode

    @property
    def detail(self) -> str:
        """The encoder in use, or why there is none."""
        return self._base.detail

    @property
    def seq(self) -> int:
        """Grows with every change of a memory by any process."""
        with self._using():
            return self._newest()

    @contextmanager
    def write(self) -> Iterator[Database]:
        """One write transaction; all of it happens or nothing."""
        with self._changing(), self._base.writing():
            yield self._base.database

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, for tables of the same file owned by others."""
        with self._using():
            return list(self._base.database.execute(sql, list(values)).fetchall())

    # Storing

    @outward
    def store(
        self,
        trigger: str,
        resolution: str,
        type: str = "failure",
        source: str = "",
        *,
        attempt: str = "",
        bead: str = "",
        taught_by: Teacher | None = None,
        accepted: bool | None = None,
    ) -> records.Stored:
        """Store a failure or pattern; duplicates are merged, another resolution is a revision.

        ``bead`` and ``attempt`` name where it occurred: three distinct occurrences of a kind are systemic. It is taught
        by whoever opened the memory, unless ``taught_by`` says otherwise; what an agent teaches waits for acceptance.
        """
        draft = self._taught(indexing.Draft(trigger, resolution, type, source, attempt, bead), taught_by, accepted)
        with self._changing():
            return storing.store(self._base, draft)

    @outward
    def store_many(self, memories: Iterable[tuple[str, str, str, str]]) -> list[records.Stored]:
        """Store several (trigger, resolution, type, source) in one transaction."""
        with self._changing():
            return storing.store_many(self._base, [self._taught(indexing.Draft(*memory)) for memory in memories])

    @outward
    def chunk(
        self,
        task: str,
        outcome: str,
        approach: str,
        source: str = "chunked",
        *,
        taught_by: Teacher | None = None,
        accepted: bool | None = None,
    ) -> records.Stored:
        """Store how a task succeeded, or strengthen an equivalent pattern."""
        draft = self._taught(indexing.Draft(task, approach, "pattern", source), taught_by, accepted)
        with self._changing():
            return storing.chunk(self._base, outcome, draft)

    def _taught(
        self, draft: indexing.Draft, taught_by: Teacher | None = None, accepted: bool | None = None
    ) -> indexing.Draft:
        teacher = taught_by or self._base.teacher
        return replace(draft, taught_by=teacher, accepted=teacher in ACCEPTED_AT_ONCE if accepted is None else accepted)

    @property
    def teacher(self) -> Teacher:
        """Who opened it, and teaches what is stored."""
        return self._base.teacher

    def set_accepted(self, name_or_ids: Iterable[str | int], *, accepted: bool = True) -> Sequence[records.Memory]:
        """Show agents what waits for acceptance, or let it wait again; return what was changed.

        Raises:
            UnknownMemory: one of them does not exist.
            MemoryFault: an agent asks for it.
        """
        with self._changing(), self._base.writing():
            self.require_person("accept")
            chosen = [storing.found(self._base, bead_id) for bead_id in name_or_ids]
            changed = [memory for memory in chosen if memory.accepted != accepted]
            for memory in changed:
                rows.teach(self._base.database.conn, memory.id, memory.taught_by, accepted=accepted)
            rows.bump(self._base.database.conn, [memory.id for memory in changed])
            return changed

    def require_person(self, verb: str) -> None:
        """Refuse an agent.

        Raises:
            MemoryFault: an agent opened this memory.
        """
        if self._base.teacher == "agent":
            raise MemoryFault(f"an agent does not {verb} memories", "A person does, in the console or a terminal.")

    @outward
    def get(self, name_or_id: str | int) -> records.Memory | None:
        """The memory of this name, else of this id."""
        with self._using():
            return rows.find(self._base.database, name_or_id)

    @outward
    def list(self, type: str | None = None) -> list[records.Memory]:
        """All memories, or those of a type, newest first."""
        with self._using():
            return upkeep.listed(self._base, type)

    @outward
    def variants(self, name_or_id: str | int) -> Sequence[tuple[str, str, str]]:
        """(trigger, resolution, source) of differently worded duplicates merged into a memory."""
        with self._using():
            memory = rows.find(self._base.database, name_or_id)
            return self._base.database.execute(
                "SELECT trigger, resolution, source FROM memory_variant WHERE memory_id = ? ORDER BY rowid",
                [memory.id if memory else -1],
            ).fetchall()

    @outward
    def revisions(self, name_or_id: str | int) -> Sequence[records.Revision]:
        """Earlier revisions of a memory, newest first, each with its own counts."""
        with self._using():
            memory = rows.find(self._base.database, name_or_id)
            return revisions.history(self._base, memory.id) if memory is not None else []

    @outward
    def successor(self, name_or_id: str | int) -> records.Memory | None:
        """The memory that superseded the one of this name or id."""
        with self._using():
            return revisions.successor(self._base, name_or_id)

    # Corrections by a person; `changes` keeps their undo data

    @outward
    def edit(self, name_or_id: str | int, change: MemoryEdit, *, apply: bool = True) -> Correction:
        """Correct a memory; unless applied, only report the effect."""
        with self._maybe_changing(apply):
            return storing.edit(self._base, name_or_id, change, apply=apply)

    @outward
    def supersede(self, name_or_id: str | int, by: str | int, *, apply: bool = True) -> Correction:
        """Supersede one memory by another; unless applied, only report the effect."""
        with self._maybe_changing(apply):
            return storing.supersede(self._base, name_or_id, by, apply=apply)

    def take_back(self, way: dict[str, Any]) -> None:
        """Undo a correction from its undo data."""
        with self._changing(), self._base.writing():
            storing.take_back(self._base, way)

    def forget_variant(self, memory_id: int, trigger: str, source: str) -> None:
        """Remove a variant merged into a memory, so that its words no longer find it."""
        with self._changing(), self._base.writing():
            upkeep.forget_variant(self._base, memory_id, trigger, source)

    def discredit(self, memory_id: int, revision: int, last_used: str | None) -> None:
        """Subtract one helped from a revision and restore its last use."""
        with self._changing(), self._base.writing():
            discredit(self._base, memory_id, revision, last_used)

    # Recall

    @outward
    def recall(
        self,
        query: str,
        type: str | None = None,
        limit: int = 5,
        min_effectiveness: float = 0.0,
        *,
        files: Iterable[str] = (),
        expand: bool = False,
        gate: float = 0.0,
        ranker: str = "seed",
        waiting: bool | None = None,
    ) -> records.Recall:
        """Memories for a query and for files, best first, with every term of their scores.

        ``waiting``: whether those that wait for acceptance too; by default for a person, not for an agent.
        """
        waiting = self._base.teacher != "agent" if waiting is None else waiting
        asked = recalling.RecallQuery(
            query, type, limit, min_effectiveness, tuple(files), expand, max(0.0, gate), ranker, waiting
        )
        with self._using():
            self._catch_up()
            return recalling.recall(self._base, asked)

    similar_recent = _operation(alike.similar_recent, catches_up=True)

    assess = assess_approach = _operation(approach.assess)

    # Injection and outcomes

    @outward
    def inject(
        self,
        objective: str,
        *,
        files: Iterable[str] = (),
        attempt: str = "",
        bead: str = "",
        agent: str = "",
        kind: str = "",
        limit: int = 8,
        ranker: str = "seed",
        scope: records.Scope = "task",
        screen: Screen | None = None,
        record: bool = True,
    ) -> records.Injection:
        """The block for an agent, entered into the ledger under its attempt, bead and agent.

        With the scope ``path`` only memories that name one of the files, or its module, are shown.
        """
        task = injecting.RecallTask(objective, tuple(files), attempt, bead, agent, kind, limit, ranker, scope)
        with self._using():
            self._catch_up()
            return injecting.inject(self._base, task, screen=screen, record=record)

    enter = _operation(injecting.enter, writes=True)

    enter_attempt = _operation(injecting.enter_attempt, writes=True)

    take_task = _operation(injecting.take_task, writes=True)

    rebook = _operation(injecting.rebook, writes=True)

    claim = _operation(crediting.claim, writes=True)

    @outward
    def feedback(
        self,
        injected: Iterable[str] | None = None,
        utilized: Iterable[str] = (),
        verified: records.Verdict | None = None,
        *,
        attempt: str = "",
        bead: str = "",
        kind: str = "",
        revise: bool = False,
    ) -> reports.FeedbackReport:
        """Count an outcome for the memories that were shown (the table in `feedback`).

        Raises:
            MemoryFault: the verdict is not one of ``passed``, ``failed``, ``partial``.
        """
        if verified is not None and verified not in records.VERDICTS:
            raise MemoryFault(f"no verdict “{verified}”", f"There are: {', '.join(records.VERDICTS)}.")
        said = crediting.Round(tuple(injected or ()), tuple(utilized), verified, attempt, bead, kind, revise)
        with self._changing():
            return crediting.feedback(self._base, said)

    injections = _operation(injecting.injections)

    outcomes = _operation(crediting.outcomes)

    def settled(self) -> dict[str, records.Verdict | None]:
        """Attempts whose outcome was counted, with the verdict; None if unverified."""
        return {row[0]: row[1] for row in self.read("SELECT attempt, verdict FROM settlement")}

    # Edges

    relate = edge = _operation(graph.relate, writes=True)

    edges = _operation(graph.edges)

    connected = _operation(graph.connected)

    suggest_edges = _operation(graph.suggest, catches_up=True)

    # Upkeep

    @outward
    def decay(self, days: float = 30, min_uses: float = 2, *, apply: bool = False) -> reports.Decayed:
        """Dormant memories; if applied, those that helped fade halfway to neutral."""
        with self._changing() if apply else self._using():
            return upkeep.decay(self._base, days=days, min_uses=min_uses, apply=apply)

    @outward
    def prune(self, threshold: float = 0.25, min_uses: float = 3, *, apply: bool = True) -> reports.Pruned:
        """Remove memories used enough that helped too rarely; unless applied, only list them."""
        with self._changing() if apply else self._using():
            return upkeep.prune(self._base, threshold=threshold, min_uses=min_uses, apply=apply)

    @outward
    def consolidate(self, threshold: float = 0.9) -> reports.Consolidated:
        """Merge near-duplicates."""
        with self._changing():
            # memories without a vector are not compared
            indexing.embed_missing(self._base, None)
            return upkeep.consolidate(self._base, threshold)

    health = _operation(upkeep.health)

    embed = _operation(indexing.embed_missing, writes=True)

    remove = _operation(upkeep.take_out, writes=True)

    put_back = _operation(upkeep.put_back, writes=True)

    # Internals

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock, guarded(self._base.path):
            yield

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if self._base.read_only:
            raise DatabaseReadOnly(f"{self._base.path} is open read-only", "Run it without --read-only.")
        with self._using():
            yield

    @contextmanager
    def _maybe_changing(self, apply: bool) -> Iterator[None]:
        """A write transaction if something is to be changed, else a read."""
        with self._changing() if apply else self._using(), self._base.writing() if apply else nullcontext():
            yield

    def _newest(self) -> int:
        return int(self._base.database.execute("SELECT coalesce(max(seq), 0) FROM memory_change").fetchone()[0])

    def _catch_up(self) -> None:
        """Index what another program stored since the last call, and encode a few of its texts."""
        if self._base.read_only:
            return
        if self._newest() != self._caught_up:
            done = indexing.embed_missing(self._base, CATCH_UP)
            # nothing is left; read again, as indexing changes the number itself
            if done < CATCH_UP:
                self._caught_up = self._newest()


def open_memory(
    path: Path,
    encoder: Encoder | Loaded | None = None,
    *,
    read_only: bool = False,
    empty: bool = False,
    clock: Callable[[], int] = now_ns,
    busy_seconds: float = BUSY_SECONDS,
    window_days: float | None = None,
    teacher: Teacher = "agent",
) -> MemoryStore:
    """Open the memory at ``path``, creating it if missing.

    ``teacher`` is who opens it: what an agent stores waits for acceptance.

    With ``read_only`` the file is not modified; with ``empty`` it is not even looked for. Three occurrences
    of a failure within ``window_days`` (None: the setting) make it systemic.
    ``encoder`` is an encoder, or the result of `load_encoder`, which says why there is none.

    Raises:
        MemoryFault: it is damaged, in use, another program's or newer, with advice.
    """
    detail = "no encoder: searched by words"
    if isinstance(encoder, Loaded):
        detail, encoder = encoder.detail, encoder.encoder
    elif encoder is not None:
        detail = encoder.model_id
    if empty:
        database, read_only = empty_database(), True
    else:
        database = open_database(path, read_only=read_only, busy_seconds=busy_seconds)
    use_one_thread()
    window = set_window() if window_days is None else window_days
    index = MemoryIndex(encoder.model_id if encoder is not None else None)
    return MemoryStore(Base(path, database, encoder, detail, clock, read_only, index, window, teacher))


def look_into(
    path: Path,
    encoder: Encoder | Loaded | None = None,
    *,
    clock: Callable[[], int] = now_ns,
    busy_seconds: float = BUSY_SECONDS,
    teacher: Teacher = "agent",
) -> MemoryStore:
    """Open the memory at ``path``, read-only if it may not be written.

    Raises:
        MemoryFault: as `open_memory`.
    """
    try:
        return open_memory(path, encoder, clock=clock, busy_seconds=busy_seconds, teacher=teacher)
    except DatabaseReadOnly:
        # there is nothing to read: the error is that it cannot be created
        if not is_file(path):
            raise
        return open_memory(path, encoder, read_only=True, clock=clock, busy_seconds=busy_seconds, teacher=teacher)
