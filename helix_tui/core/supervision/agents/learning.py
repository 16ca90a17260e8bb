"""Learn from attempts: DDx's evidence on an attempt settles the memories injected into it.

docs/decisions/0014: the outcome is read from the attempt's status, its checks and its review, never from the agent's
report. An attempt is settled once; one whose evidence says nothing about the work (no provider, a swept work tree, a
lost push) settles nothing. Blocked and failed attempts propose a failure as a lesson, landed ones a pattern; a person
or a policy accepts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence, read_evidence
from helix_tui.core.ddx.names import status_of
from helix_tui.core.ddx.runs.transcript import TranscriptTail, transcript_folders
from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, format_instant
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.lessons import Proposals, matter, waiting_lessons
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.provenance import AcceptRule
from helix_tui.core.memory.records import Injection, Verdict
from helix_tui.core.memory.reports import FeedbackReport, Proposal
from helix_tui.core.supervision.agents.hooks import session_records
from helix_tui.core.supervision.agents.report_parser import HookMessage, claim_of

_NOT_THE_WORK = frozenset(
    {
        "no_viable_provider",
        "auth_error",
        "worktree_lost",
        "resource_exhausted",
        "blocked_by_passthrough_constraint",
        "attempt_integrity",
    }
)
"""Failure modes of the environment: the agent never got to the work, or lost it through no fault of its own."""

_REFUSED = re.compile(r"^\W*(BLOCK|REQUEST[_ ]CHANGES|REJECT)", re.I)
_APPROVED = re.compile(r"^\W*APPROVE", re.I)

_SLACK = 5 * NS
"""How much later than an attempt's start its injection may be dated: attempt ids have whole seconds."""

_MAX_CHARS = 600

_BARE = re.compile(r"\s*exit (?:status|code) \d+\s*")


class Judged(Struct, frozen=True):
    """The verdict of the evidence on an attempt's work."""

    verdict: Verdict | None
    why: str
    """In words, with the evidence."""


class Lesson(Struct, frozen=True):
    """A lesson derived by rule from one attempt."""

    type: str
    trigger: str
    resolution: str
    reason: str


class Learned(Struct, frozen=True):
    """One ended attempt, and the lesson learned or to be learned from it."""

    attempt: Attempt
    title: str
    judged: Judged
    injected: tuple[str, ...]
    """Names of the memories it was shown."""
    claimed: tuple[str, ...]
    """Names of the memories its agent reports as used."""
    settled: Verdict | None
    """The verified outcome with which it was settled before."""
    report: FeedbackReport | None = None
    """The changes; None if there were none, or in a preview."""
    proposal: Proposal | None = None
    """The lesson, proposed or to be proposed."""
    by_bead: tuple[int, ...] = ()
    """Ledger lines of the bead's block that it saw and that do not name it yet."""

    def document(self) -> dict[str, Any]:
        """Its JSON for ``memory learn``."""
        return {
            "attempt": self.attempt.attempt_id,
            "bead": self.attempt.bead_id,
            "title": self.title,
            "status": self.attempt.status,
            "verdict": self.judged.verdict,
            "why": self.judged.why,
            "injected": list(self.injected),
            "claimed": list(self.claimed),
            "settled_before": self.settled,
            "feedback": self.report.document() if self.report is not None else None,
            "proposal": self.proposal.document() if self.proposal is not None else None,
        }


