"""Find in the background what a person should know besides the queue itself: drift, orphaned claims, the focus.

`BackgroundMonitor` runs in its own thread whenever the queue or the journal changes, and periodically (a claim becomes
an orphan with time alone). Nothing waits for it. Findings about a bead are cached while its record is unchanged, so
that a look at ten thousand beads takes a few milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import DRIFTED
from helix_tui.core.beads.tracker import Archived, find_archived
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.dialect import dialect_or_family
from helix_tui.core.ddx.documents.source import GoverningDocuments
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.editing.execute.gate import GateBusy, WriteGate, WritesForbidden
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.editing.kinds.eligibility_hold import held_back, plan_holds
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder, called
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.files import Folder, stamp_of
from helix_tui.core.ground.merge_trial import MergeTrials, TriedMerge
from helix_tui.core.ground.processes.threads import keep_at
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import now_ns
from helix_tui.core.supervision.decide.check import DocumentFacts, StatusSummary, take_status_summary
from helix_tui.core.supervision.decide.needs import (
    Snooze,
    SplitNeeds,
    needs_of,
    read_snoozes,
    split_snoozed,
    waiting_lessons,
)
from helix_tui.core.supervision.run_state.budget import NO_BUDGET, Budget
from helix_tui.core.supervision.signals.drift import Drift, DriftWatch
from helix_tui.core.supervision.signals.focus import (
    Focus,
    plan_upkeep,
    read_focus,
    stale,
)
from helix_tui.core.supervision.signals.orphans import Orphan, find_left
from helix_tui.core.supervision.signals.questions import read_questions
from helix_tui.core.supervision.signals.tried import still_tried
from helix_tui.core.supervision.stages.landing import kept_refs

if TYPE_CHECKING:
    from helix_tui.core.memory.reports import Proposal

EVERY_S = 60.0
"""How often it looks when nothing changes."""

DOCUMENTS_S = 60.0
"""How long a reading of the documents and of git is valid."""

POLL_S = 1.0
"""How often it checks whether the loop has written anything, and, once nothing was new for as many checks as
`BRISK_CHECKS`, how much longer it waits."""
BRISK_CHECKS, RESTING_POLL_S = 30, 4.0

REST_S = 0.1
"""Seconds left for the screen to show news before it looks."""

WATCHED = (
    "run-state.json",
    "budget.json",
    "questions.json",
    "loop-request.json",
    "helix.pid",
    "snoozed.json",
    "helix.db",
    "helix.db-wal",
)
"""Files of HELIX's; a change in one of them is news."""

MIND_AFTER = 3
"""Failures in a row after which the focus is no longer updated automatically."""

MAX_AUTO_UPDATES = 20
"""Maximum new beads for which the focus is updated automatically; a person looks at more first."""

News = tuple[QueueState, JournalHistory, AttemptBook]
"""What a look is made of."""


