"""One bead on the whole screen: where there is no room for it beside the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from helix_tui.core.ground.text import clean_line
from helix_tui.screens.editing.keys import BeadKeys
from helix_tui.screens.overlay import OverlayScreen
from helix_tui.screens.queue.bead_details import BeadDetails
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.rows.bead import RowContext, runs_by_bead
from helix_tui.widgets.text.bead import DetailView

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Change, Snapshot


class BeadScreen(BeadKeys, OverlayScreen):
    """The detail, full screen. It follows its bead through every reload."""

    TITLE_TEXT = "bead"
    FOOTER = ("go.back", "change.actions", "change.eligible", "change.depend", "go.open", "app.help")

    def __init__(self, bead_id: str) -> None:
        super().__init__()
        self.bead_id = bead_id
        self.around = BeadDetails(self, lambda _: self.catch_up())

    def make_list(self) -> RowList:
        """The detail is a list of lines."""
        return DetailView(id="detail")

    def bead_ids(self) -> tuple[str, ...]:
        """This one."""
        return (self.bead_id,)

    def show_bead(self, bead_id: str) -> None:
        """Another bead in the same place."""
        self.bead_id = bead_id
        super().show_bead(bead_id)
        self.catch_up()

    def action_copy_id(self) -> None:
        """The id, to the clipboard."""
        self.console.copy(clean_line(self.bead_id), clean_line(self.bead_id, 60))

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """The bead as it stands now; the last state of one that is gone stays."""
        self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        bead = snapshot.queue.beads.get(self.bead_id)
        away = bead is None and self.bead_id in snapshot.archive
        self.caption.show(
            "bead" if bead is not None else "bead, archived" if away else "bead, no longer in the tracker"
        )
        if (bead is not None or away) and isinstance(self.list, DetailView):
            world = RowContext(snapshot.queue, runs_by_bead(snapshot.runs), self.console.now())
            self.list.show_bead(self.around.facts(self.bead_id, world))

    def show_ages(self) -> None:
        """Those of the bead."""
        self._show(self.console.snapshot)

    @on(DetailView.BeadChosen)
    def follow(self, event: DetailView.BeadChosen) -> None:
        """Another bead in the same place."""
        snapshot = self.console.snapshot
        if event.bead_id in snapshot.queue.beads or event.bead_id in snapshot.archive:
            self.show_bead(event.bead_id)
        else:
            self.app.notify(f"{event.bead_id} is not in the tracker", markup=False)

    @on(DetailView.AttemptChosen)
    def open_attempt(self, event: DetailView.AttemptChosen) -> None:
        """The attempt, on its own screen."""
        self.console.open_attempt(event.attempt_id)

    def catch_up(self) -> None:
        """Show the bead again, whether or not the snapshot is a new one."""
        self._shown = (-1, ())
        super().catch_up()
