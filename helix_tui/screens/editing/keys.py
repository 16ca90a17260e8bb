"""The keys that change the queue on any screen with a bead under the cursor, the marks that select several
beads, and the menus of everything that can be done to a bead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from textual import on
from textual.binding import BindingType

from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import IN_HAND
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import BY_ID, KEYS, bindings, names, shown
from helix_tui.screens.base import HelixScreen
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.rows.bead import QueueRows

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue
    from helix_tui.core.beads.record import Bead
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.core.supervision.requests import ChangeRequest
    from helix_tui.screens.editing.preview import Ended

MARKED: Span = ("■", "attention")
PENDING: Span = ("…", "waiting bold")
_NOT_OFFERED = {"change.actions", "change.stop"}

_FOR_LIVE = {
    *("change.eligible", "change.supersede", "change.raise", "change.lower"),
    *("change.claim", "change.what-if"),
}


class TargetScreen(HelixScreen):
    """A screen on which beads can be changed. Subclasses say which beads are meant."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited = ""
        """A bead that was just made and is not in the snapshot yet."""

    def bead_ids(self) -> tuple[str, ...]:
        """The beads that a key acts on: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def show_bead(self, bead_id: str) -> None:
        """Put the cursor on a bead."""
        self.console.select_below(bead_id)

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """Move the cursor to a new bead."""
        # with several new beads, the cursor stays
        self._awaited = created[0] if len(created) == 1 else ""
        self._meet_awaited()

    def receive(self, snapshot: Snapshot, change: Change) -> None:
        """Move the cursor if the awaited bead has appeared."""
        super().receive(snapshot, change)
        self._meet_awaited()

    def _meet_awaited(self) -> None:
        if self._awaited and self._awaited in self.console.snapshot.queue.beads:
            bead_id, self._awaited = self._awaited, ""
            self.show_bead(bead_id)

    # --- what every key begins with -----------------------------------------------------------------------

    def targets(self) -> list[Bead]:
        """The beads that a key acts on, after checking the gate; none if nothing can be done."""
        if not self.may_change():
            return []
        beads = self.console.snapshot.queue.beads
        found = [beads[bead_id] for bead_id in self.bead_ids() if bead_id in beads]
        if not found:
            self.console.say("no bead under the cursor", "warning")
        return found

    def may_change(self) -> bool:
        """Whether anything may be changed; a notice if not."""
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
        """Preview a request; enter runs it."""
        from helix_tui.screens.editing.preview import PreviewSheet

        self.console.push_screen(PreviewSheet(request, ended))


class BeadKeys(TargetScreen):
    """The keys, on a screen on which beads can be changed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("beads")]

    def action_copy_id(self) -> None:
        """The bead's id, to the clipboard; of several beads, one a line."""
        ids = [clean_line(bead_id, 300) for bead_id in self.bead_ids()]
        if ids:
            self.console.copy("\n".join(ids), ids[0] if len(ids) == 1 else f"{len(ids):,} ids")

    def action_eligible(self) -> None:
        """Forbid the beads to workers if any is eligible, else allow them; on the sheet the same key reverses it."""
        from helix_tui.core.supervision.requests import eligibility

        beads = self.targets()
        if beads:
            # `is False`: a bead whose record does not say is eligible
            on = all(bead.execution_eligible is False for bead in beads)
            self.look_ahead(eligibility([bead.id for bead in beads], on))

    def action_priority(self, step: int) -> None:
        """Priority by a step; in the sheet the two keys move it further."""
        from helix_tui.core.supervision.requests import priority_change

        beads = self.targets()
        if beads:
            self.look_ahead(priority_change({bead.id: bead.priority for bead in beads}, step))

    def action_claim(self) -> None:
        """Release if claimed, else claim; on the sheet the same key reverses it."""
        from helix_tui.core.supervision.requests import holding

        beads = self.targets()
        if not beads:
            return
        queue = self.console.snapshot.queue
        held = any(bead.status == "in_progress" or queue.state(bead.id) in IN_HAND for bead in beads)
        self.look_ahead(holding([bead.id for bead in beads], take=not held))

    def action_supersede(self) -> None:
        """Pick the bead that replaces it."""
        from helix_tui.screens.editing import links

        links.supersede(self, self.targets())

    def action_depend(self) -> None:
        """Pick beads that it waits on, or that wait on it."""
        from helix_tui.screens.editing import links

        links.depend(self, self.targets())

    def action_parent(self) -> None:
        """Pick its parent."""
        from helix_tui.screens.editing import links

        links.parent(self, self.targets())

    def action_label(self) -> None:
        """Pick labels to add and to remove."""
        from helix_tui.screens.editing import links

        links.label(self, self.targets())

    def action_rank(self, place: str) -> None:
        """Choose its rank within its priority."""
        from helix_tui.screens.editing import links

        links.rank(self, self.targets(), place)

    def action_close(self) -> None:
        """Choose to close, cancel or reopen it."""
        endings(self, self.targets())

    def action_actions(self) -> None:
        """Choose among everything that can be done."""
        actions(self, self.targets())

    def action_edit(self) -> None:
        """Title and texts in the user's own editor."""
        from helix_tui.screens.editing import forms

        forms.edit_in_editor(self, self.targets())

    def action_edit_form(self) -> None:
        """Title and texts in a form."""
        from helix_tui.screens.editing import forms

        forms.edit(self, self.targets())

    def action_new_bead(self) -> None:
        """Open a form for a new bead."""
        from helix_tui.screens.editing import forms

        if self.may_change():
            forms.create(self)

    def action_focus_epic(self) -> None:
        """Focus on the epic under the cursor, or end the focus."""
        from helix_tui.screens.editing import links

        links.focus(self, self.targets())

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """Everything that can be done to a bead, by name."""
        for bead_action in bead_actions():
            yield bead_action.name, bead_action.help, partial(self.run_action, bead_action.action)

    def action_what_if(self) -> None:
        """Show what closing them would lead to."""
        from helix_tui.core.editing import operations
        from helix_tui.core.supervision.requests import request_for

        beads = self.targets()
        if beads:
            self.look_ahead(request_for([operations.CloseBead(bead.id) for bead in beads]))

    def action_undo(self) -> None:
        """Preview undoing the last change."""
        from helix_tui.core.supervision.requests import UndoRequest

        if self.may_change():
            self.look_ahead(UndoRequest("undo"))

    def action_redo(self) -> None:
        """Preview redoing it."""
        from helix_tui.core.supervision.requests import UndoRequest

        if self.may_change():
            self.look_ahead(UndoRequest("redo"))

    def action_stop_change(self) -> None:
        """Stop a change of many beads after its current command."""
        if self.console.change_runner.stop():
            self.console.say("it stops after this command")
        else:
            self.console.say("nothing is being changed")


