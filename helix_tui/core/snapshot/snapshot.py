"""What the console knows at one instant, and how two instants differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.remarks import Shut, shut
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.ground.project import Project

Condition = Literal["loading", "live", "empty", "no-ddx", "gone", "unreadable"]
"""The state of the tracker file: unread yet, read, without beads, never seen, seen and gone, unreadable."""


class Notice(Struct, frozen=True):
    """A notice that does not concern a bead: unread lines, a problem with a file."""

    kind: str
    text: str
    short: tuple[str, ...] = ()
    """Shorter versions, the longest first."""


class Snapshot(Struct, frozen=True):
    """One immutable state of everything that is shown; safe to read from any thread."""

    project: Project
    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...] = ()
    attempts: AttemptBook = field(default_factory=AttemptBook)
    attempts_read: bool = False
    """Whether attempts were read yet; before that, an empty list means nothing."""
    journal: JournalHistory = field(default_factory=JournalHistory)
    condition: Condition = "loading"
    notices: tuple[Notice, ...] = ()
    branch: str = ""
    generation: int = 0
    taken_at: int = 0
    """Instant at which it was built."""
    written_at: int = 0
    """Instant of the newest write in it; 0 if nothing was read."""
    archive: Mapping[str, Bead] = {}
    """Beads that exist only in ddx's archive; they are never ready or waiting."""
    dialect: Dialect | None = None
    """The installed ddx, whose rule judged the queue if it is proven; None if there is none."""

    @property
    def has_queue(self) -> bool:
        """Whether there are beads to show, even if only those read before the tracker became unreadable."""
        return bool(self.tracker.beads) and self.condition in ("live", "unreadable")

    @property
    def shut(self) -> Shut | None:
        """What the installed ddx would refuse here, and why; or None."""
        return shut(self.tracker.beads, self.dialect)

    @property
    def simulation(self) -> bool:
        """Whether the current or last run is a simulation, not a real agent."""
        known = {run.harness for run in self.runs if run.harness}  # a claim exists before the harness is known
        return "simulation" in (known or {attempt.harness for attempt in self.attempts.newest(1)})


class Change(Struct, frozen=True):
    """The differences between two snapshots."""

    beads: frozenset[str] = frozenset()
    """Beads that were added, removed or changed in row or state."""
    runs: bool = False
    attempts: frozenset[str] = frozenset()
    """Attempt ids that are new or different."""
    condition: bool = False
    everything: bool = False
    """Whether so much differs that single updates are not worthwhile."""
    journal: bool = False

    def __bool__(self) -> bool:
        parts = (self.beads, self.runs, self.attempts, self.condition, self.journal, self.everything)
        return any(map(bool, parts))


def compare(old: Snapshot, new: Snapshot) -> Change:
    """The differences between ``old`` and ``new``."""
    beads = _changed_beads(old.queue, new.queue)
    return Change(
        beads=beads,
        runs=old.runs != new.runs,
        attempts=new.attempts.changed_since(old.attempts),
        condition=(old.condition, old.notices, old.branch) != (new.condition, new.notices, new.branch)
        # the gatherer returns the same archive and journal objects while unchanged: identity suffices
        or old.archive is not new.archive
        or old.attempts_read != new.attempts_read,
        journal=old.journal is not new.journal,
        everything=len(beads) * 2 > len(new.queue.beads) > 0 or old.condition == "loading",
    )


def merge_changes(changes: Iterable[Change]) -> Change:
    """Merge successive changes into one."""
    changes = list(changes)
    return Change(
        beads=frozenset().union(*(change.beads for change in changes)),
        runs=any(change.runs for change in changes),
        attempts=frozenset().union(*(change.attempts for change in changes)),
        condition=any(change.condition for change in changes),
        journal=any(change.journal for change in changes),
        everything=any(change.everything for change in changes),
    )


def _changed_beads(old: Queue, new: Queue) -> frozenset[str]:
    if old is new:
        return frozenset()
    before, after = old.beads, new.beads
    # the reader decodes only rows whose bytes are new: the others are the same objects
    changed = {bead_id for bead_id, bead in after.items() if before.get(bead_id) is not bead}
    changed.update(bead_id for bead_id in before if bead_id not in after)
    changed.update(_moved(old.position, new.position))
    return frozenset(changed | new.restated(old))


def _moved(old: Mapping[str, int], new: Mapping[str, int]) -> set[str]:
    """Beads that became or ceased to be next: the only place in the order shown in a row."""
    first = next(iter(new), None)
    last_first = next(iter(old), None)
    return {bead_id for bead_id in (first, last_first) if bead_id is not None} if first != last_first else set()
