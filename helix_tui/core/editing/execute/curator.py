"""The only way in which the console changes the queue: plan, record, run ddx, read the rows, record the result.

Only the rows read afterwards show what a command did. One process writes at a time (`gate`); the journal records every
command before it runs. Call it from one worker thread, never from the UI thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Era, Queue, Rule, classify
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.client import Ddx, DdxError
from helix_tui.core.ddx.dialect import Dialect, rule_for
from helix_tui.core.ddx.runs.running import QueueReader
from helix_tui.core.editing.differences import Conflict, PlanChanged, differences, preconditions
from helix_tui.core.editing.execute.gate import (
    Executable,
    WriteGate,
    author,
    beads_in_entries,
    dialect_for,
    readiness_changes,
    require_same_plan,
)
from helix_tui.core.editing.execute.gate import QueueState as QueueState
from helix_tui.core.editing.execute.reconciliation import (
    SettledChange,
    changed_rows,
    expected_rewrites,
    irreversible_changes,
    lines_dropped,
    observed_rewrites,
    record_of,
    settle,
    steps_of,
    unread_warning,
    unreported_creations,
)
from helix_tui.core.editing.execute.step_run import Progress, run_steps, with_real_ids
from helix_tui.core.editing.execute.trust import NotAllowed, allow, require_allowed
from helix_tui.core.editing.journal import Journal, JournalEntry, JournalHistory, Rewrite, Who, edits_of
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import (
    Plan,
    plan,
    plan_back,
    rewrites_remain,
    same_commands,
    still_rewritten,
    touched_by,
    values_before,
    way_back,
)
from helix_tui.core.editing.steps import CommandStep, OperationRefused, PlanBuilder
from helix_tui.core.editing.undo import NotUndoable, UndoPlan, Unreadable, operations_of, plan_undo
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_folder
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import now_ns

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.index import AttemptIndex


class Result(Struct, frozen=True):
    """The result of a change."""

    plan: Plan
    entry: JournalEntry | None = None
    """Its entry in the journal; None if there was nothing to do."""
    newly_ready: tuple[str, ...] = ()
    newly_blocked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings of the project's hooks during the commands."""
    error: DdxError | None = None
    """The command that failed; those before it are in the entry."""
    created: Mapping[str, str] = {}
    """Placeholder -> id of each bead created."""
    ran: int = 0
    """How many of the plan's commands succeeded."""

    @property
    def made_anyway(self) -> bool:
        """Whether the change is complete although a command failed: that command need not be repeated."""
        return self.error is not None and self.entry is not None and self.entry.result == "done"


