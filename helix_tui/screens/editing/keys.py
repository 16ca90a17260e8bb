"""What the keys that change the queue do, on any screen with a bead under the cursor.

Which beads a change is about, whether it may be made, and the look ahead that comes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from helix_tui.keymap import bindings
from helix_tui.screens.base import HelixScreen

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.core.snapshot import Change, Snapshot
    from helix_tui.screens.editing.preview_text import Ended
    from helix_tui.screens.editing.requests import ChangeRequest

    pass


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


class BeadKeys(TargetScreen):
    """The keys, on a screen on which beads can be changed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("beads")]

    def action_eligible(self) -> None:
        """Eligible off where any of them is eligible, else on; the same key turns it round."""
        from helix_tui.screens.editing.requests import eligibility

        beads = self.targets()
        if beads:
            on = all(bead.execution_eligible is False for bead in beads)
            self.look_ahead(eligibility([bead.id for bead in beads], on))

    def action_priority(self, step: int) -> None:
        """Priority by a step; in the sheet the two keys move it further."""
        from helix_tui.screens.editing.requests import priority_change

        beads = self.targets()
        if beads:
            self.look_ahead(priority_change({bead.id: bead.priority for bead in beads}, step))

    def action_claim(self) -> None:
        """Release what is claimed, else claim it; the same key turns it round."""
        from helix_tui.screens.editing.requests import holding

        beads = self.targets()
        if not beads:
            return
        queue = self.console.snapshot.queue
        held = any(bead.status == "in_progress" or queue.state(bead.id) in ("claimed", "running") for bead in beads)
        self.look_ahead(holding([bead.id for bead in beads], take=not held))

    def action_supersede(self) -> None:
        """Pick what replaces it."""
        from helix_tui.screens.editing import links

        links.supersede(self, self.targets())

    def action_depend(self) -> None:
        """Pick what it waits on, or what waits on it."""
        from helix_tui.screens.editing import links

        links.depend(self, self.targets())

    def action_parent(self) -> None:
        """Pick what it stands under."""
        from helix_tui.screens.editing import links

        links.parent(self, self.targets())

    def action_label(self) -> None:
        """Pick labels to add and to take away."""
        from helix_tui.screens.editing import links

        links.label(self, self.targets())

    def action_rank(self, place: str) -> None:
        """Its place inside its priority."""
        from helix_tui.screens.editing import links

        links.rank(self, self.targets(), place)

    def action_close(self) -> None:
        """Choose how it ends, or begins again."""
        from helix_tui.screens.editing import menus

        menus.endings(self, self.targets())

    def action_actions(self) -> None:
        """Choose among everything that can be done."""
        from helix_tui.screens.editing import menus

        menus.actions(self, self.targets())

    def action_edit(self) -> None:
        """Title and texts in the user's own editor."""
        from helix_tui.screens.editing import preview_text as editing

        editing.edit(self, self.targets())

    def action_edit_form(self) -> None:
        """Title and texts in a form."""
        from helix_tui.screens.editing import forms as drafts

        drafts.edit(self, self.targets())

    def action_new_bead(self) -> None:
        """A form for a new bead."""
        from helix_tui.screens.editing import forms as drafts

        if self.may_change():
            drafts.create(self)

    def action_focus_epic(self) -> None:
        """Focus on the epic under the cursor, or end the focus."""
        from helix_tui.screens.editing import links

        links.focus(self, self.targets())

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """Everything that can be done to a bead, by name."""
        from helix_tui.screens.editing import menus

        for deed in menus.deeds():
            yield deed.name, deed.help, partial(self.run_action, deed.action)

    def action_what_if(self) -> None:
        """What closing them would lead to."""
        from helix_tui.core.editing import operations
        from helix_tui.screens.editing.requests import request_for

        beads = self.targets()
        if beads:
            self.look_ahead(request_for([operations.close(bead.id) for bead in beads]))

    def action_undo(self) -> None:
        """What taking back the last change would do."""
        from helix_tui.screens.editing.requests import UndoRequest

        if self.may_change():
            self.look_ahead(UndoRequest("undo"))

    def action_redo(self) -> None:
        """What doing it again would do."""
        from helix_tui.screens.editing.requests import UndoRequest

        if self.may_change():
            self.look_ahead(UndoRequest("redo"))

    def action_stop_change(self) -> None:
        """Let a change of many beads end after its present command."""
        if self.console.change_runner.stop():
            self.console.say("it stops after this command")
        else:
            self.console.say("nothing is being changed")
