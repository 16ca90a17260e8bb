"""Closing the loop while the console runs: as attempts end, their outcomes settle what they were given.

Everything happens in a thread of its own, imports too: the memory's libraries are not loaded where there is
no memory. With --read-only the outcomes are left for somebody else to take in; the words for the pulse come
anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.ground.time import NS

if TYPE_CHECKING:
    from textual.app import App

    from helix_tui.core.snapshot.snapshot import Snapshot

DAY = 86_400 * NS


class Closed(Struct, frozen=True):
    """What one look taught."""

    health: str = ""
    """The memory's health for the pulse."""
    said: str = ""
    """What was credited, blamed and proposed; empty where nothing was."""


class LoopCloser:
    """Learns for one app. A look that is asked for while one is under way follows it."""

    def __init__(self, app: App[int], *, read_only: bool, tell: Callable[[Closed], None]) -> None:
        self._app = app
        self._read_only = read_only
        self._tell = tell
        self._busy = False
        self._again: Snapshot | None = None

    def settle_ended(self, snapshot: Snapshot) -> None:
        """Learn from a snapshot's attempts, if there is a memory."""
        if not snapshot.project.helix_dir.joinpath("helix.db").exists():
            return
        if self._busy:
            # the newest alone: it holds every attempt of those before
            self._again = snapshot
            return
        self._busy = True
        self._app.run_worker(lambda: self._work(snapshot), group="learn", thread=True)

    def _work(self, snapshot: Snapshot) -> None:
        try:
            closed = close_loop(snapshot, read_only=self._read_only)
        finally:
            # also after a defect, else nothing would be learned any more
            self._app.call_from_thread(self._free)
        if closed is not None:
            self._app.call_from_thread(self._tell, closed)

    def _free(self) -> None:
        self._busy = False
        again, self._again = self._again, None
        if again is not None:
            self.settle_ended(again)


def close_loop(snapshot: Snapshot, *, read_only: bool) -> Closed | None:
    """Take in what attempts have taught; None where the memory cannot be opened now."""
    from helix_tui.core.memory import MemoryFault, database_path, open_memory
    from helix_tui.core.supervision.agents.learning import Learner, summed

    try:
        path = database_path(snapshot.project)
        with open_memory(path, read_only=read_only, busy_seconds=2.0) as memory:
            said = ""
            if not read_only:
                learner = Learner(snapshot.project, memory)
                since = snapshot.taken_at - DAY
                said = summed(learner.learn(snapshot.queue.beads, tuple(snapshot.attempts), since=since))
            return Closed(memory.health().words, said)
    except MemoryFault:
        return None
