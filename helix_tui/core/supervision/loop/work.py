"""What all parts of a run share: its options, its stop reason, and the only ways in which it changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.client import MALFORMED, MISSING, TOO_OLD, DdxError
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.steps import PlanBuilder
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import format_instant, midnight, now_ns
from helix_tui.core.supervision.decide.check import Checker
from helix_tui.core.supervision.run_state.budget import (
    NO_BUDGET,
    Account,
    Budget,
    BudgetUse,
    Spending,
    budget_in_force,
    budget_uses,
)
from helix_tui.core.supervision.run_state.run_control import Control
from helix_tui.core.supervision.run_state.run_log import Teller
from helix_tui.core.supervision.run_state.state import REASONS, RunState, denied_runs, save_state
from helix_tui.core.supervision.signals.orphans import REVIEW, injected_type
from helix_tui.core.supervision.signals.questions import REVIEW_FIRST, WAITS, OpenQuestions
from helix_tui.core.supervision.signals.responses import ApprovalNeeded, Autonomy, GuardedAction, Level
from helix_tui.core.supervision.signals.tried import Tried, still_tried
from helix_tui.core.supervision.signals.undecided import FOR_DECISION, held_for
from helix_tui.core.supervision.stages.delegate import NOBODY, AgentChoice, Delegate
from helix_tui.core.supervision.stages.injection import THRESHOLD
from helix_tui.core.supervision.stages.results import LoopResult
from helix_tui.core.supervision.stages.stage_run import refresh_context


class RunOptions(Struct, frozen=True):
    """The options of a run."""

    max_cycles: int = 0
    """Completed cycles after which it stops; 0: none."""
    review_every: int = 15
    """Completed cycles after which an alignment bead is injected; 0: never."""
    review_threshold: int = THRESHOLD
    auto_align: bool = True
    auto_review: bool = True
    autonomy: Level = "medium"
    focus: str = ""
    """The epic to begin with."""
    auto_focus: bool = True
    batch: tuple[str, ...] = ()
    """Its beads: it stops once none of them is ready or running; empty: all."""
    agent_choice: AgentChoice = NOBODY
    context: bool = False
    """Whether to add stance and context to the description of the bead that ddx picks next, while it runs."""
    budget: Budget = NO_BUDGET
    """The budget given at the start; missing limits come from the project's file, then the settings."""
    default_budget: Budget = NO_BUDGET
    """The budget of the settings."""


class Stop(Struct, frozen=True):
    """Why a run ended."""

    reason: str
    detail: str = ""
    code: int = 0
    command: str = ""
    """The exact command to continue, if there is one."""

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return REASONS.get(self.reason, self.reason)


