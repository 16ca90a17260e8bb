"""Queue health: all facts from the tracker and the files around it, without asking an agent.

Numbers: docs/formats/helix.md §2. ``ready`` is ddx's plain notion (open and nothing unclosed before it);
``ready_execution`` is what a worker would pick; both are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.counts import QueueCounts, count_queue
from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import IN_HAND, states_where
from helix_tui.core.beads.tracker import Archived, find_archived, only_archived, read_archive
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.dialect import dialect_or_family
from helix_tui.core.ddx.documents.source import DocumentChange, Documents, GoverningDocuments
from helix_tui.core.ddx.remarks import Shut
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.authoring import deterministic
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding
from helix_tui.core.supervision.signals.drift import Drift
from helix_tui.core.supervision.signals.kept_changes import refused_changes
from helix_tui.core.supervision.signals.orphans import Orphan, governs_alignment, stalled
from helix_tui.core.supervision.signals.questions import OpenQuestion, beads_in_question, still_asked
from helix_tui.core.supervision.signals.scope import EVERYTHING, Scope, is_empty_epic, is_finished_epic, named_beads
from helix_tui.core.supervision.signals.stoppage import Stoppage
from helix_tui.core.supervision.signals.tried import Tried

NONE_TRIED = AttemptBook()

MAX_JUDGED = 200
"""Maximum ready beads whose acceptance and authority are checked: more than a worker does in a day."""


class Facts(Struct, frozen=True):
    """The facts of a scope at one instant."""

    scope: Scope
    queue: Queue
    left: tuple[str, ...]
    """Unfinished beads of the scope, in tracker order; without beads that govern an alignment, unless one is being
    worked on.
    """
    ready: tuple[str, ...]
    """Beads that a worker would pick, in its order."""
    cooling: tuple[tuple[str, int], ...] = ()
    """Beads on cooldown with the end of each, soonest first."""
    moving: tuple[str, ...] = ()
    """Beads that are being worked on or held."""
    stalls: tuple[Run, ...] = ()
    """Work whose worker is dead or silent."""
    orphans: tuple[Orphan, ...] = ()
    dead: tuple[Orphan, ...] = ()
    """Claims of dead processes that ddx still honours."""
    drift: tuple[Drift, ...] = ()
    never_met: tuple[tuple[str, str], ...] = ()
    """(bead, its dependency that is missing or cancelled)."""
    cycles: tuple[tuple[str, ...], ...] = ()
    vague: tuple[str, ...] = ()
    """Ready beads whose acceptance no machine can check."""
    unaccepted: tuple[str, ...] = ()
    """Ready beads without any acceptance."""
    ungoverned: tuple[str, ...] = ()
    """Ready beads that name a missing document."""
    hollow: tuple[str, ...] = ()
    """Open epics under which nothing is left and nothing was closed."""
    finished_epics: tuple[str, ...] = ()
    """Open epics under which everything is closed or cancelled."""
    superseded: tuple[str, ...] = ()
    """Open beads that are superseded."""
    questions: tuple[OpenQuestion, ...] = ()
    """Unanswered questions."""
    conflicts: tuple[DocumentFinding, ...] = ()
    """Conflicts and gaps between governing documents, except decided ones."""
    documents: Documents | None = None
    """The document graph; None if not read."""
    changes: tuple[DocumentChange, ...] = ()
    """Documents that changed since beads under them were written, or others were reviewed against them."""
    tried: tuple[Tried, ...] = ()
    """Beads that the last run attempted and left open."""
    refused: Mapping[str, Attempt] = {}
    """Beads whose change a review refused, and which the next worker would land, each with the attempt."""
    archived: Mapping[str, Archived] = {}
    """Beads of the archive that others wait on."""
    stoppage: Stoppage | None = None
    """What stopped the last worker, if it must be fixed."""
    health: Mapping[str, Any] = {}
    shut: Shut | None = None
    """What the installed ddx refuses here, and why; or None."""
    drain: str = "ddx work"
    """How the installed ddx drains the queue."""
    unnamed: bool = False
    """Whether the scope matches no bead, label or specification, so that the whole tracker was checked."""
    outside: tuple[str, ...] = ()
    """Beads outside the scope that a worker would pick."""
    counts: QueueCounts = field(default=QueueCounts())
    """The counts of the scope, as printed everywhere."""
    unread: str = ""
    """Which lines of the tracker are not beads, in one sentence; else ""."""

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """(bead, its missing dependency), whatever else holds the bead."""
        chosen = frozenset(self.left)
        return tuple((edge.bead_id, edge.missing) for edge in self.queue.graph.dangling if edge.bead_id in chosen)

    @property
    def waits_on_cancelled(self) -> tuple[tuple[str, str], ...]:
        """(bead, its cancelled dependency, which never closes), whatever else holds the bead."""
        beads = self.queue.beads
        edges = ((bead_id, target) for bead_id in self.left for target in beads[bead_id].depends_on)
        return tuple(edge for edge in edges if edge[1] in beads and beads[edge[1]].status == "cancelled")

    @property
    def unasked(self) -> tuple[DocumentFinding, ...]:
        """Conflicts that stop the work and that no open question names."""
        return unasked(self.conflicts, self.questions)

    @property
    def next_eligible(self) -> str:
        """When the first cooldown ends; else ""."""
        return format_instant(self.cooling[0][1]) if self.cooling else ""


def unasked(conflicts: Iterable[DocumentFinding], questions: Iterable[OpenQuestion]) -> tuple[DocumentFinding, ...]:
    """The conflicts between documents that stop the work and that no open question names."""
    asked = {question.key for question in questions if question.stops}
    return tuple(conflict for conflict in conflicts if conflict.kind == "physics-level" and conflict.key not in asked)


def gather_facts(
    queue_state: QueueState,
    *,
    scope: Scope = EVERYTHING,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    dead: Iterable[Orphan] = (),
    questions: Iterable[OpenQuestion] = (),
    governing: GoverningDocuments | None = None,
    conflicts: Iterable[DocumentFinding] = (),
    documents: Documents | None = None,
    changes: Iterable[DocumentChange] = (),
    tried: Iterable[Tried] = (),
    attempts: AttemptBook = NONE_TRIED,
    stoppage: Stoppage | None = None,
    archive: Path | None = None,
) -> Facts:
    """Gather the facts of a scope: everything, an epic and all under it, a label, or a specification."""
    queue = queue_state.queue
    named = named_beads(queue, scope)
    beads = [queue.beads[bead_id] for bead_id in named or queue.beads]
    unfinished = [bead for bead in beads if bead.status not in TERMINAL]
    left = [bead for bead in unfinished if not governs_alignment(bead) or bead.id in queue_state.claimed]
    chosen = frozenset(bead.id for bead in beads)
    ready = tuple(bead_id for bead_id in queue.ready if bead_id in chosen)
    judged = [queue.beads[bead_id] for bead_id in ready[:MAX_JUDGED] if not looks_like_epic(queue.beads[bead_id])]
    acceptance = {bead.id: str(bead.document().get("acceptance") or "") for bead in judged}
    cooling = _cooling(queue, left)

    def concerns(bead_id: str | None) -> bool:
        return bead_id in chosen and not governs_alignment(queue.beads[bead_id])

    left_by = {orphan.bead_id: orphan for orphan in orphans if concerns(orphan.bead_id)}
    dying = {each.bead_id: each for each in dead}
    every = tuple(questions)
    asked = still_asked(every, queue.beads)
    away = only_archived(read_archive(archive), queue.beads) if archive else {}
    counts = count_queue(queue, beads_in_question(asked), among=None if named is None else chosen, archive=away)
    refused = refused_changes(queue, queue_state.dialect, attempts)
    # not `answered`, which is also true if the cause went away: such a conflict may come back
    decided = {question.key for question in every if question.answered_at}
    return Facts(
        scope=scope,
        queue=queue,
        stoppage=stoppage,
        archived=find_archived(archive, {edge.missing for edge in queue.graph.dangling}) if archive else {},
        left=tuple(bead.id for bead in left),
        ready=ready,
        cooling=tuple(cooling),
        moving=tuple(bead_id for bead_id in _at_work(queue, left) if bead_id not in dying),
        dead=tuple(each for each in dying.values() if each.bead_id in chosen),
        # an orphaned claim says the same about its worker
        stalls=tuple(
            run for run in stalled(queue_state.runs, queue) if concerns(run.bead_id) and run.bead_id not in left_by
        ),
        orphans=tuple(left_by.values()),
        # without a field the bead is gone, so no scope can include it
        drift=tuple(each for each in drift if each.bead_id in chosen or not each.field),
        never_met=tuple(_never_met(queue, left)),
        cycles=tuple(cycle for cycle in queue.graph.cycles if chosen.intersection(cycle)),
        vague=tuple(bead_id for bead_id, text in acceptance.items() if text.strip() and not deterministic(text)),
        unaccepted=tuple(bead_id for bead_id, text in acceptance.items() if not text.strip()),
        ungoverned=tuple(bead.id for bead in judged if governing is not None and governing.lacks(bead.spec_id)),
        hollow=tuple(bead.id for bead in left if is_empty_epic(queue, bead)),
        finished_epics=tuple(bead.id for bead in left if is_finished_epic(queue, bead)),
        superseded=tuple(bead.id for bead in left if bead.superseded_by.strip()),
        questions=asked,
        conflicts=tuple(conflict for conflict in conflicts if conflict.key not in decided),
        documents=documents,
        changes=tuple(_inside(changes, chosen, whole=named is None)),
        tried=tuple(each for each in tried if each.bead_id in chosen),
        refused={bead_id: each for bead_id, each in refused.items() if bead_id in chosen},
        health=_health(queue, beads, unfinished, counts, cooling),
        shut=queue_state.shut,
        drain=" ".join(("ddx", *dialect_or_family(queue_state.dialect, queue).drain)),
        counts=counts,
        unnamed=named is None and scope is not EVERYTHING,
        outside=tuple(bead_id for bead_id in queue.ready if bead_id not in chosen),
        unread=queue_state.tracker.unread,
    )


_ENDED_BY_TIME = states_where(mover="time")


def _at_work(queue: Queue, left: Iterable[Bead]) -> Iterable[str]:
    """Beads that ddx takes for being worked on: it honours a dead process's claim for a while."""
    return (bead.id for bead in left if queue.state(bead.id) in IN_HAND)