def judge(attempt: Attempt, evidence: AttemptEvidence) -> Judged:
    """The verified outcome of an attempt: passed, failed, or None if the evidence does not say."""
    if not attempt.finished:
        return Judged(None, "it has not ended")
    match attempt.verdict.outcome:
        case "unfinished":
            return Judged(None, "it has not ended")
        case "interrupted":
            return Judged(None, "it was interrupted, which says nothing about the work")
        case "satisfied":
            return Judged(None, "there was nothing to do")
        case "landed" | "kept_aside" | "refused" | "no_change" | "failed" | "unknown":
            pass  # the work is judged below
        case never:
            assert_never(never)
    # an agent's report is a claim, not an outcome (decision 0014)
    if attempt.only_its_worker_says and attempt.verdict.outcome in ("landed", "unknown"):
        return Judged(None, "only its worker's own result says how it ended")
    # review before checks, both before landing: a landed change may still have been refused
    review = attempt.review.verdict if attempt.review is not None else ""
    if _REFUSED.match(review):
        return Judged("failed", f"review: {clean_line(review, 60)}")
    # a check marked as not required is ignored; an unmarked one is required
    broken = [check.name for check in evidence.checks if check.outcome == "failed" and check.required is not False]
    if broken:
        return Judged("failed", f"checks failed: {clean_line(', '.join(broken), 200)}")
    if attempt.landed:
        proof = "landed"
        if passed := sum(check.outcome == "passed" for check in evidence.checks):
            proof += f", {counted(passed, 'check')} passed"
        return Judged("passed", proof + (", review approved" if _APPROVED.match(review) else ""))
    status = status_of(attempt.status)
    if attempt.failure_mode in _NOT_THE_WORK:
        return Judged(None, f"{attempt.failure_mode} says nothing about the work")
    if status.about in ("bead", "machine", "nothing"):
        return Judged(None, f"{clean_line(attempt.status, 60)}: {status.meaning}")
    if status.about in ("conflict", "landing"):
        if _APPROVED.match(review):
            return Judged("passed", "review approved; landing is another matter")
        return Judged(None, f"{status.meaning}; nobody has judged the work")
    return Judged("failed", f"{attempt.status}: {status.meaning}")


def draw_lesson(
    attempt: Attempt, bead: Bead | None, evidence: AttemptEvidence, judged: Judged, failed_before: int
) -> Lesson | None:
    """The lesson of an attempt: a failure with its cause, or an approach that landed; None without a reason."""
    title = clean_line(bead.title if bead is not None else "", 200)
    # the trigger of a lesson is the bead's title: without one there is no telling when it applies
    if not title:
        return None
    if judged.verdict == "passed":
        if not attempt.landed:
            return None
        approach = _approach(attempt, evidence)
        if not approach:
            return None
        after = f" after {failed_before} that did not" if failed_before else ""
        return Lesson("pattern", title, approach, f"attempt {attempt.attempt_id} landed{after}")
    blocked = judged.verdict == "failed" or status_of(attempt.status).about == "bead"
    cause = _cause(attempt, evidence) if blocked else ""
    if not cause:
        return None
    meaning = status_of(attempt.status).meaning
    return Lesson("failure", f"{title}: {meaning}", cause, f"attempt {attempt.attempt_id}: {judged.why}")


def _cause(attempt: Attempt, evidence: AttemptEvidence) -> str:
    """Why it failed, from the first source with a reason: a check, the reviewer, the agent, its bead, the harness."""
    told, broke = evidence.told, attempt.verdict.outcome == "failed"
    broken = [check for check in evidence.checks if check.outcome == "failed"]
    said = [
        "; ".join(f"{check.name}: {check.message}" for check in broken if check.message),
        attempt.review.rationale if attempt.review is not None else "",
        attempt.no_changes_rationale or evidence.rationale,
        # below its first line a fault of the harness is told in pieces
        told.removeprefix("rationale:") if told.startswith("rationale:") or not broke else "",
        attempt.error,
        attempt.detail if attempt.detail != attempt.status else "",
    ]
    return next((line for text in said if (line := clean_line(text, _MAX_CHARS))), "")


def _approach(attempt: Attempt, evidence: AttemptEvidence) -> str:
    """How it was done, by the agent's decisions or the reviewer that approved it."""
    said = [evidence.decisions, attempt.review.rationale if attempt.review is not None else ""]
    return next((line for text in said if (line := clean_line(text, _MAX_CHARS))), "")


def summed(learned: Sequence[Learned]) -> str:
    """What was learned, in one line; else ""."""
    reports = [each.report for each in learned if each.report is not None]
    parts = [
        (sum(len(report.helped) for report in reports), "memory counted as helpful", "memories counted as helpful"),
        (sum(len(report.unhelpful) for report in reports), "memory counted as harmful", "memories counted as harmful"),
        (sum(each.proposal is not None for each in learned), "lesson proposed", "lessons proposed"),
    ]
    return ", ".join(counted(number, one, many) for number, one, many in parts if number)