class Concerns(Struct, frozen=True):
    """The findings of one look."""

    drift: tuple[Drift, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    dead: tuple[Orphan, ...] = ()
    """Claims of dead processes that ddx still honours."""
    focus: Focus = field(default_factory=Focus)
    unminded: tuple[str, ...] = ()
    """Beads that the focus should hold back or release, but does not."""
    minded: tuple[str, ...] = ()
    """Beads just held back or released to keep the focus up to date."""
    trouble: str = ""
    """Why the focus could not be updated or the drift not saved, in one sentence."""
    archived: Mapping[str, Archived] = {}
    """Beads of the archive that others wait on."""
    status_summary: StatusSummary = field(default_factory=StatusSummary)
    """The state of the work and the next action."""
    lessons: tuple[Proposal, ...] = ()
    """Pending lessons."""
    snoozes: Mapping[str, Snooze] = {}
    """Needs that were put off."""
    merges: Mapping[str, TriedMerge] = {}
    """Attempt -> whether its kept change would merge into the branch, where git can tell."""


def needs_now(project: Project, snapshot: QueueState, attempts: AttemptBook, found: Concerns, now: int) -> SplitNeeds:
    """Everything that waits for a person, and what is put off: the one list of the console and of `needs`."""
    every = read_questions(project.helix_dir / "questions.json")
    # the findings may be a second old: what was asked or decided since is not listed beside its question
    known = {question.key for question in every if question.answered_at or not question.answered}
    needs = needs_of(
        snapshot.queue,
        snapshot.runs,
        snapshot.tracker,
        drift=found.drift,
        orphans=found.orphans,
        unminded=found.unminded,
        epic=found.focus.epic,
        questions=every,
        unasked=[each for each in found.status_summary.unasked if each.key not in known],
        shut=snapshot.shut,
        stoppage=found.status_summary.stoppage,
        dead=found.dead,
        archived=found.archived,
        attempts=attempts,
        tried=still_tried(found.status_summary.run.state.tried, snapshot.queue),
        lessons=found.lessons,
        budgets=found.status_summary.budget_uses(attempts, now),
        lands_kept=snapshot.dialect is not None and snapshot.dialect.lands_kept,
        merges=found.merges,
    )
    return split_snoozed(needs, found.snoozes, now)


class LessonReader:
    """The pending lessons, read again when the memory's files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: tuple[object, tuple[Proposal, ...]] = (None, ())

    def read(self) -> tuple[Proposal, ...]:
        """Pending lessons, newest first."""
        stamps = tuple(stamp_of(self._project.helix_dir / name) for name in ("helix.db", "helix.db-wal"))
        if stamps != self._known[0]:
            self._known = (stamps, waiting_lessons(self._project))
        return self._known[1]


class BackgroundMonitor:
    """Monitors one project. `look` is for its own thread; the other methods may be called from any thread.

    Args:
        curator: makes the changes that the focus needs; None if it may only look.
        tell: called in its thread with the findings whenever they differ from the last.
        default_budget: the budget of a run and a day from the settings.
    """

    def __init__(
        self,
        project: Project,
        tell: Callable[[Concerns], None],
        *,
        curator: Curator | None = None,
        clock: Callable[[], int] = now_ns,
        default_budget: Budget = NO_BUDGET,
    ) -> None:
        self.project = project
        self.concerns = Concerns()
        self._tell = tell
        self._curator = curator
        self._clock = clock
        # a look gives way to a concurrent writer; an acknowledgement waits for its turn
        self._drift = DriftWatch(project, WriteGate(project, curator is None, patience_s=0.0))
        self._patient = DriftWatch(project, WriteGate(project, curator is None))
        self._merges = MergeTrials(project.root)
        self._news: News | None = None
        self._wake = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._seen_by_person: list[str] = []
        self._lessons = LessonReader(project)
        self._governing = GoverningDocuments(project, max_age_s=DOCUMENTS_S)
        self._documents = DocumentFacts(self._governing, DOCUMENTS_S)
        self._default_budget = default_budget

    def start(self) -> None:
        """Start the monitor's thread, which nothing waits for."""
        self._thread = threading.Thread(
            target=keep_at, args=(self._run, self._stopped_within), name="helix-lookout", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the monitor."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def see(self, queue_state: QueueState, history: JournalHistory, attempts: AttemptBook) -> None:
        """Pass a newer state to the monitor."""
        with self._wake:
            self._news = (queue_state, history, attempts)
            self._wake.notify_all()

    def acknowledge(self, ids: Iterable[str]) -> None:
        """Acknowledge the drift of these beads."""
        with self._wake:
            self._seen_by_person += ids
            self._wake.notify_all()

    def look(self, queue_state: QueueState, history: JournalHistory, attempts: AttemptBook) -> Concerns:
        """Find everything in a state at the current time; record new beads, and update the focus of a few."""
        trouble = ""
        try:
            drift = self._drift.check(queue_state.queue.beads, history)
            if self._curator is not None:
                drift = self._drift.settle(queue_state.queue.beads, history)
        except GateBusy:
            pass  # the queue is being changed: its result will be looked at again
        except OSError as error:
            trouble = f"what was seen cannot be kept: {error.strerror or error}"
        left = find_left(queue_state.runs, queue_state.queue, now=self._clock())
        focus = read_focus(Overlay(queue_state.queue))
        unminded = _unminded(queue_state, focus)
        minded: tuple[str, ...] = ()
        few = 0 < len(unminded) <= MAX_AUTO_UPDATES
        if few and self._curator is not None and self._failures < MIND_AFTER:
            minded, why = self._mind(self._curator)
            unminded, trouble = (() if minded else unminded), why or trouble
        status_summary = take_status_summary(
            queue_state,
            self.project,
            attempts,
            drift=drift,
            orphans=left.orphans,
            dead=left.honoured,
            documents=self._documents,
            default_budget=self._default_budget,
        )
        missing = {edge.missing for edge in queue_state.queue.graph.dangling}
        archived = find_archived(self.project.archive_file, missing)
        return Concerns(
            drift,
            left.orphans,
            left.honoured,
            focus,
            unminded,
            minded,
            trouble,
            archived,
            status_summary,
            self._lessons.read(),
            read_snoozes(self.project),
            self._merges.look(kept_refs(queue_state.queue, attempts)),
        )

    def refresh(self) -> Concerns:
        """Read lessons and snoozes at once; thread-safe."""
        self.concerns = replace(self.concerns, lessons=self._lessons.read(), snoozes=read_snoozes(self.project))
        return self.concerns

    def _mind(self, curator: Curator) -> tuple[tuple[str, ...], str]:
        """Update the focus as it was set; return (beads, why it failed or "")."""
        try:
            # a busy gate does not count as a failure (MIND_AFTER): the next look tries again
            done = curator.run_steps("focus", "keep the focus", lambda writing, _: plan_upkeep(writing))
        except GateBusy:
            return (), ""
        except (DdxError, Conflict, Unreadable, OperationRefused, OSError) as error:
            self._failures += 1
            return (), f"the focus could not be kept: {error}"
        if done.error is not None:
            self._failures += 1
            return (), f"the focus could not be kept: {done.error.message}"
        self._failures = 0
        return (tuple(done.entry.after) if done.entry is not None else ()), ""

    def _acknowledge(self, ids: list[str], queue_state: QueueState, history: JournalHistory) -> str:
        """Record the current state of these beads as seen; return why that failed, or ""."""
        try:
            self._patient.acknowledge(queue_state.queue.beads, history, ids)
            held = held_back(queue_state.queue)
            if self._curator is not None and not held.keys().isdisjoint(ids):
                drift = stale(self._patient.check(queue_state.queue.beads, history))
                left = {each: reason for each, reason in held.items() if each in drift or reason != DRIFTED}
                done = self._curator.run_steps(
                    "hold", "give drifted beads back to workers", lambda writing, _: plan_holds(writing, left)
                )
                return done.error.message if done.error is not None else ""
        except (GateBusy, WritesForbidden) as error:
            return str(error)
        except (DdxError, Conflict, Unreadable, OperationRefused) as error:
            return f"beads could not be released to workers: {error}"
        except OSError as error:
            return f"what was seen cannot be kept: {error.strerror or error}"
        return ""

    def _stopped_within(self, seconds: float) -> bool:
        with self._wake:
            return self._wake.wait_for(lambda: self._stopped, seconds)

    def _rest(self) -> None:
        """Wait for the screen to show news first; further news does not shorten the wait."""
        until = time.monotonic() + REST_S
        while not self._stopped and (left := until - time.monotonic()) > 0:
            self._wake.wait(left)

    def _stamps(self) -> tuple[object, ...]:
        """The stamps of the files that HELIX's loop or a ddx worker writes."""
        folders = [self.project.records_dir / name for name in ("agent-logs", "workers")]
        return (
            *(stamp_of(self.project.helix_dir / name) for name in WATCHED),
            *(Folder(folder).names()[-1:] for folder in folders),
        )

    def _run(self) -> None:
        seen: News | None = None
        stamps: tuple[object, ...] = ()
        quiet, due = 0, 0.0
        while True:
            with self._wake:
                # news that arrived during a look wakes nobody: continue without waiting
                if self._news is None or (_same(self._news, seen) and not self._seen_by_person):
                    self._wake.wait(POLL_S if quiet < BRISK_CHECKS else RESTING_POLL_S)
                if self._news is not None and not _same(self._news, seen):
                    self._rest()
                if self._stopped:
                    return
                # taken under the lock, used outside it: a look may be slow, and the live thread calls `see`
                before, seen = seen, self._news
                ids, self._seen_by_person = self._seen_by_person, []
            if seen is None:
                continue
            last, stamps = stamps, self._stamps()
            quiet = quiet + 1 if _same(seen, before) and not ids and stamps == last else 0
            # nothing is new: check every EVERY_S what time alone has changed
            if quiet and time.monotonic() < due:
                continue
            due = time.monotonic() + EVERY_S
            why = self._acknowledge(ids, *seen[:2]) if ids else ""
            found = self.look(*seen)
            found = replace(found, trouble=why) if why else found
            if found != self.concerns:
                self.concerns = found
                self._tell(found)


def _same(news: News, seen: News | None) -> bool:
    """Whether all inputs of a look are the same."""
    if seen is None:
        return False
    (queue_state, *others), (old, *old_others) = news, seen
    same = (each is before for each, before in zip(others, old_others, strict=True))
    return queue_state.queue is old.queue and queue_state.runs is old.runs and all(same)


def _unminded(queue_state: QueueState, focus: Focus) -> tuple[str, ...]:
    """Beads on which the focus is out of date."""
    if not (focus.epic or focus.held or focus.leftovers):
        return ()
    writing = PlanBuilder(Overlay(queue_state.queue), dialect_or_family(queue_state.dialect, queue_state.queue))
    try:
        plan_upkeep(writing)
    except OperationRefused as error:
        return (f"({called(str(error))})",)
    return tuple(dict.fromkeys(bead_id for step in writing.steps for bead_id in step.edits))
