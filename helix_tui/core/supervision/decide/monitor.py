"""Find in the background what a person should know besides the queue itself (drift, orphaned claims, the focus), and
notify of news since the last look.

`BackgroundMonitor` runs in its own thread whenever the queue or the journal changes, and periodically (a claim becomes
an orphan with time alone). Nothing waits for it. Findings about a bead are cached while its record is unchanged, so
that a look at ten thousand beads takes a few milliseconds.

Each notification leaves a marker in ``.helix/notified/``, created so that only one of several consoles notifies; when
its cause is gone the marker is removed, and a recurrence is news again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Archived, find_archived
from helix_tui.core.ddx.attempts.attempt import count_outcomes
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.dialect import dialect_or_family
from helix_tui.core.ddx.documents.source import GoverningDocuments
from helix_tui.core.ddx.files import Folder, stamp_of
from helix_tui.core.ddx.runs.running import Run, beads_at_work
from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.editing.execute.gate import GateBusy, WriteGate, WritesForbidden
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.editing.steps import Conflict, OperationRefused, Overlay, PlanBuilder, called
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.process import run as run_program
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.threads import keep_at
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.supervision.decide.check import DocumentFacts, StatusSummary, take_status_summary
from helix_tui.core.supervision.decide.need_view import group_of, one_of
from helix_tui.core.supervision.decide.needs import (
    Need,
    Snooze,
    SplitNeeds,
    asked_of,
    needs_of,
    read_snoozes,
    split_snoozed,
    waiting_lessons,
)
from helix_tui.core.supervision.run_state.budget import NO_BUDGET, Budget
from helix_tui.core.supervision.signals.drift import Drift, DriftWatch
from helix_tui.core.supervision.signals.focus import (
    Focus,
    drifted,
    plan_drifted,
    plan_upkeep,
    read_focus,
    stale,
)
from helix_tui.core.supervision.signals.orphans import Orphan, find_left
from helix_tui.core.supervision.signals.questions import still_tried

if TYPE_CHECKING:
    from helix_tui.core.memory.reports import Proposal

EVERY_S = 30.0
"""How often it looks when nothing changes."""

DOCUMENTS_S = 60.0
"""How long a reading of the documents and of git is valid."""

POLL_S = 1.0
"""How often it checks whether the loop has written anything."""

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


def needs_now(project: Project, snapshot: QueueState, attempts: AttemptBook, found: Concerns, now: int) -> SplitNeeds:
    """Everything that waits for a person, and what is put off: the one list of the console and of `needs`."""
    needs = needs_of(
        snapshot.queue,
        snapshot.runs,
        snapshot.tracker,
        drift=found.drift,
        orphans=found.orphans,
        unminded=found.unminded,
        epic=found.focus.epic,
        questions=asked_of(project),
        shut=snapshot.shut,
        stoppage=found.status_summary.stoppage,
        dead=found.dead,
        archived=found.archived,
        attempts=attempts,
        tried=still_tried(found.status_summary.run.state.tried, snapshot.queue),
        lessons=found.lessons,
        budgets=found.status_summary.budget_uses(attempts, now),
        lands_kept=snapshot.dialect is not None and snapshot.dialect.lands_kept,
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
        self._news: tuple[QueueState, JournalHistory] | None = None
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

    def see(self, queue_state: QueueState, history: JournalHistory) -> None:
        """Pass a newer state to the monitor."""
        with self._wake:
            self._news = (queue_state, history)
            self._wake.notify_all()

    def acknowledge(self, ids: Iterable[str]) -> None:
        """Acknowledge the drift of these beads."""
        with self._wake:
            self._seen_by_person += ids
            self._wake.notify_all()

    def look(self, queue_state: QueueState, history: JournalHistory) -> Concerns:
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
        self._governing.dialect = queue_state.dialect
        status_summary = take_status_summary(
            queue_state,
            self.project,
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
            if self._curator is not None and set(ids) & set(drifted(queue_state.queue)):
                left = stale(self._patient.check(queue_state.queue.beads, history)) & set(drifted(queue_state.queue))
                done = self._curator.run_steps(
                    "hold", "give drifted beads back to workers", lambda writing, _: plan_drifted(writing, left)
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
        folders = [self.project.ddx_dir / name for name in ("agent-logs", "workers")]
        return (
            *(stamp_of(self.project.helix_dir / name) for name in WATCHED),
            *(Folder(folder).names()[-1:] for folder in folders),
        )

    def _run(self) -> None:
        seen: tuple[QueueState, JournalHistory] | None = None
        stamps: tuple[object, ...] = ()
        quiet = 0
        while True:
            with self._wake:
                # news that arrived during a look wakes nobody: continue without waiting
                if self._news is None or (_same(self._news, seen) and not self._seen_by_person):
                    self._wake.wait(POLL_S)
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
            if 0 < quiet < EVERY_S / POLL_S:
                continue
            quiet = 0
            why = self._acknowledge(ids, *seen) if ids else ""
            found = self.look(*seen)
            found = replace(found, trouble=why) if why else found
            if found != self.concerns:
                self.concerns = found
                self._tell(found)


def _same(news: tuple[QueueState, JournalHistory], seen: tuple[QueueState, JournalHistory] | None) -> bool:
    """Whether all inputs of a look are the same."""
    if seen is None:
        return False
    (queue_state, history), (old, old_history) = news, seen
    return queue_state.queue is old.queue and queue_state.runs is old.runs and history is old_history


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


SILENT = frozenset({"lesson"})
"""Kinds that hold nothing up, and cause no notification."""

COMMAND_TIMEOUT_S = 20.0
MAX_LISTED = 50
"""Maximum needs passed to a user's command one by one."""


