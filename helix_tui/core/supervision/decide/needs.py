"""*Needs me*: everything that waits for a person, ranked, each with its reason and what it holds up.

Only what a person alone can resolve: beads parked for an operator or blocked from outside, which ddx never opens by
itself, reviews that hold work back, workers that died or fell silent, work that was kept aside or refused, claims and
changes to look at, prerequisites that no longer exist, dependency cycles, unreadable lines, lessons to review, budgets
reached, and HELIX's own questions (`questions`).
`need_view` groups, filters and snoozes needs, and lists the actions for each.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.graph import circles, reached
from helix_tui.core.beads.readiness import PROPOSED, Queue
from helix_tui.core.beads.record import TERMINAL, Bead, hold_reason
from helix_tui.core.beads.states import IN_HAND, OPENED_BY_A_PERSON
from helix_tui.core.beads.tracker import Archived, Tracker
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.sources.from_events import found_fault, was_rejected
from helix_tui.core.ddx.files import text
from helix_tui.core.ddx.names import About, status_of
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.files import is_file, read_bytes
from helix_tui.core.ground.merge_trial import TriedMerge
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant, parse_instant
from helix_tui.core.memory.provenance import TAUGHT_BY
from helix_tui.core.supervision.decide.need_kinds import KINDS, RANK, STALE_CLAIMS, KindName, kind_named
from helix_tui.core.supervision.signals.escalation import escalated
from helix_tui.core.supervision.signals.kept_changes import decided_by_a_person
from helix_tui.core.supervision.signals.orphans import governs_alignment, stalled
from helix_tui.core.supervision.signals.questions import still_asked
from helix_tui.core.supervision.signals.responses import response_to

if TYPE_CHECKING:  # imported for types only: callers without drift need not load it
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.ddx.remarks import Shut
    from helix_tui.core.memory.reports import Proposal
    from helix_tui.core.supervision.run_state.budget import BudgetUse
    from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding
    from helix_tui.core.supervision.signals.drift import Drift
    from helix_tui.core.supervision.signals.orphans import Orphan
    from helix_tui.core.supervision.signals.questions import OpenQuestion
    from helix_tui.core.supervision.signals.stoppage import Stoppage
    from helix_tui.core.supervision.signals.tried import Tried

ASSIGNED = "helix-assigned"
"""Field naming the person assigned to a bead's needs."""

_KEPT_FOR: Mapping[About, KindName] = {"conflict": "merge_conflict", "check": "failing_check"}
"""Subject of an attempt's status -> the kind of need for its kept change."""

_Found = tuple[KindName, str, str]

REFUSED = "refused by review"
"""What a need says of a change that a review refused."""

NONE_TRIED = AttemptBook()
NO_MERGES: Mapping[str, TriedMerge] = {}
NONE_ARCHIVED: Mapping[str, Archived] = {}

_NO_AGE = re.compile(r"\d+")

_FAULTED = ("refused", "landed_faulted")
"""Kinds that say that something is wrong with the change; then what that is comes first."""

MAX_FILE = 1 << 20


class Need(Struct, frozen=True):
    """One thing that waits for a person."""

    kind: KindName
    bead_id: str
    """Its bead; empty for unreadable lines."""
    reason: str
    waiting: int
    """Unfinished beads that wait on it, directly or through others."""
    question_id: str = ""
    """The id of HELIX's question; `results.answer_question` takes the answer."""
    options: tuple[str, ...] = ()
    """The offered answers; empty for any text."""
    since: int | None = None
    """Instant since which it waits, in nanoseconds; None if not recorded."""
    attempt_id: str = ""
    """The attempt that caused it."""
    kept_rev: str = ""
    """The commit of this attempt."""
    usd: float | None = None
    """The known cost of the attempts on its bead."""
    usd_complete: bool = True
    """Whether the cost of all of them is known; else ``usd`` is a lower bound."""
    assigned: str = ""
    """The person it is assigned to."""
    ref: str = ""
    """Its subject besides the bead: the number of a lesson, a budget's name, the command that DDx names."""
    also: KindName | None = None
    """Of a stale claim: the kind of the decision that its bead waits for besides (`OPENED_BY_A_PERSON`)."""
    conflict: str = ""
    """The short name of its conflict between documents (`conflict_ref`), whether or not a question asks about it."""
    mark: str = ""
    """Changes with the underlying facts, but not with age."""
    refused: bool = False
    """Whether a review refused the change of its attempt."""
    parked: bool = False
    """Whether its bead is executed only once a person has opened it."""
    conflicts: bool | None = None
    """Whether the change of its attempt conflicts with the branch; None if not known."""

    @property
    def key(self) -> str:
        """Unique among needs and the same over reloads."""
        # a question about a conflict does not make it news, nor move the cursor, nor end a snooze
        if self.conflict:
            return f"contradiction:{self.conflict}"
        about = self.ref if self.kind in ("lesson", "budget") else self.bead_id
        # several questions of one kind may be about one bead
        return f"{self.kind}:{self.question_id or about}"

    @property
    def decision(self) -> Need:
        """The decision that it asks for; of a stale claim on a bead that waits for one, that one."""
        return replace(self, kind=self.also, also=None) if self.also else self

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.kind,
            "also": self.also,
            "bead_id": self.bead_id or None,
            "reason": self.reason,
            "waiting": self.waiting,
            "question_id": self.question_id or None,
            "options": list(self.options),
            "key": self.key,
            "since": format_instant(self.since) if self.since is not None else None,
            "attempt_id": self.attempt_id or None,
            "usd": self.usd,
            "usd_complete": self.usd_complete,
            "assigned": self.assigned or None,
        }


