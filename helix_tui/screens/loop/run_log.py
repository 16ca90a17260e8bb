"""HELIX's own loop on the Loop screen: how it stands, and the end of what it says, followed.

What the agents of all running attempts did last, read from their transcripts look by look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from textual.worker import Worker

from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ground.git import read_end
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.run_state.status import said_lines
from helix_tui.screens.background import Jobs
from helix_tui.widgets.chrome.actions import KEPT, Action, ActionLog
from helix_tui.widgets.chrome.notice_line import LogTail
from helix_tui.widgets.rows.attempts import RunView

LINES = 12
BYTES = 256 << 10
INKS = {"active": "running", "died": "error"}


class RunTail(LogTail):
    """A log's end that reads what it shows, in a thread; hidden where no loop of HELIX ever ran.

    Of a loop that has ended it says why, and no more.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False
        self._status_summary = StatusSummary()
        self._said: tuple[str, ...] = ()
        self._jobs = Jobs(self)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A reading has come back."""
        event.stop()
        self._jobs.settle(event.worker)

    def show_bearing(self, status_summary: StatusSummary | None) -> None:
        """The newest answer of whoever looks after the loop; ask every second, for the log goes on."""
        if status_summary is not None:
            self._status_summary = status_summary
        run = self._status_summary.run
        active = run.condition == "active"
        self.display = run.condition != "never" or self._status_summary.stoppage is not None
        self.set_class(active, "-active")
        log = run.state.log
        if active and log and self.screen.is_current and not self._jobs.busy("log"):
            self._jobs.start("log", partial(_read, Path(log)), self._take, self._excuse)
        self._show()

    def _take(self, said: tuple[str, ...]) -> None:
        self._said = said
        self._show()

    def _excuse(self, why: str) -> None:
        self._take((f"the log cannot be read: {why}",))

    def _show(self) -> None:
        run = self._status_summary.run
        name = clean_line(Path(run.state.log).name, 60) if run.state.log else ""
        words, ink = clean_line(run.explanation, 400), INKS.get(run.condition, "text")
        stoppage = self._status_summary.stoppage
        if stoppage is not None and run.condition != "active":
            words, ink = clean_line(stoppage.words, 600), "attention"
        self.show("helix loop", f"{name} · L" if name else "L", (words, ink), self._said)


def _read(path: Path) -> tuple[str, ...]:
    return tuple(clean_line(line, 300) for line in said_lines(read_end(path, BYTES))[-LINES:])


WINDOW = 64 << 10
"""Bytes before the end of a transcript that are looked at when its run is met."""

Seen = Mapping[str, tuple[Action, ...]]


class Follower:
    """Tails of the transcripts of what runs. One thread at a time looks; who asks sees to that."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TranscriptTail, ActionLog]] = {}

    def look(self, runs: Sequence[Run]) -> Seen:
        """The last actions of each run, by the key of its row. This reads files: call it from a worker."""
        seen: dict[str, tuple[Action, ...]] = {}
        for run in runs:
            if not run.folders:
                continue
            key = RunView(run).key
            if key not in self._known:
                self._known[key] = (TranscriptTail(run.folders, window=WINDOW), ActionLog())
            tail, log = self._known[key]
            tail.watch(run.folders)
            log.take(tail.poll())
            seen[key] = log.last(KEPT)
        for key in self._known.keys() - seen.keys():
            del self._known[key]
        return seen
