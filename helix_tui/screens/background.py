"""Background work of one console: workers, jobs in threads, outcomes of memories.

As attempts end, their outcomes settle the memories they were given. That happens in a separate thread, imports
included: the memory's libraries are not loaded without a memory. With --read-only outcomes are left for another
process to settle; the status bar's text is updated anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct
from textual.dom import DOMNode
from textual.worker import Worker, WorkerState

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.settings.file import load_settings
from helix_tui.textual_inside import OpenedApp

if TYPE_CHECKING:
    from textual.app import App

Result = TypeVar("Result")

DAY = 86_400 * NS


_run_worker = DOMNode.run_worker


def run_worker(node: DOMNode, work: Any, *, description: str = "", **options: Any) -> Worker[Any]:
    """As in Textual; a worker that has begun releases what it works on, and is described by its group.

    Textual's worker, its task and the task's context hold each other. Until garbage is collected, every worker would
    keep its data alive, for example a snapshot with all attempts. Its description is else a repr of all that the work
    holds: of a snapshot 40 ms, which a key waits for.
    """
    name = description or str(options.get("name") or options.get("group", "")) or "work"
    return _run_worker(node, Once(work) if options.get("thread") else work, description=name, **options)


class Once:
    """A function that is called once, and forgotten as it is called."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._left = [work]

    def __call__(self) -> Any:
        """Call it."""
        return self._left.pop()()


DOMNode.run_worker = run_worker  # type: ignore[method-assign, assignment]


class UnwaitedThreads(ThreadPoolExecutor):
    """The threads of workers; quitting waits for none of them."""

    def shutdown(self, *_: bool, **_options: bool) -> None:
        """Start no more work."""
        super().shutdown(wait=False, cancel_futures=True)


class Jobs:
    """The jobs of one node. The node passes `Worker.StateChanged` on to `settle`."""

    def __init__(self, node: DOMNode) -> None:
        self._node = node
        self._current: dict[str, tuple[Worker[Any], Callable[[Any], None], Callable[[str], None]]] = {}

    def start(
        self, kind: str, work: Callable[[], Result], done: Callable[[Result], None], failed: Callable[[str], None]
    ) -> None:
        """Run ``work`` in a thread, then ``done`` with its result or ``failed`` with a sentence, here."""
        worker: Worker[Any] = self._node.run_worker(
            work,
            name=kind,
            group=kind,
            exit_on_error=False,
            exclusive=True,
            thread=True,
        )
        self._current[kind] = (worker, done, failed)

    def busy(self, kind: str) -> bool:
        """Whether a job of this kind is still running."""
        return kind in self._current

    def drop(self, kind: str) -> None:
        """Cancel a job; its result is ignored."""
        found = self._current.pop(kind, None)
        if found is not None:
            found[0].cancel()

    def settle(self, worker: Worker[Any]) -> None:
        """Deliver the result of a worker of the node that has ended."""
        found = self._current.get(worker.name)
        # a newer worker of the same kind has replaced it: the older result is out of date
        if found is None or found[0] is not worker:
            return
        _, done, failed = found
        if worker.state is WorkerState.SUCCESS:
            # before the call, because it may start the next job of this kind
            del self._current[worker.name]
            done(worker.result)
        elif worker.state in (WorkerState.ERROR, WorkerState.CANCELLED):
            del self._current[worker.name]
            error = worker.error
            if isinstance(error, Exception) and worker.state is WorkerState.ERROR:
                failed(clean_line(f"{type(error).__name__}: {error}", 300))
                if not isinstance(error, (HelixError, OSError)):
                    cast(OpenedApp, self._node.app).failed(error)  # a defect: logged with its trace


class JobHost:
    """What a screen or widget with jobs is as well."""

    @cached_property
    def _jobs(self) -> Jobs:
        return Jobs(cast(DOMNode, self))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Deliver the result of a job that has ended."""
        self._jobs.settle(event.worker)


class Closed(Struct, frozen=True):
    """What one look learned."""

    health: str = ""
    """The memory's health for the status bar."""
    said: str = ""
    """What was credited, blamed and proposed; empty if nothing was."""


class LoopCloser:
    """Learns for one app. A look requested while one is running follows it."""

    def __init__(self, app: App[int], *, read_only: bool, tell: Callable[[Closed], None]) -> None:
        self._app = app
        self._read_only = read_only
        self._tell = tell
        self._busy = False
        self._again: Snapshot | None = None

    def settle_ended(self, snapshot: Snapshot) -> None:
        """Learn from a snapshot's attempts, if there is a memory."""
        if not snapshot.project.helix_dir.joinpath("helix.db").exists():
            return
        if self._busy:
            # only the newest: it holds every attempt of the earlier ones
            self._again = snapshot
            return
        self._busy = True
        self._app.run_worker(lambda: self._work(snapshot), group="learn", thread=True)

    def _work(self, snapshot: Snapshot) -> None:
        try:
            closed = close_loop(snapshot, read_only=self._read_only)
        finally:
            # also after an unexpected error, else learning would stop for good
            self._app.call_from_thread(self._free)
        if closed is not None:
            self._app.call_from_thread(self._tell, closed)

    def _free(self) -> None:
        self._busy = False
        again, self._again = self._again, None
        if again is not None:
            self.settle_ended(again)


def close_loop(snapshot: Snapshot, *, read_only: bool) -> Closed | None:
    """Settle outcomes and propose lessons; None if the memory cannot be opened now."""
    from helix_tui.core.memory.memory_store import open_memory
    from helix_tui.core.memory.records import MemoryFault
    from helix_tui.core.memory.store.database import database_path
    from helix_tui.core.supervision.agents.learning import Learner, accept_by_rule, summed

    try:
        path = database_path(snapshot.project)
        with open_memory(path, read_only=read_only, busy_seconds=2.0, teacher="person") as memory:
            said = ""
            if not read_only:
                learner = Learner(snapshot.project, memory)
                since = snapshot.taken_at - DAY
                attempts = tuple(snapshot.attempts)
                said = summed(learner.learn(snapshot.queue.beads, attempts, since=since))
                accepted = accept_by_rule(memory, load_settings().accept_lessons, attempts)
                said = ", ".join(filter(None, (said, accepted.title if accepted else "")))
            return Closed(memory.health().words, said)
    except MemoryFault:
        return None