def needs_of(
    queue: Queue,
    runs: Iterable[Run],
    tracker: Tracker,
    *,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    unminded: Collection[str] = (),
    epic: str = "",
    questions: Iterable[OpenQuestion] = (),
    unasked: Iterable[DocumentFinding] = (),
    shut: Shut | None = None,
    stoppage: Stoppage | None = None,
    dead: Iterable[Orphan] = (),
    archived: Mapping[str, Archived] = NONE_ARCHIVED,
    attempts: AttemptBook = NONE_TRIED,
    tried: Iterable[Tried] = (),
    lessons: Iterable[Proposal] = (),
    budgets: Iterable[BudgetUse] = (),
    lands_kept: bool = False,
    merges: Mapping[str, TriedMerge] = NO_MERGES,
) -> tuple[Need, ...]:
    """Everything that waits for a person, by urgency, then by how much it holds up, cost and priority.

    Args:
        drift: what others changed since it was last seen.
        orphans: claims whose process has ended.
        unminded: beads on which the focus on ``epic`` is out of date.
        questions: HELIX's questions.
        unasked: conflicts between documents that stop the work and that no question names.
        shut: what the installed ddx refuses here, and why.
        stoppage: what stopped the last worker.
        dead: claims of dead processes that ddx still honours.
        archived: beads of the archive that others wait on.
        attempts: the attempts; the latest of each bead counts.
        tried: beads that the last run attempted and left open.
        lessons: pending lessons from attempts.
        budgets: the limits of a run and a day; those reached count.
        lands_kept: whether this ddx lands a kept change before a new attempt.
        merges: whether the changes of attempts would merge into the branch.
    """
    dying = {orphan.bead_id: orphan.reason for orphan in dead}
    left = {orphan.bead_id: orphan for orphan in orphans}
    # an orphaned claim says the same about its worker, with the claim's age
    found = [need for need in _run_needs(queue, tuple(runs)) if need[1] not in left or need[0] != "dead_run"]
    found = [(kind, bead_id, dying.get(bead_id, why)) for kind, bead_id, why in found]
    unlanded = tuple(_unlanded(queue, attempts, lands=lands_kept))
    refused = {bead_id for kind, bead_id, _ in unlanded if kind == "refused"}
    found += [*_parked(queue, attempts, refused), *_cycles(queue), *_starving(queue, archived)]
    found += [("orphaned_claim", bead_id, orphan.reason) for bead_id, orphan in left.items()]
    found += [*_drifted(drift), *escalated(queue), *unlanded]
    if unminded:
        count = counted(len(unminded), "bead")
        found.append(("focus", epic, f"the focus is out of date on {count}"))
    needs = [Need(kind, bead_id, reason, _waiting(queue, bead_id)) for kind, bead_id, reason in found]
    needs += _asked(queue, questions)
    needs += [Need("contradiction", "", each.text, len(queue.ready), conflict=conflict_ref(each)) for each in unasked]
    if shut is not None:
        needs.append(Need("ddx_refuses", next(iter(shut.ids), ""), str(shut), len(queue.ready), ref=shut.command))
    # None: the cause cannot be checked from here, and may persist
    if stoppage is not None and stoppage.present is not False:
        reason = stoppage.words + (f". Fix: {stoppage.fix}" if stoppage.fix else "")
        needs.append(Need("worker_stopped", stoppage.ending.bead_id, reason, len(queue.ready)))
    # after all others: a bead that is listed for another reason is listed once
    needs += _left_open(queue, tried, {need.bead_id for need in needs})
    needs += [_of_lesson(queue, lesson) for lesson in lessons]
    needs += [
        Need("budget", "", budget.describe(), len(queue.ready), ref=f"{budget.span}-{budget.part}")
        for budget in budgets
        if budget.reached
    ]
    if tracker.unread:
        needs.append(Need("unread_lines", "", tracker.unread, 0))
    begun = _beginnings(runs, left.values(), dead, questions, stoppage, tracker) | _cancelled_at(queue, needs)
    whole = [_completed(queue, attempts, need, begun, merges) for need in _once(queue, needs)]
    return tuple(sorted(whole, key=lambda need: _rank(queue, need)))


