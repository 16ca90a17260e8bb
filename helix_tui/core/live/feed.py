"""The live feed: one thread that watches, re-reads only what changed, and publishes snapshots.

Two things make a new snapshot: a file that changed, and time that passed (a cooldown that ends, a heartbeat
that grows old, a process that died without a word). Changes are gathered for a few milliseconds; when they
keep streaming in, snapshots come at a bounded rate and never pile up.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from helix_tui.core.beads.readiness import Claims, Era, Queue, classify
from helix_tui.core.beads.tracker import Tracker, TrackerReader
from helix_tui.core.clock import now_ns
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.workers.running import STALL_AFTER_S, Run, RunReader
from helix_tui.core.journal import Journal
from helix_tui.core.live.snapshot import Change, Condition, Notice, Snapshot, compare
from helix_tui.core.live.watch import Watcher, folders_to_watch
from helix_tui.core.project import Project

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.index import AttemptIndex

TICK_MS = 1000
"""How often time itself is looked at when no file changes."""

FULL_LOOK_TICKS = 15
"""After how many quiet ticks even what no watch tells of is looked at."""

REST_S = 0.02
"""Pause after a snapshot before the next; it doubles while changes keep coming, up to `LONGEST_REST_S`."""

LONGEST_REST_S = 0.25

OnChange = Callable[[Snapshot, Change], None]


class Gatherer:
    """Puts snapshots together for one project, reading again only what is new. One thread at a time."""

    def __init__(
        self,
        project: Project,
        *,
        era: Era = "auto",
        clock: Callable[[], int] = now_ns,
        env: Mapping[str, str] | None = None,
        stall_after_s: float | None = None,
    ) -> None:
        self.project = project
        self.stall_after_s = stall_after_s or STALL_AFTER_S
        self.era = era
        self.clock = clock
        self._tracker = TrackerReader(project.beads_file)
        self._runs = RunReader(project, env=env)
        self._attempts: AttemptIndex | None = None
        self._journal = Journal.of(project)
        self._seen = False
        self.snapshot = empty_snapshot(project, clock())

    def gather(self, *, attempts: bool = True, changed: Iterable[str] | None = None) -> Snapshot:
        """A snapshot of now.

        Args:
            attempts: whether to look for attempts; else those of the last snapshot are kept.
            changed: the only paths under ``.ddx/executions`` and the like that can have changed; None has
                everything looked at.
        """
        last, now = self.snapshot, self.clock()
        tracker = self._tracker.read()
        self._seen = self._seen or not tracker.missing
        runs, claims = self._running(tracker, now)
        queue = self._queue(last, tracker, claims, now)
        book = self._book(last, tracker, changed, claims.leases) if attempts else last.attempts
        self.snapshot = Snapshot(
            project=self.project,
            tracker=tracker,
            queue=queue,
            runs=runs,
            attempts=book,
            journal=self._journal.look(),
            condition=self._condition(tracker),
            notices=self._notices(tracker, queue),
            branch=self.project.branch() or "",
            generation=last.generation + 1,
            taken_at=now,
            written_at=max([tracker.mtime_ns, *(run.last_event_at or 0 for run in runs)]),
        )
        return self.snapshot

    def _running(self, tracker: Tracker, now: int) -> tuple[tuple[Run, ...], Claims]:
        runs = self._runs.find(tracker.beads, now, stall_after_s=self.stall_after_s)
        leases = self._runs.fresh_leases(now)
        live = frozenset(run.bead_id for run in runs if run.live and run.bead_id)
        return runs, Claims(leases=leases, running=live, origin_head=self.project.origin_head() or "")

    def _queue(self, last: Snapshot, tracker: Tracker, claims: Claims, now: int) -> Queue:
        """The last classification as long as nothing that it rests on is different."""
        old = last.queue
        if tracker.beads is old.beads and claims == old.claims and not old.expired(now):
            return old
        return classify(tracker.beads, now=now, era=self.era, claims=claims, last=old)

    def _book(
        self, last: Snapshot, tracker: Tracker, changed: Iterable[str] | None, held: Collection[str]
    ) -> AttemptBook:
        if self._attempts is None:
            from helix_tui.core.ddx.attempts.index import AttemptIndex  # not before the queue is on screen

            self._attempts = AttemptIndex(self.project.ddx_dir)
        paths = None if changed is None else [Path(path) for path in changed]
        if not self._attempts.refresh(tracker.beads, paths, held=held):
            return last.attempts
        return AttemptBook(self._attempts.attempts)

    def _condition(self, tracker: Tracker) -> Condition:
        if tracker.missing:
            if self._seen:
                return "gone"
            return "empty" if self.project.ddx_dir.is_dir() else "no-ddx"
        if tracker.problem:
            return "unreadable"
        return "live" if tracker.beads else "empty"

    def _notices(self, tracker: Tracker, queue: Queue) -> tuple[Notice, ...]:
        notices = [Notice("problem", tracker.problem)] if tracker.problem else []
        if tracker.dropped:
            count = len(tracker.dropped)
            notices.append(Notice("unread", f"{count} line{'s' if count > 1 else ''} unread"))
        unknown = queue.unknown_statuses()
        if unknown:
            notices.append(Notice("status", "unknown status: " + ", ".join(sorted(unknown))))
        notices.extend(Notice("run", f"{path.name}: {why}") for path, why in self._runs.problems.items())
        return tuple(notices)


def empty_snapshot(project: Project, now: int) -> Snapshot:
    """What is known before anything was read."""
    return Snapshot(project, Tracker(project.beads_file), classify({}, now=now), taken_at=now)


def take_snapshot(
    project: Project,
    *,
    now: int | None = None,
    era: Era = "auto",
    attempts: bool = True,
    env: Mapping[str, str] | None = None,
) -> Snapshot:
    """One snapshot, for what does not watch. ``now`` is an instant in ns, by default the present."""
    clock = now_ns if now is None else (lambda: now)
    return Gatherer(project, era=era, clock=clock, env=env).gather(attempts=attempts)


class Live:
    """Watches a project from a thread of its own and calls ``on_change`` there with each new snapshot.

    The first call comes as soon as the queue is read; what was attempted follows, and where ``patience``
    (seconds) is given, only after `painted` or when it is used up: a screen that comes up needs the
    interpreter for itself. ``on_change`` should only pass the news on (post a message): the next change
    waits for it.
    """

    def __init__(
        self,
        project: Project,
        on_change: OnChange,
        *,
        era: Era = "auto",
        clock: Callable[[], int] = now_ns,
        env: Mapping[str, str] | None = None,
        patience: float = 0.0,
        stall_after_s: float | None = None,
    ) -> None:
        self._gatherer = Gatherer(project, era=era, clock=clock, env=env, stall_after_s=stall_after_s)
        self._on_change = on_change
        self._patience = patience
        self._painted = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="helix-live", daemon=True)

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._gatherer.snapshot

    def start(self) -> None:
        """Begin to read and to watch."""
        self._thread.start()

    def painted(self) -> None:
        """The first snapshot is on screen: what takes longer may begin."""
        self._painted.set()

    def stop(self, timeout: float = 1.0) -> None:
        """End the thread; it is a daemon, so nothing waits for it longer than ``timeout`` seconds."""
        self._stop.set()
        self._painted.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        self._publish(attempts=False)
        self._painted.wait(self._patience)
        while not self._stop.is_set():
            folders = folders_to_watch(self._gatherer.project, self.snapshot.runs)
            watcher = Watcher(folders, self._stop, TICK_MS)
            try:
                self._publish(attempts=True)  # what changed between the last look and the watch
                self._follow(watcher, folders)
            finally:
                watcher.close()

    def _follow(self, watcher: Watcher, folders: Mapping[str, tuple[int, int]]) -> None:
        """Publish what changes until the folders to watch are others."""
        rest, ticks = REST_S, 0
        while not self._stop.is_set():
            changed = watcher.wait()
            if self._stop.is_set():
                return
            if changed and not self._concerns(changed):
                continue
            ticks = 0 if changed else ticks + 1
            news = self._publish(attempts=True, changed=None if ticks == FULL_LOOK_TICKS else changed)
            ticks %= FULL_LOOK_TICKS
            if folders_to_watch(self._gatherer.project, self.snapshot.runs) != folders:
                return
            rest = min(rest * 2, LONGEST_REST_S) if changed and news else REST_S
            if changed:
                self._stop.wait(rest)

    def _concerns(self, changed: set[str]) -> bool:
        """Whether any of the paths matters; a build in the project's root is none of our business."""
        project = self._gatherer.project
        root = str(project.root) + os.sep
        ours = tuple(
            map(str, (project.ddx_dir, project.root / ".ddx", project.root / ".git", project.helix_dir))
        )
        return any(not path.startswith(root) or path.startswith(ours) for path in changed)

    def _publish(self, *, attempts: bool, changed: set[str] | None = None) -> bool:
        """Take a snapshot and pass it on if it says anything new."""
        old = self.snapshot
        new = self._gatherer.gather(attempts=attempts, changed=changed)
        change = compare(old, new)
        if change or old.condition == "loading":
            self._on_change(new, change)
            return True
        return False
