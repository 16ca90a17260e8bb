"""Decide whether and by which executable the queue may be written, by one writer at a time.

`WriteGate` is the single lock of all writes of the console; `find_executable` finds the program that writes.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import IN_HAND
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.client import (
    QUIET,
    Ddx,
    DdxError,
    advice_for,
    ddx_missing,
    last_error,
    not_started,
)
from helix_tui.core.ddx.dialect import FAMILIES, Dialect
from helix_tui.core.ddx.git_state import staged_beside_tracker
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.ddx.remarks import Remark, Shut, difference, shut
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.differences import PlanChanged, differences, preconditions
from helix_tui.core.editing.journal import JournalHistory, Who
from helix_tui.core.editing.plan import Plan
from helix_tui.core.editing.steps import CommandStep, called
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.processes.clients import started_by_client
from helix_tui.core.ground.processes.programs import python_argv
from helix_tui.core.ground.project import Project, ddx_environment, ddx_setting, find_ddx
from helix_tui.core.ground.trust.own_folders import require_used
from helix_tui.core.ground.writes import open_own

POLL_S = 0.02

_last_held: dict[str, float] = {}
"""The lock file last held by this process, and until when (monotonic seconds): at most one entry."""

EMBEDDED = python_argv("helix_ddx")
"""The command line of the embedded tracker."""

TIMEOUT_S = 60.0
"""Time limit of one command; ddx itself waits ten seconds for the lock."""


class WritesForbidden(HelixError):
    """The program was started with --read-only."""

    advice = "Start it without --read-only to make changes."

    def __init__(self) -> None:
        super().__init__("nothing was changed: started with --read-only")


class GateBusy(HelixError):
    """Another console process has been writing for too long."""


class GateBroken(HelixError, OSError):
    """The lock cannot be taken because the disk is full or read-only."""

    advice = "Free space or repair the folder, then retry."

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error.strerror or error}: .helix/curation.lock cannot be written; nothing was changed")


class WriteGate(Struct, frozen=True):
    """The lock for every write of the console: tracker, journal, the queue's snapshot, hooks."""

    project: Project
    read_only: bool = False
    patience_s: float = 120.0
    waits: Callable[[str], None] | None = None
    """Called with the holder of the gate, once the wait is long enough to be noticed."""
    noticed_s: float = 2.0

    def check(self) -> None:
        """Raise if writing is not allowed.

        Raises:
            WritesForbidden: --read-only.
            NotUsed: ``.helix`` may not be used, and without a journal nothing is changed.
        """
        if self.read_only:
            raise WritesForbidden
        require_used(self.project.helix_dir)

    @contextmanager
    def open(self) -> Iterator[int]:
        """Hold the gate exclusively; yields the file descriptor of the lock.

        Commands run meanwhile inherit it, so that the gate stays closed while one of them still runs for a killed
        process.

        Raises:
            WritesForbidden: --read-only.
            GateBusy: another process holds it.
            GateBroken: the disk is full or read-only.
        """
        self.check()
        path = self.project.helix_dir / "curation.lock"
        with self._taken(str(path)) as descriptor:
            try:
                yield descriptor
            finally:
                _last_held.clear()
                _last_held[str(path)] = time.monotonic()

    @contextmanager
    def _taken(self, path: str) -> Iterator[int]:
        descriptor = -1
        try:
            try:
                descriptor = open_own(path, os.O_RDWR)
                self._take(descriptor)
                # for waiting processes: the holder, and a mark that changes with every holder
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()} {time.time_ns()}".encode(), 0)
            except OSError as error:
                raise GateBroken(error) from None
            yield descriptor
        finally:
            # released for everybody who inherited it: a daemon that ddx left behind does not hold the gate; that of a
            # process that was killed is held until its ddx ends
            if descriptor >= 0:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        """Wait for the lock; its last holder lets others go first.

        The time limit applies to each holder, not to the whole wait.
        """
        path = str(self.project.helix_dir / "curation.lock")
        # flock has no queue: a process that asks again at once would get it before those polling every 20 ms
        rest = _last_held.get(path, 0.0) + 2 * POLL_S - time.monotonic()
        if self.patience_s and rest > 0:
            time.sleep(min(rest, 2 * POLL_S))
        deadline, seen = time.monotonic() + self.patience_s, b""
        notice = time.monotonic() + self.noticed_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            now = os.pread(descriptor, 64, 0)
            if now != seen and self.patience_s:
                seen, deadline = now, time.monotonic() + self.patience_s
            if time.monotonic() >= deadline:
                raise GateBusy(
                    f"{_holder(now)} has been changing the queue for {self.patience_s:.0f} s; "
                    "see what it does, or end it, and try again"
                )
            if self.waits is not None and time.monotonic() >= notice:
                self.waits(_holder(now))
                notice = deadline + self.patience_s
            time.sleep(POLL_S)