def accepted_by(rule: AcceptRule, lessons: Iterable[Proposal], attempts: Iterable[Attempt]) -> list[Proposal]:
    """The lessons that a rule accepts.

    ``landed-after-refusal``, the default: those of DDx's evidence on a bead that landed after a review had refused it.
    ``failures`` and ``patterns``: those of that type that no agent proposed. ``all``: what agents propose, too.
    """
    if rule == "landed-after-refusal":
        outcomes: dict[str, set[str]] = {}
        for attempt in attempts:
            outcomes.setdefault(attempt.bead_id, set()).add(attempt.verdict.outcome)
        mended = {bead_id for bead_id, ends in outcomes.items() if {"landed", "refused"} <= ends}
        return [lesson for lesson in lessons if lesson.taught_by == "attempt" and lesson.bead in mended]
    if rule == "all":
        return list(lessons)
    return [lesson for lesson in lessons if lesson.taught_by != "agent" and f"{lesson.type}s" == rule]


def accept_by_rule(
    memory: MemoryStore, rule: AcceptRule, attempts: Iterable[Attempt], *, among: Collection[int] | None = None
) -> MemoryChange | None:
    """Accept what waits and a person's rule accepts; nothing for an agent, which may have brought the rule.

    Args:
        among: only lessons with these numbers; None: all, and the memories that agents stored.
    """
    if memory.teacher == "agent":
        return None
    accepted = accepted_by(rule, waiting_lessons(memory), attempts)
    chosen = [each for each in accepted if among is None or each.id in among]
    return MemoryChanges(memory).accept(chosen)[0] if chosen else None


class Learner:
    """Settles attempts and proposes lessons for one project's memory."""

    def __init__(self, project: Project, memory: MemoryStore) -> None:
        self._project = project
        self._memory = memory
        self.proposals = Proposals(memory)

    def preview(
        self, beads: Mapping[str, Bead], attempts: Sequence[Attempt], *, since: int | None = None, most: int = 0
    ) -> list[Learned]:
        """What `learn` would do now, newest attempt first; changes nothing."""
        found = (_without_repeated(each) for each in self._look(beads, attempts, since, most))
        return [each for each in found if each.proposal is not None or each.injected]

    def learn(
        self, beads: Mapping[str, Bead], attempts: Sequence[Attempt], *, since: int | None = None, most: int = 0
    ) -> list[Learned]:
        """Settle every ended attempt that was shown memories, and propose lessons; once per attempt.

        Args:
            since: draw lessons only from attempts that ended after this instant; injected memories are settled
                regardless.
            most: draw at most this many lessons, from the newest attempts; the others are left for later. 0: all.

        Returns:
            What changed: attempts settled now, and new proposals. Empty on a second call.
        """
        done = []
        for each in self._look(beads, attempts, since, most):
            proposed = self.proposals.add(each.proposal) if each.proposal is not None else None
            if proposed is not None and proposed.state == "repeated":
                proposed = None
            report = None
            if each.injected and each.judged.verdict not in (None, each.settled):
                report = self._settle(each, beads.get(each.attempt.bead_id))
            if report is not None or proposed is not None:
                done.append(replace(each, report=report, proposal=proposed))
        return done

    def _settle(self, each: Learned, bead: Bead | None) -> FeedbackReport:
        attempt = each.attempt
        for line in each.by_bead:
            self._memory.enter_attempt(line, attempt.attempt_id)
        if each.claimed:
            self._memory.claim(attempt.attempt_id, each.claimed)
        # The store treats every line of a bead as shown to each of its attempts: name the bead only if this attempt saw
        # them all.
        lines = self._memory.injections(bead=attempt.bead_id) if attempt.bead_id else ()
        all_seen = {shown.name for line in lines for shown in line.shown} <= set(each.injected)
        return self._memory.feedback(
            injected=each.injected,
            verified=each.judged.verdict,
            attempt=attempt.attempt_id,
            bead=attempt.bead_id if all_seen else "",
            kind=bead.issue_type if bead is not None else "",
            revise=True,
        )

    def _look(
        self, beads: Mapping[str, Bead], attempts: Sequence[Attempt], since: int | None, most: int
    ) -> Iterator[Learned]:
        """Ended attempts with anything new to learn."""
        new = 0
        settled = self._memory.settled()
        drawn = self.proposals.attempts()
        taught = set(self.proposals.taught())
        given = _given(self._memory.injections(), attempts)
        by_bead: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            by_bead.setdefault(attempt.bead_id, []).append(attempt)
        for attempt in attempts:
            given_here = given.get(attempt.attempt_id, ())
            ended = attempt.at
            known = attempt.attempt_id in drawn or (since is not None and (ended or 0) < since) or 0 < most <= new
            # evidence must be read from files: skip attempts that can teach nothing new
            if not attempt.finished or (known and not given_here):
                continue
            evidence = read_evidence(attempt, beads.get(attempt.bead_id))
            judged = judge(attempt, evidence)
            before = settled.get(attempt.attempt_id)
            lesson = None
            if not known:
                failed = sum(not other.landed and _older(other, attempt) for other in by_bead[attempt.bead_id])
                lesson = draw_lesson(self._explained(attempt), beads.get(attempt.bead_id), evidence, judged, failed)
            if lesson is None and (not given_here or judged.verdict in (None, before)):
                continue
            bead = beads.get(attempt.bead_id)
            proposal = _proposal(attempt, lesson) if lesson is not None else None
            if proposal is not None:
                again = matter(proposal) in taught
                proposal = replace(proposal, state="repeated" if again else "open")
                new += not again
                # of a bead's attempts with the same lesson only the first proposes it
                taught.add(matter(proposal))
            yield Learned(
                attempt,
                bead.title if bead is not None else "",
                judged,
                tuple(dict.fromkeys(shown.name for line in given_here for shown in line.shown)),
                self._claims(attempt) if given_here else (),
                before,
                None,
                proposal,
                tuple(line.id for line in given_here if line.attempt != attempt.attempt_id),
            )

    def _explained(self, attempt: Attempt) -> Attempt:
        """The attempt with its agent's last message, if its result has an exit code but no reason."""
        if not _BARE.fullmatch(attempt.error or attempt.detail):
            return attempt
        said = [event.detail for event in self._transcript(attempt) if event.kind in ("text", "error") and event.detail]
        return replace(attempt, error=said[-1]) if said else attempt

    def _transcript(self, attempt: Attempt) -> list[Event]:
        return TranscriptTail(transcript_folders(self._project.records_dir, attempt.attempt_id, None)).poll()

    def _claims(self, attempt: Attempt) -> tuple[str, ...]:
        """The memories its agent reports as used: from ddx's transcript, else from the agent's own record."""
        said = [event.detail or event.summary for event in self._transcript(attempt) if event.kind == "text"]
        if said:
            return claim_of(HookMessage(message="\n".join(said))).utilized
        records = session_records(attempt.attempt_id, os.environ)
        claims = (claim_of(HookMessage(transcript=str(path))).utilized for path in records)
        return tuple(dict.fromkeys(name for names in claims for name in names))


