"""What the console knows beside the snapshot: drift, orphaned claims, how the focus stands; and who looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.editing.execute.executable import find_executable
from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.supervision.decide.background_monitor import BackgroundMonitor, Concerns
from helix_tui.core.supervision.decide.needs import Need, asked_of, needs_of
from helix_tui.core.supervision.signals.tried import still_tried

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Snapshot


class ConsoleMonitor:
    """The monitor of one console. `see` is for the feed's thread, and ``tell`` is called in the monitor's."""

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
            curator = Curator(project, lambda era: find_executable(project, ddx, era=era), who="helix", as_of=clock)
            curator.gate = WriteGate(project, patience_s=0.0)
        self._monitor = BackgroundMonitor(project, tell, curator=curator, clock=clock)

    @property
    def concerns(self) -> Concerns:
        """What was found last."""
        return self._monitor.concerns

    def start(self, snapshot: Snapshot) -> None:
        """Begin to look, in a thread that nothing waits for."""
        self.see(snapshot)
        self._monitor.start()

    def stop(self) -> None:
        """Look no more."""
        self._monitor.stop()

    def see(self, snapshot: Snapshot) -> None:
        """There is a newer snapshot; one without a readable tracker tells nothing of its beads."""
        if snapshot.condition in ("live", "empty"):
            self._monitor.see(_queue_state(snapshot), snapshot.journal)

    def look(self, snapshot: Snapshot) -> None:
        """Look at once, in this thread; for a frame that is drawn once."""
        queue_state = _queue_state(snapshot)
        self._monitor.concerns = replace(self._monitor.look(queue_state, snapshot.journal), minded=())

    def acknowledge(self, bead_ids: Iterable[str]) -> None:
        """The drift of these beads has been seen."""
        self._monitor.acknowledge(bead_ids)

    def needs(self, snapshot: Snapshot) -> tuple[Need, ...]:
        """Everything that waits on a person."""
        found = self.concerns
        return needs_of(
            snapshot.queue,
            snapshot.runs,
            snapshot.tracker,
            drift=found.drift,
            orphans=found.orphans,
            unminded=found.unminded,
            epic=found.focus.epic,
            questions=asked_of(snapshot.project),
            stoppage=found.status_summary.stoppage,
            dead=found.dead,
            archived=found.archived,
            attempts=snapshot.attempts,
            tried=still_tried(found.status_summary.run.state.tried, snapshot.queue),
        )


def _queue_state(snapshot: Snapshot) -> QueueState:
    return QueueState(snapshot.tracker, snapshot.queue, snapshot.runs, snapshot.dialect)