def _holder(written: bytes) -> str:
    """The holder of the gate, from the lock file; a ddx may still hold it for a process that died."""
    try:
        pid = int(written.split()[0])
    except (ValueError, IndexError):
        return "another process"
    from helix_tui.core.ground.processes.threads import pid_alive  # needed only after a long wait

    if not pid_alive(pid):
        return f"a ddx that process {pid} started before it died"
    return f"process {pid}"


class Executable(Struct, frozen=True):
    """A program that speaks ``ddx bead``, used on one project."""

    words: tuple[str, ...]
    root: Path
    env: Mapping[str, str] = {}
    embedded: bool = False

    @property
    def name(self) -> str:
        """Its display name."""
        return "helix-ddx" if self.embedded else "ddx"

    def client(self) -> Ddx | None:
        """A client for queries; None for the embedded tracker, which handles only beads."""
        return None if self.embedded else Ddx(Path(self.words[0]), self.root, self.env or None)

    def run(
        self, args: Sequence[str], *, timeout: float | None = None, keep: Sequence[int] = (), reads: bool = False
    ) -> Finished:
        """Run one command that must succeed, by default within `TIMEOUT_S` seconds.

        Args:
            keep: file descriptors that the program inherits.
            reads: whether it changes nothing, so that it may be ended at any time.

        Raises:
            DdxError: it cannot be started, takes too long, or fails.
        """
        shown = (self.name, *args)
        finished = self.attempt(args, timeout=timeout, keep=keep, reads=reads)
        if finished.rc != 0:
            message = last_error(finished)
            raise DdxError(shown, message, advice_for(message, shown), 69 if _too_old(message) else 1, finished.stdout)
        return finished

    def attempt(
        self,
        args: Sequence[str],
        *,
        timeout: float | None = None,
        keep: Sequence[int] = (),
        reads: bool = False,
        cap: int = 8 << 20,
    ) -> Finished:
        """Run one command whose failure the caller handles; ``cap``: bytes kept of its output.

        Raises:
            DdxError: it cannot be started, or takes too long.
        """
        argv = (*self.words, *args)
        timeout = TIMEOUT_S if timeout is None else timeout
        shown = (self.name, *args)
        try:
            finished = run(
                argv, cwd=self.root, env={**self.env, **QUIET}, timeout=timeout, cap=cap, stop_at_cap=reads, keep=keep
            )
        except (OSError, ValueError) as error:
            raise not_started(shown, self.words[0], error) from None
        if finished.timed_out:
            advice = "it timed out; check whether another ddx holds the tracker, then try again"
            raise DdxError(shown, f"no answer after {timeout:g} s", advice)
        return finished


def _too_old(message: str) -> bool:
    return message.startswith(("unknown command", "unknown flag", "unknown shorthand"))


def find_executable(project: Project, explicit: str | None, *, env: Mapping[str, str] | None = None) -> Executable:
    """The ddx asked for, else the one on PATH, else the embedded tracker.

    Raises:
        DdxError: the ddx asked for does not exist; it is not replaced by another one.
    """
    # otherwise ddx might find another folder, and change another queue
    env = ddx_environment(project, os.environ if env is None else env)
    ddx = find_ddx(explicit, env)
    if ddx is not None:
        return Executable((os.fspath(ddx),), project.root, env)
    wanted = explicit or env.get("DDX_BIN")
    if wanted:
        raise ddx_missing((wanted,), wanted)
    return embedded_tracker(project, env)