def _cooling(queue: Queue, left: Iterable[Bead]) -> list[tuple[str, int]]:
    """(bead, end of its cooldown in ns), the first to end first."""
    found = [
        (bead.id, until)
        for bead in left
        if queue.state(bead.id) in _ENDED_BY_TIME and (until := queue.standing(bead.id).until) is not None
    ]
    return sorted(found, key=lambda pair: pair[1])


def _health(
    queue: Queue, beads: list[Bead], left: list[Bead], counts: QueueCounts, cooling: list[tuple[str, int]]
) -> dict[str, Any]:
    states: dict[str, int] = {}
    for bead in beads:
        state = queue.state(bead.id)
        states[state] = states.get(state, 0) + 1
    return {
        **counts.record(),
        "cooling": len(cooling),
        "states": states,
        "without_area": sum(not any(label.startswith("area:") for label in bead.labels) for bead in left),
        "without_digest": sum(b"context-digest" not in bead.raw for bead in left),
    }


def _inside(changes: Iterable[DocumentChange], chosen: frozenset[str], *, whole: bool) -> Iterable[DocumentChange]:
    """The changes that concern the beads of a scope; those concerning only reviews belong to the whole queue."""
    for change in changes:
        beads = tuple(bead_id for bead_id in change.beads if bead_id in chosen)
        if beads or whole:
            yield replace(change, beads=beads)


def _never_met(queue: Queue, left: list[Bead]) -> Iterable[tuple[str, str]]:
    for bead in left:
        if queue.state(bead.id) != "waiting_dependencies":
            continue
        for target in bead.depends_on:
            other = queue.beads.get(target)
            if other is None or other.status == "cancelled":
                yield bead.id, target
