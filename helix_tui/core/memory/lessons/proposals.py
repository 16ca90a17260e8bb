"""Lessons that wait for a person: drawn by rule from attempts, stored only when somebody accepts them.

helix lets agents and orchestrators store at once; what an agent writes is read by agents for months, so
here a person or a stated policy stands between (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.memory.guard.guard import outward
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.ranking import key
from helix_tui.core.memory.records import Stored
from helix_tui.core.memory.reports import Proposal, State


class Proposals:
    """The lessons of one memory that wait, were accepted or were declined."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @outward
    def add(self, proposal: Proposal) -> Proposal | None:
        """Keep a lesson; None where this attempt has one of this type already.

        What another attempt of the same bead taught before, whatever came of it, is kept as ``repeated`` and
        waits for nobody: one bead that fails four times in one way is one occurrence.
        """
        with self._memory.write() as db:
            state: State = "repeated" if matter(proposal) in self.taught() else "open"
            made = db.execute(
                "INSERT OR IGNORE INTO proposal"
                "(attempt, bead, type, trigger, resolution, reason, state, at, memory)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, '')",
                (
                    proposal.attempt,
                    proposal.bead,
                    proposal.type,
                    proposal.trigger,
                    proposal.resolution,
                    proposal.reason,
                    state,
                    proposal.at or format_instant(now_ns()),
                ),
            )
        return replace(proposal, id=int(made.lastrowid or 0), state=state) if made.rowcount else None

    def taught(self) -> frozenset[tuple[str, ...]]:
        """What attempts of each bead have taught."""
        rows = self._memory.read(f"{_SELECT} WHERE bead <> '' AND state <> 'repeated'")
        return frozenset(matter(Proposal(*row)) for row in rows)

    @outward
    def all(self, state: State | None = "open") -> list[Proposal]:
        """Those in a state, or all of them; newest first."""
        query = f"{_SELECT} ORDER BY id DESC" if state is None else f"{_SELECT} WHERE state = ? ORDER BY id DESC"
        return [Proposal(*row) for row in self._memory.read(query, () if state is None else (state,))]

    @outward
    def get(self, number: int) -> Proposal | None:
        """One of them."""
        rows = self._memory.read(f"{_SELECT} WHERE id = ?", (number,))
        return Proposal(*rows[0]) if rows else None

    def attempts(self) -> frozenset[str]:
        """Attempts from which a lesson was drawn, whatever became of it."""
        return frozenset(row[0] for row in self._memory.read("SELECT DISTINCT attempt FROM proposal"))

    def accept(self, proposal: Proposal) -> Stored:
        """Remember a lesson: a failure is stored, a pattern is chunked; similar ones merge as ever."""
        raw = self._memory.read(f"{_SELECT} WHERE id = ?", (proposal.id,))
        proposal = Proposal(*raw[0]) if raw else proposal  # what is shown is screened
        if proposal.type == "pattern":
            stored = self._memory.chunk(proposal.trigger, "success", proposal.resolution)
        else:
            stored = self._memory.store(
                proposal.trigger,
                proposal.resolution,
                type=proposal.type,
                source=proposal.source,
                attempt=proposal.attempt,
                bead=proposal.bead,
            )
        if stored.status not in ("rejected", "skipped"):
            self._decide([proposal], "accepted", stored.name)
        return stored

    def decline(self, proposals: Iterable[Proposal]) -> None:
        """Say that lessons are not worth remembering."""
        self._decide(proposals, "declined", "")

    def reopen(self, proposals: Iterable[Proposal]) -> None:
        """Let lessons wait again."""
        self._decide(proposals, "open", "")

    def _decide(self, proposals: Iterable[Proposal], state: State, memory: str) -> None:
        with self._memory.write() as db:
            for proposal in proposals:
                db.execute("UPDATE proposal SET state = ?, memory = ? WHERE id = ?", (state, memory, proposal.id))


def matter(proposal: Proposal) -> tuple[str, ...]:
    """What two lessons of one bead have in common that say the same."""
    said = (key(text) or text for text in (proposal.trigger, proposal.resolution))
    return (proposal.bead, proposal.type, *said)


_SELECT = "SELECT id, attempt, bead, type, trigger, resolution, reason, state, at, memory FROM proposal"
