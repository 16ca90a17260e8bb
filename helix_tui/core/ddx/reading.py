"""Read a queue's rows together with what holds them: claims, runs, and evidence of attempts, as of one moment.

DDx writes a claim first, then evidence, then the result, each into a file of its own. Rows read before a claim and
evidence read after it would show an attempt that nobody holds, so the rows are read again if they changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.readiness import Claims
from helix_tui.core.beads.tracker import Tracker, TrackerReader
from helix_tui.core.ddx.claims import NO_EDITS, Edits
from helix_tui.core.ddx.runs.running import STALL_AFTER_S, Run, RunReader, beads_at_work, holds
from helix_tui.core.ground.project import Project

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.index import AttemptIndex

READS = 3
"""Maximum readings for one moment while the files keep changing."""


def _no_edits(_: Tracker) -> Edits:
    return NO_EDITS


class QueueReading(Struct, frozen=True):
    """Rows and what held them when they were read."""

    tracker: Tracker
    runs: tuple[Run, ...] = ()
    """What any file reports as running, dead claims included."""
    claims: Claims = Claims()
    renewed: frozenset[str] = frozenset()
    """Beads whose attempts were merged again."""


class QueueReader:
    """Reads one project's queue; files that did not change are not read again. Not thread-safe."""

    def __init__(
        self,
        project: Project,
        *,
        env: Mapping[str, str] | None = None,
        edits: Callable[[Tracker], Edits] = _no_edits,
        stall_after_s: float = STALL_AFTER_S,
    ) -> None:
        """``edits`` returns helix-tui's own writes to beads, which are not signs of a worker."""
        self._project = project
        self._edits = edits
        self._stall_after_s = stall_after_s
        self._rows = TrackerReader(project.beads_file)
        self._runs = RunReader(project, env)

    def read(
        self,
        now: int,
        *,
        records: AttemptIndex | None = None,
        changed: Iterable[Path] | None = None,
        digest: bool = False,
    ) -> QueueReading:
        """Rows, runs and claims at ``now``, and evidence into ``records`` if given.

        Args:
            changed: the only paths of evidence that may have changed; None checks everything.
            digest: whether to hash the tracker.
        """
        paths = None if changed is None else list(changed)
        renewed: set[str] = set()
        for _ in range(READS):
            reading = self.around(self._rows.read(digest=digest), now)
            if records is not None:
                renewed |= records.refresh(reading.tracker.beads, paths, holds=holds(reading.runs))
            if self._rows.stands() and self._runs.stands():
                break
        return QueueReading(reading.tracker, reading.runs, reading.claims, frozenset(renewed))

    def rows(self) -> Tracker:
        """The current rows alone."""
        return self._rows.read()

    def around(self, tracker: Tracker, now: int) -> QueueReading:
        """What holds these rows at ``now``."""
        runs = self._runs.find(tracker.beads, now, stall_after_s=self._stall_after_s, edits=self._edits(tracker))
        origin = self._project.origin_head() or ""
        leases = self._runs.fresh_leases(now)
        return QueueReading(tracker, runs, Claims(leases=leases, running=beads_at_work(runs), origin_head=origin))

    @property
    def problems(self) -> Mapping[Path, str]:
        """Claim files that could not be read last time, and why."""
        return self._runs.problems

    def rest(self) -> None:
        """Free the memory that only reading needs."""
        self._rows.rest()
