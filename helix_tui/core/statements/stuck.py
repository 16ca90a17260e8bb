"""Find what is stuck and why: each bead that does not move; a view of ddx's own facts, not stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import DRIFTED, TERMINAL, Bead, hold_reason
from helix_tui.core.beads.states import FOR_A_WORKER, STATES
from helix_tui.core.beads.tracker import Archived, find_archived
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_instant, parse_instant
from helix_tui.core.statements.why import held_by
from helix_tui.core.supervision.signals.drift import Drift
from helix_tui.core.supervision.signals.orphans import Orphan, find_left, governs_alignment
from helix_tui.core.supervision.signals.questions import OpenQuestion, still_asked
from helix_tui.core.supervision.signals.scope import is_empty_epic, is_finished_epic
from helix_tui.core.supervision.signals.stoppage import Stoppage, find_stoppage
from helix_tui.core.supervision.signals.tried import Tried

if TYPE_CHECKING:
    from helix_tui.core.ddx.dialect import Dialect
    from helix_tui.core.editing.execute.curator import QueueState
    from helix_tui.core.supervision.loop.work import LoopWork
    from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding

_OF_THE_QUEUE = ("waiting_dependencies", "superseded")
"""States that no worker leaves behind."""

_LOOK = "look, and decide: `helix-tui why {0}`"

MENDS = {
    "defer": "leave it until then",
    "unclaim": "`helix-tui stuck --recover {0}`",
    "escalate": _LOOK,
    "decide": _LOOK,
    "recheck": "`helix-tui set {0} status=open`, once the blocker is gone",
    "close": "`helix-tui close {0}`",
    "close it, reviewed": "`helix-tui run` closes it, reviewed; `helix-tui close {0}` at once",
    "polish": "`helix-tui polish {0}`",
    "look at its attempt": "`helix-tui attempts --bead {0}`",
}


class Stuck(Struct, frozen=True):
    """One bead that does not move."""

    bead_id: str
    title: str
    reason: str
    detail: str
    suggested_action: str
    blocking_deps: tuple[str, ...] = ()
    next_eligible_at: str = ""
    claim_age_seconds: int | None = None
    claimed_pid_alive: bool | None = None
    question_id: str = ""
    """The question whose answer unblocks it."""
    documents: tuple[str, ...] = ()
    """The documents that contradict each other."""

    @property
    def name(self) -> str:
        """The subject of the row: the bead, a question without a bead, or documents."""
        return self.bead_id or self.question_id or " and ".join(self.documents)

    def record(self) -> dict[str, Any]:
        """As JSON; null if unknown."""
        unknown = {name: getattr(self, name) or None for name in ("next_eligible_at", "question_id")}
        return {**to_builtins(self), **unknown}


def find_stuck(
    queue: Queue,
    *,
    orphans: Iterable[Orphan] = (),
    drift: Iterable[Drift] = (),
    epic: str = "",
    questions: Iterable[OpenQuestion] = (),
    unasked: Iterable[DocumentFinding] = (),
    tried: Iterable[Tried] = (),
    stoppage: Stoppage | None = None,
    archive: Path | None = None,
) -> tuple[Stuck, ...]:
    """Every bead that does not move, claims left behind first.

    Args:
        epic: the focused epic, which is stuck if nothing under it is ready.
        questions: HELIX's questions; those that are answered hold nothing up.
        unasked: conflicts between documents that stop the work and that no question names.
        tried: beads that the last run attempted and left open.
        stoppage: what stopped the last worker.
        archive: ddx's archive, to explain beads that wait on an archived one.
    """
    left = {
        orphan.bead_id: orphan
        for orphan in orphans
        if orphan.bead_id not in queue.beads or not governs_alignment(queue.beads[orphan.bead_id])
    }
    asked = still_asked(questions, queue.beads)
    waiting = {question.bead_id for question in asked if question.bead_id}
    drifted: dict[str, list[Drift]] = {}
    for each in drift:
        drifted.setdefault(each.bead_id, []).append(each)
    found = [] if stoppage is None or stoppage.present is False else [_stopped(queue, stoppage)]
    found += [_orphaned(queue, orphan) for orphan in left.values()]
    found += [_drifted(queue, bead_id, many) for bead_id, many in drifted.items() if bead_id in queue.beads]
    found += [_waiting(queue, question) for question in asked]
    found += [_conflict(each) for each in unasked]
    found += _standing_epics(queue, epic)
    # one row a cause: a bead with an orphaned claim, an open question or a stopped worker is not listed for what these
    # left in its row as well
    stopped = {each.bead_id for each in found if each.reason == "worker-stopped" and each.bead_id in queue.beads}
    known = {*left, *waiting, *(bead_id for bead_id in stopped if queue.state(bead_id) not in _OF_THE_QUEUE)}
    failed = {each.bead_id: each for each in tried if each.bead_id not in known}
    found += [_tried(queue.beads[bead_id], each) for bead_id, each in failed.items() if bead_id in queue.beads]
    known |= set(failed)
    found += [
        stuck
        for bead in queue.beads.values()
        if bead.id not in known and not (bead.id in drifted and _held_for_drift(queue, bead))
        if bead.status not in TERMINAL
        # HELIX keeps such a bead for itself: it holds nothing up
        if not governs_alignment(bead)
        if (stuck := _by_state(queue, bead)) is not None
    ]
    away = find_archived(archive, {edge.missing for edge in queue.graph.dangling}) if archive else {}
    return tuple(_explained(each, away) for each in _causes_of(found))


def _causes_of(found: list[Stuck]) -> Iterator[Stuck]:
    """One row a cause: a stalled epic whose beads all have rows of their own is named in these, and has none."""
    rows = {each.bead_id for each in found if each.bead_id}
    stalled = [each for each in found if each.reason == "epic-stalled" and rows.issuperset(each.blocking_deps)]
    held = {child: _held_up(each) for each in stalled for child in each.blocking_deps}
    for each in found:
        if each not in stalled:
            yield replace(each, detail=each.detail + held[each.bead_id]) if each.bead_id in held else each


def _held_up(epic: Stuck) -> str:
    focus = ", in focus," if epic.detail.startswith("in focus") else ""
    return f"; nothing under {epic.bead_id} “{clean_line(epic.title, 60)}”{focus} can be picked"


def _explained(stuck: Stuck, away: Mapping[str, Archived]) -> Stuck:
    """Explain a bead that waits on an archived one, with the remedy."""
    gone = [away[target] for target in stuck.blocking_deps if target in away]
    if not gone:
        return stuck
    said = "; ".join(f"{each.bead_id} is {each.words}" for each in gone)
    words = "; ".join(f"helix-tui dep remove {stuck.bead_id} {each.bead_id}" for each in gone)
    return replace(stuck, detail=f"{said}, where ddx does not look: {words}", suggested_action="remove the dependency")


def mend_words(stuck: Stuck, dialect: Dialect | None) -> str:
    """The remedy as a command to type; HELIX's own word for it if there is no command."""
    words = MENDS.get(stuck.suggested_action, stuck.suggested_action) if stuck.bead_id else stuck.suggested_action
    if stuck.reason == "retry-parked" and dialect is not None and "cooldown" in dialect.verbs:
        words += ", or to have it tried now: `helix-tui tracker cooldown clear {0}`"
    return words.replace("{0}", stuck.bead_id)


