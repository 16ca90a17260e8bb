"""The one place of the console that changes the queue: it plans and foresees in one thread, runs in another.

Changes run one after the other; planning has a curator of its own, so that a ddx which hangs keeps nobody
from looking. What comes back is told on the app's thread. Both threads die with the program: a command that
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

from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.names import Era
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.execute.gate import Executable, GateBusy, WritesForbidden, find_executable
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.plan.planner import Plan
from helix_tui.core.editing.preview import Consequences, foresee
from helix_tui.core.editing.steps import Conflict, OperationRefused
from helix_tui.core.editing.undo import NotUndoable, Unreadable
from helix_tui.core.snapshot import Snapshot
from helix_tui.core.supervision.agents.hooks import SKIP
from helix_tui.screens.editing.requests import ChangeRequest

Trouble = Exception
TROUBLES = (Conflict, NotUndoable, OperationRefused, WritesForbidden, GateBusy, DdxError, Unreadable, OSError)
"""What curation may end in, each with a sentence of its own; a journal error is one of the last."""


class Preview(Struct, frozen=True):
    """What a request would do, and what would follow."""

    plan: Plan
    follows: Consequences
    queue_state: QueueState
    embedded: bool
    """The embedded tracker would run it, for there is no ddx."""


class ChangeHost(Protocol):
    """What the change runner asks of the app: its own thread, its state, and to be heard."""

    snapshot: Snapshot

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool: ...

    def show_pending(self) -> None: ...


FOLLOW_S = 5.0
"""How long an undo waits for the change that runs: what it takes back is that one, not the one before."""


class JobQueue:
    """A thread that does jobs in their order and tells what came of each."""

    def __init__(self, name: str, tell: Callable[..., Any]) -> None:
        self._name = name
        self._tell = tell
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = 0
        self._idle = threading.Condition()

    def send(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Trouble], None]) -> None:
        """Have ``work`` done, then ``done`` or ``failed`` called on the app's thread."""
        with self._idle:
            self._open += 1
        self._jobs.put(partial(self._do, work, done, failed))
        # a defect ends the thread, after its caller was told: the next job has another one
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until every job has been done; False when the time is over before."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._open, seconds)

    def end(self) -> None:
        """Let the thread end after what was sent before; another job starts one again."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _do(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Trouble], None]) -> None:
        unheard = RuntimeError("it ended unexpectedly; look at the bead before you continue")
        # said where something else than TROUBLES is raised: that goes on to the error barrier, and the caller waits for
        # nothing
        tell: Callable[[], None] = partial(failed, unheard)
        try:
            tell = partial(done, work())
        except TROUBLES as error:
            tell = partial(failed, error)
        finally:
            with suppress(RuntimeError):  # the app has gone meanwhile
                self._tell(tell)
            with self._idle:
                self._open -= 1
                self._idle.notify_all()


class ChangeRunner:
    """Curation for the whole console.

    Attributes:
        curator: what runs.
        pending: beads that a change which runs now, or waits for its turn, is about.
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
        """The stop of each change that runs or waits: one sent later has its own."""
        self._stopped = threading.Event()
        """The stop of the change that runs."""
        self._waiting: list[ChangeRequest] = []
        self.curator.progress = self._go_on

    # --- looking ------------------------------------------------------------------------------------------

    def recover(self, settled: Callable[[tuple[JournalEntry, ...]], None], failed: Callable[[Trouble], None]) -> None:
        """Settle what a program that died left in the journal."""
        if not self.curator.gate.read_only:
            self._changes.send(self.curator.recover, settled, failed)

    def check(self) -> None:
        """Refuse where nothing may be written, before anybody types anything.

        Raises:
            WritesForbidden: --read-only.
        """
        self.curator.gate.check()

    def foresee(
        self, request: ChangeRequest, done: Callable[[Preview], None], failed: Callable[[Trouble], None]
    ) -> None:
        """Find what a request would do and what would follow, on the queue as it stands."""
        shown = self._host.snapshot

        def work() -> Preview:
            if request.follows:
                self._changes.wait(FOLLOW_S)
            # what is on screen, where the file is still that: it need not be read again
            queue_state = QueueState(shown.tracker, shown.queue, shown.runs, shown.dialect)
            if not _stands(shown):
                queue_state = self._scout.look()
            made = request.plan(self._scout, queue_state)
            embedded = self._scout.executable(queue_state.queue.default_era).embedded
            return Preview(made, foresee(queue_state.queue, made.steps), queue_state, embedded)

        self._plans.send(work, done, failed)

    # --- changing -----------------------------------------------------------------------------------------

    def run(
        self,
        request: ChangeRequest,
        shown: Plan,
        done: Callable[[Result | None], None],
        failed: Callable[[Trouble], None],
    ) -> None:
        """Do what was shown, once the changes before it are done."""
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
        """Let the changes sent so far end after their present command; False where none runs."""
        for each in self._stops:
            each.set()
        return bool(self._waiting)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is being done; False when the time is over before."""
        return self._plans.wait(seconds) and self._changes.wait(seconds)

    def end(self) -> None:
        """Let both threads end once they are done: they would hold the console."""
        self._plans.end()
        self._changes.end()

    def _go_on(self, ran: int, of: int) -> bool:
        """Between two commands, in the thread that runs them."""
        with suppress(RuntimeError):  # the app has gone meanwhile
            self._host.call_later(self._show, (ran, of))
        return not self._stopped.is_set()

    def _show(self, progress: tuple[int, int] | None) -> None:
        self.progress = progress if self._waiting else None
        self.pending = tuple(bead_id for request in self._waiting for bead_id in request.beads)
        self._host.show_pending()


def _stands(shown: Snapshot) -> bool:
    """Whether the tracker is still as a snapshot shows it, so that nothing need be read again."""
    try:
        found = os.stat(shown.tracker.path)
    except OSError:
        return False
    return (found.st_mtime_ns, found.st_size) == (shown.tracker.mtime_ns, shown.tracker.size)


def open_change_runner(host: ChangeHost, *, read_only: bool, ddx: str | None, clock: Callable[[], int]) -> ChangeRunner:
    """The change runner of a console, with the ddx that ``--ddx`` names."""
    project = host.snapshot.project

    def find(era: Era) -> Executable:
        # the form on which a bead is made has judged it: our own hook would say the same again
        return find_executable(project, ddx, era=era, env=os.environ | {SKIP: "1"})

    def make() -> Curator:
        return Curator(project, find, who="human", read_only=read_only, as_of=clock)

    return ChangeRunner(host, make)
