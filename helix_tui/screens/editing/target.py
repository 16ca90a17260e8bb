"""Which beads a change is about, whether it may be made, and the look ahead that comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helix_tui.screens.base import HelixScreen

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.core.snapshot import Change, Snapshot
    from helix_tui.screens.editing.preview_text import Ended
    from helix_tui.screens.editing.requests import ChangeRequest


class TargetScreen(HelixScreen):
    """A screen on which beads can be changed. Subclasses say which beads are meant."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited = ""
        """A bead that was just made and is not in the snapshot yet."""

    def bead_ids(self) -> tuple[str, ...]:
        """The beads that a key is about: those that are marked, else the one under the cursor."""
        raise NotImplementedError

    def show_bead(self, bead_id: str) -> None:
        """Put the cursor on a bead."""
        self.console.select_below(bead_id)

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """The cursor goes to a new bead."""
        self._awaited = created[0] if len(created) == 1 else ""
        self._meet_awaited()

    def receive(self, snapshot: Snapshot, change: Change) -> None:
        """A bead that was waited for may have come."""
        super().receive(snapshot, change)
        self._meet_awaited()

    def _meet_awaited(self) -> None:
        if self._awaited and self._awaited in self.console.snapshot.queue.beads:
            bead_id, self._awaited = self._awaited, ""
            self.show_bead(bead_id)

    # --- what every key begins with -----------------------------------------------------------------------

    def targets(self) -> list[Bead]:
        """The beads that a key is about, after the gate has been asked; none where there is nothing to do."""
        if not self.may_change():
            return []
        beads = self.console.snapshot.queue.beads
        found = [beads[bead_id] for bead_id in self.bead_ids() if bead_id in beads]
        if not found:
            self.console.say("no bead under the cursor", "warning")
        return found

    def may_change(self) -> bool:
        """Whether anything may be changed; a word where not."""
        from helix_tui.core.editing.execute.gate import WritesForbidden

        try:
            self.console.change_runner.check()
        except WritesForbidden as error:
            self.console.say(str(error), "warning")
            return False
        if self.console.snapshot.condition not in ("live", "empty"):
            self.console.say("there is no queue to change", "warning")
            return False
        return True

    def look_ahead(self, request: ChangeRequest, ended: Ended | None = None) -> None:
        """Show what a request would do; enter does it."""
        from helix_tui.screens.editing.preview_sheet import PreviewSheet

        self.console.push_screen(PreviewSheet(request, ended))
