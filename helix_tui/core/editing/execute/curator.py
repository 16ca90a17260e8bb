"""The one way by which curation changes anything: plan, write down, run ddx, look, write down what came.

Nothing is believed of a command but what the rows show afterwards. One process writes at a time (`gate`); the
journal knows of every command before it runs. Call it from one worker thread, never from the screen's.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims, Era, Queue, Rule, classify, tracker_era
from helix_tui.core.beads.tracker import Tracker, TrackerReader
from helix_tui.core.ddx.client import Ddx, DdxError, last_error
from helix_tui.core.ddx.dialect import Dialect, Remark, Shut, difference, rule_for, shut
from helix_tui.core.ddx.names import Era as Vocabulary
from helix_tui.core.ddx.runs.running import Run, RunReader, beads_at_work
from helix_tui.core.editing.execute.gate import (
    Executable,
    WriteGate,
    beads_in_entries,
    dialect_for,
    hook_warnings,
    interrupted,
    operation_record,
    readiness_changes,
    require_same_plan,
)
from helix_tui.core.editing.execute.reconciliation import (
    SettledChange,
    StepsRun,
    changed_rows,
    created_bead,
    irreversible_changes,
    lines_dropped,
    record_of,
    settle,
    steps_of,
    unread_warning,
    unreported_creations,
    with_real_ids,
)
from helix_tui.core.editing.journal import Journal, JournalEntry, JournalHistory, Values, Who, edits_of
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.plan.planner import Plan, plan, plan_back, same_commands, values_before, way_back
from helix_tui.core.editing.steps import (
    CommandStep,
    Conflict,
    OperationRefused,
    Overlay,
    PlanBuilder,
    PlanChanged,
    called,
    differences,
    preconditions,
)
from helix_tui.core.editing.undo import NotUndoable, UndoPlan, Unreadable, operations_of, plan_undo
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import now_ns

_AGENT_SIGNS = ("DDX_AGENT_NAME", "CLAUDECODE", "CODEX_SANDBOX")
"""Environment of a program that an agent started."""


class QueueState(Struct, frozen=True):
    """The tracker as it stands, judged."""

    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...] = ()
    dialect: Dialect | None = None
    """What the installed ddx does, whose rule judged the queue if it is proven; None where there is none."""

    @property
    def shut(self) -> Shut | None:
        """Why the installed ddx would refuse every command here; None where it would not."""
        return shut(self.tracker.beads, self.dialect)

    @property
    def difference(self) -> Remark | None:
        """What to know where another release wrote the tracker than the one at hand."""
        return difference(self.tracker.beads, self.dialect)

    @property
    def busy(self) -> frozenset[str]:
        """Beads that a live worker is on, by more than a claim."""
        return frozenset(
            run.bead_id for run in self.runs if run.live and run.bead_id and run.source in ("run-state", "sidecar")
        )

    def alive(self, bead_id: str) -> bool:
        """Whether somebody has this bead who is not known to be dead."""
        return any(run.bead_id == bead_id and run.verdict != "dead" for run in self.runs)


class Result(Struct, frozen=True):
    """What a call did."""

    plan: Plan
    entry: JournalEntry | None = None
    """Its entry in the journal; None where there was nothing to do."""
    newly_ready: tuple[str, ...] = ()
    newly_blocked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a hook of the project warned of while the commands went through."""
    error: DdxError | None = None
    """The command that failed; what ran before it stands in the entry."""
    created: Mapping[str, str] = {}
    """Stand-in -> id of each bead that was made."""
    ran: int = 0
    """How many of the plan's commands succeeded."""

    @property
    def made_anyway(self) -> bool:
        """Whether all that was wanted stands though a command failed: nobody should run that one again."""
        return self.error is not None and self.entry is not None and self.entry.result == "done"


