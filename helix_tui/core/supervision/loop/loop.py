"""The supervisory loop: one turn of ddx's own loop at a time, with policy between turns.

The synthesis of docs/formats/helix.md §7. ddx picks, executes, lands, closes and decides about retries; HELIX prepares
the queue before, books the beads that ddx reports after, and decides whether to continue. Its state is saved before and
after every step, so that a run interrupted or killed at any moment can be explained and taken over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import FOR_A_WORKER
from helix_tui.core.ddx.attempts.costs import format_tokens, format_whole, read_sums
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.editing.execute.gate import GateBusy, WritesForbidden
from helix_tui.core.editing.execute.trust import not_allowed
from helix_tui.core.editing.steps import OperationRefused, called, named
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.processes.family import born_at
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import clock_time, format_instant
from helix_tui.core.ground.writes import remove, replace_file
from helix_tui.core.supervision.decide.facts import Facts
from helix_tui.core.supervision.decide.verdict import NextVerdict, decide
from helix_tui.core.supervision.loop.booking import Booking, TrackerCommit, take_over
from helix_tui.core.supervision.loop.epic_focus import Curating
from helix_tui.core.supervision.loop.passes import Passes, drifted_in, settle_documents
from helix_tui.core.supervision.loop.work import LoopWork, Retry, Stop, Stopped, failure_class, stop_of
from helix_tui.core.supervision.run_state.run_control import request
from helix_tui.core.supervision.run_state.run_log import MAX_LOG_CHARS
from helix_tui.core.supervision.signals.kept_changes import hold_reasons
from helix_tui.core.supervision.signals.tried import Tried, bead_fingerprint
from helix_tui.core.supervision.signals.undecided import undecided
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.delegate import AgentChoice, unheard
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn, read_turn


class Loop:
    """One run, from start to end."""

    def __init__(self, work: LoopWork) -> None:
        self.work = work
        self.curating = Curating(work)
        self.booking = Booking(work)
        self.passes = Passes(work)
        self._tracker = TrackerCommit(work.project)
        self._held: set[str] = set()
        """Beads held back for a decision, and beads skipped: once is enough."""
        self._waiting_at_start = not_allowed(work.project)
        """What the repository brings that no part of this run may start (build gates)."""

    def run(self) -> Stop:
        """Run until something stops it, and save the reason."""
        work = self.work
        try:
            self._begin()
            while True:
                self._step()
        except Stopped as stopped:
            stop = stopped.stop
        except KeyboardInterrupt:
            # the first signal only sets `control.interrupted`; the handler raises at the second one
            stop = Stop("interrupted", "a second time", 130)
        except (GateBusy, WritesForbidden, OperationRefused) as error:
            stop = Stop("curation_failed", str(error), 1)
        except OSError as error:
            stop = _disk(error)
        # a signal may arrive while the run ends by a rule: the exit code still reports it
        if work.control.interrupted and stop.code == 0:
            stop = Stop("interrupted", stop.detail, 130)
        return self._end(stop)

    # --- the turns -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        work = self.work
        self._tracker.note()
        work.save("starting")
        self._accepted(work.look())
        try:
            # a missing ddx, or one without a verb, ends the run here, before anything is booked or changed
            words = work.delegate.drain(work.options.agent_choice.builder)
        except DdxError as error:
            self._failed(error)
        work.teller.verbose(f"delegating to: ddx {' '.join(words)}")
        agent_choice = work.options.agent_choice.builder
        for line in unheard(words, agent_choice):
            work.teller.always(line)
        if agent_choice.reviewer and "--review-harness" not in words:
            work.teller.always(
                "this ddx does not take --review-harness: its own reviews go to whom it chooses, "
                f"those of HELIX to {agent_choice.reviewer}"
            )
        self._readable(work.look())
        # book what the last run left first, so that everything below sees its results
        take_over(work, self.booking)
        for each in work.questions.withdraw(work.look().queue.beads):
            work.teller.always(f"withdrew its question ({each.id}): {each.gone}")
        settle_documents(work)
        self.curating.take_context_back()
        queue_state = work.look()
        self.curating.begin(queue_state)
        work.refresh_context(work.look())

    def _step(self) -> None:
        work = self.work
        self._obey()
        self._within_budget()
        try:
            queue_state = self._curated()
            self._batch_left(queue_state)
            verdict = self._forced(queue_state)
            if verdict is not None:
                self.passes.act(verdict)
            elif queue_state.queue.ready:
                self._turn(queue_state)
            else:
                self._nothing_but_held(queue_state)
                self.passes.next_action()
        except Retry:
            work.teller.verbose("looking again")

    def _obey(self) -> None:
        """Stop or pause on request."""
        work = self.work
        if work.control.interrupted:
            raise Stopped(Stop("interrupted", "between two beads", 130))
        requested = work.control.requested()
        if requested == "stop":
            # granted: `status` shows only open requests
            request(work.project, "")
            raise Stopped(Stop("stop_requested", "after the current bead"))
        if requested == "pause":
            work.teller.always("paused")
            work.save("paused")
            while work.control.requested() == "pause" and not work.control.interrupted:
                work.control.rest()
            work.teller.always("resumed")
            # a stop may have been requested during the pause
            self._obey()

    def _within_budget(self) -> None:
        """Start nothing more once a part of the budget is spent.

        Raises:
            Stopped: a part of it is spent.
        """
        reached = [use for use in self.work.budget_uses() if use.reached]
        if reached:
            again = "--budget" if reached[0].span == "run" else "--day-budget"
            said = "; ".join(use.spent_words() for use in reached)
            said += "" if self.work.state.sums.whole.calls else ", and this run has started nothing"
            raise Stopped(Stop("budget", said, 0, f"helix-tui run {again} …"))

    def _curated(self) -> QueueState:
        self.work.save("curating")
        queue_state = self.work.look()
        self._readable(queue_state)
        self._accepted(queue_state)
        for each in self.work.questions.withdraw(queue_state.queue.beads):
            self.work.teller.always(f"withdrew its question ({each.id}): {each.gone}")
        self.curating.order(queue_state)
        return self.work.look()

    def _readable(self, queue_state: QueueState) -> None:
        """Stop before ddx fails on an unreadable line, or drops it.

        Raises:
            Stopped: there is such a line.
        """
        if queue_state.tracker.unread:
            detail = f"{queue_state.tracker.unread}; ddx fails on it, or drops it when it next writes"
            raise Stopped(Stop("unreadable_tracker", detail, 1, "helix-tui doctor"))

    def _accepted(self, queue_state: QueueState) -> None:
        """Stop before calling a ddx that would refuse every command on this tracker.

        Raises:
            Stopped: it would.
        """
        if queue_state.shut is not None:
            raise Stopped(Stop("ddx_refuses", str(queue_state.shut), 1, queue_state.shut.command))

    def _batch_left(self, queue_state: QueueState) -> None:
        batch, queue = self.work.options.batch, queue_state.queue
        if self.work.pending_review(queue):
            return  # what waits for it is not done
        if batch and not any(each in queue.beads and queue.state(each) in FOR_A_WORKER for each in batch):
            raise Stopped(Stop("batch_done", f"{counted(len(batch), 'bead')} in the batch"))

    def _forced(self, queue_state: QueueState) -> NextVerdict | None:
        """An answer that the facts force although something is ready: drift, or a question that stops everything. Beads
        whose parent or document changed, or whose change a review refused, are kept from workers first; if a polish
        pass left them so, the others continue.

        Raises:
            Retry: beads were held back or released, so the queue changed.
        """
        facts = self._hold_for_person(queue_state)
        verdict = decide(facts)
        stops = any(question.stops for question in facts.questions)
        fresh = drifted_in(verdict) - self.passes.unsettled if verdict.next_action == "POLISH" else ()
        return verdict if stops or fresh else None

    def _hold_for_person(self, queue_state: QueueState) -> Facts:
        """Keep workers from the beads that a person must decide on, and release the others; return the facts.

        Raises:
            Retry: beads were held back or released, so the queue changed.
        """
        facts = self.work.checker.facts(queue_state=queue_state, documents=False)
        if self.curating.keep_held(queue_state.queue, hold_reasons(facts.drift, facts.refused)):
            raise Retry
        return facts

    def _turn(self, queue_state: QueueState) -> None:
        """Let ddx execute one bead of its choice, and book the result."""
        work = self.work
        self._without_undecided(queue_state)
        self._without_tried(queue_state)
        self._without_documents(queue_state)
        if self.curating.review_first(queue_state):
            raise Retry
        number = work.state.attempted_cycles + 1
        following = queue_state.queue.ready[0]
        work.permit("dispatch", following, f"let ddx execute one bead (the next would be {called(following)})?")
        work.teller.verbose(f"[{clock_time(work.clock())}] ready={len(queue_state.queue.ready)}, cycle={number}")
        work.teller.brief(
            f"[{clock_time(work.clock())}] cycle {number}: dispatching ({len(queue_state.queue.ready)} ready)"
        )
        # ddx prints into a separate file: a run that takes over reads the report there
        turn_out = work.teller.path.with_name(
            f"{work.state.run_id}-turn{len(work.state.cycles) + 1}-{work.clock()}.out"
        )
        review, agent_choice = reviewer_of(queue_state.queue, work.options.agent_choice.builder)
        if review:
            who = "/".join(filter(None, (agent_choice.harness, agent_choice.model)))
            work.teller.always(f"{called(review)} is next: its review goes to {who}")
        if work.options.context:
            self.curating.brief_agent(queue_state, queue_state.queue.ready[0])
        try:
            finished, turn = self._dispatch(turn_out, agent_choice)
        finally:
            # before the context is removed: that writes to the tracker, which ddx may just have committed
            self._tracker.note()
            self.curating.take_context_back()
        if review and any(result.bead_id != review for result in turn.results):
            work.teller.always(f"ddx executed a bead other than {called(review)}, with {agent_choice.harness}")
        first, last = work.teller.block("ddx output", finished, work.clock())
        completed = self.booking.count(turn)
        who = next((result.harness for result in turn.results if result.harness), "ddx")
        work.teller.brief(
            f"{who} complete (rc={finished.rc}, {finished.seconds:.0f}s, {self._tokens()}) — "
            f"log L{first}–L{last} in {work.teller.path}"
        )
        # only now: until the turn is counted, a run that takes over would book from the file
        _tidy(finished, turn_out)
        for result in turn.results:
            self._tell(number, result)
        self.booking.follow_up(turn.results, completed)
        if work.control.cut or turn.signalled:
            self._cut_short(turn)
        self._after(turn, queue_state)

    def _cut_short(self, turn: LoopTurn) -> NoReturn:
        """Stop after a turn whose ddx was interrupted, by this run or otherwise; its results are booked."""
        self._remember(turn)
        cut = [result.bead_id for result in turn.results if result.word == "interrupted"]
        detail = f"during the attempt on {named(cut)}" if cut else "while ddx was running"
        if not self.work.control.cut:
            detail = f"ddx was interrupted ({turn.exit_reason}) {detail}"
        raise Stopped(Stop("interrupted", detail, 130))

    def _dispatch(self, out: Path, agent_choice: AgentChoice) -> tuple[Finished, LoopTurn]:
        work = self.work
        try:
            words = work.delegate.drain(agent_choice)
            began = work.clock()
            work.state.pending = {
                "command": ["ddx", *words],
                "out": str(out),
                "pid": 0,
                "started_at": format_instant(began),
                "booked": [result.get("attempt_id", "") for result in work.state.last_results],
            }
            # saved before ddx starts, so that the next run books this turn if this run is killed
            work.save("dispatching")
            work.delegate.began = self._began
            finished = work.delegate.execute(words, out)
            turn = read_turn(finished, work.project)
            if work.control.cut:
                turn = turn.interrupted()
            turn = replace(turn, results=work.judged(turn.results, began))
        except DdxError as error:
            if work.control.interrupted:
                self._leave_to_evidence("interrupted")
                raise Stopped(Stop("interrupted", "while ddx was executing; it gave no report", 130)) from None
            self._failed(error)
        return finished, turn

    def _began(self, pid: int) -> None:
        if "command" not in self.work.state.pending:
            return  # an agent, not a turn of the loop
        self.work.state.pending |= {"pid": pid, "born": born_at(pid)}
        with contextlib.suppress(OSError):  # the entry names the file; the process id only helps to wait
            self.work.save()

    def _without_undecided(self, queue_state: QueueState) -> None:
        """Hold back beads in question until the answer; continue with the rest.

        Raises:
            Retry: beads were held back, so the queue changed.
            Stopped: nothing else is left, or autonomy is low, where nothing is held back without approval.
        """
        work, ready = self.work, queue_state.queue.ready
        waits = work.awaiting()
        # answered or changed beads may be held back once more
        self._held &= waits | set(work.tried(queue_state.queue))
        # ddx picks the first: those after it are not in the way yet, and each hold is a command
        if ready[0] not in waits:
            return
        held = [bead_id for bead_id in ready if bead_id in waits]
        alone = len(held) == len(ready) and not work.autonomy.escalates
        # held back before and ready again, by ddx or a person: holding it again would never end
        if alone or work.options.autonomy == "low" or self._held & set(held):
            detail = f"{called(ready[0])} would be next, and its outcome waits for a decision"
            raise Stopped(Stop("question", detail, 0, "helix-tui input --questions"))
        self._held |= set(held)
        # it holds back exactly what it is given: include those already held
        self.curating.keep_back({*held, *undecided(queue_state.queue)})
        until = "in this run" if work.autonomy.escalates else "until somebody decides"
        work.teller.always(f"continuing without {named(held)} {until}")
        raise Retry

    def _without_tried(self, queue_state: QueueState) -> None:
        """Skip beads that this run tried and left open until their record changes, as ddx does in one session.

        Raises:
            Retry: beads were held back, so the queue changed.
            Stopped: nothing else is ready, or it cannot be held back.
        """
        work, ready = self.work, queue_state.queue.ready
        tried = work.tried(queue_state.queue)
        passed = [bead_id for bead_id in ready if bead_id in tried]
        if not passed:
            return
        if len(passed) == len(ready) or self._held & set(passed):
            self._nothing_else(tried, undecided(queue_state.queue))
        self._skip(queue_state, {bead_id: f"tried in this run ({tried[bead_id].why})" for bead_id in passed})

    def _without_documents(self, queue_state: QueueState) -> None:
        """Skip beads whose governing document does not exist; if nothing else is ready, do what the check says.

        Raises:
            Retry: beads were held back, or the check was followed.
        """
        work, ready = self.work, queue_state.queue.ready
        lacking = [each for each in ready if each in work.without_document and each not in self._held]
        if not lacking:
            return
        if len(lacking) == len(ready):
            self.passes.next_action()
            raise Retry
        missing = work.without_document
        self._skip(queue_state, {bead_id: f"its document {missing[bead_id]} is missing" for bead_id in lacking})

    def _skip(self, queue_state: QueueState, reasons: Mapping[str, str]) -> NoReturn:
        """Keep workers from these beads during this run, each for its reason.

        Raises:
            Retry: the queue changed.
            Stopped: a person must approve it first.
        """
        for bead_id in reasons:
            about = f"skip {called(bead_id)}"
            self.work.permit("curation", about, f"{about}: {reasons[bead_id]}?", lasting=True)
        self._held |= set(reasons)
        self.curating.keep_back({*reasons, *undecided(queue_state.queue)})
        for bead_id, reason in reasons.items():
            self.work.teller.always(f"skipping {called(bead_id)}: {reason}")
        raise Retry

    def _nothing_but_held(self, queue_state: QueueState) -> None:
        """If everything else is done, stop for a person to decide on the held beads, without a check."""
        tried = self.work.tried(queue_state.queue)
        held = undecided(queue_state.queue)
        if any(bead_id in tried for bead_id in held) or (held and not self.work.autonomy.escalates):
            self._nothing_else(tried, held)

    def _nothing_else(self, tried: Mapping[str, Tried], held: Iterable[str]) -> NoReturn:
        """Stop: only what this run tried and left open is left, and what a person must decide on."""
        waiting = [bead_id for bead_id in held if bead_id not in tried]
        asks = bool(waiting) and not self.work.autonomy.escalates
        passed = f"; {_passed_over(tried)}" if tried else ""
        wait = "waits" if len(waiting) == 1 else "wait"
        waits = f"{'; and' if tried else ', and'} {named(waiting)} {wait} for a decision" if asks else ""
        fix = "helix-tui input --questions" if asks else f"helix-tui why {called(next(iter(tried)))}"
        raise Stopped(Stop("question" if asks else "no_progress", f"nothing else was ready{passed}{waits}", 0, fix))

    def _tokens(self) -> str:
        """The tokens of the last booked turn, from all its records."""
        return format_tokens(read_sums(self.work.state.cycles[-1]["spent"]))

    def _tell(self, number: int, result: LoopResult) -> None:
        work = self.work
        state = work.state
        if result.success:
            bead = work.look().queue.beads.get(result.bead_id)
            if bead is not None and bead.status not in TERMINAL:
                work.teller.always(
                    f"cycle {number}: {called(result.bead_id)} → success, but the bead is still {bead.status}"
                )
                return
            done = f"{state.completed_cycles}/{state.attempted_cycles} done, {self._tokens()}"
            where = f", landed on {work.project.branch()}" if result.attempt.landed else ""
            work.teller.brief(f"cycle {number}: {called(result.bead_id)} → COMPLETE ({done}){where}")
            work.teller.verbose(f"cycle {number}: {called(result.bead_id)} → success{where}")
            return
        ref = result.attempt.kept_at
        kept = f", kept at {ref}" if ref else ""
        again = f", not before {result.retry_after}" if result.retry_after else ""
        detail = f": {result.detail}" if result.detail and result.detail != result.status else ""
        aside = ", not landed" if result.attempt.preserved else ""
        work.teller.always(f"cycle {number}: {called(result.bead_id)} → {result.word}{aside}{detail}{kept}{again}")

    def _after(self, turn: LoopTurn, queue_state: QueueState) -> None:
        """Decide whether to continue after a turn."""
        work = self.work
        if turn.attention and not turn.results:
            work.questions.ask("guidance", turn.attention, key=f"attention:{turn.attention}", run_id=work.state.run_id)
            raise Stopped(Stop("operator_attention", turn.attention))
        if not turn.results:
            work.teller.verbose("ddx found nothing to execute" + (f": {turn.idle}" if turn.idle else ""))
            self.passes.nothing_selected(turn.idle)
            return
        self.passes.progressed()
        self._remember(turn)
        limit = work.options.max_cycles
        if limit and work.state.completed_cycles >= limit:
            raise Stopped(Stop("max_cycles", f"reached max cycles ({limit})"))

    def _remember(self, turn: LoopTurn) -> None:
        """Remember what was attempted and would be picked again, except beads waiting for a decision and interrupted
        attempts.

        Raises:
            Stopped: ddx executed a bead that was held back.
        """
        work, queue = self.work, self.work.look().queue
        before, waits = work.tried(queue), work.awaiting()
        known = {each["bead_id"]: each for each in work.state.tried}
        for result in turn.results:
            bead = queue.beads.get(result.bead_id)
            if bead is None or bead.id in waits or result.word == "interrupted":
                continue
            if queue.state(bead.id) == "ready" or bead.id in before:
                detail = "" if result.detail == result.status else result.detail
                tried = Tried(bead.id, result.word, detail, bead_fingerprint(bead))
                known[bead.id] = tried.record()
        work.state.tried = list(known.values())
        work.save()
        again = [each.bead_id for each in turn.results if each.bead_id in before]
        if again:
            detail = f"ddx has executed {named(again)} again, although this run had skipped it"
            raise Stopped(Stop("no_progress", detail, 0, "helix-tui doctor"))

    # --- the end ---------------------------------------------------------------------------------------

    def _failed(self, error: DdxError) -> None:
        """Count a delegation that failed, keep what ddx printed, and stop."""
        work = self.work
        stop = stop_of(error, "ddx_failed")
        kind = failure_class(stop)
        counts = work.state.ddx_delegation_failure_count
        counts[kind] = counts.get(kind, 0) + 1
        if stop.reason == "malformed_output":
            kept = work.teller.path.with_name(f"malformed-{work.now.replace(':', '').replace('-', '')}.json")
            with contextlib.suppress(OSError):
                replace_file(kept, error.output)
            stop = Stop(
                stop.reason, f"ddx execute-loop produced malformed output (see {kept}): {error.message}", stop.code
            )
        self._leave_to_evidence(stop.reason)
        raise Stopped(stop)

    def _leave_to_evidence(self, why: str) -> None:
        """Leave what ddx did before it failed to the next run, which books it from the evidence."""
        if self.work.state.pending:
            self.work.state.pending |= {"out": "", "why": why}

    def _end(self, stop: Stop) -> Stop:
        """Release held beads, report what is stuck, record why the run ended."""
        work = self.work
        stop = self._without_fault(stop, self.curating.take_context_back)
        stop = self._without_fault(stop, self.curating.give_back)
        # ddx of August may have closed an epic with the run's last bead, which no later look would find
        if not stop.code:
            stop = self._without_fault(stop, self.curating.review_closed)
        stop = self._without_fault(stop, self.curating.end)
        stop = self._without_fault(stop, self._keep_refused)
        # after everything above, which writes to the tracker
        uncommitted = self._tracker.end(work.state.run_id)
        blockers: list[str] = []
        # a tracker that cannot be read must not hide why the run ended
        with contextlib.suppress(Stopped):
            work.state.blockers, blockers = work.blockers(work, work.look())
        state = work.state
        state.stop_reason, state.stop_detail, state.exit_code = stop.reason, stop.detail, stop.code
        state.last_run = state.ended_at = work.now
        state.count("runs")
        # a full disk may have ended the run
        with contextlib.suppress(OSError):
            work.save("stopped")
        tell = work.teller.always
        if stop.detail and stop.detail not in work.teller.last:
            tell(stop.detail)
        tell(f"stopped: {stop.reason} — {stop.meaning}" + (f" · {stop.command}" if stop.command else ""))
        ours = f"{state.supervisory_cycles} supervisory, " if state.supervisory_cycles else ""
        tell(
            f"═══ run complete: {state.attempted_cycles} attempted, {state.completed_cycles} completed, "
            f"{ours}{state.skipped_count} skipped, {format_tokens(state.sums)}, "
            f"{format_whole(state.sums)} ═══"
        )
        for line in (*blockers, *filter(None, [uncommitted])):
            tell(line)
        for brought in not_allowed(work.project):
            if brought not in self._waiting_at_start:
                tell(f"{brought.subject} changed during this run and waits for your permission: helix-tui trust")
        return stop

    def _keep_refused(self) -> None:
        """Keep workers from refused changes that the run itself held back until now; at low autonomy after approval."""
        if self.work.options.autonomy != "low":
            self._hold_for_person(self.work.look())

    def _without_fault(self, stop: Stop, do: Callable[[], None]) -> Stop:
        """Do something at the end; if that fails too, the first stop reason is kept."""
        try:
            do()
        except Retry:
            with contextlib.suppress(Stopped, Retry, OSError):
                do()
        except Stopped as stopped:
            self.work.state.problems.append(f"at the end: {stopped.stop.detail}")
        except (GateBusy, WritesForbidden, OSError, KeyboardInterrupt) as error:
            self.work.state.problems.append(f"at the end: {error}")
        return stop


def reviewer_of(queue: Queue, agent_choice: AgentChoice) -> tuple[str, AgentChoice]:
    """The review bead that ddx would pick next, and its reviewer: this run's, else as chosen when it was created. ddx
    binds no harness to a bead, so the turn that will pick it is run with its reviewer. An empty id and the same choices
    if the next bead is not a review or has no chosen reviewer.
    """
    bead = queue.beads[queue.ready[0]] if queue.ready else None
    if bead is None or injection.injected_type(bead) != injection.REVIEW:
        return "", agent_choice
    chosen = agent_choice.given_to(agent_choice.reviewer or str(bead.document().get("helix-reviewer") or ""))
    return ("" if chosen is agent_choice else bead.id), chosen


def _tidy(finished: Finished, out: Path) -> None:
    """Remove a turn's output file, as the log has it, unless it is too long for the log."""
    for path, printed in ((out, finished.stdout), (out.with_suffix(".err"), finished.stderr)):
        if len(printed) <= MAX_LOG_CHARS:
            with contextlib.suppress(OSError):
                remove(path)


def _disk(error: OSError) -> Stop:
    where = f" {Path(str(error.filename)).name}" if error.filename else ""
    return Stop(
        "disk", f"cannot write{where}: {error.strerror or error}; free space or repair the folder, then run again", 1
    )


def _passed_over(tried: Mapping[str, Tried]) -> str:
    """The beads that this run tried and left open, which are ready once it has ended."""
    said = "; ".join(f"{called(bead_id)} ({each.why})" for bead_id, each in list(tried.items())[:5])
    more = f" and {len(tried) - 5} more" if len(tried) > 5 else ""
    return f"tried once, {'stays' if len(tried) == 1 else 'stay'} open: {said}{more}"