NO_BEADS: Mapping[str, Bead] = {}


class Notification(Struct, frozen=True):
    """One notification; needs that arrive together share one."""

    event: Literal["needs", "run_ended"]
    title: str
    body: str
    keys: tuple[str, ...]
    """Its subjects, so that each is reported once."""
    needs: tuple[Need, ...] = ()
    waiting: int = 0
    """The total number of things that wait for a person."""

    def document(self, project: Project, now: int) -> bytes:
        """The JSON for a user's command."""
        found: dict[str, Any] = {
            "schema": "notification/1",
            "event": self.event,
            "at": format_instant(now),
            "project": os.fspath(project.root),
            "title": self.title,
            "body": self.body,
            "waiting": self.waiting,
            "needs": [{**need.record(), "group": group_of(need)} for need in self.needs[:MAX_LISTED]],
        }
        return msgspec.json.encode(found)


# --- news ------------------------------------------------------------------------------------------


class NewsWatch(Struct):
    """Compares one look with the last; everything in the first is old."""

    known: frozenset[str] | None = None
    _working_since: int = 0
    _gone: set[str] = field(default_factory=set)

    def see(
        self,
        needs: Sequence[Need],
        runs: Sequence[Run],
        attempts: AttemptBook,
        *,
        now: int,
        loop: bool = False,
        beads: Mapping[str, Bead] = NO_BEADS,
    ) -> list[Notification]:
        """The notifications since the last look.

        Args:
            loop: whether HELIX's loop is active, even between two beads.
            beads: the beads, for their titles.
        """
        keys = frozenset(need.key for need in needs)
        found: list[Notification] = []
        if self.known is not None:
            fresh = tuple(need for need in needs if need.key not in self.known and need.kind not in SILENT)
            self._gone |= self.known - keys
            if fresh:
                found.append(_of_needs(fresh, len(needs), beads))
        self.known = keys
        at_work = bool(beads_at_work(runs))
        if at_work and not self._working_since:
            self._working_since = now
        # between two beads HELIX's loop has no worker, but its run has not ended
        elif self._working_since and not at_work and not loop and not any(run.live for run in runs):
            found.append(_of_run(attempts, self._working_since, len(needs)))
            self._working_since = 0
        return found

    def gone(self) -> frozenset[str]:
        """Subjects that are gone since the last call."""
        found, self._gone = frozenset(self._gone), set()
        return found


def _of_needs(fresh: tuple[Need, ...], waiting: int, beads: Mapping[str, Bead]) -> Notification:
    counted = Counter(group_of(need) for need in fresh)
    title = f"{waiting:,} need{'s' * (waiting == 1)} you"
    body = clean_line(fresh[0].reason, 160)
    if len(fresh) > 1:
        body = "new: " + ", ".join(
            f"{count:,} {name if count > 1 else one_of(name)}" for name, count in counted.items()
        )
    else:
        bead = beads.get(fresh[0].bead_id)
        about = f"“{clean_line(bead.title, 60)}”: " if bead is not None and bead.title else ""
        kind = one_of(group_of(fresh[0]))
        body = f"{kind}: {about}{body.removeprefix(f'{kind}; ').removeprefix(f'{kind}: ')}"
    return Notification("needs", title, body, tuple(need.key for need in fresh), fresh, waiting)