def _asked(queue: Queue, questions: Iterable[OpenQuestion]) -> Iterable[Need]:
    """The needs for HELIX's open questions."""
    for each in still_asked(questions, queue.beads):
        kind = kind_named(each.kind)
        if kind is not None:
            conflict = conflict_ref(each) if each.about else ""
            held_up = _waiting(queue, each.bead_id)
            yield Need(kind, each.bead_id, each.text, held_up, each.id, each.options, conflict=conflict)


def conflict_ref(conflict: DocumentFinding | OpenQuestion) -> str:
    """A short name for a conflict between documents, the same over reloads, and for the question that asks about it."""
    return f"d-{zlib.crc32(conflict.key.encode()):08x}"


def _of_lesson(queue: Queue, lesson: Proposal) -> Need:
    """The need for a lesson to review; it concerns an attempt and holds nothing back."""
    bead_id = lesson.bead if lesson.bead in queue.beads else ""
    who = f", {TAUGHT_BY[lesson.taught_by]}" if lesson.taught_by == "agent" else ""
    reason = f"{lesson.type}{who}: {lesson.trigger} → {lesson.resolution}"
    since, about = parse_instant(lesson.at), lesson.attempt
    return Need("lesson", bead_id, clean_line(reason, 600), 0, since=since, attempt_id=about, ref=lesson.ref)


def _beginnings(
    runs: Iterable[Run],
    orphans: Iterable[Orphan],
    dead: Iterable[Orphan],
    questions: Iterable[OpenQuestion],
    stoppage: Stoppage | None,
    tracker: Tracker,
) -> dict[str, int | None]:
    """Key of a need to its start, if no field of a bead has it."""
    begun: dict[str, int | None] = {}
    for run in runs:
        for kind in ("dead_run", "silent_run"):
            begun[f"{kind}:{run.bead_id}"] = run.last_event_at or run.started_at
    begun |= {f"orphaned_claim:{orphan.bead_id}": orphan.claimed_at for orphan in orphans}
    begun |= {f"dead_run:{each.bead_id}": each.claimed_at for each in dead}
    for question in questions:
        begun[f"{question.kind}:{question.id}"] = parse_instant(question.raised_at)
    if stoppage is not None:
        begun[f"worker_stopped:{stoppage.ending.bead_id}"] = stoppage.ending.at
    begun["unread_lines:"] = tracker.mtime_ns or None
    return begun


def _cancelled_at(queue: Queue, needs: Iterable[Need]) -> dict[str, int | None]:
    """Key of a need to the time when the last cancelled prerequisite of its bead was cancelled."""
    begun: dict[str, int | None] = {}
    for need in needs:
        if need.kind == "cancelled_dependency":
            waits_on = (queue.beads[target] for target in queue.graph.depends_on[need.bead_id])
            ends = (parse_instant(bead.updated_at) for bead in waits_on if bead.status == "cancelled")
            begun[need.key] = max((end for end in ends if end is not None), default=None)
    return begun


