"""Count the ready beads, and those for workers: one set of numbers for every place that prints any.

``ready`` are the beads that a worker may pick now and that no worker is on. HELIX withholds from
workers those about which a question is open; their questions are named beside the number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.states import STATES, State

_NAMED = frozenset({"ready", "running", "waiting_dependencies", "blocked_external", "closed"})
"""States that have a field of their own."""


class QueueCounts(Struct, frozen=True):
    """The numbers of a queue, or of a part of it, at one moment."""

    total: int = 0
    open: int = 0
    """Beads whose status is ``open``."""
    in_progress: int = 0
    """Beads whose status is ``in_progress``, with or without a live worker."""
    closed: int = 0
    running: int = 0
    """Beads with a live worker."""
    waiting: int = 0
    """Unfinished beads that wait for other beads."""
    outside: int = 0
    """Beads that wait for something outside the queue."""
    rest: tuple[tuple[State, int], ...] = ()
    """The other states with their numbers; with ready, running, waiting, outside and closed they are all beads."""
    listed: int = 0
    """What the installed ddx counts as ready: with ddx of April, every open bead that waits for nothing."""
    blocked: int = 0
    """What the installed ddx counts as blocked: with ddx of April, open beads that wait for a bead (its `bead blocked`
    lists those on a cooldown too); later, those that wait for something outside the queue.
    """
    blocked_counts: str = "waiting"
    ready: tuple[str, ...] = ()
    """Beads that a worker may pick and that no worker is on, in pick order."""
    archived: int = 0
    """Beads that exist only in ddx's archive."""
    archived_closed: int = 0
    asked: tuple[tuple[str, str], ...] = ()
    """Ready beads that wait for an answer, each with the question's id, in pick order."""

    @property
    def for_workers(self) -> tuple[str, ...]:
        """Ready beads without an open question about them: what a HELIX run gives to workers. A worker started by hand
        picks the others too, unless a run holds them back.
        """
        waiting = {bead_id for bead_id, _ in self.asked}
        return tuple(bead_id for bead_id in self.ready if bead_id not in waiting)

    @property
    def left_out(self) -> str:
        """``q-1 and q-2 wait for you``: why fewer beads are for workers than are ready; else empty."""
        # one question may concern several beads: name it once
        names = list(dict.fromkeys(question for _, question in self.asked))
        if not names:
            return ""
        *first, last = names
        return f"{last} waits for you" if not first else f"{', '.join(first)} and {last} wait for you"

    @property
    def split(self) -> str:
        """``6 can run``; empty if all ready beads can."""
        return f"{len(self.for_workers):,} can run" if self.asked else ""

    @property
    def put_away(self) -> str:
        """``825 more archived (1,031 closed in all)``; empty if nothing is archived."""
        if not self.archived:
            return ""
        return f"{self.archived:,} more archived ({self.closed + self.archived_closed:,} closed in all)"

    def record(self) -> dict[str, Any]:
        """The counts as JSON, with ``ready`` and ``blocked`` as the installed ddx counts them."""
        return {
            "total": self.total,
            "open": self.open,
            "in_progress": self.in_progress,
            "closed": self.closed,
            "archived": self.archived,
            "closed_in_all": self.closed + self.archived_closed,
            "running": self.running,
            "ready": self.listed,
            "ready_execution": len(self.ready),
            "ready_for_workers": len(self.for_workers),
            "left_out": self.left_out or None,
            "blocked": self.blocked,
            "waiting": self.waiting,
            "blocked_counts": self.blocked_counts,
        }

    def __str__(self) -> str:
        """``8 ready, 6 can run: q-1 and q-2 wait for you``."""
        said = f"{len(self.ready):,} ready"
        return f"{said}, {self.split}: {self.left_out}" if self.asked else said


def count_queue(
    queue: Queue,
    asked: Mapping[str, str] | None = None,
    *,
    among: Collection[str] | None = None,
    archive: Mapping[str, Bead] | None = None,
) -> QueueCounts:
    """Count a queue.

    Args:
        queue: the classified tracker, which decides what is ready.
        asked: bead id to the id of the unanswered question about it.
        among: only these beads; None for all.
        archive: beads that exist only in ddx's archive: counted for the whole queue, not for a part.
    """
    questions = tuple((asked or {}).items())
    if among is None:
        counts = _with_questions(_count_all(queue), questions)
        if not archive:
            return counts
        closed = sum(bead.status == "closed" for bead in archive.values())
        return replace(counts, archived=len(archive), archived_closed=closed)
    return _with_questions(_count(queue, frozenset(among)), questions)


def _with_questions(counts: QueueCounts, questions: tuple[tuple[str, str], ...]) -> QueueCounts:
    about = dict(questions)
    asked = tuple((bead_id, about[bead_id]) for bead_id in counts.ready if bead_id in about)
    return replace(counts, asked=asked) if asked else counts


# a queue is immutable, and every interface counts the same one
@lru_cache(maxsize=4)
def _count_all(queue: Queue) -> QueueCounts:
    return _count(queue, frozenset(queue.beads))


def _count(queue: Queue, wanted: frozenset[str]) -> QueueCounts:
    beads = [bead for bead_id, bead in queue.beads.items() if bead_id in wanted]
    ready = tuple(bead_id for bead_id in queue.ready if bead_id in wanted)
    picked = sum(bead_id in wanted for bead_id in queue.picked_by_ddx)
    states = Counter(queue.state(bead.id) for bead in beads)
    statuses = Counter(bead.status for bead in beads)
    waiting, outside = states["waiting_dependencies"], states["blocked_external"]
    free = sum(_is_free(queue, bead) for bead in beads)
    april = queue.rule.waiting_is_blocked
    return QueueCounts(
        total=len(beads),
        open=statuses["open"],
        in_progress=statuses["in_progress"],
        closed=states["closed"],
        running=states["running"],
        waiting=waiting,
        outside=outside,
        rest=tuple((state, states[state]) for state in STATES if states[state] and state not in _NAMED),
        listed=free if queue.rule.plain_ready else picked,
        blocked=statuses["open"] - free if april else outside,
        blocked_counts="waiting" if april else "status blocked",
        ready=ready,
    )


def _is_free(queue: Queue, bead: Bead) -> bool:
    return bead.status == "open" and all(_closed(queue, target) for target in bead.depends_on)


def _closed(queue: Queue, bead_id: str) -> bool:
    bead = queue.beads.get(bead_id)
    return bead is not None and bead.status == "closed"