def embedded_tracker(project: Project, env: Mapping[str, str]) -> Executable:
    """The embedded tracker, whatever ddx is on PATH."""
    return Executable(EMBEDDED, project.root, dict(env), embedded=True)


def dialect_for(executable: Executable) -> Dialect:
    """The dialect of an executable.

    Raises:
        DdxError: it cannot be started, or does not print its help in time.
    """
    commits = commits_writes(executable)
    # the embedded tracker is known and needs no trial
    if executable.embedded:
        return replace(FAMILIES["head"], commits=commits)
    dialect = dialect_of(Path(executable.words[0]), executable.root, env=executable.env)
    return replace(dialect, commits=commits, commits_staged=commits and staged_beside_tracker(executable.root))


def commits_writes(executable: Executable) -> bool:
    """Whether ddx's settings make a commit of each write."""
    own = executable.root / ".ddx"
    # ddx does not commit a tracker outside the repository
    elsewhere = Path(executable.env.get("DDX_BEAD_DIR") or own) != own
    return not elsewhere and ddx_setting(own / "config.yaml", "git", "auto_commit") == "always"


def require_same_plan(made: Plan, shown: Plan | None, queue: Queue) -> None:
    """Raise if the plan is not the confirmed one.

    Raises:
        PlanChanged: the plans differ.
    """
    if shown is not None and [step.args for step in made.steps] != [step.args for step in shown.steps]:
        raise PlanChanged(differences(preconditions(shown.steps), queue.beads))


def author(kind: str, env: Mapping[str, str]) -> Who:
    """The author of changes made by this process; at the command line an agent, if one started it."""
    if kind == "cli" and started_by_client(env):
        kind = "agent"
    try:
        user = env.get("DDX_AGENT_NAME") or getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Who(kind, called(user), os.getpid())


def beads_in_entries(history: JournalHistory, but: set[str]) -> set[str]:
    """Ids of all beads that entries name, ``but`` some entries."""
    return {bead_id for entry in history.entries if entry.id not in but for bead_id in (*entry.before, *entry.after)}


class QueueState(Struct, frozen=True):
    """The current tracker, classified."""

    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...] = ()
    dialect: Dialect | None = None
    """The installed ddx, whose rule judged the queue if it is proven; None if there is none."""

    @property
    def shut(self) -> Shut | None:
        """What the installed ddx would refuse here, and why; or None."""
        return shut(self.tracker.beads, self.dialect)

    @property
    def difference(self) -> Remark | None:
        """The warning if another release than the installed one wrote the tracker."""
        return difference(self.tracker.beads, self.dialect)

    @property
    def busy(self) -> frozenset[str]:
        """Beads with a live worker, by more than a claim."""
        return frozenset(
            run.bead_id for run in self.runs if run.live and run.bead_id and run.source in ("run-state", "sidecar")
        )

    @property
    def claimed(self) -> frozenset[str]:
        """Beads held by a worker or a person not known to be dead."""
        return frozenset(run.bead_id for run in self.runs if run.bead_id and run.verdict != "dead")


def readiness_changes(
    before: Queue, after: Queue, steps: Iterable[CommandStep]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(newly ready, newly blocked) because of some steps, without concurrent changes by others."""
    near = _reached(before, after, steps)
    was, now = set(before.ready), set(after.ready)
    ready = tuple(bead_id for bead_id in after.ready if bead_id not in was and bead_id in near)
    gone = [bead_id for bead_id in before.ready if bead_id not in now and bead_id in after.beads]
    free = TERMINAL | IN_HAND
    return ready, tuple(bead_id for bead_id in gone if bead_id in near and after.state(bead_id) not in free)


def _reached(before: Queue, after: Queue, steps: Iterable[CommandStep]) -> set[str]:
    """The beads that steps touch, those that wait for them and those above them."""
    touched: set[str] = set()
    for step in steps:
        touched |= {*step.edits, *step.ripple, *(bead_id for bead_id, _ in step.watched)}
    near = set(touched)
    for queue in (before, after):
        for bead_id in touched & queue.beads.keys():
            near |= {*queue.graph.dependents.get(bead_id, ()), queue.beads[bead_id].parent}
    return near
