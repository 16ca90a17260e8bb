"""What a console watches beside the queue, and whom it tells: the monitor and notifications.

The monitor looks for drift, orphaned claims and an outdated focus. A user who looks elsewhere is notified by the
terminal's bell and notes and by a command of their own; `decide/monitor` decides of what. Imported once the queue is on
screen: with what decides it takes 30 ms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.editing.execute.gate import WriteGate, find_executable
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.text import capitalized
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.core.statements.counts import need_you
from helix_tui.core.statements.notifications import (
    NewsWatch,
    Notification,
    claimed,
    forget,
    run_command,
    sequences,
    terminal_ways,
)
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.decide.monitor import BackgroundMonitor, Concerns, needs_now
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.screens.base import ThreadHost
from helix_tui.settings.file import Settings, load_settings

if TYPE_CHECKING:
    from helix_tui.core.supervision.decide.needs import SplitNeeds

ATTEMPTING = "one-bead"
"""Group of the console's workers that have beads attempted one after the other."""


class ConsoleMonitor:
    """The monitor of one console. The feed's thread calls `see`; ``tell`` is called in the monitor's thread."""

    def __init__(
        self,
        snapshot: Snapshot,
        tell: Callable[[Concerns], None],
        *,
        read_only: bool,
        ddx: str | None,
        clock: Callable[[], int],
    ) -> None:
        project = snapshot.project
        curator = None
        if not read_only:
            curator = Curator(project, lambda: find_executable(project, ddx), who="helix", as_of=clock)
            # the monitor does not wait: what it may not write now it tries again later
            curator.gate = WriteGate(project, patience_s=0.0)
        self._monitor = BackgroundMonitor(
            project, tell, curator=curator, clock=clock, default_budget=load_settings().budget
        )

    @property
    def concerns(self) -> Concerns:
        """The latest findings."""
        return self._monitor.concerns

    def start(self, snapshot: Snapshot) -> None:
        """Start looking, in a daemon thread."""
        self.see(snapshot)
        self._monitor.start()

    def stop(self) -> None:
        """Stop looking."""
        self._monitor.stop()

    def see(self, snapshot: Snapshot) -> None:
        """Take a newer snapshot; one without a readable tracker says nothing about its beads."""
        if snapshot.condition in ("live", "empty"):
            self._monitor.see(_queue_state(snapshot), snapshot.journal, snapshot.attempts)

    def look(self, snapshot: Snapshot) -> None:
        """Look at once, in this thread; for a single frame."""
        queue_state = _queue_state(snapshot)
        found = self._monitor.look(queue_state, snapshot.journal, snapshot.attempts)
        self._monitor.concerns = replace(found, minded=())

    def acknowledge(self, bead_ids: Iterable[str]) -> None:
        """Mark the drift of these beads as seen."""
        self._monitor.acknowledge(bead_ids)

    def needs(self, snapshot: Snapshot, now: int) -> SplitNeeds:
        """Everything that waits for a person, and what of it is snoozed."""
        found = self._monitor.refresh()
        return needs_now(snapshot.project, _queue_state(snapshot), snapshot.attempts, found, now)


def _queue_state(snapshot: Snapshot) -> QueueState:
    return QueueState(snapshot.tracker, snapshot.queue, snapshot.runs, snapshot.dialect)


class NotifierHost(ThreadHost, Protocol):
    """What notifying needs from the app."""

    def write_terminal(self, text: str) -> None: ...

    @property
    def status_summary(self) -> StatusSummary | None: ...

    @property
    def workers(self) -> Iterable[Any]: ...


class Notifier:
    """Follows every new state of one console and notifies the user once of each new event."""

    def __init__(self, host: NotifierHost, settings: Settings, *, read_only: bool, clock: Callable[[], int]) -> None:
        self._host, self._settings, self._read_only, self._clock = host, settings, read_only, clock
        self._watch = NewsWatch()
        ways = settings.notify_terminal
        self._ways = terminal_ways(os.environ) if ways is None else ways
        self._held: list[Notification] = []
        """Notes that arrived in quiet hours."""
        self._complained = False

    def see(self, snapshot: Snapshot, needs: Sequence[Need]) -> None:
        """Take a new state; notify of what is new in it, in a thread."""
        now, summary = self._clock(), self._host.status_summary
        loop = summary is not None and summary.run.condition == "active"
        loop = loop or any(worker.group == ATTEMPTING and worker.is_running for worker in self._host.workers)
        found = self._watch.see(needs, snapshot.runs, snapshot.attempts, now=now, loop=loop, beads=snapshot.queue.beads)
        gone = self._watch.gone()
        self._held += found
        # the screen shows at once that a run has ended; quiet hours apply to notifications elsewhere
        for note in found:
            if note.event == "run_ended":
                more = f" · {need_you(note.waiting)}: !" if note.waiting else ""
                self._host.say(f"{capitalized(note.title)}: {note.body}{more}")
        notes: list[Notification] = []
        # what has gone is forgotten in quiet hours too: that makes no notification
        if not self._settings.quiet_hours.hold(now):
            notes, self._held = self._held, notes
        if not (notes or gone):
            return
        waiting = {need.key for need in needs}
        self._host.run_worker(lambda: self._tell(snapshot, notes, gone, waiting), thread=True, group="notify")

    def tick(self, snapshot: Snapshot, needs: Sequence[Need]) -> None:
        """Time has passed: when the quiet hours are over, notify of what arrived in them."""
        if self._held and not self._settings.quiet_hours.hold(self._clock()):
            self.see(snapshot, needs)

    def _tell(self, snapshot: Snapshot, notes: Sequence[Notification], gone: frozenset[str], waiting: set[str]) -> None:
        """Send the notes that no other console has sent; runs in a thread."""
        if not self._read_only:
            forget(snapshot.project, gone)
        for note in notes:
            if note.event == "needs" and not waiting.intersection(note.keys):
                continue  # dealt with before it was sent
            try:
                # of several consoles on one project, the one that creates the marker notifies
                ours = bool(note.keys) if self._read_only else bool(claimed(snapshot.project, note.keys))
            except OSError as error:
                logs.logger("app").warning("a notification could not be marked as sent: %s", error)
                # better notified twice than not at all
                ours = True
            if ours:
                self._say(snapshot, note)

    def _say(self, snapshot: Snapshot, note: Notification) -> None:
        titled = replace(note, title=f"{snapshot.project.name}: {note.title}")
        text = sequences(self._ways, titled, tmux="TMUX" in os.environ)
        self._host.call_from_thread(self._host.write_terminal, text)
        if not self._settings.notify:
            return
        problem = run_command(
            self._settings.notify, note.document(snapshot.project, self._clock()), snapshot.project.root
        )
        # a failing command would fail at every note
        if problem and not self._complained:
            self._complained = True
            self._host.call_from_thread(self._host.say, f"notification not sent: {problem}", "warning")
