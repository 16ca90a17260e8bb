"""What runs and what ended, as one pane: a caption, the runs with their last actions, then attempts.

Data in through `RunningPanel.show_board`; out come `RunningPanel.Chosen` and the list's own `Selected`.
"""

from __future__ import annotations

from collections.abc import Collection

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from helix_tui.core.ddx.runs.running import beads_at_work
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.notice_line import Caption
from helix_tui.widgets.gesture import Gesture
from helix_tui.widgets.rows.attempts import AttemptList, Board


class RunningPanel(Vertical):
    """The pane. Beside queue and detail it shows the newest attempts only."""

    DEFAULT_CSS = "RunningPanel { height: 1fr; width: 1fr; background: $helix-ground; }"

    class Chosen(Gesture):
        """Enter on a run or an attempt; the attempt of a run that has none yet is empty."""

        def __init__(self, attempt_id: str, bead_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id
            self.bead_id = bead_id

    def __init__(self, *, most: int | None = 60, id: str | None = None) -> None:
        """Make a panel.

        Args:
            most: attempts that are listed at most; None for all.
            id: of the widget.
        """
        super().__init__(id=id)
        self.caption = Caption("running")
        self.list = AttemptList(most=most)

    def compose(self) -> ComposeResult:
        """Caption and list."""
        yield self.caption
        yield self.list

    def show_board(self, board: Board, *, changed: Collection[str] = ()) -> None:
        """Show a new state; attempts in ``changed`` are tinted a moment."""
        self.list.show_board(board, changed=changed)
        self.say_caption()

    def say_caption(self) -> None:
        """How much runs, and whether the list follows."""
        runs = self.list.board.runs
        working = len(beads_at_work(view.run for view in runs))
        between = sum(view.run.live and view.run.bead_id is None for view in runs)
        words = f"running {working}" if working else "idle"
        words += f" · {between} between beads" if between else ""
        gone, older = sum(not view.run.live for view in runs), self.list.board.older
        if gone:
            words += f" · {gone + older} gone" + (f", newest {gone} here" if older else "")
        self.caption.show(words, "follows" if self.list.following else "")

    @on(RowList.Selected)
    def _say_whether_it_follows(self) -> None:
        self.say_caption()

    @on(RowList.Opened)
    def _choose(self, event: RowList.Opened) -> None:
        event.stop()
        if self.list.unfold():
            return
        view, attempt = self.list.selected_run, self.list.selected_attempt
        if view is not None:
            self.post_message(self.Chosen(view.run.attempt_id or "", view.run.bead_id or ""))
        elif attempt is not None:
            self.post_message(self.Chosen(attempt.attempt_id, attempt.bead_id))
