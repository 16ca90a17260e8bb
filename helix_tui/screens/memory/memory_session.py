"""The memory behind the screen: opened in a thread, read into one frozen state, closed with the screen.

A database that is not there is not made by looking. What cannot be opened says why in words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from helix_tui.core.embedding import load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.memory import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseForeign,
    DatabaseMissing,
    DatabaseNewer,
    Health,
    Memory,
    MemoryFault,
    MemoryStore,
    database_path,
    look_into,
    open_memory,
)
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.plan_records import Exploration, MemoryPlan, TaskWorkspace
from helix_tui.core.memory.plans import Plans
from helix_tui.core.memory.reports import Proposal

BUSY_SECONDS = 2.0

CONDITIONS: dict[type[MemoryFault], str] = {
    DatabaseMissing: "missing",
    DatabaseBusy: "locked",
    DatabaseCorrupt: "corrupt",
    DatabaseForeign: "foreign",
    DatabaseNewer: "newer",
}


class MemoryViewState(Struct, frozen=True):
    """Everything that is remembered, at one moment."""

    condition: str = "loading"
    """``loading``, ``live``, ``empty``, or why there is nothing to show."""
    problem: str = ""
    fix: str = ""
    seq: tuple[int, ...] = ()
    memories: tuple[Memory, ...] = ()
    health: Health | None = None
    dormant: frozenset[str] = frozenset()
    harmful: frozenset[str] = frozenset()
    """What pruning would remove."""
    proposals: tuple[Proposal, ...] = ()
    plans: tuple[MemoryPlan, ...] = ()
    explorations: tuple[Exploration, ...] = ()
    workspaces: tuple[TaskWorkspace, ...] = ()
    path: str = ""
    names: dict[str, Memory] = {}


class MemorySession:
    """One open memory. Everything here is called in threads."""

    def __init__(self, project: Project, *, read_only: bool, clock: Callable[[], int]) -> None:
        self._project = project
        self._read_only = read_only
        self._clock = clock
        self._store: MemoryStore | None = None
        self._lock = threading.Lock()
        self.path = database_path(project)

    def store(self) -> MemoryStore:
        """The open memory.

        Raises:
            MemoryFault: it cannot be opened, or is not there.
        """
        with self._lock:
            # a file that was deleted lives on behind its open handle: what is written there would be lost
            if self._store is None or not self.path.exists():
                self._let_go()
                if not self.path.exists():
                    raise DatabaseMissing(f"there is no {self.path}", "`helix-tui memory store` creates one.")
                encoder = load_encoder()
                if self._read_only:
                    self._store = open_memory(self.path, encoder, read_only=True, clock=self._clock)
                else:
                    self._store = look_into(self.path, encoder, clock=self._clock, busy_seconds=BUSY_SECONDS)
            return self._store

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._store is not None:
            with suppress(MemoryFault):
                self._store.close()
            self._store = None

    def read(self, known: MemoryViewState) -> MemoryViewState:
        """The memory as it is now; ``known`` itself where nothing has changed since."""
        try:
            store = self.store()
            seq = (store.seq, *_marks(store))
            if seq == known.seq and known.condition in ("live", "empty"):
                return known
            return _memory_view(store, seq)
        except MemoryFault as fault:
            # opened anew at the next look: the file may have been replaced, or be free by then
            self.close()
            condition = next((word for kind, word in CONDITIONS.items() if isinstance(fault, kind)), "unreadable")
            return MemoryViewState(condition, fault.message, fault.advice, path=str(self.path))


def _marks(store: MemoryStore) -> tuple[int, ...]:
    """What grows when something beside the memories themselves has changed."""
    counted = (
        "SELECT coalesce(max(id), 0) FROM injection",
        "SELECT coalesce(max(id), 0) FROM outcome",
        "SELECT coalesce(max(id), 0) + count(*) FILTER (WHERE state = 'open') FROM proposal",
        "SELECT coalesce(sum(id * length(status)), 0) FROM plan",
        # the status of a row changes in place: its words differ in length, so the sum differs too
        "SELECT coalesce(sum(id * length(status)), 0) FROM workspace",
        "SELECT coalesce(max(id), 0) FROM exploration",
    )
    return tuple(int(store.read(query)[0][0]) for query in counted)


def _memory_view(store: MemoryStore, seq: tuple[int, ...]) -> MemoryViewState:
    memories = tuple(store.list())
    plans = Plans(store)
    proposals = tuple(Proposals(store).all())
    found = MemoryViewState(
        "live",
        seq=seq,
        memories=memories,
        health=store.health(),
        dormant=frozenset(memory.name for memory in store.decay().candidates),
        harmful=frozenset(memory.name for memory in store.prune(apply=False).removed),
        proposals=proposals,
        plans=tuple(plans.plans()),
        explorations=tuple(plans.explorations()),
        workspaces=tuple(plans.workspaces()),
        path=str(store.path),
        names={memory.name: memory for memory in memories},
    )
    if memories or proposals or found.plans or found.explorations:
        return found
    return MemoryViewState("empty", seq=seq, health=found.health, path=found.path)