class Curator:
    """Changes one project's queue.

    Attributes:
        project: the project.
        gate: the write lock.
        journal: the journal of changes.
        progress: called before each command with (commands run, total); if it returns False, no further command runs.
    """

    def __init__(
        self,
        project: Project,
        executable: Callable[[], Executable],
        *,
        who: str = "cli",
        read_only: bool = False,
        era: Era = "auto",
        as_of: Callable[[], int] = now_ns,
        env: Mapping[str, str] | None = None,
        waits: Callable[[str], None] | None = None,
    ) -> None:
        self.project = project
        self.gate = WriteGate(project, read_only, waits=waits)
        self.journal = Journal.of(project)
        self.progress: Progress | None = None
        self.asks: Callable[[NotAllowed], bool] | None = None
        """Asks the person at the terminal whether what the repository brings may run."""
        self._allowed = False
        self._find = executable
        self._executable: Executable | None = None
        self.at_hand: Dialect | None = None
        self._era = era
        self._as_of = as_of
        self._env = dict(os.environ if env is None else env)
        self._who = who
        self._reader = QueueReader(project, env=env, edits=lambda _: edits_of(self.journal.look()))

    def look(self, records: AttemptIndex | None = None) -> QueueState:
        """The current queue, and its evidence into ``records`` if given.

        Raises:
            Unreadable: the tracker is missing or cannot be read.
        """
        now = self._as_of()
        reading = self._reader.read(now, records=records)
        tracker = reading.tracker
        if tracker.missing and not is_folder(self.project.ddx_dir):
            raise Unreadable(self.project.no_queue)
        if tracker.problem:
            raise Unreadable(tracker.problem)
        queue = classify(tracker.beads, now=now, era=self._judging(tracker), claims=reading.claims)
        return QueueState(tracker, queue, reading.runs, self.at_hand)

    def _judging(self, tracker: Tracker) -> Era | Rule:
        """The rule that judges the rows: the installed ddx's, else that of the DDx that wrote them."""
        self.at_hand = None
        if self._era != "auto":
            return self._era
        try:
            executable = self.executable()
            dialect = dialect_for(executable)
        except DdxError:  # a write reports the error
            return "auto"
        if not executable.embedded:
            self.at_hand = dialect
        return rule_for(self.at_hand)

    def dialect(self) -> Dialect:
        """The dialect of the ddx that writes; determined once.

        Raises:
            DdxError: the requested ddx does not exist.
        """
        return dialect_for(self.executable())

    def require_allowed(self, *, gated: bool = False) -> None:
        """Ask, or refuse, before anything runs that the repository brings and that the person has not allowed.

        A run checks when it starts, never in its middle; a person's console at each change.

        Raises:
            NotAllowed: what would run.
        """
        if self._allowed and self._who != "human":
            return
        try:
            require_allowed(self.project, gated=gated)
        except NotAllowed as refused:
            if self.asks is None or not self.asks(refused):
                raise
            allow(refused.waiting)
        self._allowed = True

    @contextmanager
    def _opened(self) -> Iterator[int]:
        self.gate.check()
        self.require_allowed()
        with self.gate.open() as lock:
            yield lock

    def executable(self) -> Executable:
        """The program that writes; found once."""
        if self._executable is None:
            self._executable = self._find()
        return self._executable

    def reader(self) -> Ddx | None:
        """A client of the installed ddx for queries; None if there is none."""
        try:
            return self.executable().client()
        except DdxError:  # a write reports the error
            return None

    def plan(self, operations: Iterable[Operation], *, title: str = "") -> Plan:
        """The plan of operations on the current queue; changes nothing."""
        queue_state = self.look()
        return plan(operations, queue_state.queue, self.dialect(), busy=queue_state.busy, title=title)

    def plan_steps(
        self,
        kind: str,
        title: str,
        make: Callable[[PlanBuilder, QueueState], None],
        queue_state: QueueState | None = None,
    ) -> Plan:
        """The plan that `run_steps` would run on the current queue, or on ``queue_state``; changes nothing."""
        return self._planned(kind, title, make, queue_state or self.look())

    def foretell(self, made: Plan, queue_state: QueueState) -> Plan:
        """The plan with what its write would do to the rest of the tracker."""
        if not made.steps:
            return made
        executable = self.executable()
        rewrites = self._rewritten_by(made.steps, queue_state)
        beside = (*unread_warning(queue_state.tracker, executable.embedded), *rewrites_remain(rewrites))
        return replace(made, notes=(*made.notes, *beside), rewrites=rewrites)

    def _rewritten_by(self, steps: Sequence[CommandStep], queue_state: QueueState) -> tuple[Rewrite, ...]:
        dialect = self.dialect()
        return expected_rewrites(queue_state.queue.beads, dialect, touched_by(steps))

    def history(self) -> JournalHistory:
        """The current journal."""
        return self.journal.read()

    def run(
        self, operations: Iterable[Operation], *, shown: Plan | None = None, title: str = "", kind: str = ""
    ) -> Result:
        """Run operations on the current queue; invalid ones are left out and reported.

        Args:
            shown: the confirmed plan: if other commands would run now, nothing is done.
            kind: its kind in the journal; empty for the operations' own.

        Raises:
            WritesForbidden: --read-only.
            Conflict: the confirmed plan is out of date.
        """
        wanted = list(operations)
        with self._opened() as lock:
            queue_state = self._settled()
            made = plan(wanted, queue_state.queue, self.dialect(), busy=queue_state.busy, title=title)
            if shown is not None and not same_commands(made, shown):
                raise PlanChanged(differences(preconditions(shown.steps), queue_state.queue.beads))
            return self._execute(made, queue_state, lock, operations=wanted, kind=kind)

    def run_steps(
        self,
        kind: str,
        title: str,
        make: Callable[[PlanBuilder, QueueState], None],
        *,
        shown: Plan | None = None,
        again: bool = False,
        first: Callable[[QueueState], Plan] | None = None,
    ) -> Result:
        """Run steps as one change, planned by a callable on the current queue.

        Args:
            shown: the confirmed plan: exactly its commands run if their rows are unchanged; else nothing is done.
            again: the steps depend on more than rows (a process, a lease): they are planned again and must equal the
                confirmed ones.
            first: work outside the tracker that the steps depend on, such as a merge: done once the change is in the
                journal, it returns the plan that can run then. If it fails, nothing runs.

        Raises:
            Conflict: the confirmed plan is out of date.
        """
        with self._opened() as lock:
            queue_state = self._settled()
            if shown is not None:
                moved = differences(preconditions(shown.steps), queue_state.queue.beads)
                if moved:
                    raise PlanChanged(moved)
                if again:
                    require_same_plan(self._planned(kind, title, make, queue_state), shown, queue_state.queue)
            made = shown or self._planned(kind, title, make, queue_state)
            return self._execute(made, queue_state, lock, first=first)

    def run_as_written(self, args: Sequence[str], *, timeout: float, cap: int) -> Finished:
        """Run a command given by the user; its changes in the tracker are journalled afterwards.

        Args:
            timeout: time limit in seconds.
            cap: bytes kept of its output.

        Raises:
            WritesForbidden: --read-only.
            DdxError: it cannot be started, or takes too long.
        """
        with self._opened() as lock:
            queue_state, began = self._settled(), now_ns()
            rewrites = self._rewritten_by((), queue_state)
            executable = self.executable()
            # the program inherits the lock: if this process is killed, others wait until it has ended
            finished = executable.attempt(args, timeout=timeout, keep=(lock,), cap=cap)
            after = self.look()
            before, now = changed_rows(queue_state.queue.beads, after.queue.beads)
            beyond = irreversible_changes(queue_state.queue.beads, after.queue.beads, now)
            rewritten = still_rewritten(rewrites, Overlay(after.queue))
            if now or beyond or rewritten:
                back = way_back(PlanBuilder(Overlay(after.queue), self.dialect()), before)
                back = replace(back, lost=(*back.lost, *beyond))
                self._record_passed(args, began, SettledChange("done", before, now, back, rewritten=rewritten))
        return finished

    def _record_passed(self, args: Sequence[str], began: int, outcome: SettledChange) -> None:
        step = CommandStep(tuple(args), {bead_id: fields or {} for bead_id, fields in outcome.after.items()})
        entry_id = self.journal.begin(
            at=began,
            who=self.me,
            kind="tracker",
            title=clean_line(" ".join(args), 120),
            steps=[record_of(step)],
            operations=[],
            before=outcome.before,
        )
        self._finish(entry_id, outcome)

    def recover(self) -> tuple[JournalEntry, ...]:
        """Settle the journal entries of processes that died; call it at the start.

        Returns:
            The entries that were settled.
        """
        before = {entry.id for entry in self.journal.read().pending}
        if not before:
            return ()
        with self.gate.open():
            self._settled()
        return tuple(entry for entry in self.journal.read().entries if entry.id in before and entry.result != "pending")

    def undo(self, entry: JournalEntry | None = None, *, shown: Plan | None = None) -> Result | None:
        """Undo a change, by default the last one made by a person (for an agent: its own last); None if there is none.

        Args:
            shown: the confirmed plan: if other commands would run now, none does.

        Raises:
            Conflict: the fields were changed since; PlanChanged: the plan is different.
            NotUndoable: no command undoes it.
        """
        with self._opened() as lock:
            queue_state = self._settled()
            history = self.journal.read()
            if entry is None:
                entry = next(iter(history.to_undo(self.me)), None)
            else:
                entry = history.root(history.get(entry.id) or entry)
            return None if entry is None else self._take_back(entry, queue_state, lock, "undo", entry, shown)

    def redo(self, entry: JournalEntry | None = None, *, shown: Plan | None = None) -> Result | None:
        """Redo an undone change, by default the last one; None if there is none.

        Args:
            shown: the confirmed plan: if other commands would run now, none does.

        Raises:
            Conflict: the fields were changed since; PlanChanged: the plan is different.
            NotUndoable: it cannot be redone.
        """
        with self._opened() as lock:
            queue_state = self._settled()
            history = self.journal.read()
            if entry is None:
                entry = next(iter(history.to_redo(self.me)), None)
            else:
                entry = history.get(entry.id) or entry
            if entry is None:
                return None
            if not entry.undone_by:
                raise NotUndoable(entry, f"{entry.id} has not been undone")
            undo = history.get(entry.undone_by)
            if undo is None:
                raise NotUndoable(entry, "the journal no longer records how it was undone")
            self._check_unchanged(undo, queue_state.queue)
            if not entry.operations:
                return self._take_back(undo, queue_state, lock, "redo", entry, shown)
            try:
                operations = operations_of(entry)
            except OperationRefused as error:
                raise NotUndoable(entry, str(error)) from None
            made = plan(operations, queue_state.queue, self.dialect(), busy=queue_state.busy, title=entry.title)
            if made.refusals:
                raise NotUndoable(entry, made.refusals[0].why)
            require_same_plan(made, shown, queue_state.queue)
            return self._execute(made, queue_state, lock, operations=operations, kind="redo", of=entry.id)

    def restore(self, entry_id: str, *, shown: Plan | None = None) -> Iterator[Result]:
        """Restore the state right after an entry, change by change, the latest first.

        Later changes are undone, later undos are redone; stops at the first command that fails.

        Args:
            shown: the confirmed plan of all changes: if other commands would run now, it stops before the first of
                them.

        Raises:
            KeyError: there is no such entry.
            Conflict, NotUndoable: one change cannot be undone or redone; those before it stay done.
        """
        entries = self.journal.read().back_to(entry_id)
        planned: dict[str, Plan] = {}
        if shown is not None:
            undo_plan, queue_state = self.plan_undo(entries)
            require_same_plan(Plan("undo", shown.title, undo_plan.steps), shown, queue_state.queue)
            planned = {turn.entry.id: Plan("undo", shown.title, turn.steps) for turn in undo_plan.turns}
        for entry in entries:
            expected = planned.get(entry.id)
            turn = self.undo if entry.standing else self.redo
            result = turn(entry, shown=expected)
            if result is not None:
                yield result
                if result.error is not None or result.problems:
                    return

    def plan_undo(self, entries: Iterable[JournalEntry]) -> tuple[UndoPlan, QueueState]:
        """The plan that would undo the applied entries and redo the others; changes nothing."""
        queue_state = self.look()
        dialect = self.dialect()
        return plan_undo(entries, self.journal.read(), queue_state.queue, dialect, queue_state.busy), queue_state

    def _planned(
        self, kind: str, title: str, make: Callable[[PlanBuilder, QueueState], None], queue_state: QueueState
    ) -> Plan:
        dialect = self.dialect()
        writing = PlanBuilder(
            Overlay(queue_state.queue),
            dialect,
            queue_state.busy,
            claimed=queue_state.claimed,
            refused=queue_state.shut,
        )
        make(writing, queue_state)
        steps, notes = tuple(writing.steps), tuple(dict.fromkeys(writing.notes))
        return Plan(kind, title, steps, notes=notes, back=plan_back(steps, queue_state.queue, dialect))

    def _take_back(
        self, entry: JournalEntry, queue_state: QueueState, lock: int, kind: str, of: JournalEntry, shown: Plan | None
    ) -> Result:
        """Restore the values that an entry changed."""
        if not entry.standing:
            raise NotUndoable(entry, f"{entry.id} changed nothing that is still there")
        if entry.why_empty:
            raise NotUndoable(entry, entry.why_empty)
        self._check_unchanged(entry, queue_state.queue)
        if queue_state.shut is not None and queue_state.shut.bars_changes:
            raise NotUndoable(entry, str(queue_state.shut))
        back = way_back(PlanBuilder(Overlay(queue_state.queue), self.dialect()), entry.before)
        if back.lost:
            raise NotUndoable(entry, "; ".join(back.lost))
        title = f"{kind} {of.id}: {of.title}"
        remain = rewrites_remain(still_rewritten(entry.rewritten, Overlay(queue_state.queue))) if kind == "undo" else ()
        made = self.foretell(Plan(kind, title, back.steps, notes=(*back.traces, *remain)), queue_state)
        require_same_plan(made, shown, queue_state.queue)
        return self._execute(made, queue_state, lock, kind=kind, of=of.id)

    def _check_unchanged(self, entry: JournalEntry, queue: Queue) -> None:
        found = differences(entry.after, queue.beads)
        if found:
            raise Conflict(found, entry)

    def _execute(
        self,
        made: Plan,
        queue_state: QueueState,
        lock: int,
        *,
        operations: Sequence[Operation] = (),
        kind: str = "",
        of: str = "",
        first: Callable[[QueueState], Plan] | None = None,
    ) -> Result:
        if not made.steps:
            return Result(made)
        before = values_before(made.steps, queue_state.queue)
        rewrites = self._rewritten_by(made.steps, queue_state)
        began = now_ns()
        entry_id = self.journal.begin(
            at=began,
            who=self.me,
            kind=kind or made.kind,
            title=made.title,
            steps=[record_of(step) for step in made.steps],
            operations=[operation.record() for operation in operations],
            before=before,
            of=of,
            rewrites=rewrites,
        )
        if first is not None:
            try:
                made = first(queue_state)
            except HelixError as failure:
                self._finish(entry_id, SettledChange("failed"), error=failure.message)
                raise
        executable = self.executable()
        done = run_steps(made.steps, executable, rows=self._reader.rows, lock=lock, progress=self.progress)
        ids, error = done.ids, done.error
        after = self.look()
        overlay = Overlay(after.queue)
        # a command may fail after its work: find a bead it created by title and time
        if error is not None:
            known = {*queue_state.queue.beads, *ids.values()}
            ids = {**unreported_creations(began, made.steps[done.ran : done.ran + 1], overlay, known), **ids}
        steps = with_real_ids(made.steps, ids)
        before = {ids.get(bead_id, bead_id): fields for bead_id, fields in before.items()}
        outcome = settle(steps, done.ran, before, overlay, self.dialect(), unsure=error is not None)
        # any write of ddx drops lines that are not beads
        gone = lines_dropped(queue_state.tracker, after.tracker)
        if gone:
            outcome = replace(outcome, back=replace(outcome.back, traces=(*outcome.back.traces, *gone)))
        rewrites = still_rewritten(rewrites, overlay)
        observed = observed_rewrites(queue_state.queue.beads, after.queue.beads, touched_by(steps), rewrites)
        outcome = replace(outcome, rewritten=(*rewrites, *observed))
        self._finish(entry_id, outcome, error=error.message if error else "")
        if done.moved:
            raise Conflict(done.moved, ran=done.ran, of=len(made.steps))
        newly_ready, newly_blocked = readiness_changes(queue_state.queue, after.queue, steps)
        return Result(
            made,
            self.journal.read().get(entry_id),
            newly_ready=newly_ready,
            newly_blocked=newly_blocked,
            problems=(*outcome.problems, *(done.remarks if outcome.problems else ())),
            warnings=tuple(dict.fromkeys(done.warnings)),
            error=error,
            created=ids,
            ran=done.ran,
        )

    def _settled(self) -> QueueState:
        """The current queue, after settling entries of dead processes. Only inside the gate."""
        queue_state = self.look()
        pending = self.journal.read().pending
        if pending:
            overlay = Overlay(queue_state.queue)
            dialect = self.dialect()
            known = beads_in_entries(self.journal.read(), {entry.id for entry in pending})
            for entry in pending:
                steps = steps_of(entry)
                ids = unreported_creations(entry.at, steps, overlay, known)
                known |= set(ids.values())
                before = {ids.get(bead_id, bead_id): fields for bead_id, fields in entry.before.items()}
                outcome = settle(with_real_ids(steps, ids), 0, before, overlay, dialect, unsure=True)
                outcome = replace(outcome, rewritten=still_rewritten(entry.rewritten, overlay))
                self._finish(entry.id, outcome, recovered=True)
        return queue_state

    def _finish(self, entry_id: str, outcome: SettledChange, *, error: str = "", recovered: bool = False) -> None:
        result = outcome.result
        # its process died before anything changed: none of its commands failed
        if recovered and result == "failed":
            result = "not_done"
        self.journal.finish(
            entry_id,
            at=now_ns(),
            result=result,
            before=outcome.before,
            after=outcome.after,
            inverse=[("ddx", *step.args) for step in outcome.back.steps],
            undoable=bool(outcome.after) and not outcome.back.lost,
            why_not="; ".join(outcome.back.lost),
            traces=(*outcome.back.traces, *rewrites_remain(outcome.rewritten)),
            error=error,
            recovered=recovered,
            rewritten=outcome.rewritten,
        )

    @property
    def me(self) -> Who:
        """The author of these changes."""
        return author(self._who, self._env)
