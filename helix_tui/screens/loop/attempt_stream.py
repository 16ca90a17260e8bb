"""What feeds the lists of the Loop screen: snapshots give runs and attempts, transcripts the last actions.

Below them, `RunTail` shows the state of HELIX's own loop and the end of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.timer import Timer

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ground.files import read_end
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, midnight
from helix_tui.core.statements.run import explain_run
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.run_state.run_log import said_lines
from helix_tui.core.supervision.signals.orphans import gone
from helix_tui.screens.background import JobHost
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.chrome.actions import KEPT, Action, ActionLog
from helix_tui.widgets.chrome.header import LogTail
from helix_tui.widgets.rows.attempt_table import SORTS, AttemptFilter, SortKey, arranged
from helix_tui.widgets.rows.attempts import AttemptOrder, Board, RunningPanel, RunView

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot

LINES = 12
BYTES = 256 << 10
INKS = {"active": "running", "died": "error"}

WINDOW = 64 << 10
"""How many bytes at the end of a transcript are read at first."""

LOOK_SECONDS = 0.7
"""How often live transcripts are read, in addition to every time the feed reports a change."""

TABLE_CELLS = 56
"""The width from which the columns have headings."""

MAX_DEAD_WORKERS = 3
"""How many dead workers have a row: a project of a year has dozens of them."""

NEWS_S = 86_400
"""How long a dead worker that holds no bead may have one: nobody can do anything about it."""


class RunTail(JobHost, LogTail):
    """The end of the loop's log, read in a thread; hidden if no HELIX loop ever ran.

    For a loop that has ended it shows only the reason.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status_summary = StatusSummary()
        self._said: tuple[str, ...] = ()

    def show_status_summary(self, status_summary: StatusSummary | None) -> None:
        """Take the loop's newest state; called every second, because the log grows."""
        if status_summary is not None:
            self._status_summary = status_summary
        run = self._status_summary.run
        active = run.condition == "active"
        self.set_class(run.condition != "never" or self._status_summary.stoppage is not None, "-said")
        self.set_class(active, "-active")
        self._said = self._said if active else ()  # the lines of a run that has ended are in its log
        log = run.state.log
        # not while another screen is shown: each reading takes the whole end again
        if active and log and self.screen.is_current and not self._jobs.busy("log"):
            self._jobs.start("log", partial(_read, Path(log)), self._take, self._show_failure)
        self._show()

    def _take(self, said: tuple[str, ...]) -> None:
        self._said = said
        self._show()

    def _show_failure(self, why: str) -> None:
        self._take((f"the log cannot be read: {why}",))

    def _show(self) -> None:
        run = self._status_summary.run
        name = clean_line(Path(run.state.log).name, 60) if run.state.log else ""
        words, ink = clean_line(explain_run(run), 400), INKS.get(run.condition, "text")
        stoppage = self._status_summary.stoppage
        if stoppage is not None and run.condition != "active":
            words, ink = clean_line(stoppage.words, 600), "attention"
        self.show("helix loop", f"{name} · L" if name else "L", (words, ink), self._said)


def _read(path: Path) -> tuple[str, ...]:
    return tuple(clean_line(line, 300) for line in said_lines(read_end(path, BYTES))[-LINES:])


Seen = Mapping[str, tuple[Action, ...]]


class Follower:
    """Tails of the transcripts of what runs. Only one thread may look at a time; the caller ensures it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TranscriptTail, ActionLog]] = {}

    def look(self, runs: Sequence[Run]) -> Seen:
        """Row key -> the run's last actions. This reads files: call it from a worker."""
        seen: dict[str, tuple[Action, ...]] = {}
        for run in runs:
            if not run.folders:
                continue
            key = RunView(run).key
            if key not in self._known:
                self._known[key] = (TranscriptTail(run.folders, window=WINDOW), ActionLog())
            tail, log = self._known[key]
            # a transcript moves from one folder to another when its attempt ends
            tail.watch(run.folders)
            log.take(tail.poll())
            seen[key] = log.last(KEPT)
        for key in self._known.keys() - seen.keys():
            # runs that have ended: drop their tails
            del self._known[key]
        return seen


