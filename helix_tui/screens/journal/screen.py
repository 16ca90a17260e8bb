"""The journal: every change made from here, how it stands now, and the way back to any point of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from helix_tui.core.beads.query import Completion
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.journal import JournalEntry, JournalHistory
from helix_tui.core.editing.undo.undo_plan import Appraiser, Mark
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import bindings
from helix_tui.screens.background import Jobs
from helix_tui.screens.base import NARROW
from helix_tui.screens.editing.preview_sheet import PreviewSheet
from helix_tui.screens.editing.requests import ChangeRequest, RestoreRequest, UndoRequest
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.journal.entries import as_markdown, change_row, facts_of, notices, placard
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.chrome.empty_state import EmptyState
from helix_tui.widgets.chrome.notice_line import Caption
from helix_tui.widgets.rows.changes import ChangeFilter, ChangeRow, ChangeRows
from helix_tui.widgets.text.journal_entry import ChangePane

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Change, Snapshot

DETAIL_DELAY = 0.06
"""Seconds that the cursor rests before its change is shown."""


class JournalScreen(FilteringScreen):
    """Screen 6."""

    NAME = "journal"
    PANES = "#journal-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("journal")]
    FOOTER = ("change.undo", "change.redo", "change.restore", "find.filter", "go.to", "app.help")
    BARE_CLASS = "-no-changes"
    WATCHING_FOOTER = ("go.open", "find.filter", "move.jump", "go.to", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.list = RowList(id="changes")
        self.detail = ChangePane(id="change")
        self.caption = Caption("journal")
        self.detail_caption = Caption()
        self.placard = EmptyState(id="journal-placard")
        self.filter = ChangeFilter()
        self._jobs = Jobs(self)
        self._history = JournalHistory()
        self._marks: Mapping[str, Mark] = {}
        self._rows: list[ChangeRow] = []
        self._appraiser = Appraiser()
        self._appraised: tuple[JournalHistory, Mapping[str, Bead]] | None = None
        self._rest: Timer | None = None

    def compose_body(self) -> ComposeResult:
        """Changes on the left, the one under the cursor on the right."""
        with Container(id="journal-panes"):
            with Vertical(id="changes-pane"):
                yield self.caption
                yield self.list
            with Vertical(id="change-pane", classes="beside"):
                yield self.detail_caption
                yield self.detail
        yield self.placard

    def on_mount(self) -> None:
        """Say what can be done here."""
        super().on_mount()
        self._say_keys()

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Rows at once; how they stand against the beads follows from a thread."""
        fresh = {entry.id for entry in snapshot.journal.entries} - {row.key for row in self._rows}
        known = bool(self._rows)
        self._history = snapshot.journal
        self._make_rows()
        self._say_state(snapshot)
        self._show_rows(changed=fresh if known else frozenset())
        self._appraise(snapshot)

    def tick(self) -> None:
        """Ages go on."""
        super().tick()
        if self._rows:
            self._show_rows()

    def show_ages(self) -> None:
        """Those of the change's detail."""
        if self.detail.size.width:
            self._show_detail()

    def _make_rows(self) -> None:
        none = Mark("done")
        self._rows = [change_row(entry, self._marks.get(entry.id) or none) for entry in reversed(self._history.entries)]

    def _appraise(self, snapshot: Snapshot) -> None:
        """Hold the entries against the rows, in a thread, if either is new."""
        last, self._appraised = self._appraised, (snapshot.journal, snapshot.queue.beads)
        history, beads = self._appraised
        if last is not None and last[0] is history and last[1] is beads:
            return
        work = partial(self._appraiser.marks, history, beads)
        self._jobs.start("appraise", work, self._take_marks, lambda _: None)

    def _take_marks(self, marks: Mapping[str, Mark]) -> None:
        if marks != self._marks:
            old, self._marks = self._marks, marks
            self._make_rows()
            self._show_rows(changed={key for key in old if old[key] != marks.get(key)})
        self._show_detail()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A job has come back."""
        self._jobs.settle(event.worker)

    def _say_state(self, snapshot: Snapshot) -> None:
        said = placard(snapshot)
        self.set_class(said is not None, self.BARE_CLASS)
        if said is not None:
            self.placard.show(said)
        self._say_keys()

    def _show_rows(self, changed: frozenset[str] | set[str] = frozenset()) -> None:
        rows = self.filter.passing(self._rows)
        narrow = f"-{self.posture}" in NARROW
        if rows or not self.filter.words:
            said = notices(self._history)
            source = ChangeRows(rows, self.console.now(), notices=said, narrow=narrow)
            self.list.show(source, changed=changed)
        else:
            none = Row("none", (("  no change matches; esc shows all", "muted"),), selectable=False)
            self.list.show(Rows([none]))
        count = self.filter_count()
        self.caption.show("journal", count)
        self.tabs.show(filter_text=clean_line(self.filter.text, 200), count=count if self.filter.words else "")

    # --- the change under the cursor ----------------------------------------------------------------------

    @property
    def entry(self) -> JournalEntry | None:
        """The entry under the cursor."""
        return self._history.get(self.list.selected_key or "")

    @on(RowList.Selected, "#changes")
    def follow_with_detail(self) -> None:
        """The detail follows when the cursor rests."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(DETAIL_DELAY, self._show_detail)

    def _show_detail(self) -> None:
        entry = self.entry
        self.detail_caption.show("change" if entry is not None else "")
        seen = self.detail.size.width or self.has_class("-reading")  # just opened, it has no width yet
        if entry is None or not seen:
            self.detail.show_change(None)
            return
        mark = self._marks.get(entry.id, Mark("done"))
        snapshot = self.console.snapshot
        self.detail.show_change(facts_of(entry, mark, self._history, snapshot.queue.beads, self.console.now()))

    @on(RowList.Opened, "#changes")
    def open_change(self) -> None:
        """Into the change; over the list where there is no room beside it."""
        if f"-{self.posture}" in NARROW:
            self.add_class("-reading")
            self.call_after_refresh(self._show_and_focus)
        elif self.entry is not None:
            self._show_and_focus()

    def _show_and_focus(self) -> None:
        self.detail.focus(scroll_visible=False)
        self._show_detail()

    @on(ChangePane.Followed)
    def follow_line(self, event: ChangePane.Followed) -> None:
        """A line leads to a bead, or to another entry."""
        if event.kind == "bead":
            self.console.go_to_bead(event.name)
        elif not self.list.select(event.name):
            self.filter_with("")
            self.list.select(event.name)

    def on_resize(self) -> None:
        """Keep the detail in view for a reader when list and detail no longer fit side by side."""
        narrow = f"-{self.posture}" in NARROW
        if narrow:
            self.set_class(self.focused is self.detail, "-reading")
        else:
            self.call_after_refresh(self.remove_class, "-reading")
        self._show_rows()
        self.call_after_refresh(self._show_detail)

    # --- keys ---------------------------------------------------------------------------------------------

    def panes(self) -> Sequence[Widget]:
        """List and detail, where they show."""
        return [pane for pane in (self.list, self.detail) if pane.size.width]

    async def action_back(self) -> None:
        """From the change to the list; from a filter to all changes."""
        if self.has_class("-reading"):
            self.remove_class("-reading")
            self.call_after_refresh(self.list.focus, scroll_visible=False)
        elif self.focused is self.detail:
            self.list.focus(scroll_visible=False)
        elif self.filter.words:
            self.filter_with("")

    async def action_fold(self) -> None:
        """Back to the list."""
        if self.focused is self.detail:
            await self.action_back()

    def action_unfold(self) -> None:
        """Into the change."""
        self.open_change()

    def action_next_part(self) -> None:
        """The next section of the change."""
        self.detail.action_next_part()

    def action_previous_part(self) -> None:
        """The section before."""
        self.detail.action_previous_part()

    def action_copy_id(self) -> None:
        """The entry's id, to the clipboard."""
        if self.entry is not None:
            self.console.copy(self.entry.id, self.entry.id)

    def action_copy_markdown(self) -> None:
        """The change with what ran, to the clipboard."""
        if self.entry is not None:
            self.console.copy(as_markdown(self.entry), "as markdown")

    # --- back and forth -----------------------------------------------------------------------------------

    def action_undo(self) -> None:
        """Take back the change under the cursor."""
        entry = self._plain_entry()
        if entry is not None and not entry.standing:
            self.console.say(f"{entry.id} changed nothing that is still there", "warning")
        elif entry is not None:
            self._look_ahead(UndoRequest("undo", entry))

    def action_redo(self) -> None:
        """Do the change under the cursor again."""
        entry = self._plain_entry()
        if entry is not None and not entry.undone_by:
            self.console.say(f"{entry.id} has not been undone", "warning")
        elif entry is not None:
            self._look_ahead(UndoRequest("redo", entry))

    def action_restore(self) -> None:
        """Back to how things stood right after the change under the cursor."""
        entry = self.entry
        if entry is not None and not self._history.back_to(entry.id):
            self.console.say(f"nothing differs from right after {entry.id}")
        elif entry is not None:
            self._look_ahead(RestoreRequest(entry))

    def _plain_entry(self) -> JournalEntry | None:
        """The change under the cursor; of a taking back, what was taken back."""
        entry = self.entry
        return self._history.get(entry.of) if entry is not None and entry.of else entry

    def _look_ahead(self, request: ChangeRequest) -> None:
        """Show what it would run and what would follow; nothing runs before somebody agrees."""
        try:
            self.console.change_runner.check()
        except WritesForbidden as error:
            self.console.say(str(error), "warning")
            return
        self.console.push_screen(PreviewSheet(request))

    def _say_keys(self) -> None:
        forbidden = self.console.change_runner.curator.gate.read_only
        self.show_keys(self.WATCHING_FOOTER if forbidden else self.FOOTER)

    # --- the filter ---------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self.filter.text

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Ways to go on typing."""
        start = text.rfind(" ", 0, cursor) + 1
        return [Completion(way, start, meaning) for way, meaning in self.filter.ways(text[start:cursor])]

    def filter_problem(self, text: str) -> str:
        """What of a text is not understood."""
        return ChangeFilter(text).problem

    def filter_with(self, text: str) -> None:
        """Show what passes."""
        self.filter = ChangeFilter(text.strip())
        self._show_rows()
        self.list.mark_matches(self.filter.pattern())

    def has_matches(self) -> bool:
        """Whether any change passes."""
        return bool(self.filter.passing(self._rows))

    def filter_count(self) -> str:
        """How many of how many pass."""
        if not self.filter.words:
            return f"{len(self._rows):,}"
        return f"{len(self.filter.passing(self._rows)):,} of {len(self._rows):,}"
