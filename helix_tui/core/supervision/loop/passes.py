"""Carry out NEXT_ACTION: one bounded planning pass, or the end; and handle conflicts between documents before anything
is dispatched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.client import TOO_OLD, DdxError
from helix_tui.core.ddx.documents.source import Documents, GoverningDocuments
from helix_tui.core.editing import operations
from helix_tui.core.editing.steps import called, named
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.decide.check import CheckFailed, facts_text, undecided
from helix_tui.core.supervision.decide.verdict import NextVerdict, decide
from helix_tui.core.supervision.loop.epic_focus import inject
from helix_tui.core.supervision.loop.work import LoopWork, Stop, Stopped, stop_of
from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding, find_conflicts, open_spec_ids
from helix_tui.core.supervision.signals.drift import DriftWatch
from helix_tui.core.supervision.signals.orphans import find_orphans
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.signals.scope import Scope, scope_word
from helix_tui.core.supervision.signals.tried import work_fields
from helix_tui.core.supervision.signals.undecided import undecided as held_back
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.injection import Trigger
from helix_tui.core.supervision.stages.results import raise_from
from helix_tui.core.supervision.stages.stage_run import (
    AlignmentActive,
    Governing,
    acquire,
    hand_back,
    perform,
    stage_context,
)
from helix_tui.core.supervision.stages.table import STAGES

MAX_FINDINGS = 20
"""Maximum findings raised by one run; the rest waits until these are decided."""

_LABEL = {"resolvable": "kind:escalation", "gap": "kind:speculative"}

MAX_PASSES = 6
"""Planning passes in a row without one completed cycle."""

MAX_EMPTY_BUILDS = 2
"""BUILD answers in a row with nothing selectable."""

_PASSES = {"DESIGN": "design", "POLISH": "polish", "ALIGN": "align"}


def settle_documents(work: LoopWork) -> None:
    """Raise conflicts between the documents.

    Raises:
        Stopped: two documents of one rank supersede each other.
    """
    documents = _documents(work)
    findings = find_conflicts(documents, open_spec_ids(work.look().queue.beads))
    undecided_findings = still_undecided(work.questions, findings)[:MAX_FINDINGS]
    for finding in undecided_findings:
        if finding.kind == "physics-level":
            continue
        if work.autonomy.escalates:
            _file(work, finding)
        elif finding.kind == "resolvable":
            _ask(work, "conflict", finding)
        else:
            work.teller.always(f"gap: {finding.text}")
    gaps = (finding for finding in findings if finding.kind == "gap" and documents.lacks(finding.missing))
    _wait_for_documents(work, {finding.missing: finding.key for finding in gaps})
    clashing = [finding for finding in undecided_findings if finding.kind == "physics-level"]
    # raised before the run stops for the first: a person sees all of them at once
    for finding in clashing:
        _ask(work, "physics-level", finding)
    if clashing:
        raise Stopped(Stop("physics_level", clashing[0].text, 0, "helix-tui input --questions"))


def _documents(work: LoopWork) -> Documents:
    return GoverningDocuments(work.project, work.curator.reader()).get()


def _ask(work: LoopWork, kind: str, finding: DocumentFinding) -> None:
    work.questions.ask_about(finding, kind, run_id=work.state.run_id)


def still_undecided(questions: OpenQuestions, findings: Iterable[DocumentFinding]) -> list[DocumentFinding]:
    """Undecided findings, each once."""
    decided = {question.key for question in questions.all() if question.answered_at}
    return [finding for finding in findings if finding.key not in decided]


def _file(work: LoopWork, finding: DocumentFinding) -> None:
    """File a bead for a person, with the assumption under which work continues."""
    queue = work.look().queue
    label = _LABEL[finding.kind]
    if injection.decision_standing(queue, label, finding.key):
        return
    referring = next(iter(finding.documents), "")
    gap = finding.kind == "gap"
    operation = injection.decision_bead(
        queue,
        label,
        f"gap: {clean_line(finding.missing, 80)} is missing"
        if gap
        else f"escalation: a document is superseded ({referring})",
        finding.text,
        key=finding.key,
        spec_id=referring,
        acceptance=f"`{referring or finding.missing}` records the decision",
        assumed=finding.assumed,
    )
    trigger = Trigger("documents", work.state.completed_cycles, referring or finding.missing)
    inject(work, operation, "gap" if gap else "escalation", trigger)


def _wait_for_documents(work: LoopWork, missing: Mapping[str, str]) -> None:
    """Let beads wait whose governing document does not exist: on its gap bead where one is filed (autonomy high), else
    until this run ends. Once the gap is decided, they wait no more.

    Args:
        missing: the name of each missing document, with the key of its gap.
    """
    queue = work.look().queue
    waits, work.without_document = list[operations.Operation](), {}
    for bead in queue.beads.values():
        if bead.spec_id not in missing or bead.status in TERMINAL or injection.supervisory(bead):
            continue
        gap = injection.decision_standing(queue, _LABEL["gap"], missing[bead.spec_id])
        if gap is None:
            work.without_document[bead.id] = clean_line(bead.spec_id, 60)
        elif gap.status not in TERMINAL and gap.id not in bead.depends_on:
            waits.append(operations.AddDependency(bead.id, gap.id))
    if waits:
        work.change(waits, f"let {named([wait.bead_id for wait in waits])} wait for a missing document")


class Passes:
    """Decides what to do when ddx has nothing to pick, and does it."""

    def __init__(self, work: LoopWork) -> None:
        self.work = work
        self.empty = 0
        """BUILD answers and turns in a row that selected nothing."""
        self._seen: dict[str, str] = {}
        self._passes = 0
        self._runs = 0
        self.unsettled: frozenset[str] = frozenset()
        """Drifted beads that a polish pass looked at without reporting completion."""

    def progressed(self) -> None:
        """Record that ddx executed something."""
        self.empty = self._passes = 0
        self._seen.clear()

    def nothing_selected(self, why: str = "") -> None:
        """Count a turn or an answer that selected nothing.

        Args:
            why: ddx's reason.

        Raises:
            Stopped: it is the second in a row.
        """
        self.empty += 1
        if self.empty < MAX_EMPTY_BUILDS:
            return
        queue_state = self.work.look()
        orphans = find_orphans(queue_state.runs, queue_state.queue)
        ready = queue_state.queue.ready
        detail = f"ddx picks nothing, though {named(ready)} should be ready" if ready else "nothing is ready"
        detail += f" ({why})" if why else ""
        command = "helix-tui doctor" if ready else "helix-tui stuck"
        if orphans:
            ids = [orphan.bead_id for orphan in orphans]
            detail += f"; orphaned claims: {named(ids)}"
            command = f"helix-tui stuck --recover {' '.join(map(called, ids))}"
        raise Stopped(Stop("no_selectable", detail, 0, command))

    def next_action(self) -> None:
        """Determine the next action and carry it out.

        Raises:
            Stopped: the answer ends the run, or there is none.
        """
        self.act(self._check())

    def act(self, verdict: NextVerdict) -> None:
        """Carry an answer out: return to continue, or stop.

        Raises:
            Stopped: the answer ends the run.
        """
        work, code = self.work, verdict.next_action
        work.state.next_action = verdict.record() | {"at": work.now}
        work.state.next_eligible = verdict.next_eligible
        work.save()
        why = verdict.reasons[0].detail if verdict.reasons else ""
        answer = f"NEXT_ACTION: {code} (by {verdict.decided_by})"
        if verdict.decided_by == "prompt":
            work.teller.quote(answer, why)
        else:
            work.teller.always(f"{answer} — {why}")
        if code == "BUILD":
            self.nothing_selected()
            return
        if code not in _PASSES:
            self._end(verdict, why)
        if code == "ALIGN" and not work.options.auto_align:
            raise Stopped(Stop("next_action:ALIGN", "alignment is switched off", 0, verdict.recommended_command))
        state_of_queue = queue_fingerprint(work.look().queue)
        # otherwise DESIGN and POLISH could recur forever (decision 0006)
        if self._seen.get(code) == state_of_queue:
            detail = f"{_PASSES[code]} left the queue as it was, and {code} is the answer again"
            raise Stopped(Stop(f"next_action:{code}", detail, 0, verdict.recommended_command))
        self._seen[code] = state_of_queue
        self._passes += 1
        if self._passes > MAX_PASSES:
            raise Stopped(Stop("planning_without_progress", f"{MAX_PASSES} planning passes and no build"))
        self._pass(_PASSES[code], verdict)

    def _check(self) -> NextVerdict:
        work = self.work
        work.save("checking")
        self._runs += 1
        began = work.clock()
        try:
            verdict = work.checker.check(stamp=f"{work.state.run_id}-check{self._runs}")
        except CheckFailed as error:
            work.state.spend(work.account.question(began, error.tokens, error.cost_usd))
            detail = str(error) if error.kind == "check_unreadable" else f"check failed after queue drain: {error}"
            raise Stopped(Stop(error.kind, detail, 1)) from None
        except DdxError as error:
            if error.exit_code != TOO_OLD:
                raise Stopped(stop_of(error, "check_failed")) from None
            # a ddx that cannot ask an agent, such as the simulation: only the facts are available
            verdict = undecided(decide(work.checker.facts()))
        if verdict.decided_by == "prompt" or verdict.tokens or verdict.cost_usd:
            work.state.spend(work.account.question(began, verdict.tokens, verdict.cost_usd))
        if work.control.interrupted:
            raise Stopped(Stop("interrupted", "while it asked what comes next", 130))
        return verdict

    def _end(self, verdict: NextVerdict, why: str) -> None:
        work, code = self.work, verdict.next_action
        held = held_back(work.look().queue) if code == "STOP" else ()
        if held:  # they are ready again once the run has ended: no STOP is said of them
            detail = f"nothing else was ready, and {named(held)} {'waits' if len(held) == 1 else 'wait'} for a decision"
            raise Stopped(Stop("no_progress", detail, 0, "helix-tui needs"))
        if code == "GUIDANCE":
            key = f"guidance:{scope_word(verdict.scope)}:{why[:200]}"
            # findings of facts recur at every look; an agent's do not
            if verdict.decided_by != "facts":
                work.questions.ask("guidance", why or "a person must decide", key=key, run_id=work.state.run_id)
        detail = why
        if verdict.next_eligible:
            detail += f"; next eligible at {verdict.next_eligible}"
        if code == "BACKFILL":
            work.teller.always(f"run `{verdict.recommended_command}` to reconstruct missing docs")
        raise Stopped(Stop(f"next_action:{code}", detail, 0, verdict.recommended_command))

    def _pass(self, name: str, verdict: NextVerdict) -> None:
        """Run one bounded pass of a planning stage."""
        work, stage = self.work, STAGES[name]
        work.permit("stage", name, f"run one {name} pass?")
        values = {"scope": scope_word(verdict.scope), "autonomy": work.options.autonomy, "rounds": "1"}
        governing = None
        if stage.governed:
            governing = self._govern(verdict.scope)
            values["bead"] = governing.bead_id
        facts = work.checker.facts(verdict.scope)
        values["facts"] = facts_text(facts, decide(facts))
        values["context"] = stage_context(work.project, facts.queue, epic=work.state.focused_epic)
        work.state.stage = name
        work.save("planning")
        work.teller.always(f"queue drained, running {name}")
        self._runs += 1
        began = work.clock()
        try:
            done = perform(
                work.project,
                work.delegate,
                stage,
                values,
                work.options.agent_choice,
                f"{work.state.run_id}-{name}{self._runs}",
            )
        except DdxError as error:
            raise Stopped(stop_of(error, "stage_failed")) from None
        # count the cost and release the bead before anything below may stop the run
        work.state.spend(work.account.question(began, done.answer.tokens, done.answer.cost_usd))
        work.state.stage = ""
        work.save("checking")
        left = hand_back(work.curator, governing) if governing is not None else ""
        if left:
            work.teller.always(left)
        if work.control.interrupted:
            raise Stopped(Stop("interrupted", f"during {name}", 130))
        if not done.ok:
            raise Stopped(Stop("stage_failed", f"{name}: {done.why}", 1))
        if done.status == "BLOCKED":
            raise Stopped(Stop("stage_failed", f"{name} reports that it is blocked", 1))
        try:
            raised = raise_from(work.curator, work.questions, done, work.options.autonomy)
        except DdxError as error:
            raise Stopped(stop_of(error, "curation_failed")) from None
        for question in raised:
            work.teller.always(f"asks ({question.id}): {question.text}")
        if name == "design":
            settle_documents(work)
        if name == "polish":
            if done.status in ("CONVERGED", "COMPLETE"):
                self._acknowledge(verdict)
            else:
                # not acknowledged: the drift stays, and must not lead to the same pass again at once
                self.unsettled |= drifted_in(verdict)

    def _govern(self, scope: Scope) -> Governing:
        try:
            governing, _ = acquire(self.work.curator, scope)
        except AlignmentActive as error:
            raise Stopped(Stop("next_action:ALIGN", str(error))) from None
        except DdxError as error:
            raise Stopped(stop_of(error, "curation_failed")) from None
        self.work.teller.verbose(f"governing bead {called(governing.bead_id)} ({governing.mode})")
        return governing

    def _acknowledge(self, verdict: NextVerdict) -> None:
        """Acknowledge the drift that led to a polish pass."""
        if ids := drifted_in(verdict):
            curator = self.work.curator
            DriftWatch(curator.project, curator.gate).acknowledge(self.work.look().queue.beads, curator.history(), ids)


def drifted_in(verdict: NextVerdict) -> frozenset[str]:
    """The beads whose drift is named in an answer."""
    said = (reason for reason in (*verdict.reasons, *verdict.notes) if reason.code == "drift")
    return frozenset(ref for reason in said for ref in reason.refs)


def queue_fingerprint(queue: Queue) -> str:
    """A fingerprint of what a planning pass may change: unfinished beads, without governing and supervisory ones.

    A worker's bookkeeping in a row is not a change, nor is a hold by a focus or an open question.
    """
    digest = hashlib.sha256()
    for bead_id in sorted(queue.beads):
        bead = queue.beads[bead_id]
        if bead.status in TERMINAL or injection.supervisory(bead):
            continue
        digest.update(repr((bead_id, work_fields(bead))).encode("utf-8", "replace"))
    return digest.hexdigest()
