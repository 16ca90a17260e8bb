"""What the console knows at one instant, and what became different since the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.dialect import Dialect, Shut, shut
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.ground.project import Project

Condition = Literal["loading", "live", "empty", "no-ddx", "gone", "unreadable"]
"""Where the tracker stands: unread yet, read, without beads, never seen, seen and gone, unreadable."""


class Notice(Struct, frozen=True):
    """Something a person should know that is no bead: unread lines, a problem with a file."""

    kind: str
    text: str
    short: tuple[str, ...] = ()
    """The same in fewer words, the longest first."""


class Snapshot(Struct, frozen=True):
    """One immutable state of everything that is shown. Whoever holds one may look at it from any thread."""

    project: Project
    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...] = ()
    attempts: AttemptBook = field(default_factory=AttemptBook)
    attempts_read: bool = False
    """They were looked for; before that there being none says nothing."""
    journal: JournalHistory = field(default_factory=JournalHistory)
    condition: Condition = "loading"
    notices: tuple[Notice, ...] = ()
    branch: str = ""
    generation: int = 0
    taken_at: int = 0
    """Instant at which it was put together."""
    written_at: int = 0
    """Instant of the newest write that it rests on; 0 when nothing was read."""
    archive: Mapping[str, Bead] = {}
    """Beads that stand in ddx's archive alone: they count for nothing that is ready or waits."""
    dialect: Dialect | None = None
    """What the installed ddx does, whose rule judged the queue if it is proven; None where there is none."""

    @property
    def has_queue(self) -> bool:
        """Whether there are beads to show, if only those that were read before the tracker became unreadable."""
        return bool(self.tracker.beads) and self.condition in ("live", "unreadable")

    @property
    def shut(self) -> Shut | None:
        """Why the installed ddx would refuse every command here; None where it would not."""
        return shut(self.tracker.beads, self.dialect)

    @property
    def simulation(self) -> bool:
        """Whether what runs, or ran last, is a simulation and not a real agent."""
        known = {run.harness for run in self.runs if run.harness}  # a claim comes before the harness is known
        return "simulation" in (known or {attempt.harness for attempt in self.attempts.newest(1)})


class Change(Struct, frozen=True):
    """What differs between two snapshots."""

    beads: frozenset[str] = frozenset()
    """Beads whose row or state differs, that came or that went."""
    runs: bool = False
    attempts: frozenset[str] = frozenset()
    """Attempt ids that are new or different."""
    condition: bool = False
    everything: bool = False
    """So much differs that going through it one by one is no use."""
    journal: bool = False

    def __bool__(self) -> bool:
        parts = (self.beads, self.runs, self.attempts, self.condition, self.journal, self.everything)
        return any(map(bool, parts))


def compare(old: Snapshot, new: Snapshot) -> Change:
    """What became different from ``old`` to ``new``."""
    beads = _changed_beads(old.queue, new.queue)
    return Change(
        beads=beads,
        runs=old.runs != new.runs,
        attempts=new.attempts.changed_since(old.attempts),
        condition=(old.condition, old.notices, old.branch) != (new.condition, new.notices, new.branch)
        # the gatherer keeps archive and journal as the very objects while they say the same: identity tells
        or old.archive is not new.archive
        or old.attempts_read != new.attempts_read,
        journal=old.journal is not new.journal,
        everything=len(beads) * 2 > len(new.queue.beads) > 0 or old.condition == "loading",
    )


def merge_changes(changes: Iterable[Change]) -> Change:
    """Several changes in a row as one."""
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
    # the reader decodes only rows whose bytes are new: the others are the very beads of before
    changed = {bead_id for bead_id, bead in after.items() if before.get(bead_id) is not bead}
    changed.update(bead_id for bead_id in before if bead_id not in after)
    changed.update(_moved(old.position, new.position))
    changed.update(
        bead_id
        for bead_id in after
        if bead_id in before and bead_id not in changed and old.state(bead_id) != new.state(bead_id)
    )
    return frozenset(changed)


def _moved(old: Mapping[str, int], new: Mapping[str, int]) -> set[str]:
    """Beads that became next, or no longer are: the only place in the order that a row shows."""
    first = next(iter(new), None)
    last_first = next(iter(old), None)
    return {bead_id for bead_id in (first, last_first) if bead_id is not None} if first != last_first else set()