class MarkKeys(BeadKeys):
    """A screen whose list of beads can be marked."""

    list: RowList

    def __init__(self) -> None:
        super().__init__()
        self.marked: frozenset[str] = frozenset()
        self._anchor: str | None = None
        """Where a range that is being drawn begins."""
        self._before: frozenset[str] = frozenset()
        """What was marked before the range."""
        self._pending: Collection[str] = ()

    @property
    def selected_bead(self) -> str | None:
        """The bead under the cursor."""
        raise NotImplementedError

    @property
    def marking(self) -> str:
        """The caption's text about the marks; empty without any."""
        if not self.marked:
            return ""
        return f"{len(self.marked):,} marked"

    def bead_ids(self) -> tuple[str, ...]:
        """The marked beads in the order of their rows, else the one under the cursor."""
        if not self.marked:
            return (self.selected_bead,) if self.selected_bead is not None else ()
        shown = self._beads_between(0, len(self.list.source) - 1)
        # marks under a fold or a filter count as well
        rest = sorted(self.marked.difference(shown))
        return (*(bead_id for bead_id in shown if bead_id in self.marked), *rest)

    def marks_changed(self) -> None:
        """Show how many rows are marked."""

    def action_mark(self) -> None:
        """Mark or unmark the bead under the cursor, and move to the next row."""
        bead_id = self.selected_bead
        if bead_id is None:
            return
        self._anchor = None
        self._mark(self.marked ^ {bead_id})
        self.list.action_cursor_down()

    def action_mark_range(self) -> None:
        """Begin a range under the cursor, or end the current one."""
        if self._anchor is not None:
            self._anchor = None
            self.marks_changed()
        elif self.selected_bead is not None:
            self._anchor, self._before = self.list.selected_key, self.marked
            self._mark(self.marked | {self.selected_bead})

    def drop_marks(self) -> bool:
        """Remove all marks; False if there were none."""
        had = bool(self.marked)
        self._anchor = None
        self._mark(frozenset())
        return had

    def keep_marks(self, queue: Queue) -> None:
        """Drop the marks of beads that are gone."""
        kept = frozenset(bead_id for bead_id in self.marked if bead_id in queue.beads)
        if kept != self.marked:
            self._mark(kept)

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """Remove the marks of beads whose change is done."""
        super().after_change(beads, created)
        self._anchor = None
        self._mark(self.marked.difference(beads))

    def show_pending(self, beads: Collection[str], work: str) -> None:
        """Show a sign on the rows that are being changed."""
        super().show_pending(beads, work)
        self._pending = beads
        self._flag()

    @on(RowList.Selected, "#queue")
    def draw_range(self) -> None:
        """Extend the range to the cursor."""
        start = self.list.source.index(self._anchor) if self._anchor is not None else None
        if start is not None:
            here = self.list.selected_index
            drawn = self._beads_between(min(start, here), max(start, here))
            self._mark(self._before.union(drawn))

    def _beads_between(self, first: int, last: int) -> Sequence[str]:
        source = self.list.source
        if not isinstance(source, QueueRows):
            return ()
        return [row.bead_id for row in source.rows[first : last + 1] if row.kind == "bead"]

    def _mark(self, ids: frozenset[str]) -> None:
        if ids != self.marked:
            self.marked = ids
            self._flag()
            self.marks_changed()

    def _flag(self) -> None:
        # the sign of a bead that is being changed takes precedence over its mark
        self.list.flag(dict.fromkeys(self.marked, MARKED) | dict.fromkeys(self._pending, PENDING))