class Stopped(Exception):
    """Ends a run from inside."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


BlockerReport = Callable[["LoopWork", QueueState], tuple[list[dict[str, Any]], list[str]]]
"""What is stuck at the end of a run, as records and as lines; `statements` words it."""


class LoopWork(Struct):
    """The shared state of one run."""

    project: Project
    curator: Curator
    delegate: Delegate
    options: RunOptions
    state: RunState
    teller: Teller
    questions: OpenQuestions
    autonomy: Autonomy
    control: Control
    checker: Checker
    account: Account
    blockers: BlockerReport
    clock: Callable[[], int] = now_ns
    affected: set[str] = field(default_factory=set)
    """Beads whose outcome this run escalated: it continues without them."""
    without_document: dict[str, str] = field(default_factory=dict)
    """Beads that the run skips because their governing document does not exist, and its name."""
    executed: set[str] = field(default_factory=set)
    """Beads that ddx executed in this run."""

    @property
    def now(self) -> str:
        """The current time as text."""
        return format_instant(self.clock())

    def look(self, records: AttemptIndex | None = None) -> QueueState:
        """The current queue, and its evidence into ``records`` if given.

        Raises:
            Stopped: it cannot be read; nothing is changed after a failed read.
        """
        try:
            return self.curator.look(records)
        except Unreadable as error:
            raise Stopped(Stop("unreadable_tracker", str(error), 1)) from None

    def save(self, phase: str = "") -> None:
        """Save the state.

        Raises:
            OSError: it cannot be saved.
        """
        if phase:
            self.state.phase = phase
        self.state.updated_at = self.now
        self.state.parallel_run_denied_count = denied_runs(self.project)
        save_state(self.project, self.state)

    def change(self, operations: Iterable[Operation], title: str, *, action: GuardedAction = "curation") -> Result:
        """Change the queue, journalled.

        Raises:
            Stopped: it failed, or needs a person's approval first.
        """
        wanted = list(operations)
        self.permit(action, title, f"{title}?")
        return self._reported(lambda: self.curator.run(wanted, title=title), title)

    def change_steps(
        self,
        kind: str,
        title: str,
        make: Callable[[PlanBuilder, QueueState], None],
        *,
        free: bool = False,
        lasting: bool = False,
    ) -> Result:
        """Like `change`, for steps planned on the then current queue. Asks only if there are some and they are not
        ``free``: what was held back with approval is released without. A ``lasting`` approval holds for later runs too.
        """
        if free:
            return self._reported(lambda: self.curator.run_steps(kind, title, make), title)
        if self.options.autonomy == "low":
            planned = self.curator.plan_steps(kind, title, make)
            # no approval for nothing
            if not planned.steps:
                return Result(planned)
        self.permit("curation", title, f"{title}?", lasting=lasting)
        return self._reported(lambda: self.curator.run_steps(kind, title, make), title)

    def permit(self, action: GuardedAction, about: str, text: str, *, lasting: bool = False) -> None:
        """Continue, or ask first, with titles beside the ids in ``text``.

        Raises:
            Stopped: a person must approve it first, or said no.
        """
        # no other level asks
        if self.options.autonomy == "low":
            text = with_titles(text, self.look().queue.beads)
        try:
            self.autonomy.permit(action, about, text, lasting=lasting)
        except ApprovalNeeded as need:
            how = "refused" if need.refused else f"helix-tui input --answer {need.question_id} yes"
            raise Stopped(Stop("approval", f"{need} ({how})", 0, "" if need.refused else how)) from None

    def awaiting(self) -> set[str]:
        """Beads that wait for a person's decision."""
        if self.autonomy.escalates:
            return set(self.affected)
        return {each.bead_id for each in self.questions.open() if each.bead_id and each.kind != "approval"}

    def tried(self, queue: Queue) -> dict[str, Tried]:
        """Beads that this run tried and left open, unchanged since."""
        return {each.bead_id: each for each in still_tried(self.state.tried, queue)}

    def kept_back(self, queue: Queue) -> dict[str, str]:
        """Beads that the run continues without, and what each waits for."""
        waits = {
            bead_id: f"{WAITS}its document {name}, which is missing" for bead_id, name in self.without_document.items()
        }
        if self.pending_review(queue):
            waits |= dict.fromkeys(held_for(queue, REVIEW_FIRST), REVIEW_FIRST)
        tried = {bead_id: f"tried: {each.why}" for bead_id, each in self.tried(queue).items()}
        return waits | tried | dict.fromkeys(self.awaiting(), FOR_DECISION)

    def pending_review(self, queue: Queue) -> str:
        """The injected review that a worker could pick now and that this run does not skip, or ""."""
        skipped = {*self.tried(queue), *self.awaiting()}
        reviews = (each for each in queue.ready if each not in skipped and injected_type(queue.beads[each]) == REVIEW)
        return next(reviews, "") if self.options.auto_review else ""

    def judged(self, results: Iterable[LoopResult], since: int = 0) -> tuple[LoopResult, ...]:
        """The results with the verdict on each attempt, from ddx's current records.

        The loop's output about an attempt is only a hint until its records exist.

        Args:
            since: instant at which the turn began, for results that name no attempt.

        Raises:
            Stopped: the tracker cannot be read.
        """
        judged = tuple(results)
        if not judged:
            return ()
        records, now = self._current_records(), self.clock()
        return tuple(replace(each, judged=records.judged(each.piece(now), since)) for each in judged)

    def _current_records(self) -> AttemptIndex:
        """Every attempt of the project."""
        records = self.checker.records = self.checker.records or AttemptIndex.of(self.project)
        self.look(records)
        return records

    def budget_uses(self) -> tuple[BudgetUse, ...]:
        """The use of the current budget, by this run and by everyone today; its file may have changed."""
        budget = budget_in_force(self.project, self.options.budget, self.options.default_budget)
        self.state.budget = budget.record()
        run = Spending(self.state.sums, self.state.attempted_cycles)
        day = Spending()
        # only a daily limit needs every attempt's records
        if budget.day:
            records = self._current_records()
            book, start = records.book, midnight(self.clock())
            day = Spending(book.spent_since(start), book.begun_since(start))
        return budget_uses(budget, run=run, day=day)

    def refresh_context(self, queue_state: QueueState) -> None:
        """Rewrite the context file."""
        refresh_context(self.project, queue_state.queue, epic=self.state.focused_epic)
        self.teller.verbose("context refreshed")

    def _reported(self, do: Callable[[], Result], title: str) -> Result:
        try:
            done = do()
        except DdxError as error:
            raise Stopped(stop_of(error, "curation_failed")) from None
        except Conflict as error:
            # The same bead was changed at the same time; the next turn looks again.
            self.teller.verbose(f"{title}: changed meanwhile by somebody else: {error}")
            raise Retry from None
        if done.error is not None:
            raise Stopped(stop_of(done.error, "curation_failed"))
        for refusal in done.plan.refusals:
            self.teller.verbose(f"{title}: not done: {refusal.why}")
        for problem in done.problems:
            self.state.problems.append(problem)
            self.teller.always(f"{title}: {problem}")
        return done


class Retry(Exception):
    """The queue was changed at the same moment: look again and continue."""


def stop_of(error: DdxError, otherwise: str) -> Stop:
    """The stop for an error of ddx."""
    reasons = {MISSING: "missing_binary", TOO_OLD: "too_old", MALFORMED: "malformed_output"}
    reason = reasons.get(error.exit_code, otherwise)
    # a timeout has no separate exit code: only the client's message shows it
    if reason == otherwise and "no answer" in error.message:
        reason = "timeout"
    return Stop(reason, f"{error.message}; {error.advice}", error.exit_code)


def failure_class(stop: Stop) -> str:
    """The class of failed delegations for a stop (docs/formats/helix.md §3.12)."""
    classes = {
        "missing_binary": "missing_binary",
        "too_old": "too_old",
        "malformed_output": "malformed_json",
        "timeout": "timeout",
    }
    return classes.get(stop.reason, "other")