def blockers_of_run(work: LoopWork, queue_state: QueueState) -> tuple[list[dict[str, Any]], list[str]]:
    """What is stuck at the end of a run: for its state, and for its log."""
    stuck = find_stuck(
        queue_state.queue,
        orphans=find_left(queue_state.runs, queue_state.queue).all,
        epic=work.state.focused_epic,
        questions=work.questions.open(),
        tried=work.tried(queue_state.queue).values(),
        stoppage=find_stoppage(work.project, queue_state.runs),
        archive=work.project.archive_file,
    )
    return [each.record() for each in stuck[:50]], report_lines(stuck[:20])


def report_lines(stuck: Iterable[Stuck]) -> list[str]:
    """The blocker report as lines; a bead stuck for two reasons counts as one issue."""
    rows = list(stuck)
    issues = len({row.name for row in rows})
    lines = [f"BLOCKERS ({issues} issue{'' if issues == 1 else 's'}):"] if rows else []
    for row in rows:
        lines.append(f"  {row.name} — {row.reason}: {row.detail}")
        if row.title:
            lines.append(f"    {row.title}")
    return lines


def _held_for_drift(queue: Queue, bead: Bead) -> bool:
    """Whether HELIX keeps a drifted bead from workers, and nothing else holds it."""
    return queue.state(bead.id) == "not_eligible" and hold_reason(bead) == DRIFTED and len(held_by(bead)) == 1


