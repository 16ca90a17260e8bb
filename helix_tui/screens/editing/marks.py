"""Marks on the rows of a list: one by one, or from here to there. What follows is done to all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from textual import on

from helix_tui.screens.editing.keys import BeadKeys
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.rows.bead import QueueRows

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

MARKED: Span = ("■", "attention")
PENDING: Span = ("…", "waiting bold")


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
        """What a caption says of the marks; empty without any."""
        if not self.marked:
            return ""
        return f"{len(self.marked):,} marked"

    def bead_ids(self) -> tuple[str, ...]:
        """The marked beads in the order of their rows, else the one under the cursor."""
        if not self.marked:
            return (self.selected_bead,) if self.selected_bead is not None else ()
        shown = self._beads_between(0, len(self.list.source) - 1)
        rest = sorted(self.marked.difference(shown))
        return (*(bead_id for bead_id in shown if bead_id in self.marked), *rest)

    def marks_changed(self) -> None:
        """Other beads are marked: show how many."""

    def action_mark(self) -> None:
        """Mark or unmark the bead under the cursor, and go on to the next row."""
        bead_id = self.selected_bead
        if bead_id is None:
            return
        self._anchor = None
        self._mark(self.marked ^ {bead_id})
        self.list.action_cursor_down()

    def action_mark_range(self) -> None:
        """Begin a range under the cursor, or end the one that is being drawn."""
        if self._anchor is not None:
            self._anchor = None
            self.marks_changed()
        elif self.selected_bead is not None:
            self._anchor, self._before = self.list.selected_key, self.marked
            self._mark(self.marked | {self.selected_bead})

    def drop_marks(self) -> bool:
        """Mark nothing; False where nothing was marked."""
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
        """What was done to the marked beads is done: their marks go."""
        super().after_change(beads, created)
        self._anchor = None
        self._mark(self.marked.difference(beads))

    def show_pending(self, beads: Collection[str], work: str) -> None:
        """A sign on the rows that are being changed."""
        super().show_pending(beads, work)
        self._pending = beads
        self._flag()

    @on(RowList.Selected, "#queue")
    def draw_range(self) -> None:
        """The range goes on to where the cursor is."""
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
        self.list.flag(dict.fromkeys(self.marked, MARKED) | dict.fromkeys(self._pending, PENDING))