class AttemptStream(JobHost, RunningPanel):
    """The list of runs, which reads what it needs in threads."""

    def __init__(self, *, most: int | None = 60, id: str | None = None) -> None:
        super().__init__(most=most, id=id)
        self.order = AttemptOrder()
        self._snapshot: Snapshot | None = None
        self._shown_at = 0
        self._book: AttemptBook | None = None
        self._left_out: frozenset[str] = frozenset()
        self._filter: AttemptFilter | None = None
        self._sort, self._turned = SORTS["time"], False
        self._chosen: tuple[str, ...] | None = None
        self._hidden = 0
        self._seen: Seen = {}
        self._follower = Follower()
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        """Read transcripts as long as something runs."""
        self._timer = self.set_interval(LOOK_SECONDS, self.look)

    def on_resize(self) -> None:
        """It is visible now, or has more room."""
        self.look()

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change, now: int) -> None:
        """Show a new state."""
        self._snapshot, self._shown_at = snapshot, now
        self._put_in_order()
        self._show(now, frozenset() if change.everything else change.attempts)
        self.look()

    def tick(self, now: int) -> None:
        """Time has passed."""
        # headings say today and yesterday
        new_day = midnight(now) != midnight(self.list.board.now)
        # seconds pass for what runs, minutes for a claim that nobody works on
        old = now - self.list.board.now >= 60 * NS
        runs = self._snapshot.runs if self._snapshot is not None else ()
        if self._snapshot is not None and (new_day or (runs and old) or any(run.live for run in runs)):
            self._show(now)

    def filter_with(self, wanted: AttemptFilter | None) -> None:
        """Show only what passes a filter; None shows everything."""
        self._filter = wanted
        self._arrange_again()

    def _put_in_order(self) -> None:
        """Leave attempts that have a row among the runs out below; keep the order if possible."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        book = snapshot.attempts
        among_runs = self._shown_runs(snapshot)[0] if self._filter is None else snapshot.runs
        left_out = frozenset(run.attempt_id for run in among_runs if run.attempt_id)
        if book is self._book and left_out == self._left_out:
            return
        self._book, self._left_out = book, left_out
        ended = [attempt for attempt in book if attempt.attempt_id not in left_out] if left_out else list(book)
        kept = ended if self._filter is None else list(filter(self._filter.matches, ended))
        self._hidden = len(ended) - len(kept)
        # the book is in this order already; any other takes 0.2 s for 20,000 attempts, so a thread sorts
        if self._sort.name == "time":
            self.order = self._arrange(kept)
        else:
            self._jobs.start("order", partial(self._arrange, kept), self._take_order, self._show_failure)

    def _arrange(self, attempts: Sequence[Attempt]) -> AttemptOrder:
        order = arranged(attempts, self._sort, turned=self._turned)
        passing = self._filter.text if self._filter is not None else ""
        return AttemptOrder(order, self._sort, turned=self._turned, chosen=self._chosen, passing=passing)

    def _take_order(self, order: AttemptOrder) -> None:
        self.order = order
        self._show(self.list.board.now)

    @property
    def sort(self) -> tuple[SortKey, bool]:
        """The order of the list, and whether it is reversed."""
        return self._sort, self._turned

    def sort_by(self, sort: SortKey, *, turned: bool) -> None:
        """Set another order, or its reverse."""
        self._sort, self._turned = sort, turned
        self._arrange_again()

    def choose_columns(self, names: tuple[str, ...] | None) -> None:
        """Show these columns; None lets the width decide."""
        if names != self._chosen:
            self._chosen = names
            self._arrange_again()

    def _arrange_again(self) -> None:
        self._book = None
        if self._snapshot is not None:
            self._put_in_order()
            self._show(self.list.board.now)

    def _show(self, now: int, changed: frozenset[str] = frozenset()) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        shown, older = self._shown_runs(snapshot)
        dead = gone(snapshot.runs if self._filter is None else shown, snapshot.queue, now=now)
        views = [RunView(run) for run in shown]
        runs = tuple(RunView(view.run, self._seen.get(view.key, ())) for view in views)
        beads = snapshot.queue.beads
        board = Board(runs, self.order, beads, now, self._hidden, older, dead.at_large)
        self.show_board(board, changed=changed)
        self.caption.show_heads(self._heads)

    def _heads(self, width: int) -> list[Span]:
        """The column headings; none if the list is too narrow to read as a table."""
        board = self.list.board
        return board.heads(width) if board.order.attempts and width >= TABLE_CELLS else []

    def _shown_runs(self, snapshot: Snapshot) -> tuple[list[Run], int]:
        """The runs with a row: all live ones and a few dead ones, first those that hold a bead; how many more are dead.

        A filter shows all that pass it, and *Needs me* lists every one that holds a bead.
        """
        runs = snapshot.runs
        if self._filter is not None:
            passed = [run for run in runs if self._filter.matches_run(run)]
            return passed, 0
        dead = gone(runs, snapshot.queue, now=self._shown_at)
        recent = (run for run in (*dead.free, *dead.lost) if (run.age_s(self._shown_at) or 0) < NEWS_S)
        rows = [*_newest_first(dead.held), *_newest_first(recent)][:MAX_DEAD_WORKERS]
        return [*(run for run in runs if run.live), *rows], len(dead.all) - len(rows)

    # --- transcripts --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the live transcripts, unless the list is not visible or a reading is in progress."""
        runs = [run for run in self._snapshot.runs if run.live] if self._snapshot is not None else []
        if runs and self.size.width and self.screen.is_current and not self._jobs.busy("actions"):
            self._jobs.start("actions", lambda: self._follower.look(runs), self._take, self._show_failure)

    def _take(self, seen: Seen) -> None:
        if seen != self._seen:
            self._seen = seen
            self._show(self.list.board.now)

    def _show_failure(self, why: str) -> None:
        self.caption.show(f"transcripts cannot be read: {why}")


def _newest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.started_at or 0, reverse=True)
