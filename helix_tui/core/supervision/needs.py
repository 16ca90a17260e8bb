"""*Needs me*: everything that waits on a person, ranked, each with its reason and what waits on it.

Only what nobody but a person can move is in here: beads parked for an operator, reviews that hold work back,
workers that died or fell silent, claims and changes that somebody must look at, prerequisites that no longer
exist, beads in a circle, unreadable lines, and whatever HELIX itself asks (`questions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helix_tui.core.beads.circles import circles
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.workers.running import Run
from helix_tui.core.project import Project
from helix_tui.core.supervision.escalations import escalated

if TYPE_CHECKING:  # who shows no drift need not load what finds it
    from helix_tui.core.supervision.drift import Drift
    from helix_tui.core.supervision.orphans import Orphan
    from helix_tui.core.supervision.questions import Question

KINDS = (
    "physics-level",
    "guidance",
    "approval",
    "dead_run",
    "silent_run",
    "orphaned_claim",
    "conflict",
    "ambiguous",
    "escalation",
    "clarification",
    "gap",
    "drift",
    "focus",
    "proposed",
    "preserved_review_blocked",
    "cycle",
    "missing_dependency",
    "cancelled_dependency",
    "unknown_status",
    "unread_lines",
)
"""What a need can be, the most urgent first."""


_Found = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that waits on a person."""

    kind: str
    bead_id: str
    """The bead it is about; empty for unread lines."""
    reason: str
    waiting: int
    """Unfinished beads that wait on it, directly or through others."""
    question_id: str = ""
    """The question that HELIX asks; `answering.answer_question` takes the answer."""
    options: tuple[str, ...] = ()
    """Answers that the question offers; empty: any text."""

    @property
    def key(self) -> str:
        """Unique among needs and the same over reloads."""
        return f"{self.kind}:{self.bead_id or self.question_id}"


def needs_of(
    queue: Queue,
    runs: Iterable[Run],
    tracker: Tracker,
    *,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    unminded: Collection[str] = (),
    epic: str = "",
    questions: Iterable[Question] = (),
) -> tuple[Need, ...]:
    """Everything that waits on a person, by urgency, then by how much waits on it, then by priority.

    Args:
        drift: what others changed since somebody looked.
        orphans: claims that nobody works on any more.
        unminded: beads on which the focus on ``epic`` is not as it should be.
        questions: what HELIX asks.
    """
    left = {orphan.bead_id: orphan for orphan in orphans}
    found = [need for need in _run_needs(queue, runs) if need[1] not in left or need[0] != "dead_run"]
    found += [*_parked(queue), *_cycles(queue), *_starving(queue)]
    found += [("orphaned_claim", bead_id, str(orphan)) for bead_id, orphan in left.items()]
    found += [*_drifted(drift), *escalated(queue)]
    if unminded:
        count = f"{len(unminded)} bead{'s' * (len(unminded) != 1)}"
        found.append(("focus", epic, f"the focus is to be brought up to date on {count}"))
    needs = [Need(kind, bead_id, reason, _waiting(queue, bead_id)) for kind, bead_id, reason in found]
    needs += [
        Need(each.kind, each.bead_id, each.text, _waiting(queue, each.bead_id), each.id, each.options)
        for each in questions
        if not each.answered and each.kind in KINDS
    ]
    if tracker.dropped:
        lines = ", ".join(str(dropped.line) for dropped in tracker.dropped[:5])
        more = f" and {len(tracker.dropped) - 5} more" if len(tracker.dropped) > 5 else ""
        word = "line" if len(tracker.dropped) == 1 else "lines"
        needs.append(
            Need("unread_lines", "", f"{word} {lines}{more} of {tracker.path.name} cannot be read", 0)
        )
    return tuple(sorted(needs, key=lambda need: _rank(queue, need)))


def asked_of(project: Project) -> tuple[Question, ...]:
    """What HELIX asks and nobody has answered; reads one small file, where there is one."""
    path = project.helix_dir / "questions.json"
    if not path.exists():
        return ()
    from helix_tui.core.supervision.questions import read_questions  # most projects never ask

    return tuple(question for question in read_questions(path) if not question.answered)


def _rank(queue: Queue, need: Need) -> tuple[int, int, int, str]:
    bead = queue.beads.get(need.bead_id)
    return KINDS.index(need.kind), -need.waiting, bead.priority if bead else 0, need.bead_id


def _run_needs(queue: Queue, runs: Iterable[Run]) -> Iterable[_Found]:
    for run in runs:
        if run.verdict == "alive" or run.bead_id is None:
            continue
        bead = queue.beads.get(run.bead_id)
        if bead is None or bead.status not in TERMINAL:
            yield ("dead_run" if run.verdict == "dead" else "silent_run"), run.bead_id, run.why


def _drifted(drift: Iterable[Drift]) -> Iterable[_Found]:
    """One need a bead, whatever number of its fields differ."""
    by_bead: dict[str, list[Drift]] = {}
    for each in drift:
        by_bead.setdefault(each.bead_id, []).append(each)
    for bead_id, differing in by_bead.items():
        yield "drift", bead_id, "; ".join(map(str, differing))


def _parked(queue: Queue) -> Iterable[_Found]:
    for bead_id in queue.beads:
        state = queue.state(bead_id)
        if state in ("proposed", "preserved_review_blocked", "unknown_status"):
            yield state, bead_id, queue.standing(bead_id).reasons[0].detail


def _cycles(queue: Queue) -> Iterable[_Found]:
    for circle in circles(queue):
        yield "cycle", circle.ids[0], f"waits in a circle: {circle.path()}"


def _starving(queue: Queue) -> Iterable[_Found]:
    for bead_id, targets in queue.graph.depends_on.items():
        if queue.state(bead_id) != "waiting_dependencies":
            continue
        missing = [target for target in targets if target not in queue.beads]
        if missing:
            yield "missing_dependency", bead_id, f"waits on {', '.join(missing)}, not in the tracker"
            continue
        dropped = [target for target in targets if queue.beads[target].status == "cancelled"]
        if dropped:
            yield (
                "cancelled_dependency",
                bead_id,
                f"waits on {', '.join(dropped)}, cancelled and never closed",
            )


def _waiting(queue: Queue, bead_id: str) -> int:
    """Unfinished beads downstream of a bead."""
    seen: set[str] = set()
    stack = [bead_id]
    while stack:
        for other in queue.graph.dependents.get(stack.pop(), ()):
            if other not in seen and other != bead_id and queue.beads[other].status not in TERMINAL:
                seen.add(other)
                stack.append(other)
    return len(seen)