def _completed(
    queue: Queue,
    attempts: AttemptBook,
    need: Need,
    begun: Mapping[str, int | None],
    merges: Mapping[str, TriedMerge],
) -> Need:
    """A need with its age, attempt, cost and assignee added, and what stands against landing its change."""
    bead = queue.beads.get(need.bead_id)
    made = attempts.of_bead(need.bead_id) if need.bead_id else ()
    attempt = made[0] if made and KINDS[need.decision.kind].attempt else None
    left = KINDS[need.kind].attempt == "left"
    if left:
        attempt = attempts.deciding(need.bead_id)
    # its start by the most reliable source: the need's own date, its attempt's end, its row
    since = need.since if need.since is not None else begun.get(need.key)
    if since is None and attempt is not None and left:
        since = attempt.at
    if since is None and bead is not None:
        since = _parked_since(bead) or parse_instant(bead.updated_at) or parse_instant(bead.created_at)
    about = need.attempt_id or (attempt.attempt_id if attempt is not None else "")
    stood = bead.updated_at if bead is not None else ""
    spent = made if need.kind != "lesson" else ()
    refused = attempt is not None and attempt.verdict.outcome == "refused"
    merge = merges.get(about) if need.kind != "lesson" else None
    against = [REFUSED] if refused else []
    against += [str(merge)] if merge is not None and merge.conflicts else []
    return replace(
        need,
        reason=f"{', '.join(against)}{':' if refused else ';'} {need.reason}" if against else need.reason,
        refused=refused,
        parked=bead is not None and queue.state(bead.id) in OPENED_BY_A_PERSON,
        conflicts=None if merge is None else bool(merge.conflicts),
        since=since,
        attempt_id=about,
        kept_rev=attempt.result_rev if attempt is not None and attempt.attempt_id == about else "",
        usd=_spent(spent),
        usd_complete=all(each.sums.complete for each in spent),
        assigned=clean_line(text(bead.document(), ASSIGNED), 60) if bead is not None and _names(bead) else "",
        mark="|".join((stood, about, need.question_id, _NO_AGE.sub("", need.reason))),
    )


def _names(bead: Bead) -> bool:
    # most rows have no assignee: check the raw bytes without decoding
    return ASSIGNED.encode() in bead.raw


def _parked_since(bead: Bead) -> int | None:
    """When it began to wait for a person, according to ddx."""
    if bead.review_blocked_at:
        return parse_instant(bead.review_blocked_at)
    if b'"needs-human-since"' not in bead.raw:
        return None
    return parse_instant(text(bead.document(), "needs-human-since"))


def _spent(made: Iterable[Attempt]) -> float | None:
    """Dollars known to have been spent on attempts, or None."""
    known = [usd for attempt in made if (usd := attempt.sums.usd) is not None]
    return round(sum(known), 4) if known else None


def waiting_lessons(project: Project) -> tuple[Proposal, ...]:
    """Pending lessons, newest first, then memories of agents that wait; empty without a readable memory."""
    path = project.helix_dir / "helix.db"
    if not is_file(path):
        return ()
    from helix_tui.core.memory import lessons
    from helix_tui.core.memory.memory_store import open_memory  # most projects have none
    from helix_tui.core.memory.records import MemoryFault

    try:
        with open_memory(path, read_only=True, busy_seconds=1.0) as memory:
            return tuple(lessons.waiting_lessons(memory))
    except MemoryFault:
        return ()


def asked_of(project: Project) -> tuple[OpenQuestion, ...]:
    """HELIX's unanswered questions; reads one small file, if any."""
    path = project.helix_dir / "questions.json"
    if not is_file(path):
        return ()
    from helix_tui.core.supervision.signals.questions import read_questions  # most projects never ask

    return tuple(question for question in read_questions(path) if not question.answered)


def _rank(queue: Queue, need: Need) -> tuple[int, int, float, int, str]:
    bead = queue.beads.get(need.bead_id)
    return RANK[need.kind], -need.waiting, -(need.usd or 0), bead.priority if bead else 0, need.key


def _run_needs(queue: Queue, runs: Sequence[Run]) -> Iterable[_Found]:
    """Beads whose workers are dead or silent, each once with what is known of every one of them."""
    if not runs:
        return
    found: dict[tuple[KindName, str], dict[str, None]] = {}
    for run in stalled(runs, queue):
        bead = queue.beads.get(run.bead_id or "")
        if bead is not None and governs_alignment(bead):
            continue
        # a silent one may still work on a bead that is not in the tracker
        if bead is None or bead.status not in TERMINAL:
            kind: KindName = "dead_run" if run.verdict == "dead" else "silent_run"
            found.setdefault((kind, run.bead_id or ""), {})[run.why] = None
    for (kind, bead_id), why in found.items():
        yield kind, bead_id, "; ".join(why)