def _by_state(queue: Queue, bead: Bead) -> Stuck | None:
    state = queue.state(bead.id)
    parked = STATES[state].parked
    if parked is None:
        return None
    standing = queue.standing(bead.id)
    first = standing.reasons[0] if standing.reasons else None
    reason, action = parked.reason, parked.remedy
    deps = first.refs if first is not None and state == "waiting_dependencies" else ()
    # waiting would not help: such a dependency never closes
    if any(target not in queue.beads or queue.beads[target].status == "cancelled" for target in deps):
        action = "escalate"
    why = held_by(bead)
    # the state says only that it is not eligible; marks in its row show why, and until when
    if why and state == "not_eligible":
        return Stuck(bead.id, bead.title, reason, "; ".join(why), action)
    age, alive = _claim(queue, bead)
    return Stuck(
        bead.id,
        bead.title,
        reason,
        with_titles(first.detail, queue.beads) if first is not None else state,
        action,
        deps,
        format_instant(standing.until) if standing.until is not None else "",
        age,
        alive,
    )


def _tried(bead: Bead, tried: Tried) -> Stuck:
    return Stuck(bead.id, bead.title, "tried", tried.words, "look at its attempt")


def _claim(queue: Queue, bead: Bead) -> tuple[int | None, bool | None]:
    at, pid = parse_instant(bead.claimed_at), bead.pid
    age = (queue.as_of - at) // NS if at is not None else None
    return age, pid_alive(pid) if pid is not None else None


def _stopped(queue: Queue, stoppage: Stoppage) -> Stuck:
    bead_id = stoppage.ending.bead_id
    title = queue.beads[bead_id].title if bead_id in queue.beads else ""
    return Stuck(bead_id, title, "worker-stopped", stoppage.words, stoppage.fix or "decide")


def _orphaned(queue: Queue, orphan: Orphan) -> Stuck:
    title = queue.beads[orphan.bead_id].title if orphan.bead_id in queue.beads else ""
    return Stuck(
        orphan.bead_id,
        title,
        "dead-claim" if orphan.freed_at else "orphaned-claim",
        str(orphan),
        "unclaim",
        next_eligible_at=format_instant(orphan.freed_at) if orphan.freed_at else "",
        claim_age_seconds=orphan.age_s,
        claimed_pid_alive=False,
    )


def _waiting(queue: Queue, question: OpenQuestion) -> Stuck:
    bead = queue.beads.get(question.bead_id)
    action = f"helix-tui input --answer {question.id} TEXT"
    detail = f"waits for your answer to {question.id}: {question.text}"
    title = bead.title if bead is not None else ""
    return Stuck(question.bead_id, title, "question", detail, action, question_id=question.id)


def _conflict(conflict: DocumentFinding) -> Stuck:
    detail = f"`helix-tui run` starts nothing until a person decides: {conflict.text}"
    return Stuck("", "", "contradiction", detail, "helix-tui check", documents=tuple(dict.fromkeys(conflict.documents)))


def _drifted(queue: Queue, bead_id: str, drift: list[Drift]) -> Stuck:
    return Stuck(bead_id, queue.beads[bead_id].title, "queue-drift", "; ".join(map(str, drift)), "polish")


def _standing_epics(queue: Queue, focused: str) -> Iterator[Stuck]:
    """Open epics that nobody works on: finished ones, empty ones, and those whose beads nobody can pick."""
    for bead in queue.beads.values():
        state = queue.state(bead.id)
        if bead.status in TERMINAL or not looks_like_epic(bead) or state in FOR_A_WORKER:
            continue
        left = [child for child in queue.graph.children.get(bead.id, ()) if queue.beads[child].status not in TERMINAL]
        # a nested epic is judged by its own children
        moving = any(queue.state(child) in (*FOR_A_WORKER, "epic_container") for child in left)
        if is_finished_epic(queue, bead):
            why = "everything under it is closed: close the epic and review it"
            yield Stuck(bead.id, bead.title, "epic-finished", why, "close it, reviewed")
        elif left and not moving:
            why = "in focus, and nothing under it" if bead.id == focused else "nothing under it"
            yield Stuck(bead.id, bead.title, "epic-stalled", f"{why} can be picked", "escalate", tuple(left))
        elif is_empty_epic(queue, bead):
            yield Stuck(bead.id, bead.title, "epic-empty", "nothing is left under it, and nothing was closed", "polish")
