"""Lessons that wait for a person: drawn by rule from attempts, stored only when somebody accepts them.

The seeds let agents and orchestrators store at once; what an agent writes is read by agents for months, so
here a person or a stated policy stands between (rulings.md 19).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from helix_tui.core.clock import format_instant, now_ns
from helix_tui.core.memory.guard import shown_pair, shown_text
from helix_tui.core.memory.records import Stored
from helix_tui.core.memory.store import MemoryStore

State = Literal["open", "accepted", "declined"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A lesson and what became of it."""

    id: int
    attempt: str
    bead: str
    type: str
    """failure or pattern."""
    trigger: str
    resolution: str
    reason: str
    """What it rests on."""
    state: str = "open"
    at: str = ""
    """When it was drawn, as DDx writes instants."""
    memory: str = ""
    """The memory that it became."""

    @property
    def source(self) -> str:
        """What stands as the source of a memory that is made of it."""
        return f"attempt {self.attempt}"

    def document(self) -> dict[str, Any]:
        """The JSON shape of a proposal."""
        return {
            "id": self.id,
            "attempt": self.attempt,
            "bead": self.bead,
            "type": self.type,
            "trigger": self.trigger,
            "resolution": self.resolution,
            "reason": self.reason,
            "state": self.state,
            "at": self.at,
            "memory": self.memory,
        }


class Proposals:
    """The lessons of one memory that wait, were accepted or were declined."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    def add(self, proposal: Proposal) -> Proposal | None:
        """Keep a lesson; None where this attempt has one of this type already."""
        with self._memory.write() as db:
            made = db.execute(
                "INSERT OR IGNORE INTO proposal"
                "(attempt, bead, type, trigger, resolution, reason, state, at, memory)"
                " VALUES (?, ?, ?, ?, ?, ?, 'open', ?, '')",
                (
                    proposal.attempt,
                    proposal.bead,
                    proposal.type,
                    proposal.trigger,
                    proposal.resolution,
                    proposal.reason,
                    proposal.at or format_instant(now_ns()),
                ),
            )
        return replace(proposal, id=int(made.lastrowid or 0)) if made.rowcount else None

    def all(self, state: State | None = "open") -> list[Proposal]:
        """Those in a state, or all of them; newest first."""
        query = (
            f"{_SELECT} ORDER BY id DESC" if state is None else f"{_SELECT} WHERE state = ? ORDER BY id DESC"
        )
        return [_shown(row) for row in self._memory.read(query, () if state is None else (state,))]

    def get(self, number: int) -> Proposal | None:
        """One of them."""
        rows = self._memory.read(f"{_SELECT} WHERE id = ?", (number,))
        return _shown(rows[0]) if rows else None

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
                db.execute(
                    "UPDATE proposal SET state = ?, memory = ? WHERE id = ?", (state, memory, proposal.id)
                )


def _shown(row: Sequence[Any]) -> Proposal:
    """A lesson as it may be shown: it comes from what agents wrote."""
    found = Proposal(*row)
    trigger, resolution, _ = shown_pair(found.trigger, found.resolution)
    return replace(found, trigger=trigger, resolution=resolution, reason=shown_text(found.reason))


_SELECT = "SELECT id, attempt, bead, type, trigger, resolution, reason, state, at, memory FROM proposal"
