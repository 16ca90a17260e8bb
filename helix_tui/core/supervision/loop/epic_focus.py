"""Prepare the queue before ddx picks: epic focus and finished epics, nothing else.

Rules: docs/formats/helix.md §3.2 and §3.3, docs/decisions/0009. Held beads are marked in their rows; a focus set by a
person before the run remains after it, one set by a run (this one, or one that died) does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import FOR_A_WORKER, IN_HAND
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing import operations
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.editing.journal import PASSING
from helix_tui.core.editing.kinds.cascade import HOLDING_LABELS
from helix_tui.core.editing.kinds.eligibility_hold import held_back, plan_holds
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import OperationRefused, called, named
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.text import CONTEXT_BEGIN, counted, with_context
from helix_tui.core.supervision.loop.work import LoopWork
from helix_tui.core.supervision.signals.focus import (
    descendants,
    needed,
    plan_focus,
    plan_unfocus,
    plan_upkeep,
    read_focus,
)
from helix_tui.core.supervision.signals.questions import REVIEW_FIRST
from helix_tui.core.supervision.signals.scope import is_finished_epic
from helix_tui.core.supervision.signals.undecided import FOR_DECISION, plan_undecided, undecided
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.stage_run import agent_context

MAX_HELD = 60
"""Maximum beads that an automatic focus may hold back: each needs a command, for which ddx rewrites its file."""


class Curating:
    """Keeps the focus of one run."""

    def __init__(self, work: LoopWork) -> None:
        self.work = work
        self.ours = ""
        """The epic focused on by a run."""
        self._passed_over: set[str] = set()
        self._unfinished: set[str] = set()
        """Epics open at the last look: ddx of August closes them by itself."""
        self._put_first: set[str] = set()
        """Reviews that were given the first rank, and beads that were held back for one: once is enough."""

    def begin(self, queue_state: QueueState) -> None:
        """Take over the marks of a run that died, and apply the requested focus."""
        epic = read_focus(Overlay(queue_state.queue)).epic
        # in the rows and in the last run's state: set by a run that died; only in the rows: by a person
        if epic and epic == self.work.state.focused_epic:
            self.ours = epic
        elif epic:
            self.work.state.focused_epic = epic
            self.work.teller.verbose(f"focus on {called(epic)} was set before this run and stays")
        else:
            self.work.state.focused_epic = ""
        wanted = self.work.options.focus
        if wanted and wanted != epic:
            self._enter(queue_state, wanted, asked=True)

    def order(self, queue_state: QueueState) -> None:
        """Update the focus for the queue: end it, repair it, or enter one."""
        if held := set(undecided(queue_state.queue)):
            waits = set(self.work.kept_back(queue_state.queue))
            # answered or changed meanwhile: those are free before ddx picks
            if held - waits:
                self.keep_back(held & waits)
                queue_state = self.work.look()
        overlay = Overlay(queue_state.queue)
        focus = read_focus(overlay)
        if focus.epic and (overlay.status(focus.epic) in TERMINAL or self._finished(overlay, focus.epic)):
            if not self._review_first(queue_state, focus.epic):
                self._close(queue_state, focus.epic)
        elif focus.epic and not self._can_go_on(overlay, focus.epic):
            self.work.teller.always(
                f"epic {called(focus.epic)} has open children but none are eligible — releasing focus"
            )
            self._passed_over.add(focus.epic)
            self._leave(focus.epic)
        elif focus.epic or focus.leftovers:
            self.work.change_steps("focus", "repair the focus", lambda writing, _: plan_upkeep(writing))
            self.work.state.focused_epic = focus.epic
        elif self.work.options.auto_focus:
            self._choose(queue_state)
        self._close_superseded(self.work.look().queue)
        self._close_finished(self.work.look())

    def end(self) -> None:
        """Release what the run's own focus holds."""
        focus = read_focus(Overlay(self.work.look().queue))
        if (focus.epic and focus.epic == self.ours) or (not focus.epic and focus.leftovers):
            self._leave(focus.epic or self.ours)

    def give_back(self) -> None:
        """Release the beads that the run skipped."""
        if undecided(self.work.look().queue):
            self.keep_back(())

    def brief_agent(self, queue_state: QueueState, bead_id: str) -> None:
        """Write stance and context into the description of the bead that ddx picks next, for its agent.

        Approving the dispatch approves this too; a bead whose description cannot be written runs without it.
        """
        work, bead = self.work, queue_state.queue.beads[bead_id]
        text = agent_context(work.project, queue_state.queue, bead, epic=work.state.focused_epic)
        described = with_context(str(bead.document().get("description") or ""), text)
        problem = self._write({bead_id: described}, f"tell the agent of {called(bead_id)} its stance and context")
        if problem:
            work.teller.always(f"{called(bead_id)} runs without HELIX's context: {problem}")
        else:
            work.teller.verbose(
                f"put before the agent of {called(bead_id)}:\n--- context ---\n{text}\n--- end context ---"
            )

    def take_context_back(self) -> None:
        """Remove what `brief_agent` wrote from every description, also after a run that died."""
        beads = self.work.look().queue.beads
        holding_context = [
            bead for bead in beads.values() if CONTEXT_BEGIN.strip("<>").encode() in bead.raw
        ]  # Go escapes angles
        bare = {each.id: with_context(str(each.document().get("description") or ""), "") for each in holding_context}
        if bare:
            problem = self._write(bare, f"remove run context from {named(list(bare))}")
            if problem:
                self.work.teller.always(f"HELIX's context is still in {named(list(bare))}: {problem}")

    def _write(self, descriptions: Mapping[str, str], title: str) -> str:
        """Write descriptions, journalled; return why that failed, or ""."""
        rewritten = [operations.SetFields(bead_id, {"description": text}) for bead_id, text in descriptions.items()]
        try:
            done = self.work.curator.run(rewritten, title=title, kind=PASSING)
        except (DdxError, Conflict, Unreadable) as error:
            return str(error)
        if done.made_anyway:
            return ""
        return str(done.error or "") or "; ".join(refusal.why for refusal in done.plan.refusals)

    def review_first(self, queue_state: QueueState) -> bool:
        """Let a pending review be picked before every other bead (CONTRACT-001); return whether the queue changed.

        One rank where ddx has ranks; else what ddx would pick before the review is held back until it is done.
        """
        work, queue, dialect = self.work, queue_state.queue, queue_state.dialect
        review = work.pending_review(queue)
        ahead = queue.ready[: queue.ready.index(review)] if review else ()
        if not ahead:
            return False
        same = all(queue.beads[each].priority == queue.beads[review].priority for each in ahead)
        if same and dialect is not None and dialect.rank and review not in self._put_first:
            self._put_first.add(review)
            work.change([operations.SetRank(review, top=True)], f"put {called(review)} before the next bead")
            return True
        ahead = tuple(each for each in ahead if each not in self._put_first)
        self._put_first.update(ahead)
        if ahead:
            work.permit(
                "curation", "review first", f"hold back {named(ahead)} until {called(review)} is done?", lasting=True
            )
            self.keep_back({*ahead, *undecided(queue)}, REVIEW_FIRST)
        return bool(ahead)

    def keep_back(self, ids: Iterable[str], reason: str = FOR_DECISION) -> None:
        """Have ddx skip exactly these beads, until a person has decided on them or their record changes.

        Args:
            reason: the reason for those that the run has no reason for yet.
        """
        reasons = self.work.kept_back(self.work.look().queue)
        kept = {bead_id: reasons.get(bead_id, reason) for bead_id in sorted(ids)}
        title = f"skip {named(kept)}" if kept else "release what this run skipped"
        self.work.change_steps(PASSING, title, lambda writing, _: plan_undecided(writing, kept), free=True)

    def keep_held(self, queue: Queue, reasons: Mapping[str, str]) -> bool:
        """Keep workers from exactly these beads, each for its reason, until a person decides; return whether the queue
        changed.
        """
        fresh = {
            bead_id: reason
            for bead_id, reason in reasons.items()
            if bead_id in queue.beads and queue.beads[bead_id].execution_eligible is not False
        }
        if not fresh and held_back(queue).keys() <= reasons.keys():
            return False
        title = f"keep {named(sorted(fresh))} from workers" if fresh else "release what a person decided on"
        done = self.work.change_steps("hold", title, lambda writing, _: plan_holds(writing, reasons), free=not fresh)
        for reason in dict.fromkeys(fresh.values()) if done.entry is not None else ():
            ids = sorted(bead_id for bead_id, why in fresh.items() if why == reason)
            self.work.teller.always(f"keeping workers from {named(ids)}: {reason}")
        return done.entry is not None

    def _choose(self, queue_state: QueueState) -> None:
        """Focus on the epic of the next bead."""
        queue = queue_state.queue
        epic = epic_of(queue, queue.ready[0]) if queue.ready else ""
        if not epic or epic in self._passed_over:
            return
        self._enter(queue_state, epic)

    def _enter(self, queue_state: QueueState, epic: str, *, asked: bool = False) -> None:
        try:
            # planned first without running: its cost decides whether to do it
            planned = self.work.curator.plan_steps(
                "focus", "look at a focus", lambda w, _: plan_focus(w, epic, now_only=True)
            )
        except OperationRefused as error:
            self.work.teller.always(f"no focus on {called(epic)}: {error}")
            self._passed_over.add(epic)
            return
        if not asked and len(planned.steps) > MAX_HELD:
            self.work.teller.always(
                f"no focus on {called(epic)}: it would hold back {counted(len(planned.steps), 'bead')}, each by a "
                "command of its own; "
                f"helix-tui focus {called(epic)} does it all the same"
            )
            self._passed_over.add(epic)
            return
        # The mark in the run's state comes first: if the run dies after marking rows, it is known as their owner.
        self.ours = self.work.state.focused_epic = epic
        self.work.save("curating")
        self.work.change_steps(
            "focus",
            f"focus on {called(epic)}",
            lambda writing, _: plan_focus(writing, epic, now_only=True),
            lasting=True,
        )
        self.work.teller.always(f"focus on epic {called(epic)}")
        self.work.refresh_context(self.work.look())

    def _leave(self, epic: str) -> None:
        self.work.change_steps("focus", "end the focus", lambda writing, _: plan_unfocus(writing), free=True)
        self.work.teller.verbose(f"focus on {called(epic)} ended")
        self.work.state.focused_epic = self.ours = ""
        self.work.save()
        self.work.refresh_context(self.work.look())

    def _finished(self, overlay: Overlay, epic: str) -> bool:
        below = descendants(overlay, epic)
        return not any(overlay.status(bead_id) not in TERMINAL for bead_id in below)

    def _can_go_on(self, overlay: Overlay, epic: str) -> bool:
        """Whether a bead that the epic needs is being worked on, or is ready and not one that the run skips."""
        queue = overlay.queue
        wanted = needed(overlay, epic, descendants(overlay, epic)) - {epic}
        states = {each: queue.state(each) for each in wanted if each in queue.beads}
        skipped = self.work.kept_back(queue)
        return any(state in IN_HAND or (state == "ready" and each not in skipped) for each, state in states.items())

    def _review_first(self, queue_state: QueueState, epic: str) -> bool:
        """Have a finished epic reviewed as a whole before it is closed; return whether the review is pending.

        The review is under the epic, so that the focus allows it and the epic stays open until it is done. If it cannot
        be picked now, the focus moves on, and the epic stays open.
        """
        queue = queue_state.queue
        if not self.work.options.auto_review:
            return False
        standing = injection.standing(queue, injection.REVIEW, epic)
        if not standing and self._was_reviewed(queue, epic):
            return False
        if not standing:
            return bool(self.review_epic(epic))
        return queue.state(standing) in FOR_A_WORKER

    @staticmethod
    def _was_reviewed(queue: Queue, epic: str) -> bool:
        """Whether a review of the epic as a whole has ended."""
        records = (injection.injected_record(bead) for bead in queue.beads.values() if bead.injected)
        return any(
            record["triggering_bead"] == epic
            and record["trigger_source"] == "post-epic-close"
            and record["status"] in TERMINAL
            for record in records
        )

    def _close(self, queue_state: QueueState, epic: str) -> None:
        """Close the focused epic once it is done and, if required, reviewed; release what was held."""
        if queue_state.queue.beads[epic].status not in TERMINAL:
            self.work.teller.always(f"epic {called(epic)} has no remaining open children — closing epic")
            self.work.change([operations.CloseBead(epic)], f"close the epic {called(epic)}")
        self._leave(epic)

    def review_epic(self, epic: str) -> str:
        """Inject a review of an epic as a whole, against its specification, whatever its size; return its bead."""
        work = self.work
        queue = work.look().queue
        if not work.options.auto_review or injection.standing(queue, injection.REVIEW, epic):
            return ""
        scope = queue.beads[epic].spec_id or "last-commit"
        trigger = injection.Trigger("post-epic-close", work.state.completed_cycles, epic, "re-run-with-explicit-scope")
        reviewer = work.options.agent_choice.reviewer
        operation = injection.review_bead(queue, trigger, scope=scope, epic=epic, reviewer=reviewer)
        return inject(work, operation, injection.REVIEW, trigger)

    def _close_superseded(self, queue: Queue) -> None:
        """Close open beads whose replacement is closed: ddx of April never does, later releases not always."""
        done = [
            bead.id
            for bead in queue.beads.values()
            if bead.status == "open" and (by := bead.superseded_by.strip()) and by in queue.beads
            if queue.beads[by].status == "closed" and bead.id not in self._passed_over
            if not HOLDING_LABELS & set(bead.labels)
        ]
        self._passed_over.update(done)
        if done:
            self.work.change(map(operations.CloseBead, done), f"close {named(done)}, superseded by finished work")

    def _close_finished(self, queue_state: QueueState) -> None:
        """Close epics whose children are all done, in this run or an earlier one: ddx of April never does.
        Those that ddx of August closed are reviewed as well.
        """
        queue = queue_state.queue
        closed = set[str]()
        for epic in sorted(bead.id for bead in queue.beads.values() if is_finished_epic(queue, bead)):
            # the epic stays open until its review, a bead under it, is done
            if self._review_first(queue_state, epic):
                continue
            self.work.change([operations.CloseBead(epic)], f"close the epic {called(epic)}")
            self.work.teller.always(f"epic {called(epic)} has no remaining open children — closing epic")
            closed.add(epic)
        self._unfinished -= closed
        self.review_closed()
        self._unfinished = {
            bead.id
            for bead in queue.beads.values()
            if bead.status not in TERMINAL and bead.id not in closed and looks_like_epic(bead)
        }

    def review_closed(self) -> None:
        """Have epics reviewed that ddx closed by itself since the last look, after a bead of this run."""
        queue = self.work.look().queue
        overlay = Overlay(queue)
        for epic in sorted(self._unfinished):
            done = epic in queue.beads and queue.beads[epic].status == "closed"
            if done and descendants(overlay, epic) & self.work.executed and not self._was_reviewed(queue, epic):
                self.review_epic(epic)


def epic_of(queue: Queue, bead_id: str) -> str:
    """The nearest unfinished epic above a bead, or ""."""
    above = (queue.beads[each] for each in queue.graph.lineage(bead_id) if each != bead_id)
    return next((bead.id for bead in above if looks_like_epic(bead) and bead.status not in TERMINAL), "")


def inject(work: LoopWork, operation: operations.Operation, kind: str, trigger: injection.Trigger) -> str:
    """Inject a supervisory bead and record it; return its id."""
    done = work.change([operation], f"inject {kind} for {called(trigger.bead_id)}", action="injection")
    made = next(iter(done.created.values()), "")
    if not made:
        return ""
    counts = work.state.supervisory_injection_count
    counts[kind] = counts.get(kind, 0) + 1
    work.state.injected.append(
        {
            "id": made,
            "type": kind,
            "triggering_cycle": trigger.cycle,
            "triggering_bead": trigger.bead_id,
            "trigger_source": trigger.source,
            "remediation": trigger.remediation or "verify-governance-diff",
            "created_at": work.now,
        }
    )
    work.save()
    work.teller.always(f"injected {kind} {called(made)} for {called(trigger.bead_id)}")
    return made