class BeadAction(Struct, frozen=True):
    """Something that can be done to the bead under the cursor."""

    name: str
    help: str
    action: str
    key_id: str = ""
    """Its key, if it has one."""
    for_live: bool = False
    """It is meant for workers, and refused for a closed or cancelled bead."""


_KEYLESS = (
    BeadAction("edit in a form", "title, acceptance, description and notes, here", "edit_form"),
    BeadAction("rank first", "to the top of its priority", "rank('top')"),
    BeadAction("rank before", "before another bead of its priority", "rank('before')"),
    BeadAction("rank after", "after another bead of its priority", "rank('after')"),
    BeadAction("rank none", "by age again", "rank('clear')"),
)


def bead_actions() -> Iterator[BeadAction]:
    """Everything that can be done to beads, in the order of the registry."""
    for key in KEYS:
        if key.id.startswith("change.") and "beads" in key.scope.split(",") and key.id not in _NOT_OFFERED:
            yield BeadAction(key.label, key.help, key.action, key.id, key.id in _FOR_LIVE)
    yield from _KEYLESS


def actions(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Everything that can be done to the beads, each with its key."""
    from helix_tui.screens.editing.choices import Choice, ChoiceSheet, whom

    if not beads:
        return
    keymap = screen.console.keymap
    choices = []
    ended = "" if any(bead.status not in TERMINAL for bead in beads) else _ended(beads)
    for bead_action in bead_actions():
        key = BY_ID.get(bead_action.key_id)
        name = names(keymap.get(key.id, key.keys))[0] if key is not None else ""
        word = shown(key, keymap) if key is not None else ""
        # later: the sheet has to be closed before the action asks which screen is active
        do = partial(screen.call_later, screen.run_action, bead_action.action)
        choices.append(
            Choice(name, word, bead_action.name, bead_action.help, do, ended if bead_action.for_live else "")
        )
    screen.console.push_screen(ChoiceSheet(whom(beads), choices))


def _ended(beads: Sequence[Bead]) -> str:
    """Why most actions are impossible for beads that are all finished."""
    if len(beads) > 1:
        return "all are closed or cancelled"
    return "closed: reopen it first (x)" if beads[0].status == "closed" else "cancelled, which is final"


def endings(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Close, cancel, or reopen; options that do not fit the state say why."""
    from helix_tui.core.editing import operations
    from helix_tui.core.supervision.requests import request_for
    from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet, whom

    if not beads:
        return
    ended = [bead for bead in beads if bead.status in TERMINAL]
    closed = [bead for bead in beads if bead.status == "closed"]
    unfinished = len(ended) < len(beads)

    def close() -> None:
        screen.look_ahead(request_for([operations.CloseBead(bead.id) for bead in beads]))

    def cancel() -> None:
        screen.look_ahead(request_for([operations.CancelBead(bead.id) for bead in beads]))

    def reopen() -> None:
        def reopen_because(reason: str) -> None:
            screen.look_ahead(request_for([operations.ReopenBead(bead.id, reason) for bead in closed]))

        screen.console.push_screen(LineSheet(f"why reopen {whom(closed)}?", "reason", reopen_because))

    choices = [
        Choice("x", "x", "close", "mark as done", close, "" if unfinished else "it is already finished"),
        Choice(
            "r",
            "r",
            "open again",
            "asks for the reason, which stays in its history",
            reopen,
            "" if closed else "it is not closed",
        ),
        Choice("c", "c", "cancel", "cancel permanently", cancel, "" if unfinished else "it is already finished"),
    ]
    screen.console.push_screen(ChoiceSheet(f"close, reopen or cancel {whom(beads)}?", choices))
