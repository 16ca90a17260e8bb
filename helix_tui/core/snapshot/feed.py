"""The live feed of snapshots: watch the files and publish each new state.

`Watcher` waits for changes in a few folders, none of them recursive, or for a second where the kernel has no watches
left. `Gatherer` reads only what changed and builds the snapshot. `Live` is the thread that does both, with a full look
now and then; `take_snapshot` takes a single snapshot without watching.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims, Era, Queue, classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker, only_archived, read_archive
from helix_tui.core.ddx.dialect import Dialect, rule_for
from helix_tui.core.ddx.probe import at_hand
from helix_tui.core.ddx.remarks import remarks
from helix_tui.core.ddx.runs.running import STALL_AFTER_S, QueueReader, Run
from helix_tui.core.editing.journal import Journal, edits_of
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.files import below, is_folder, names_in, status_of
from helix_tui.core.ground.processes.threads import keep_at
from helix_tui.core.ground.project import Project, lease_roots
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import now_ns
from helix_tui.core.ground.trust import person
from helix_tui.core.snapshot.snapshot import Change, Condition, Notice, Snapshot, compare

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.index import AttemptIndex

GROUP_MS = 150
"""How long a group of changes may grow, and the step of watchfiles: it wakes that often while nothing happens."""

_UNWATCHED = "files are checked once a second, not watched: "
_RAISE = "; raise fs.inotify.max_user_watches"

_IN_DDX = ("", "run-state", "workers", "executions", "metrics", "agent-logs", "runs")

TICK_MS = 3000
"""How often a snapshot is taken for time alone, when no file changes: a cooldown ends, a worker falls silent."""

POLL_S = 1.0
"""How often files are looked at that are not watched."""

FULL_LOOK_S = 15.0
"""Seconds after which unwatched files are checked too and removed ones dropped, busy or not."""

RESTING_LOOK_S = 60.0
"""The same while no worker lives and no file changes."""

FULL_LOOK_SHARE = 0.1
"""Share of time that full looks may take: with 20,000 evidence folders one takes a quarter of a second, and without
watches only a full look shows a change in an old one.
"""

REST_S = 0.02
"""Pause after a snapshot before the next; it doubles while changes keep coming, up to `LONGEST_REST_S`."""

LONGEST_REST_S = 0.25

_NAMED = 5
"""Files that a line of the log names."""


def folders_to_watch(project: Project, runs: Iterable[Run]) -> dict[str, tuple[int, int]]:
    """Existing folders with files of interest, each with its (device, inode).

    The nearest existing ancestor replaces a missing folder, so that its creation is noticed; the inode distinguishes a
    folder from a later one of the same name.
    """
    # folders, not files: ddx replaces files by renaming, and a watch would stay with the old file
    wanted = [project.root, project.ddx_dir, *(project.records_dir / name for name in _IN_DDX)]
    wanted += [project.ddx_dir.parent, project.helix_dir]
    if project.git_dir is not None:
        wanted.append(project.git_dir)
    wanted.extend(lease_roots(project))
    wanted.extend(_worker_folders(project))
    for run in runs:
        wanted.extend(run.folders)
        if run.transcript is not None:
            wanted.append(run.transcript.parent)
        if run.attempt_id:
            wanted.append(below(project.records_dir / "executions", run.attempt_id))
    found: dict[str, tuple[int, int]] = {}
    for folder in wanted:
        status = _stat_folder(folder)
        if status is not None:
            found[str(folder)] = status
    if not found:
        for ancestor in project.root.parents:
            status = _stat_folder(ancestor)
            if status is not None:
                found[str(ancestor)] = status
                break
    return found


def _worker_folders(project: Project, most: int = 64) -> list[Path]:
    """The newest worker folders; names consist of a kind and a time, so they sort by age."""
    # each folder uses a kernel watch, and only the newest workers still write
    names = sorted(names_in(project.records_dir / "workers"), key=lambda name: name.rpartition("-")[2])
    folders = (project.records_dir / "workers" / name for name in names[-most:])
    return [folder for folder in folders if is_folder(folder)]


def _stat_folder(folder: Path) -> tuple[int, int] | None:
    status = status_of(folder)
    return None if status is None else (status.st_dev, status.st_ino)


class Watcher:
    """Waits for changes in a set of folders; where the kernel has no watches left, it only waits.

    ``problem`` says in one sentence why it does not watch, if so.
    """

    def __init__(self, folders: Iterable[str], stop: threading.Event, timeout_ms: int) -> None:
        import watchfiles  # imported here: it takes 50 ms, on the live thread only

        self._stop = stop
        self.problem = ""
        self._changes: Iterator[set[tuple[watchfiles.Change, str]]] | None = watchfiles.watch(
            # one folder that may not be read would be an error for all of them (ignore_permission_denied)
            *(folder for folder in folders if os.access(folder, os.R_OK)),
            watch_filter=None,
            debounce=GROUP_MS,
            step=GROUP_MS,
            stop_event=stop,
            rust_timeout=timeout_ms,
            # time alone ends a cooldown or makes a worker silent: no file changes then
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=False,
            # with True, watchfiles 1 does not report it when the kernel has no watches left
            ignore_permission_denied=False,
        )

    def wait(self) -> set[str]:
        """Paths that changed, after at most the timeout; empty if none did or the wait was ended."""
        if self._changes is not None:
            try:
                return {path for _, path in next(self._changes, ())}
            except FileNotFoundError:
                self._changes = None  # a folder was removed before it was watched: the next list omits it
                return {""}
            except (OSError, RuntimeError) as error:
                self._changes = None
                why = clean_line(str(error).partition(" about [")[0].rstrip("."), 120)
                self.problem = f"{_UNWATCHED}{why}{_RAISE if 'limit' in why else ''}"
        self._stop.wait(POLL_S)
        return set()

    def close(self) -> None:
        """Release the watches."""
        if isinstance(self._changes, Generator):
            self._changes.close()
        self._changes = None


OnChange = Callable[[Snapshot, Change], None]


class Gatherer:
    """Builds the snapshots of one project, reading only what is new. Not thread-safe."""

    def __init__(
        self,
        project: Project,
        *,
        era: Era = "auto",
        clock: Callable[[], int] = now_ns,
        env: Mapping[str, str] | None = None,
        stall_after_s: float | None = None,
        ddx: str | None = None,
    ) -> None:
        self.project = project
        self._env, self._ddx = env, ddx
        self.stall_after_s = stall_after_s or STALL_AFTER_S
        self.era = era
        self.clock = clock
        self._journal = Journal.of(project)
        self._reader = QueueReader(
            project, env=env, edits=lambda _: edits_of(self._journal.look()), stall_after_s=self.stall_after_s
        )
        self._attempts: AttemptIndex | None = None
        self._seen = False
        self.unwatched = ""
        """Why files are polled once a second instead of watched; empty while they are watched."""
        self._archive = self._archive_seen = Tracker(project.archive_file, missing=True)
        self.snapshot = empty_snapshot(project, clock())

    def gather(self, *, attempts: bool = True, changed: Iterable[str] | None = None) -> Snapshot:
        """Take a snapshot.

        Args:
            attempts: whether to read attempts; else those of the last snapshot are kept.
            changed: the only paths under ``.ddx/executions`` and the like that may have changed; None checks
                everything, the installed ddx too.
        """
        last, now = self.snapshot, self.clock()
        records = self._records() if attempts else None
        paths = None if changed is None else [Path(path) for path in changed]
        reading = self._reader.read(now, records=records, changed=paths)
        tracker = reading.tracker
        self._seen = self._seen or not tracker.missing
        dialect = self._at_hand() if changed is None else last.dialect
        queue = self._queue(last, tracker, reading.claims, now, dialect)
        book = records.book if records is not None and reading.renewed else last.attempts
        archive = self._archive = read_archive(self.project.archive_file) if attempts else self._archive
        self.snapshot = Snapshot(
            project=self.project,
            tracker=tracker,
            queue=queue,
            runs=reading.runs,
            attempts=book,
            attempts_read=attempts or last.attempts_read,
            journal=self._journal.look(),
            archive=self._archived(last, archive, tracker),
            dialect=dialect,
            condition=self._condition(tracker),
            notices=self._notices(tracker, queue, dialect, archive),
            branch=self.project.branch() or "",
            generation=last.generation + 1,
            taken_at=now,
            written_at=max([tracker.mtime_ns, *(run.last_event_at or 0 for run in reading.runs)]),
        )
        return self.snapshot

    def rest(self) -> None:
        """Free the memory that only reading needs."""
        self._reader.rest()

    def failed(self, error: Exception) -> Snapshot:
        """The last snapshot, with a notice that a newer state cannot be shown because of a defect."""
        last = self.snapshot
        why = f"the newest state cannot be shown because of a bug in helix-tui: {type(error).__name__}"
        # the same defect recurs at every look: log and show it once
        if last.tracker.problem == why:
            return last
        logs.logger("live").error("no snapshot could be taken", exc_info=error)
        self.snapshot = replace(
            last,
            tracker=replace(last.tracker, problem=why),
            condition="unreadable",
            notices=(Notice("problem", f"{why}; trace in {logs.shown_file()}"),),
            generation=last.generation + 1,
        )
        return self.snapshot

    def _at_hand(self) -> Dialect | None:
        """The dialect of the installed ddx; a replaced one is noticed at the next full look."""
        return at_hand(self._ddx, self.project.root, env=self._env) if self.era == "auto" else None

    def _queue(self, last: Snapshot, tracker: Tracker, claims: Claims, now: int, dialect: Dialect | None) -> Queue:
        """The last classification, as long as none of its inputs changed."""
        old, era = last.queue, rule_for(dialect, self.era)
        # the reader returns the same mapping while no row differs, so identity suffices
        same = tracker.beads is old.beads and claims == old.claims and era == old.era
        if same and not old.expired(now):
            return old
        return classify(tracker.beads, now=now, era=era, claims=claims, last=old)

    def _records(self) -> AttemptIndex:
        if self._attempts is None:
            from helix_tui.core.ddx.attempts.index import AttemptIndex  # only once the queue is on screen

            self._attempts = AttemptIndex.of(self.project)
        return self._attempts

    def _condition(self, tracker: Tracker) -> Condition:
        if tracker.missing:
            if self._seen:
                return "gone"
            return "empty" if is_folder(self.project.ddx_dir) else "no-ddx"
        if tracker.problem:
            return "unreadable"
        return "live" if tracker.beads else "empty"

    def _archived(self, last: Snapshot, archive: Tracker, tracker: Tracker) -> Mapping[str, Bead]:
        """The archived beads; the same object as long as they are unchanged."""
        if archive is self._archive_seen and tracker.beads is last.tracker.beads:
            return last.archive
        self._archive_seen = archive
        found = only_archived(archive, tracker.beads)
        return last.archive if found == last.archive else found

    def _notices(self, tracker: Tracker, queue: Queue, dialect: Dialect | None, archive: Tracker) -> tuple[Notice, ...]:
        notices = [Notice("problem", tracker.problem)] if tracker.problem else []
        notices.extend(Notice("person", line) for line in person.notes())
        notices += [Notice("folder", self.project.notice)] if self.project.notice else []
        notices.extend(Notice("ddx", remark.text, remark.short) for remark in remarks(tracker.beads, dialect))
        if tracker.dropped:
            count = len(tracker.dropped)
            notices.append(Notice("unread", f"{counted(count, 'line')} unread"))
        if self.unwatched:
            notices.append(Notice("watch", self.unwatched))
        if self._attempts is not None and self._attempts.left_out:
            count = self._attempts.left_out
            older = counted(count, "older attempt is", "older attempts are")
            notices.append(Notice("attempts", f"{older} not read: there are too many"))
        if self._attempts is not None and self._attempts.unread_metrics:
            notices.append(Notice("attempts", f"{counted(self._attempts.unread_metrics, 'line')} of metrics unread"))
        if archive.problem or archive.unread:
            notices.append(Notice("archive", archive.problem or archive.unread))
        unknown = queue.unknown_statuses()
        if unknown:
            notices.append(Notice("status", "unknown status: " + ", ".join(sorted(unknown))))
        notices.extend(Notice("run", f"{path.name}: {why}") for path, why in self._reader.problems.items())
        return tuple(notices)


def empty_snapshot(project: Project, now: int) -> Snapshot:
    """The snapshot before anything is read."""
    return Snapshot(project, Tracker(project.beads_file), classify({}, now=now), taken_at=now)


def take_snapshot(
    project: Project,
    *,
    now: int | None = None,
    era: Era = "auto",
    attempts: bool = True,
    env: Mapping[str, str] | None = None,
    ddx: str | None = None,
) -> Snapshot:
    """Take a single snapshot. ``now`` is an instant in ns, by default the current one."""
    clock = now_ns if now is None else (lambda: now)
    return Gatherer(project, era=era, clock=clock, env=env, ddx=ddx).gather(attempts=attempts)


class Live:
    """Watches a project in a thread and calls ``on_change`` there with each new snapshot.

    The first call comes as soon as the queue is read; attempts follow and, if ``patience`` (seconds) is given, only
    after `painted` or that time, as a starting screen needs the interpreter for itself. ``on_change`` should only post
    a message: the next change waits for it.
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
        ddx: str | None = None,
    ) -> None:
        self._gatherer = Gatherer(project, era=era, clock=clock, env=env, stall_after_s=stall_after_s, ddx=ddx)
        self.on_change = on_change
        self._patience = patience
        self._painted = threading.Event()
        self._stop = threading.Event()
        self._full_look_from = self._full_look_by = 0.0
        """The earliest and the latest time of the next full look."""
        self._full_look_owed = False
        self._thread = threading.Thread(
            target=keep_at, args=(self._run, self._stop.wait), name="helix-live", daemon=True
        )

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._gatherer.snapshot

    def start(self) -> None:
        """Begin to read and to watch."""
        self._thread.start()

    def painted(self) -> None:
        """Tell the thread that the first snapshot is on screen, so that slower work may begin."""
        self._painted.set()

    def stop(self, timeout: float = 0.2) -> None:
        """End the thread; it is a daemon, so nothing waits for it longer than ``timeout`` seconds."""
        self._stop.set()
        # a thread that still waits for the first paint must see the end at once
        self._painted.set()
        # `on_change` runs on that thread and may call this; a thread cannot join itself
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        self._publish(attempts=False)
        self._painted.wait(self._patience)
        while not self._stop.is_set():
            folders = folders_to_watch(self._gatherer.project, self.snapshot.runs)
            watcher = Watcher(folders, self._stop, TICK_MS)
            try:
                self._look(set(folders), everything=True)
                self._full_look_owed = (
                    True  # the watch starts with the first wait: look again at what changed before it
                )
                self._follow(watcher, folders)
            finally:
                watcher.close()

    def _follow(self, watcher: Watcher, folders: Mapping[str, tuple[int, int]]) -> None:
        """Publish changes until the folders to watch differ."""
        rest = REST_S
        while not self._stop.is_set():
            changed = watcher.wait()
            if self._stop.is_set():
                return
            # a watch ends with its folder, and another one may have its name and even its inode
            if changed & folders.keys():
                return
            self._tell_of(watcher.problem)
            # without a change it is a tick: look only if time alone may have changed something
            if not self._concerns(changed) if changed else self._rests():
                continue
            news = self._look(changed, everything=bool(watcher.problem))
            # a run began or ended, or a folder was replaced: the caller watches the new folders
            if folders_to_watch(self._gatherer.project, self.snapshot.runs) != folders:
                return
            rest = min(rest * 2, LONGEST_REST_S) if changed and news else REST_S
            if changed:
                self._stop.wait(rest)

    def _rests(self) -> bool:
        """Whether nothing can differ from the last look: files are watched, no worker lives, nothing has expired."""
        late = monotonic() - self._full_look_by
        if self._gatherer.unwatched or self._full_look_owed or late >= RESTING_LOOK_S - FULL_LOOK_S:
            return False
        working = any(run.live for run in self.snapshot.runs)
        return not working and not self.snapshot.queue.expired(self._gatherer.clock())

    def _look(self, changed: set[str], *, everything: bool) -> bool:
        """Take a snapshot of what changed, or of everything if that is due and within its share of time."""
        begun = monotonic()
        self._full_look_owed = self._full_look_owed or everything or begun >= self._full_look_by
        if not self._full_look_owed or begun < self._full_look_from:
            return self._publish(attempts=True, changed=changed)
        news = self._publish(attempts=True)
        ended = monotonic()
        self._full_look_owed = False
        self._full_look_by = ended + FULL_LOOK_S
        # a full look that took t is followed by 9 t without one: a tenth of the time in all
        self._full_look_from = ended + (ended - begun) * (1 / FULL_LOOK_SHARE - 1)
        return news

    def _tell_of(self, problem: str) -> None:
        """Set or clear the notice that files are not watched; log it once."""
        if problem != self._gatherer.unwatched:
            self._gatherer.unwatched = problem
            logs.logger("live").warning("%s", problem or "files are watched again")

    def _concerns(self, changed: set[str]) -> bool:
        """Whether any of the paths is relevant; a build in the project's root is not."""
        project = self._gatherer.project
        root = str(project.root) + os.sep
        ours = tuple(map(str, (project.ddx_dir, project.root / ".ddx", project.root / ".git", project.helix_dir)))
        return any(not path.startswith(root) or path.startswith(ours) for path in changed)

    def _publish(self, *, attempts: bool, changed: set[str] | None = None) -> bool:
        """Take a snapshot and publish it if anything changed."""
        old = self.snapshot
        try:
            new = self._gatherer.gather(attempts=attempts, changed=changed)
        except Exception as error:  # noqa: BLE001 - logged; a thread that ended would leave an old state on screen
            new = self._gatherer.failed(error)
        change = compare(old, new)
        news = bool(change) or old.condition == "loading"
        if news:
            _log_change(new, change, changed)
            self.on_change(new, change)
        if attempts:
            self._gatherer.rest()
        return news


def _log_change(snapshot: Snapshot, change: Change, paths: Collection[str] | None) -> None:
    """Log what changed on disk and its effect on the queue: names and counts, no texts."""
    root = f"{snapshot.project.root}{os.sep}"
    names = sorted(path.removeprefix(root) for path in paths or ())
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    logs.logger("live").info(
        "snapshot %d (%s): %d beads changed of %d, %d attempts, runs %s, journal %s; files: %s%s",
        snapshot.generation,
        snapshot.condition,
        len(change.beads),
        len(snapshot.tracker.beads),
        len(change.attempts),
        "changed" if change.runs else "same",
        "changed" if change.journal else "same",
        ", ".join(names[:_NAMED]) or "all looked at",
        more,
    )
