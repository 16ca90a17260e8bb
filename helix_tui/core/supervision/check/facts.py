"""Queue health: everything that a look at the tracker and the files around it can tell, without asking
anybody.

Numbers: reference/helix.md §2. ``ready`` is ddx's plain notion (open and nothing unclosed before it);
``ready_execution`` is what a worker would pick, and both are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.clock import format_instant
from helix_tui.core.ddx.workers.running import Run
from helix_tui.core.supervision.authoring import deterministic
from helix_tui.core.supervision.check.authority import Authority
from helix_tui.core.supervision.conflicts import Finding
from helix_tui.core.supervision.curation.curator import Sight
from helix_tui.core.supervision.drift import Drift
from helix_tui.core.supervision.orphans import Orphan
from helix_tui.core.supervision.questions import Question

REPO = "repo"

MOST_JUDGED = 200
"""Ready beads whose acceptance and authority are looked at: more than a worker does in a day."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a scope at one instant."""

    scope: str
    queue: Queue
    left: tuple[str, ...]
    """Unfinished beads of the scope, in tracker order."""
    ready: tuple[str, ...]
    """Those that a worker would pick, in its order."""
    cooling: tuple[tuple[str, int], ...] = ()
    """Beads on cooldown and when each ends, soonest first."""
    moving: tuple[str, ...] = ()
    """Beads that somebody works on or holds."""
    stalls: tuple[Run, ...] = ()
    """Work whose worker is dead or has fallen silent."""
    orphans: tuple[Orphan, ...] = ()
    drift: tuple[Drift, ...] = ()
    dangling: tuple[tuple[str, str], ...] = ()
    """(bead, what it waits for and the tracker lacks or has cancelled)."""
    cycles: tuple[tuple[str, ...], ...] = ()
    vague: tuple[str, ...] = ()
    """Ready beads whose acceptance no machine can check."""
    unaccepted: tuple[str, ...] = ()
    """Ready beads without any acceptance."""
    ungoverned: tuple[str, ...] = ()
    """Ready beads that name a document which the repository lacks."""
    hollow: tuple[str, ...] = ()
    """Open epics that nothing was broken out of."""
    finished_epics: tuple[str, ...] = ()
    """Open epics under which everything is closed."""
    superseded: tuple[str, ...] = ()
    """Open beads that another one replaces."""
    questions: tuple[Question, ...] = ()
    """Unanswered ones."""
    conflicts: tuple[Finding, ...] = ()
    """Conflicts and gaps between governing documents, but for those that somebody has decided."""
    health: Mapping[str, Any] = field(default_factory=dict)
    unnamed: bool = False
    """The scope names no bead, label or specification of the tracker, so that all of it was looked at."""

    @property
    def next_eligible(self) -> str:
        """When the first cooldown ends; empty where none is."""
        return format_instant(self.cooling[0][1]) if self.cooling else ""