def _unlanded(queue: Queue, attempts: AttemptBook, *, lands: bool) -> Iterable[_Found]:
    """Open beads whose work was kept aside or refused, before or after landing, and not decided by a later attempt;
    landed work needs no decision once the bead is kept from workers.
    """
    for bead_id, bead in queue.beads.items():
        latest = attempts.deciding(bead_id)
        # "again": ddx retries by itself, with the feedback it got
        if latest is None or not (latest.preserved or latest.faulted) or response_to(latest) == "again":
            continue
        state = queue.state(bead_id)
        if bead.status in TERMINAL or state in IN_HAND or state == "superseded":
            continue
        if latest.faulted and state == "not_eligible":
            continue
        if not decided_by_a_person(bead, latest) and not governs_alignment(bead):
            lands_next = lands and state not in OPENED_BY_A_PERSON
            yield _kept_kind(latest), bead_id, _where_kept(latest, bead, lands=lands_next)


def _kept_kind(attempt: Attempt) -> KindName:
    """What a change waits for."""
    if attempt.verdict.outcome == "refused":
        return "refused"
    if attempt.faulted:
        return "landed_faulted"
    return _KEPT_FOR.get(status_of(attempt.status).about, "kept_aside")


def _fault(attempt: Attempt, bead: Bead) -> str:
    """What a review found, from its own words or else from the bead's; "" if neither says it."""
    review = attempt.review.rationale if attempt.review is not None else ""
    return clean_line(review, 300).rstrip(".") or found_fault(bead, attempt)


def _where_kept(attempt: Attempt, bead: Bead, *, lands: bool) -> str:
    """The outcome and, if not on the branch, what the next worker may do with the change, and its ref.

    Useful facts come first and ids last, as list rows are cut at the end.
    """
    why, meaning = attempt.verdict.why, status_of(attempt.status).meaning
    ref = attempt.kept_at
    words = [_fault(attempt, bead) if _kept_kind(attempt) in _FAULTED else ""]
    words.append(meaning if why.endswith(f"; {meaning}") else "")
    known = attempt.detail not in ("", attempt.status)
    words.append(clean_line(attempt.detail, 160) if known else "")
    if was_rejected(bead, attempt.result_rev):
        words.append("ddx was told not to land it: the next attempt starts over")
    elif hold_reason(bead):
        words.append("workers are kept from it until you decide")
    elif lands and not attempt.landed:
        words.append("the next worker may land it as it is, unless it is dropped")
    machine = ["" if known else attempt.status, why.removesuffix(f"; {meaning}")]
    machine += [f"look at {ref}" if ref and ref not in why else "", f"attempt {attempt.attempt_id}"]
    return clean_line("; ".join(filter(None, (*words, *machine))), 600)


def _once(queue: Queue, needs: list[Need]) -> Iterable[Need]:
    """Needs without those for an attempt about which the bead or its escalation already asks; one for a bead that is
    parked while a claim on it is stale.
    """
    asked = {need.bead_id for need in needs if KINDS[need.kind].covers}
    asked |= {
        text(queue.beads[need.bead_id].document(), "helix-trigger-bead")
        for need in needs
        if need.kind == "escalation" and need.bead_id in queue.beads
    }
    seen: set[str] = set()
    claimed = {need.bead_id for need in needs if need.kind in STALE_CLAIMS}
    parked = {need.bead_id: need for need in needs if need.kind in OPENED_BY_A_PERSON and need.bead_id in claimed}
    # the most urgent kind first: of several from one bead's attempts it is kept
    for need in sorted(needs, key=lambda need: RANK[need.kind]):
        if KINDS[need.kind].attempt == "left":
            if need.bead_id in asked or need.bead_id in seen:
                continue
            seen.add(need.bead_id)
        also = parked.get(need.bead_id)
        if also is not None and need.kind in STALE_CLAIMS:
            # the claim is listed, so that all stale claims are released together, and offers the decision too
            yield replace(need, reason=f"{need.reason}; {also.reason}", also=also.kind)
        elif need is not also:
            yield need


def _drifted(drift: Iterable[Drift]) -> Iterable[_Found]:
    """One need per bead, however many of its fields differ."""
    by_bead: dict[str, list[Drift]] = {}
    for each in drift:
        by_bead.setdefault(each.bead_id, []).append(each)
    for bead_id, differing in by_bead.items():
        yield "drift", bead_id, "; ".join(map(str, differing))


