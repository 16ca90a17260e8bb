"""The one place in the console that changes the queue: it plans and previews in one thread, runs in another.

Changes run one after the other; planning has its own curator, so that a ddx that hangs keeps no one
from looking. Results are delivered on the app's thread. Both threads end with the program: a command that
still runs then holds the gate until it ends, and the next start settles the journal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

from msgspec import Struct

from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.execute.gate import Executable, find_executable
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.plan import Plan
from helix_tui.core.editing.preview import Consequences, foresee
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.core.supervision.agents.hooks import SKIP
from helix_tui.core.supervision.requests import ChangeRequest

FOLLOW_S = 5.0
"""How long an undo waits for the running change: it undoes that one, not the one before."""


class Preview(Struct, frozen=True):
    """What a request would do, and what would follow."""

    plan: Plan
    follows: Consequences
    queue_state: QueueState


class ChangeHost(Protocol):
    """What the change runner needs from the app: its thread, its state, and notices."""

    snapshot: Snapshot

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool: ...

    def show_pending(self) -> None: ...


class JobQueue:
    """A thread that runs jobs in order and reports the result of each."""

    def __init__(self, name: str, tell: Callable[..., Any]) -> None:
        self._name = name
        self._tell = tell
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = 0
        self._idle = threading.Condition()

    def send(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        """Have ``work`` done, then ``done`` or ``failed`` called on the app's thread."""
        with self._idle:
            self._open += 1
        self._jobs.put(partial(self._do, work, done, failed))
        # an unexpected error ends the thread after its caller got it: the next job gets a new thread
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until every job is done; False if the time runs out first."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._open, seconds)

    def end(self) -> None:
        """Let the thread end after the jobs sent so far; a later job starts a new one."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _do(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        unheard = RuntimeError("it ended unexpectedly; look at the bead before you continue")
        # the caller must not keep waiting if something else is raised, which goes to the error
        # barrier
        tell: Callable[[], None] = partial(failed, unheard)
        try:
            tell = partial(done, work())
        except (HelixError, OSError) as error:
            tell = partial(failed, error)
        finally:
            with suppress(RuntimeError):  # the app has quit meanwhile
                self._tell(tell)
            with self._idle:
                self._open -= 1
                self._idle.notify_all()


class ChangeRunner:
    """Changes to the queue for the whole console.

    Attributes:
        curator: what runs.
        pending: beads of changes that run now or wait for their turn.
        progress: (commands that ran, of how many) of the change that runs; None while none does.
    """

    def __init__(self, host: ChangeHost, make_curator: Callable[[], Curator]) -> None:
        self.curator = make_curator()
        self._scout = make_curator()
        self.pending: tuple[str, ...] = ()
        self.progress: tuple[int, int] | None = None
        self._host = host
        self._changes = JobQueue("curation", host.call_later)
        self._plans = JobQueue("foresight", host.call_later)
        self._stops: list[threading.Event] = []
        """The stop event of each running or waiting change: later ones have their own."""
        self._stopped = threading.Event()
        """The stop event of the running change."""
        self._waiting: list[ChangeRequest] = []
        self.curator.progress = self._go_on

    # --- looking ------------------------------------------------------------------------------------------

    def recover(self, settled: Callable[[tuple[JournalEntry, ...]], None], failed: Callable[[Exception], None]) -> None:
        """Settle the journal entries of a process that died."""
        if not self.curator.gate.read_only:
            self._changes.send(self.curator.recover, settled, failed)

    def check(self) -> None:
        """Refuse if nothing may be written, before the user types anything.

        Raises:
            WritesForbidden: --read-only.
        """
        self.curator.gate.check()

    def foresee(
        self, request: ChangeRequest, done: Callable[[Preview], None], failed: Callable[[Exception], None]
    ) -> None:
        """Find what a request would do and what would follow, on the present queue."""
        shown = self._host.snapshot

        def work() -> Preview:
            if request.follows:
                self._changes.wait(FOLLOW_S)
            # use what is on screen if the file is unchanged, to save reading it again
            queue_state = QueueState(shown.tracker, shown.queue, shown.runs, shown.dialect)
            if not _stands(shown):
                queue_state = self._scout.look()
            made = self._scout.foretell(request.plan(self._scout, queue_state), queue_state)
            return Preview(made, foresee(queue_state.queue, made.steps), queue_state)

        self._plans.send(work, done, failed)

    # --- changing -----------------------------------------------------------------------------------------

    def run(
        self,
        request: ChangeRequest,
        shown: Plan,
        done: Callable[[Result | None], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run what was shown, once the changes before it are done."""
        stopped = threading.Event()
        self._stops.append(stopped)
        self._waiting.append(request)
        self._show(None)

        def ended(call: Callable[[Any], None], result: Any) -> None:
            self._stops.remove(stopped)
            self._waiting.remove(request)
            self._show(None)
            call(result)

        def work() -> Result | None:
            self._stopped = stopped
            return request.run(self.curator, shown)

        self._changes.send(work, partial(ended, done), partial(ended, failed))

    def stop(self) -> bool:
        """Let the changes sent so far stop after their current command; False if none is running."""
        for each in self._stops:
            each.set()
        return bool(self._waiting)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is running; False if the time runs out first."""
        return self._plans.wait(seconds) and self._changes.wait(seconds)

    def end(self) -> None:
        """Let both threads end once they are done: they would keep the console from exiting."""
        self._plans.end()
        self._changes.end()

    def _go_on(self, ran: int, of: int) -> bool:
        """Between two commands, in the thread that runs them."""
        with suppress(RuntimeError):  # the app has quit meanwhile
            self._host.call_later(self._show, (ran, of))
        return not self._stopped.is_set()

    def _show(self, progress: tuple[int, int] | None) -> None:
        self.progress = progress if self._waiting else None
        self.pending = tuple(bead_id for request in self._waiting for bead_id in request.beads)
        self._host.show_pending()


def _stands(shown: Snapshot) -> bool:
    """Whether the tracker is unchanged since a snapshot, so that it need not be read again."""
    try:
        found = os.stat(shown.tracker.path)
    except OSError:
        return False
    return (found.st_mtime_ns, found.st_size) == (shown.tracker.mtime_ns, shown.tracker.size)


def open_change_runner(host: ChangeHost, *, read_only: bool, ddx: str | None, clock: Callable[[], int]) -> ChangeRunner:
    """The change runner of a console, with the ddx named by ``--ddx``."""
    project = host.snapshot.project

    def find() -> Executable:
        # the form on which a bead is made has judged it: our own hook would say the same again
        return find_executable(project, ddx, env=os.environ | {SKIP: "1"})

    def make() -> Curator:
        return Curator(project, find, who="human", read_only=read_only, as_of=clock)

    return ChangeRunner(host, make)