def _of_run(attempts: AttemptBook, since: int, waiting: int) -> Notification:
    ended = [each for each in attempts.newest(500) if each.finished and (each.finished_at or 0) >= since]
    body = ", ".join(f"{count:,} {OUTCOME_WORDS[outcome]}" for outcome, count in count_outcomes(ended).items())
    body = body or "no attempt ended in it"
    last = ended[0].attempt_id if ended else format_instant(since)
    return Notification("run_ended", "the run has ended", body, (f"run:{last}",), waiting=waiting)


def claimed(project: Project, keys: Collection[str]) -> frozenset[str]:
    """Claim the subjects that no console has reported yet.

    Raises:
        OSError: no marker can be created.
    """
    folder = project.helix_dir / "notified"
    folder.mkdir(parents=True, exist_ok=True)
    ours = set()
    for key in keys:
        with suppress(FileExistsError):
            os.close(os.open(_marker(folder, key), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            ours.add(key)
    return frozenset(ours)


def forget(project: Project, keys: Iterable[str]) -> None:
    """Forget subjects that are gone, so that they can be news again."""
    folder = project.helix_dir / "notified"
    for key in keys:
        with suppress(OSError):
            _marker(folder, key).unlink()


def _marker(folder: Path, key: str) -> Path:
    return folder / hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]


# --- delivery -----------------------------------------------------------------------------------------


def terminal_ways(env: Mapping[str, str]) -> tuple[str, ...]:
    """How to notify through the terminal of an environment: its bell, and its own kind of notification."""
    hints = " ".join(env.get(name, "") for name in ("TERM_PROGRAM", "LC_TERMINAL", "TERM", "TERMINAL_EMULATOR")).lower()
    if "KITTY_WINDOW_ID" in env or "kitty" in hints:
        return ("bell", "osc99")
    if any(name in hints for name in ("iterm", "wezterm", "ghostty", "warp")) or "WT_SESSION" in env:
        return ("bell", "osc9")
    if any(name in hints for name in ("rxvt", "foot", "contour")):
        return ("bell", "osc777")
    return ("bell",)


def sequences(ways: Iterable[str], note: Notification, *, tmux: bool) -> str:
    """The escape sequences for the terminal, passed through tmux to the outer one."""
    title, body = _plain(note.title), _plain(note.body)
    made = {
        "bell": "\a",
        "osc9": f"\x1b]9;{title}: {body}\x1b\\",
        "osc777": f"\x1b]777;notify;{title};{body}\x1b\\",
        # kitty's protocol: d=0 announces another part of the same note, d=1 ends it
        "osc99": f"\x1b]99;i=helix:d=0:p=title;{title}\x1b\\\x1b]99;i=helix:d=1:p=body;{body}\x1b\\",
    }
    said = ""
    for way in ways:
        text = made[way]
        # tmux passes a wrapped sequence, with each ESC doubled, to the outer terminal; it passes a bell by itself
        said += f"\x1bPtmux;{text.replace(chr(27), chr(27) * 2)}\x1b\\" if tmux and way != "bell" else text
    return said


def _plain(text: str) -> str:
    """Text that cannot end a sequence or separate fields."""
    return clean_line(text, 200).replace(";", ",")


def run_command(command: str, document: bytes, folder: Path) -> str:
    """Pass a notification to the user's own command, as JSON on stdin; return why it failed, or "".

    Without a shell, but split into arguments like one.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"notify cannot be read as a command: {error}"
    if not words:
        return "notify names no command"
    with tempfile.NamedTemporaryFile(prefix="helix-notify-") as file:
        file.write(document + b"\n")
        file.flush()
        try:
            done = run_program(words, cwd=folder, timeout=COMMAND_TIMEOUT_S, cap=1 << 16, stdin=Path(file.name))
        except OSError as error:
            return f"{clean_line(words[0], 80)} does not start: {error.strerror}"
    if done.timed_out:
        return f"{clean_line(words[0], 80)} took longer than {COMMAND_TIMEOUT_S:.0f} s and was ended"
    return f"{clean_line(words[0], 80)} ended with {done.rc}" if done.rc else ""
