"""Keep lessons that wait for a person.

Lessons are derived from attempts by rule and stored only when a person accepts them (docs/formats/memory.md §4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.memory.guard.scan import outward
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.provenance import teacher_of
from helix_tui.core.memory.records import Memory, Stored
from helix_tui.core.memory.reports import Proposal, State
from helix_tui.core.memory.words import key

if TYPE_CHECKING:
    pass

_SELECT = "SELECT id, attempt, bead, type, trigger, resolution, reason, state, at, memory, teacher FROM proposal"


class Proposals:
    """The pending, accepted and declined lessons of one memory database."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @outward
    def add(self, proposal: Proposal) -> Proposal | None:
        """Add a lesson; None if this attempt has one of this type already.

        A lesson that another attempt of the same bead gave before is kept as ``repeated`` and not proposed: one bead
        that fails four times in one way is one occurrence.
        """
        with self._memory.write() as db:
            # otherwise four equal failures of one bead, each accepted, would make a systemic memory
            state: State = "repeated" if matter(proposal) in self.taught() else "open"
            made = db.execute(
                "INSERT OR IGNORE INTO proposal"
                "(attempt, bead, type, trigger, resolution, reason, state, at, memory, teacher)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?)",
                (
                    proposal.attempt,
                    proposal.bead,
                    proposal.type,
                    proposal.trigger,
                    proposal.resolution,
                    proposal.reason,
                    state,
                    proposal.at or format_instant(now_ns()),
                    proposal.taught_by,
                ),
            )
        return replace(proposal, id=int(made.lastrowid or 0), state=state) if made.rowcount else None

    def taught(self) -> frozenset[tuple[str, ...]]:
        """The lessons from attempts of each bead."""
        rows = self._memory.read(f"{_SELECT} WHERE bead <> '' AND state <> 'repeated'")
        return frozenset(matter(_proposal(row)) for row in rows)

    @outward
    def all(self, state: State | None = "open") -> list[Proposal]:
        """The lessons in a state, or all, newest first."""
        query = f"{_SELECT} ORDER BY id DESC" if state is None else f"{_SELECT} WHERE state = ? ORDER BY id DESC"
        return [_proposal(row) for row in self._memory.read(query, () if state is None else (state,))]

    @outward
    def get(self, number: int) -> Proposal | None:
        """One lesson by its id."""
        rows = self._memory.read(f"{_SELECT} WHERE id = ?", (number,))
        return _proposal(rows[0]) if rows else None

    def attempts(self) -> frozenset[str]:
        """Attempts that gave a lesson, in any state."""
        return frozenset(row[0] for row in self._memory.read("SELECT DISTINCT attempt FROM proposal"))

    def accept(self, proposal: Proposal) -> Stored:
        """Store a lesson as a memory: a failure is stored, a pattern chunked; similar ones merge as usual.

        It is taught by whom the lesson is of, and accepted: a person, or a rule of a person, says so.
        """
        raw = self._memory.read(f"{_SELECT} WHERE id = ?", (proposal.id,))
        proposal = _proposal(raw[0]) if raw else proposal  # screened, as it is shown
        if proposal.type == "pattern":
            stored = self._memory.chunk(
                proposal.trigger, "success", proposal.resolution, taught_by=proposal.taught_by, accepted=True
            )
        else:
            stored = self._memory.store(
                proposal.trigger,
                proposal.resolution,
                type=proposal.type,
                source=proposal.source,
                attempt=proposal.attempt,
                bead=proposal.bead,
                taught_by=proposal.taught_by,
                accepted=True,
            )
        if stored.status not in ("rejected", "skipped"):
            self._decide([proposal], "accepted", stored.name)
        return stored

    def decline(self, proposals: Iterable[Proposal]) -> None:
        """Decline lessons."""
        self._decide(proposals, "declined", "")

    def reopen(self, proposals: Iterable[Proposal]) -> None:
        """Make lessons pending again."""
        self._decide(proposals, "open", "")

    def _decide(self, proposals: Iterable[Proposal], state: State, memory: str) -> None:
        with self._memory.write() as db:
            for proposal in proposals:
                db.execute("UPDATE proposal SET state = ?, memory = ? WHERE id = ?", (state, memory, proposal.id))


def waiting_lessons(memory: MemoryStore) -> list[Proposal]:
    """What waits for a person: lessons, newest first, then the memories that agents stored."""
    return [*Proposals(memory).all(), *(_as_lesson(each) for each in memory.list() if not each.accepted)]


def _as_lesson(memory: Memory) -> Proposal:
    return Proposal(
        0,
        *("", "", memory.type, memory.trigger, memory.resolution),
        reason="stored by an agent",
        at=format_instant(memory.created_at) if memory.created_at else "",
        memory=memory.name,
        taught_by=memory.taught_by,
    )


def matter(proposal: Proposal) -> tuple[str, ...]:
    """A key that is equal for equivalent lessons of one bead: an error may name the attempt in which it came."""
    # an empty id stands for itself
    own = proposal.attempt or "\0"
    said = (text.replace(own, "") for text in (proposal.trigger, proposal.resolution))
    return (proposal.bead, proposal.type, *(key(text) or text for text in said))


def _proposal(row: tuple[Any, ...]) -> Proposal:
    return replace(Proposal(*row), taught_by=teacher_of(row[-1]))