def _given(injections: Iterable[Injection], attempts: Sequence[Attempt]) -> dict[str, tuple[Injection, ...]]:
    """The ledger lines shown to each attempt.

    A line that names an attempt belongs to it. A bead's block was seen by attempts that were running when it was
    written and by those that began later, until a newer line of the bead replaced it.
    """
    by_attempt: dict[str, list[Injection]] = {}
    by_bead: dict[str, list[Injection]] = {}
    for line in sorted(injections, key=lambda line: (line.at or 0, line.id)):
        if line.attempt:
            by_attempt.setdefault(line.attempt, []).append(line)
        if line.in_bead and line.at is not None:
            by_bead.setdefault(line.bead, []).append(line)
    found = {}
    for attempt in attempts:
        lines = by_attempt.get(attempt.attempt_id, [])
        start = attempt.started_at
        if start is not None:
            end = attempt.finished_at or start
            named = {line.at for line in lines if line.in_bead}
            mine = [line for line in by_bead.get(attempt.bead_id, []) if line.at not in named]
            before = [line for line in mine if (line.at or 0) <= start + _SLACK]
            while_running = [line for line in mine if start + _SLACK < (line.at or 0) <= end]
            lines = [*lines, *([] if named else before[-1:]), *while_running]
        if lines:
            found[attempt.attempt_id] = tuple(lines)
    return found


def _older(one: Attempt, other: Attempt) -> bool:
    return (one.started_at or 0) < (other.started_at or 0)


def _without_repeated(each: Learned) -> Learned:
    """What to learn from an attempt, without a lesson that its bead gave before."""
    repeated = each.proposal is not None and each.proposal.state == "repeated"
    return replace(each, proposal=None) if repeated else each


def _proposal(attempt: Attempt, lesson: Lesson) -> Proposal:
    at = attempt.at
    return Proposal(
        0,
        attempt.attempt_id,
        attempt.bead_id,
        lesson.type,
        lesson.trigger,
        lesson.resolution,
        lesson.reason,
        "open",
        format_instant(at) if at is not None else "",
    )
