"""Book what ddx did: counting, promotion, acceptance follow-ups, reviews, alignment, questions, and the commit of a
tracker that its project commits.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.git_state import tracked, uncommitted
from helix_tui.core.ddx.names import status_of
from helix_tui.core.editing import operations
from helix_tui.core.editing.steps import called, named
from helix_tui.core.ground.files import below, read_bytes, read_end
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.loop.epic_focus import inject
from helix_tui.core.supervision.loop.work import LoopWork, Stop, Stopped
from helix_tui.core.supervision.run_state.state import ddx_lives
from helix_tui.core.supervision.signals.escalation import DECISION
from helix_tui.core.supervision.signals.responses import response_to
from helix_tui.core.supervision.signals.scope import EVERYTHING
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.commit import CommitError, commit_files
from helix_tui.core.supervision.stages.injection import Trigger
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn, ambiguous, read_turn
from helix_tui.core.supervision.stages.stage_run import EVERY, scope_areas

_SUPERVISING = (injection.REVIEW, injection.ALIGNMENT)

MAX_REPORT = 64 << 20


class Booking:
    """Books the turns of one run."""

    def __init__(self, work: LoopWork) -> None:
        self.work = work

    def count(self, turn: LoopTurn, *, recovered: bool = False) -> tuple[LoopResult, ...]:
        """Count a turn and save it together with its pending follow-ups.

        Args:
            recovered: a turn of a run that died, which counts only in the totals.

        Returns:
            The results that completed a cycle.

        Raises:
            OSError: it cannot be saved; nothing was counted then.
        """
        state = self.work.state
        before = state.completed_cycles
        queue = self.work.look().queue
        began = parse_instant(str(state.pending.get("started_at") or ""))
        booked = [each for each in state.pending.get("booked") or () if isinstance(each, str) and each]
        sums, unsaid = self.work.account.turn(turn, self.work.clock() if began is None else began, booked)
        unsaid = self.work.judged(unsaid)
        # May retries within a turn, and its report omits attempts
        attempts = max(turn.attempts, len(turn.results) + len(unsaid))
        good = self.complete(turn.results)
        ours = {each.get("id") for each in state.injected if each.get("type") in _SUPERVISING}
        supervisory = tuple(result for result in good if _supervises(result.bead_id, queue, ours))
        completed = tuple(result for result in good if result not in supervisory)
        if recovered:
            state.count("recovered", len(completed))
            state.count("tokens", sums.tokens or 0)
        else:
            state.spend(sums)
            state.attempted_cycles += attempts
            state.completed_cycles += len(completed)
            state.supervisory_cycles += len(supervisory)
            state.skipped_count += sum(each not in good for each in turn.results) + len(unsaid)
            for result in (*unsaid, *(each for each in turn.results if each not in supervisory)):
                state.outcomes[result.word] = state.outcomes.get(result.word, 0) + 1
                state.verdicts[result.outcome] = state.verdicts.get(result.outcome, 0) + 1
        state.count("attempted", attempts)
        state.count("completed", len(completed))
        state.count("supervisory", len(supervisory))
        if turn.results:
            state.last_results = [result.record() for result in turn.results]
            state.current_issue = turn.results[-1].bead_id
        state.cycles.append(
            {
                "at": self.work.now,
                "recovered": recovered,
                "seconds": round(turn.seconds, 1),
                "tokens": sums.tokens or 0,
                "spent": sums.record(),
                "results": [[result.bead_id, result.word] for result in turn.results],
                "verdicts": [result.outcome for result in turn.results],
                "attempts": [result.record() for result in turn.results],
            }
        )
        state.ddx_delegation_success_count += 1
        # one write with the counts: if killed before it, the next run counts the turn; after it, only this remains
        state.pending = {
            "aftermath": [result.record() for result in turn.results],
            "recovered": recovered,
            "cycles": [before, state.completed_cycles],
        }
        self.work.executed.update(result.bead_id for result in turn.results)
        self.work.save("booking")
        return completed

    def complete(self, results: Iterable[LoopResult]) -> tuple[LoopResult, ...]:
        """The results whose work landed and whose bead is not open: only these complete a cycle."""
        beads = self.work.look().queue.beads
        return tuple(
            result
            for result in results
            if result.success
            if result.bead_id not in beads or beads[result.bead_id].status in TERMINAL
        )

    def follow_up(self, results: Iterable[LoopResult], completed: Iterable[LoopResult]) -> None:
        """Do everything that follows a turn; idempotent.

        Raises:
            Stopped: two requirements cannot both hold, a person must approve it first, or a change failed.
        """
        results, completed = tuple(results), tuple(completed)
        stop: Stop | None = None
        for result in results:
            # raised at the end: the other results are still followed up
            stop = self._interpret(result) or stop
        for result in results:
            # however it ended: an agent that declines a bead may have split it
            self._promote(result)
        if completed:
            # the scripts check the whole repository: once is enough for all results of a turn
            self._acceptance(completed[-1])
            for result in completed:
                self._review(result)
            self._reached(completed[-1].bead_id)
        self.work.state.pending = {}
        self.work.save()
        if stop is not None:
            raise Stopped(stop)

    def _reached(self, last: str) -> None:
        """Refresh the context and align when the completed cycles reach their multiple, once for each multiple."""
        work = self.work
        match work.state.pending.get("cycles"):  # from the run that counted them, which may have been killed since
            case [int(before), int(done)]:
                pass
            case _:  # from a release that did not record them
                return
        if done // EVERY > before // EVERY:
            work.refresh_context(work.look())
        every = work.options.review_every
        if every > 0 and work.options.auto_align and done // every > before // every:
            self._align(last, done)

    # --- what a result means ---------------------------------------------------------------------------

    def _interpret(self, result: LoopResult) -> Stop | None:
        """Stop at a physics-level conflict; ask about an ambiguous result, or file an escalation bead."""
        work = self.work
        rationale = result.rationale or _rationale(work, result)
        attempt = replace(result.attempt, no_changes_rationale=rationale)
        status = attempt.status
        reading = interpret(attempt, work.clock())
        if reading.interpretation == "physics-level":
            text = f"{called(result.bead_id)} contradicts itself, says its agent: {rationale}"
            self._ask("physics-level", result.bead_id, text)
            return Stop("physics_level", text, 0, "helix-tui input --questions")
        if response_to(attempt) == "polish":
            work.teller.always(f"{called(result.bead_id)} is malformed: helix-tui polish {called(result.bead_id)}")
        if not ambiguous(result):
            return None
        known = status_of(status)
        what = (
            attempt.verdict.why
            if known.successful
            else known.meaning
            if known.known
            else f"ddx calls it “{status}”, which HELIX does not know"
        )
        text = f"{called(result.bead_id)}: {what}; {reading.follow_up}"
        if work.autonomy.escalates:
            self._escalate(result, text)
            work.affected.add(result.bead_id)
        else:
            self._ask("conflict" if attempt.verdict.outcome == "kept_aside" else "ambiguous", result.bead_id, text)
        return None

    def _asked_about(self, script: str) -> bool:
        return any(question.key == f"acceptance:{script}" for question in self.work.questions.open())

    def _ask(self, kind: str, bead_id: str, text: str, *, key: str = "") -> None:
        bead = self.work.look().queue.beads.get(bead_id)
        question = self.work.questions.ask(
            kind,
            text,
            key=key or f"{kind}:{bead_id}",
            bead_id=bead_id,
            run_id=self.work.state.run_id,
            bead_at=bead.updated_at if bead is not None else "",
        )
        self.work.teller.always(f"asks ({question.id}): {text}")

    def _escalate(self, result: LoopResult, text: str) -> None:
        """File a bead for a person, which no worker picks, and continue."""
        work = self.work
        queue = work.look().queue
        trigger = Trigger("escalation", work.state.completed_cycles, result.bead_id)
        for bead in queue.beads.values():
            row = bead.document() if "kind:escalation" in bead.labels and bead.status not in TERMINAL else {}
            if row.get("helix-trigger-bead") == result.bead_id:
                return
        about = queue.beads.get(result.bead_id)
        spec = injection.spec_of(queue, about)
        operation = operations.CreateBead(
            title=f"escalation: {result.word} of {result.bead_id}",
            priority=about.priority if about is not None else 2,
            labels=["helix", f"{injection.activity_prefix(queue)}:iterate", "kind:escalation"],
            issue_type=injection.type_for(spec),
            spec_id=spec,
            acceptance=f"`ddx bead show {result.bead_id} --json` shows a {DECISION}",
            description=f"{text}\nAssumed meanwhile: the other work continues without it.",
            fields={
                "execution-eligible": "false",
                "helix-trigger-source": trigger.source,
                "helix-trigger-cycle": str(trigger.cycle),
                "helix-trigger-bead": result.bead_id,
            },
        )
        inject(work, operation, "escalation", trigger)

    # --- follow-ups of a success -------------------------------------------------------------------------

    def _promote(self, result: LoopResult) -> None:
        """Make an epic of a bead that has more than one child."""
        queue = self.work.look().queue
        bead = queue.beads.get(result.bead_id)
        children = queue.graph.children.get(result.bead_id, ())
        if bead is None or bead.status in TERMINAL or bead.issue_type == "epic" or len(children) < 2:
            return
        if injection.supervisory(bead):
            return
        name = called(result.bead_id)
        self.work.teller.always(
            f"promoting {name} to epic (agent created {counted(len(children), 'child', 'children')})"
        )
        self.work.change([operations.SetFields(result.bead_id, {"type": "epic"})], f"promote {name} to epic")
        after = self.work.look().queue.beads.get(result.bead_id)
        if after is None or after.issue_type != "epic":
            raise Stopped(Stop("curation_failed", f"{name} did not become an epic", 1))

    def _acceptance(self, result: LoopResult) -> None:
        work = self.work
        for script, output in injection.failing_scripts(work.project):
            queue = work.look().queue
            if injection.acceptance_standing(queue, script) or self._asked_about(script):
                continue
            done = queue.beads.get(result.bead_id)
            # ask about a follow-up that did not help: filing it again would never end
            if done is not None and injection.injected_type(done) == injection.ACCEPTANCE and done.spec_id == script:
                text = f"{called(result.bead_id)} was meant to make {script} pass and succeeded, but it still fails"
                self._ask("ambiguous", result.bead_id, text, key=f"acceptance:{script}")
                continue
            trigger = Trigger("acceptance-failure", work.state.completed_cycles, result.bead_id, "make-the-check-pass")
            operation = injection.acceptance_bead(queue, trigger, script=script, output=output)
            inject(work, operation, injection.ACCEPTANCE, trigger)
            work.teller.brief(f"cycle {work.state.completed_cycles}: acceptance failures filed as issues")

    def _review(self, result: LoopResult) -> None:
        work = self.work
        options = work.options
        if not options.auto_review:
            return
        queue = work.look().queue
        bead = queue.beads.get(result.bead_id)
        if bead is None or injection.supervisory(bead):
            return
        if injection.standing(queue, injection.REVIEW, result.bead_id) or self._injected_before(result):
            return
        why = injection.why_unreviewed(work.project.root, result.base_rev, result.result_rev, options.review_threshold)
        if why:
            work.teller.always(f"no review of {called(result.bead_id)}: {why}")
            return
        trigger = Trigger("post-cycle-review", work.state.completed_cycles, result.bead_id)
        scope = f"commit:{result.result_rev}" if result.result_rev else "last-commit"
        epic = work.state.focused_epic
        reviewer = options.agent_choice.reviewer
        operation = injection.review_bead(queue, trigger, scope=scope, epic=epic, reviewer=reviewer)
        inject(work, operation, injection.REVIEW, trigger)

    def _injected_before(self, result: LoopResult) -> bool:
        """Whether this attempt has had its review, for a booking that is repeated."""
        seen = self.work.state.injected
        return bool(self.work.state.pending.get("recovered")) and any(
            each.get("triggering_bead") == result.bead_id and each.get("type") == injection.REVIEW for each in seen
        )

    def _align(self, last: str, done: int) -> None:
        work = self.work
        queue = work.look().queue
        if injection.standing(queue, injection.ALIGNMENT):
            return
        trigger = Trigger("periodic-alignment", done, last, "re-run-with-explicit-scope")
        areas = [f"area:{name}" for name in scope_areas(work.project, EVERYTHING)]
        operation = injection.alignment_bead(queue, trigger, epic=work.state.focused_epic, areas=areas)
        inject(work, operation, injection.ALIGNMENT, trigger)


def _supervises(bead_id: str, queue: Queue, injected: Container[object]) -> bool:
    """Whether a bead reviews or aligns; one that left the tracker is known from the record of its injection."""
    bead = queue.beads.get(bead_id)
    return injection.supervisory(bead) if bead is not None else bead_id in injected


def _rationale(work: LoopWork, result: LoopResult) -> str:
    """The reason why an agent changed nothing, from its evidence."""
    path = below(work.project.records_dir / "executions", result.attempt_id) / "no_changes_rationale.txt"
    return (read_bytes(path, 1 << 16) or b"").decode("utf-8", "replace")


def take_over(work: LoopWork, booking: Booking) -> None:
    """Book what the last run did not.

    Raises:
        Stopped: interrupted while its ddx was still running.
    """
    pending = work.state.pending
    if not pending:
        return
    if "aftermath" in pending:
        results = work.judged(_result(row) for row in pending["aftermath"] if isinstance(row, dict))
        work.teller.verbose("finishing what the last run started after its last turn")
        work.state.pending["recovered"] = True
        booking.follow_up(results, booking.complete(results))
        return
    _wait(work, pending)
    # ddx's own report is best; if it was cut off, use the evidence
    turn = _report(work, pending)
    if turn is not None:
        since = parse_instant(pending.get("started_at")) or work.clock()
        turn = replace(turn, results=work.judged(turn.results, since))
    turn = turn or _evidence(work, pending)
    if turn is not None and pending.get("why") == "interrupted":
        turn = turn.interrupted()
    how = "ended without a report of ddx" if pending.get("why") else "died while ddx was executing"
    if turn is None or not turn.results:
        work.teller.verbose(f"the last run {how}, and ddx left no evidence of an attempt")
        work.state.pending = {}
        work.save()
        return
    ids = named([result.bead_id for result in turn.results])
    work.teller.always(f"the last run {how}; what ddx did on {ids} is booked now, as of that run")
    completed = booking.count(turn, recovered=True)
    booking.follow_up(turn.results, completed)


def _wait(work: LoopWork, pending: Mapping[str, Any]) -> None:
    """Let the ddx of the dead run finish, as long as an attempt may take."""
    deadline = time.monotonic() + work.delegate.timeout
    announced = False
    while ddx_lives(pending) and time.monotonic() < deadline:
        if not announced:
            pid = pending.get("pid") or "unknown"
            work.teller.always(f"ddx of the run that died is still running (pid={pid}); waiting for it")
            work.save("dispatching")
            announced = True
        if work.control.interrupted:
            raise Stopped(Stop("interrupted", "while waiting for ddx of the run that died", 130))
        work.control.rest()


def _report(work: LoopWork, pending: Mapping[str, Any]) -> LoopTurn | None:
    out = Path(str(pending.get("out") or ""))
    # no name (an unusable report), or one outside the log folder
    if out.parent != work.teller.path.parent:
        return None
    printed = read_end(out, MAX_REPORT).encode("utf-8", "replace")
    if not printed:
        return None
    said = read_end(out.with_suffix(".err"), MAX_REPORT).encode("utf-8", "replace")
    try:
        return read_turn(Finished(("ddx",), 0, printed, said, 0.0), work.project)
    except DdxError:
        return None


def _evidence(work: LoopWork, pending: Mapping[str, Any]) -> LoopTurn | None:
    """The attempt that ddx recorded since then: one turn executes one bead, possibly several times.

    Another worker's attempts are not this turn's.
    """
    since = parse_instant(pending.get("started_at"))
    if since is None:
        return None
    booked = {"", *(each for each in pending.get("booked") or () if isinstance(each, str))}
    index = AttemptIndex.of(work.project)
    work.look(index)
    found = [
        LoopResult(
            attempt.bead_id,
            attempt.status,
            attempt.attempt_id,
            base_rev=attempt.base_rev,
            result_rev=attempt.result_rev,
            tokens=attempt.tokens.total or 0,
            cost_usd=attempt.cost_usd or 0.0,
            judged=attempt,
        )
        for attempt in sorted(index.attempts, key=lambda each: each.started_at or 0)
        if attempt.finished
        and attempt.bead_id
        and (attempt.started_at or 0) >= since
        and attempt.attempt_id not in booked
    ]
    # the first bead since then is assumed to be the turn's; its last attempt shows how it ended
    last = [each for each in found if each.bead_id == found[0].bead_id][-1:]
    return LoopTurn(tuple(last), 1) if last else None


def _result(row: Mapping[str, Any]) -> LoopResult:
    def word(name: str) -> str:
        return str(row.get(name) or "")

    return LoopResult(
        word("bead_id"),
        word("status"),
        word("attempt_id"),
        word("detail"),
        base_rev=word("base_rev"),
        result_rev=word("result_rev"),
        preserve_ref=word("preserve_ref"),
        retry_after=word("retry_after"),
    )


class TrackerCommit:
    """Watches one tracker during a run, and commits it at the end if only the run's changes differ."""

    def __init__(self, project: Project) -> None:
        root, file = project.root, project.beads_file
        self._root = root
        self._name = file.relative_to(root).as_posix() if file.is_relative_to(root) else ""
        self._seen_clean = False

    def note(self) -> None:
        """Record its state at the start, and after each turn before HELIX writes."""
        self._seen_clean = self._seen_clean or (bool(self._tracked()) and self._left() == ())

    def end(self, run_id: str) -> str:
        """Commit it if it differs from the committed state; return a message if it stays uncommitted."""
        if not self._tracked() or not self._left():
            return ""
        if not self._seen_clean:
            return f"{self._name} is not committed; it was not when the run began"
        try:
            commit_files(self._root, [self._name], f"chore: update tracker (helix-tui {run_id})")
        except CommitError as error:
            return f"{self._name} is not committed: {error}"
        return ""

    def _tracked(self) -> tuple[str, ...]:
        return tracked(self._root, [self._name]) if self._name else ()

    def _left(self) -> tuple[str, ...] | None:
        return uncommitted(self._root, [self._name])