def gather_facts(
    sight: Sight,
    *,
    scope: str = REPO,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    questions: Iterable[Question] = (),
    authority: Authority | None = None,
    conflicts: Iterable[Finding] = (),
) -> Facts:
    """What is known of a scope: the repository, an epic and all under it, a label, or a specification."""
    queue = sight.queue
    named = named_beads(queue, scope)
    inside = tuple(queue.beads) if named is None else named
    beads = [queue.beads[bead_id] for bead_id in inside]
    left = [bead for bead in beads if bead.status not in TERMINAL]
    chosen = frozenset(inside)
    ready = tuple(bead_id for bead_id in queue.ready if bead_id in chosen)
    judged = [
        queue.beads[bead_id] for bead_id in ready[:MOST_JUDGED] if not looks_like_epic(queue.beads[bead_id])
    ]
    acceptance = {bead.id: str(bead.document().get("acceptance") or "") for bead in judged}
    cooling = [
        (bead.id, until)
        for bead in left
        if queue.state(bead.id) == "retry_cooldown" and (until := queue.standing(bead.id).until) is not None
    ]
    epics = [bead for bead in left if looks_like_epic(bead)]
    every = tuple(questions)
    asked = tuple(question for question in every if not question.answered)
    decided = {question.key for question in every if question.answered}
    return Facts(
        scope=scope,
        queue=queue,
        left=tuple(bead.id for bead in left),
        ready=ready,
        cooling=tuple(sorted(cooling, key=lambda pair: pair[1])),
        moving=tuple(bead.id for bead in left if queue.state(bead.id) in ("running", "claimed")),
        stalls=tuple(run for run in sight.runs if run.verdict != "alive" and run.bead_id in chosen),
        orphans=tuple(orphan for orphan in orphans if orphan.bead_id in chosen),
        drift=tuple(each for each in drift if each.bead_id in chosen or not each.field),
        dangling=tuple(_dangling(queue, left)),
        cycles=tuple(cycle for cycle in queue.graph.cycles if _turns(queue, cycle, chosen)),
        vague=tuple(
            bead_id for bead_id, text in acceptance.items() if text.strip() and not deterministic(text)
        ),
        unaccepted=tuple(bead_id for bead_id, text in acceptance.items() if not text.strip()),
        ungoverned=tuple(
            bead.id for bead in judged if authority is not None and authority.lacks(bead.spec_id)
        ),
        hollow=tuple(bead.id for bead in epics if not queue.graph.children.get(bead.id)),
        finished_epics=tuple(bead.id for bead in epics if _all_closed(queue, bead.id)),
        superseded=tuple(bead.id for bead in left if bead.superseded_by.strip()),
        questions=asked,
        conflicts=tuple(each for each in conflicts if each.key not in decided),
        health=_health(queue, beads, left, ready, cooling),
        unnamed=named is None and scope not in ("", REPO),
    )


def in_scope(queue: Queue, scope: str) -> tuple[str, ...]:
    """Ids that a scope stands for; a scope that names no bead, label or specification is the repository."""
    named = named_beads(queue, scope)
    return tuple(queue.beads) if named is None else named


def named_beads(queue: Queue, scope: str) -> tuple[str, ...] | None:
    """Ids of the beads that a scope names; None where it names none."""
    if scope in queue.beads:
        found = {scope}
        stack = [scope]
        while stack:
            for child in queue.graph.children.get(stack.pop(), ()):
                if child not in found:
                    found.add(child)
                    stack.append(child)
        return tuple(bead_id for bead_id in queue.beads if bead_id in found)
    named = tuple(
        bead_id
        for bead_id, bead in queue.beads.items()
        if bead.spec_id == scope or scope in bead.labels or f"area:{scope}" in bead.labels
    )
    return named or None


def _health(
    queue: Queue, beads: list[Bead], left: list[Bead], ready: tuple[str, ...], cooling: list[tuple[str, int]]
) -> dict[str, Any]:
    closed = {bead_id for bead_id, bead in queue.beads.items() if bead.status == "closed"}
    plain = [
        bead for bead in left if bead.status == "open" and all(each in closed for each in bead.depends_on)
    ]
    states: dict[str, int] = {}
    for bead in beads:
        state = queue.state(bead.id)
        states[state] = states.get(state, 0) + 1
    return {
        "total": len(beads),
        "open": sum(bead.status == "open" for bead in left),
        "in_progress": sum(bead.status == "in_progress" for bead in left),
        "closed": sum(bead.status == "closed" for bead in beads),
        "ready": len(plain),
        "ready_execution": len(ready),
        "blocked": sum(queue.state(bead.id) == "waiting_dependencies" for bead in left),
        "cooling": len(cooling),
        "states": states,
        "without_area": sum(not any(label.startswith("area:") for label in bead.labels) for bead in left),
        "without_digest": sum(b"context-digest" not in bead.raw for bead in left),
    }


def _dangling(queue: Queue, left: list[Bead]) -> Iterable[tuple[str, str]]:
    for bead in left:
        if queue.state(bead.id) != "waiting_dependencies":
            continue
        for target in bead.depends_on:
            other = queue.beads.get(target)
            if other is None or other.status == "cancelled":
                yield bead.id, target


def _turns(queue: Queue, cycle: tuple[str, ...], chosen: frozenset[str]) -> bool:
    return any(bead_id in chosen and queue.beads[bead_id].status not in TERMINAL for bead_id in cycle)


def _all_closed(queue: Queue, epic: str) -> bool:
    below = in_scope(queue, epic)
    return len(below) > 1 and all(queue.beads[each].status in TERMINAL for each in below if each != epic)