def _parked(queue: Queue, attempts: AttemptBook, refused: Collection[str]) -> Iterable[_Found]:
    for bead_id, bead in queue.beads.items():
        state = queue.state(bead_id)
        if state == "proposed" and bead_id in refused:
            continue  # ddx parked it for its refused change, which waits for a decision first
        kind = kind_named(state)
        if kind is not None:
            why = queue.standing(bead_id).reasons[0].detail
            why = "no worker picks it until it is accepted" if why == PROPOSED else why
            latest = attempts.deciding(bead_id) if state == "preserved_review_blocked" else None
            # useful facts come first, as for refused work
            fault = _fault(latest, bead) if latest is not None else ""
            yield kind, bead_id, f"{fault}; {why}" if fault else why


def _left_open(queue: Queue, tried: Iterable[Tried], named: Collection[str]) -> Iterable[Need]:
    """Beads that a run skipped, except those being worked on again or listed for another reason."""
    for each in tried:
        if each.bead_id not in named and queue.state(each.bead_id) not in IN_HAND:
            yield Need("tried", each.bead_id, each.words, _waiting(queue, each.bead_id))


def _cycles(queue: Queue) -> Iterable[_Found]:
    for circle in circles(queue):
        yield "cycle", circle.ids[0], f"in a dependency cycle: {circle.path()}"


def _starving(queue: Queue, archived: Mapping[str, Archived]) -> Iterable[_Found]:
    for bead_id, targets in queue.graph.depends_on.items():
        if queue.state(bead_id) != "waiting_dependencies":
            continue
        missing = [target for target in targets if target not in queue.beads]
        away = [archived[target] for target in missing if target in archived]
        if away and len(away) == len(missing):
            said = ", ".join(f"{each.bead_id} ({each.title}), {each.words}" for each in away)
            why = f"waits on {said}; ddx does not look there: remove the dependency"
            yield "archived_dependency", bead_id, why
            continue
        if missing:
            yield "missing_dependency", bead_id, f"waits on {', '.join(missing)}, not in the tracker"
            continue
        dropped = [target for target in targets if queue.beads[target].status == "cancelled"]
        if dropped:
            named = (f"{target} ({clean_line(queue.beads[target].title, 60)})" for target in dropped)
            yield ("cancelled_dependency", bead_id, f"waits on {', '.join(named)}, cancelled and never closed")


def _waiting(queue: Queue, bead_id: str) -> int:
    """Number of unfinished beads downstream of a bead."""

    def unfinished(needed: str) -> Iterator[str]:
        return (each for each in queue.graph.dependents.get(needed, ()) if queue.beads[each].status not in TERMINAL)

    return sum(each != bead_id for each in reached([bead_id], unfinished))


class Snooze(Struct, frozen=True):
    """One need that was put off."""

    key: str
    until: str = ""
    """The instant at which it comes back; empty: when its facts change."""
    mark: str = ""
    """The fingerprint of its facts when put off."""
    by: str = ""
    at: str = ""

    def holds(self, need: Need, now: int) -> bool:
        """Whether the need is still put off."""
        if self.until:
            end = parse_instant(self.until)
            # an end that cannot be read puts nothing off
            return end is not None and now < end
        return need.mark == self.mark


def snooze_file(project: Project) -> Path:
    """The file of snoozes."""
    return project.helix_dir / "snoozed.json"


def read_snoozes(project: Project) -> dict[str, Snooze]:
    """The snoozes by key of the need; unreadable ones are ignored."""
    document = decode_json(read_bytes(snooze_file(project), MAX_FILE))
    rows = document.get("snoozed") if isinstance(document, dict) else None
    found = [each for row in rows or () if (each := _snooze(row)) is not None] if isinstance(rows, list) else []
    return {each.key: each for each in found}


def _snooze(row: Any) -> Snooze | None:
    try:
        return msgspec.convert(row, Snooze)
    except msgspec.ValidationError:
        return None


class SplitNeeds(Struct, frozen=True):
    """Needs waiting now, and those put off."""

    active: tuple[Need, ...] = ()
    snoozed: tuple[Need, ...] = ()
    wakes_at: int = 0
    """The instant at which the first snooze ends by itself; 0 if none does."""


def split_snoozed(needs: Iterable[Need], snoozes: Mapping[str, Snooze], now: int) -> SplitNeeds:
    """Separate the needs that are put off."""
    active: list[Need] = []
    away: list[Need] = []
    ends: list[int] = []
    for need in needs:
        snooze = snoozes.get(need.key)
        if snooze is None or not snooze.holds(need, now):
            active.append(need)
            continue
        away.append(need)
        ends += [end for end in (parse_instant(snooze.until),) if end is not None]
    return SplitNeeds(tuple(active), tuple(away), min(ends, default=0))