class Curator:
    """Changes one project's queue.

    Attributes:
        project: which.
        gate: what says whether anything may be written.
        journal: where it is written down.
        progress: told before each command (how many ran, of how many); where it answers False, no further
            command runs.
    """

    def __init__(
        self,
        project: Project,
        executable: Callable[[Vocabulary], Executable],
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
        self.progress: Callable[[int, int], bool | None] | None = None
        self._find = executable
        self._executable: Executable | None = None
        self.at_hand: Dialect | None = None
        self._warnings: list[str] = []
        """What the project's own hooks warned of since the last change began."""
        self._era = era
        self._as_of = as_of
        self._env = dict(os.environ if env is None else env)
        self._who = who
        self._reader = TrackerReader(project.beads_file)
        self._runs = RunReader(project, env)

    def look(self) -> QueueState:
        """The queue as it stands now.

        Raises:
            Unreadable: there is none, or it cannot be read.
        """
        tracker = self._reader.read()
        if tracker.missing and not self.project.ddx_dir.is_dir():
            raise Unreadable(f"there is no queue at {called(str(self.project.beads_file))}")
        if tracker.problem:
            raise Unreadable(tracker.problem)
        now = self._as_of()
        runs = self._runs.find(tracker.beads, now, edits=edits_of(self.journal.look()))
        claims = Claims(
            leases=self._runs.fresh_leases(now),
            running=beads_at_work(runs),
            origin_head=self.project.origin_head() or "",
        )
        queue = classify(tracker.beads, now=now, era=self._judging(tracker), claims=claims)
        return QueueState(tracker, queue, runs, self.at_hand)

    def _judging(self, tracker: Tracker) -> Era | Rule:
        """By whose rule the rows are judged: that of the installed ddx, else of who wrote them."""
        self.at_hand = None
        if self._era != "auto":
            return self._era
        era = tracker_era(tracker.beads)
        try:
            executable = self.executable(era)
            found = dialect_for(executable, fallback=era)
        except DdxError:  # whoever writes is told
            return "auto"
        if not executable.embedded:
            self.at_hand = found
        return rule_for(self.at_hand)

    def dialect(self, queue: Queue) -> Dialect:
        """What the ddx that writes for us understands; asked once.

        Raises:
            DdxError: the ddx that was asked for is not there.
        """
        era = queue.default_era
        return dialect_for(self.executable(era), fallback=era)

    def executable(self, era: Vocabulary) -> Executable:
        """The program that writes for us, found once."""
        if self._executable is None:
            self._executable = self._find(era)
        return self._executable

    def reader(self, queue: Queue) -> Ddx | None:
        """The ddx at hand as somebody to ask; None where there is none."""
        try:
            return self.executable(queue.default_era).client()
        except DdxError:  # whoever writes is told
            return None

    def plan(self, operations: Iterable[Operation], *, title: str = "") -> Plan:
        """What operations would run on the queue as it stands; touches nothing."""
        queue_state = self.look()
        return plan(operations, queue_state.queue, self.dialect(queue_state.queue), busy=queue_state.busy, title=title)

    def plan_steps(
        self,
        kind: str,
        title: str,
        make: Callable[[PlanBuilder, QueueState], None],
        queue_state: QueueState | None = None,
    ) -> Plan:
        """What `run_steps` would run on the queue as it stands, or as ``queue_state`` shows it; touches nothing."""
        return self._planned(kind, title, make, queue_state or self.look())

    def unread(self, queue_state: QueueState) -> tuple[str, ...]:
        """What is to be said of unreadable lines before a write."""
        executable = self.executable(queue_state.queue.default_era)
        return tuple(unread_warning(queue_state.tracker, executable.embedded))

    def history(self) -> JournalHistory:
        """The journal as it stands."""
        return self.journal.read()

    def run(
        self, operations: Iterable[Operation], *, shown: Plan | None = None, title: str = "", kind: str = ""
    ) -> Result:
        """Do what operations say, on the queue as it stands; those that do not hold are left out and told.

        Args:
            shown: the plan that somebody agreed to: where the queue has changed so that other commands would
                run, nothing is done.
            kind: what the journal calls it; the operations' own where it is empty.

        Raises:
            WritesForbidden: --read-only.
            Conflict: the plan that was shown no longer holds.
        """
        wanted = list(operations)
        with self.gate.open() as lock:
            queue_state = self._settled()
            made = plan(wanted, queue_state.queue, self.dialect(queue_state.queue), busy=queue_state.busy, title=title)
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
    ) -> Result:
        """Run steps that somebody plans on the queue as it stands, as one change.

        Args:
            shown: the plan that somebody agreed to: its commands run, word for word, if the rows that they
                rest on are as they were; else nothing is done.
            again: the steps rest on more than rows (a process, a lease): they are planned once more, and must
                be those that were shown.

        Raises:
            Conflict: the plan that was shown no longer holds.
        """
        with self.gate.open() as lock:
            queue_state = self._settled()
            if shown is not None:
                moved = differences(preconditions(shown.steps), queue_state.queue.beads)
                if moved:
                    raise PlanChanged(moved)
                if again:
                    require_same_plan(self._planned(kind, title, make, queue_state), shown, queue_state.queue)
            return self._execute(shown or self._planned(kind, title, make, queue_state), queue_state, lock)

    def run_as_written(self, args: Sequence[str], *, timeout: float, cap: int) -> Finished:
        """Run a command as somebody wrote it; what it changed in the tracker is journalled afterwards.

        Args:
            timeout: seconds it may take.
            cap: bytes kept of its output.

        Raises:
            WritesForbidden: --read-only.
            DdxError: it cannot be started, or takes too long.
        """
        with self.gate.open() as lock:
            queue_state, began = self._settled(), now_ns()
            executable = self.executable(queue_state.queue.default_era)
            # the program inherits the lock: should we be killed, others wait until it has ended
            finished = executable.attempt(args, timeout=timeout, keep=(lock,), cap=cap)
            after = self.look()
            before, now = changed_rows(queue_state.queue.beads, after.queue.beads)
            beyond = irreversible_changes(queue_state.queue.beads, after.queue.beads, now)
            if now or beyond:
                self._record_passed(args, began, before, now, after, beyond)
        return finished

    def _record_passed(
        self, args: Sequence[str], began: int, before: Values, now: Values, after: QueueState, beyond: tuple[str, ...]
    ) -> None:
        step = record_of(CommandStep(tuple(args), {bead_id: fields or {} for bead_id, fields in now.items()}))
        title = clean_line(" ".join(args), 120)
        entry_id = self.journal.begin(
            at=began, who=self.me, kind="tracker", title=title, steps=[step], operations=[], before=before
        )
        back = way_back(PlanBuilder(Overlay(after.queue), self.dialect(after.queue)), before)
        self._finish(entry_id, SettledChange("done", before, now, replace(back, lost=(*back.lost, *beyond))))

    def recover(self) -> tuple[JournalEntry, ...]:
        """Settle what processes that died left unsettled; call it at the start.

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
        """Take back a change, or the last one of people (of an agent: its own); None where there is none.

        Args:
            shown: the plan that somebody agreed to: where other commands would run by now, none does.

        Raises:
            Conflict: somebody changed since what it would touch; PlanChanged: the plan is another one.
            NotUndoable: no command takes it back.
        """
        with self.gate.open() as lock:
            queue_state = self._settled()
            history = self.journal.read()
            if entry is None:
                entry = next(iter(history.to_undo(self.me)), None)
            else:
                entry = history.root(history.get(entry.id) or entry)
            return None if entry is None else self._take_back(entry, queue_state, lock, "undo", entry, shown)

    def redo(self, entry: JournalEntry | None = None, *, shown: Plan | None = None) -> Result | None:
        """Do again what was taken back, or what was taken back last; None where there is nothing.

        Args:
            shown: the plan that somebody agreed to: where other commands would run by now, none does.

        Raises:
            Conflict: somebody changed since what it would touch; PlanChanged: the plan is another one.
            NotUndoable: it cannot be done again.
        """
        with self.gate.open() as lock:
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
                wanted = operations_of(entry)
            except OperationRefused as error:
                raise NotUndoable(entry, str(error)) from None
            made = plan(
                wanted, queue_state.queue, self.dialect(queue_state.queue), busy=queue_state.busy, title=entry.title
            )
            if made.refusals:
                raise NotUndoable(entry, made.refusals[0].why)
            require_same_plan(made, shown, queue_state.queue)
            return self._execute(made, queue_state, lock, operations=wanted, kind="redo", of=entry.id)

    def restore(self, entry_id: str, *, shown: Plan | None = None) -> Iterator[Result]:
        """Lead back to how things stood right after an entry, change by change, the latest first.

        Changes since are taken back, what was taken back since is done again; it ends at the first command
        that fails.

        Args:
            shown: the plan that somebody agreed to, all changes together: where other commands would run by
                now, it ends before the first of them.

        Raises:
            KeyError: there is no such entry.
            Conflict, NotUndoable: that one cannot; what was done before it stays so.
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
        """What taking back the entries that stand, and doing again the others, would run; touches nothing."""
        queue_state = self.look()
        dialect = self.dialect(queue_state.queue)
        return plan_undo(entries, self.journal.read(), queue_state.queue, dialect, queue_state.busy), queue_state

    def _planned(
        self, kind: str, title: str, make: Callable[[PlanBuilder, QueueState], None], queue_state: QueueState
    ) -> Plan:
        dialect = self.dialect(queue_state.queue)
        writing = PlanBuilder(Overlay(queue_state.queue), dialect, queue_state.busy, refused=queue_state.shut)
        make(writing, queue_state)
        steps, notes = tuple(writing.steps), tuple(dict.fromkeys(writing.notes))
        return Plan(kind, title, steps, notes=notes, back=plan_back(steps, queue_state.queue, dialect))

    def _take_back(
        self, entry: JournalEntry, queue_state: QueueState, lock: int, kind: str, of: JournalEntry, shown: Plan | None
    ) -> Result:
        """Give the rows that an entry changed their values of before."""
        if not entry.standing:
            raise NotUndoable(entry, f"{entry.id} changed nothing that is still there")
        if entry.why_empty:
            raise NotUndoable(entry, entry.why_empty)
        self._check_unchanged(entry, queue_state.queue)
        if queue_state.shut is not None:
            raise NotUndoable(entry, str(queue_state.shut))
        back = way_back(PlanBuilder(Overlay(queue_state.queue), self.dialect(queue_state.queue)), entry.before)
        if back.lost:
            raise NotUndoable(entry, "; ".join(back.lost))
        title = f"{kind} {of.id}: {of.title}"
        made = Plan(kind, title, back.steps, notes=(*back.traces, *self.unread(queue_state)))
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
    ) -> Result:
        if not made.steps:
            return Result(made)
        before = values_before(made.steps, queue_state.queue)
        began = now_ns()
        entry_id = self.journal.begin(
            at=began,
            who=self.me,
            kind=kind or made.kind,
            title=made.title,
            steps=[record_of(step) for step in made.steps],
            operations=[operation_record(operation) for operation in operations],
            before=before,
            of=of,
        )
        self._warnings = []
        done = self._run_steps(made.steps, queue_state, lock)
        ids, error = done.ids, done.error
        after = self.look()
        overlay = Overlay(after.queue)
        # a command may fail after its work: a bead that it made is found by its title and time
        if error is not None:
            known = {*queue_state.queue.beads, *ids.values()}
            ids = {**unreported_creations(began, made.steps[done.ran : done.ran + 1], overlay, known), **ids}
        steps = with_real_ids(made.steps, ids)
        before = {ids.get(bead_id, bead_id): fields for bead_id, fields in before.items()}
        outcome = settle(steps, done.ran, before, overlay, self.dialect(after.queue), unsure=error is not None)
        # any write of ddx drops the lines that are no beads
        gone = lines_dropped(queue_state.tracker, after.tracker)
        if gone:
            outcome = replace(outcome, back=replace(outcome.back, traces=(*outcome.back.traces, *gone)))
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
            warnings=tuple(dict.fromkeys(self._warnings)),
            error=error,
            created=ids,
            ran=done.ran,
        )

    def _run_steps(self, steps: Sequence[CommandStep], queue_state: QueueState, lock: int) -> StepsRun:
        """Run one command after the other, until one fails, somebody stops it, or a row has changed."""
        # found by now, so the era does not matter
        executable = self.executable("head")
        done = StepsRun()
        known = set(queue_state.queue.beads)
        for number, step in enumerate(steps):
            if self.progress is not None and self.progress(number, len(steps)) is False:
                shown = ("ddx", *step.args)
                done.error = DdxError(shown, "stopped on request", "undo reverts what was done")
                return done
            (current,) = with_real_ids([step], done.ids)
            # a bead that is being made has no row to rest on
            before = {bead_id: fields for bead_id, fields in current.before.items() if bead_id != step.creates}
            # read anew before each command: a worker may have written since the last one
            done.moved = differences(before, self._reader.read().beads)
            if done.moved:
                return done
            try:
                finished = executable.run(current.args, keep=(lock,))
            except DdxError as error:
                done.error = error
                return done
            # caught so that what ran is settled and written down before the program ends
            except (KeyboardInterrupt, SystemExit) as stop:
                done.error = interrupted(current, stop)
                return done
            self._warnings += hook_warnings(finished)
            if "Error:" in finished.err:
                done.remarks.append(f"ddx exited with 0 and said: {last_error(finished)}")
            if step.creates:
                made = created_bead(finished.out, self._reader.read(), known)
                if made is None:
                    shown = ("ddx", *current.args)
                    problem = "ddx reported no error, but there is no new bead in the tracker"
                    done.error = DdxError(shown, problem, "look at the tracker, then try again")
                    return done
                done.ids[step.creates] = made
                known.add(made)
            done.ran = number + 1
        return done

    def _settled(self) -> QueueState:
        """The queue as it stands, once what dead processes left is settled. Only inside the gate."""
        queue_state = self.look()
        pending = self.journal.read().pending
        if pending:
            overlay = Overlay(queue_state.queue)
            dialect = self.dialect(queue_state.queue)
            known = beads_in_entries(self.journal.read(), {entry.id for entry in pending})
            for entry in pending:
                steps = steps_of(entry)
                ids = unreported_creations(entry.at, steps, overlay, known)
                known |= set(ids.values())
                before = {ids.get(bead_id, bead_id): fields for bead_id, fields in entry.before.items()}
                outcome = settle(with_real_ids(steps, ids), 0, before, overlay, dialect, unsure=True)
                self._finish(entry.id, outcome, recovered=True)
        return queue_state

    def _finish(self, entry_id: str, outcome: SettledChange, *, error: str = "", recovered: bool = False) -> None:
        result = outcome.result
        # its process died before anything changed: no command of it failed
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
            traces=outcome.back.traces,
            error=error,
            recovered=recovered,
        )

    @property
    def me(self) -> Who:
        """Who makes these changes."""
        kind = self._who
        if kind == "cli" and any(self._env.get(name) for name in _AGENT_SIGNS):
            kind = "agent"
        try:
            user = self._env.get("DDX_AGENT_NAME") or getpass.getuser()
        except (KeyError, OSError):
            user = str(os.getuid())
        return Who(kind, called(user), os.getpid())
