"""The journal: every change made with helix-tui in words, its present state, and undo or restore to any entry."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical

from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.journal import JournalEntry, JournalHistory
from helix_tui.core.editing.undo import EntryChecker, EntryStatus
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.supervision.requests import ChangeRequest, RestoreRequest, UndoRequest
from helix_tui.keymap import bindings
from helix_tui.screens.background import JobHost
from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.panes import ReadingScreen
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.chrome.header import Caption
from helix_tui.widgets.text.journal import (
    LOOP,
    ChangeFacts,
    ChangeFilter,
    ChangePane,
    ChangeRow,
    ChangeRows,
    FieldChange,
    shown_value,
)

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot

MAX_FIELDS = 2_000
"""Fields of one change that are shown; a bulk change may touch more."""

_WHO = {"human": "the console", "cli": "the command line", "agent": "an agent", "loop": "the loop"}


def change_row(entry: JournalEntry, mark: EntryStatus, titled: Mapping[str, Bead]) -> ChangeRow:
    """An entry as a row."""
    beads = tuple(clean_line(bead_id, 80) for bead_id in {**entry.before, **entry.after})
    words = " ".join([entry.kind, *(" ".join(words) for words in entry.commands[:50])])
    return ChangeRow(
        entry.id,
        entry.at,
        with_titles(clean_line(entry.title, 300), titled),
        mark.state,
        clean_line(entry.who.name, 30),
        entry.kind if entry.of else "",
        beads,
        words.lower(),
    )


def facts_of(
    entry: JournalEntry, mark: EntryStatus, history: JournalHistory, beads: Mapping[str, Bead], now: int
) -> ChangeFacts:
    """The details of an entry."""
    born = tuple(clean_line(bead_id, 80) for bead_id, fields in entry.before.items() if fields is None)
    values = {*entry.before, *entry.after}
    return ChangeFacts(
        key=entry.id,
        title=clean_line(entry.title, 600),
        state=mark.state,
        why=clean_line(mark.why, 600),
        when=f"{figures.moment(entry.at, now)}, {format_age((now - entry.at) / NS)} ago",
        who=_who(entry),
        commands=tuple(_command(words) for words in entry.commands),
        fields=tuple(_fields(entry)),
        titles=tuple((bead_id, clean_line(beads[bead_id].title, 200)) for bead_id in values if bead_id in beads),
        back=_back(entry, history),
        traces=tuple(clean_line(trace, 300) for trace in entry.traces),
        since=tuple(
            FieldChange(
                clean_line(difference.bead_id, 80),
                clean_line(difference.field, 60),
                shown_value(difference.ours),
                shown_value(difference.theirs),
            )
            for difference in mark.differences
        ),
        links=tuple(_links(entry, mark)),
        error=clean_line(entry.error, 600),
        born=born,
    )


def _who(entry: JournalEntry) -> str:
    where = _WHO.get(entry.who.kind, clean_line(entry.who.kind, 30))
    user = clean_line(entry.who.user, 40)
    settled = "; its process died, and its outcome was read from the files" if entry.recovered else ""
    if entry.who.kind == "loop":
        return f"{where}, started by {user}{settled}" if user else where + settled
    return (f"{user} at {where}" if user and entry.who.person else user or where) + settled


def _command(words: tuple[str, ...]) -> str:
    return clean_block(shlex.join(words), 8_000).replace("\n", "⏎")


def _fields(entry: JournalEntry) -> Iterator[FieldChange]:
    count = 0
    for bead_id, fields in entry.after.items():
        before = entry.before.get(bead_id) or {}
        for name, value in (fields or {}).items():
            if before.get(name) is None and value is None:
                continue  # a new bead is described by its fields
            if (count := count + 1) > MAX_FIELDS:
                return
            yield FieldChange(
                clean_line(bead_id, 80), clean_line(name, 60), shown_value(before.get(name)), shown_value(value)
            )


def _back(entry: JournalEntry, history: JournalHistory) -> tuple[str, ...]:
    """The commands that undid it, or else those that would."""
    undo = history.get(entry.undone_by) if entry.undone_by else None
    return tuple(_command(words) for words in (undo.commands if undo is not None else entry.inverse))


def _links(entry: JournalEntry, mark: EntryStatus) -> Iterator[tuple[str, str]]:
    if entry.of:
        yield ("undoes" if entry.kind == "undo" else "redoes"), entry.of
    if entry.undone_by:
        yield "undone by", entry.undone_by
    if mark.covered_by:
        yield "changed again by", mark.covered_by


def as_markdown(entry: JournalEntry) -> str:
    """A change as text: what was done, by whom, and with which commands."""
    commands = "\n".join(clean_block(shlex.join(words)) for words in entry.commands)
    head = f"{clean_line(entry.title, 600)} ({entry.id}, {format_instant(entry.at)}, {_who(entry)})"
    return f"{head}\n\n```\n{commands}\n```\n"


def empty_state(snapshot: Snapshot) -> list[Line] | None:
    """The text for a journal without entries; None if there are some."""
    journal = snapshot.journal
    if journal.entries:
        return None
    file = clean_line(str(snapshot.project.helix_dir / "journal.jsonl"), 300)
    if journal.problem:
        return [
            [("The journal cannot be read.", "error bold")],
            [],
            [(clean_line(journal.problem, 300), "text")],
            [(file, "muted")],
            [],
            [("No change can be made here until it can be written.", "muted")],
        ]
    if snapshot.condition == "loading":
        return [[("Reading the journal …", "text bold")], [(file, "muted")]]
    lines: list[Line] = [[("No changes made with helix-tui yet.", "text bold")], []]
    if journal.dropped or journal.torn:
        lines[0] = [("No line of the journal is valid.", "error bold")]
        lines += [[(notice, "attention")] for notice in notices(journal)]
    return [
        *lines,
        [("Every change made in the console or by ", "muted"), ("helix-tui", "running")],
        [("on the command line is written down here before it runs.", "muted")],
        [],
        [(file, "muted")],
    ]


def notices(history: JournalHistory) -> list[str]:
    """What cannot be read of the journal, in sentences."""
    found = []
    if history.problem:
        found.append(f"{clean_line(history.problem, 200)}; showing what was last read")
    if history.dropped:
        many = history.dropped != 1
        found.append(f"{history.dropped:,} invalid line{'s were' if many else ' was'} left out")
    if history.torn:
        found.append("the last line is incomplete: it is being written, or its writer died")
    return found


class JournalScreen(JobHost, FilteringScreen, ReadingScreen):
    """Screen 6."""

    NAME = "journal"
    PANES = "#journal-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("journal")]
    FOOTER = ("change.undo", "change.redo", "change.restore", "find.filter", "go.to", "app.help")
    WATCHING_FOOTER = ("go.open", "find.filter", "move.jump", "go.to", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.list = RowList(id="changes")
        self.detail = ChangePane(id="change")
        self.caption = Caption("journal")
        self.detail_caption = Caption()
        self.filter = ChangeFilter()
        self._history = JournalHistory()
        self._marks: Mapping[str, EntryStatus] = {}
        self._rows: list[ChangeRow] = []
        self._appraiser = EntryChecker()
        self._appraised: tuple[JournalHistory, Mapping[str, Bead]] | None = None

    def compose_body(self) -> ComposeResult:
        """Changes on the left, the one under the cursor on the right."""
        with Container(id="journal-panes"):
            with Vertical(id="changes-pane"):
                yield self.caption
                yield self.list
            with Vertical(id="change-pane", classes="beside"):
                yield self.detail_caption
                yield self.detail
        yield self.empty_state

    def on_mount(self) -> None:
        """Update the keys in the footer."""
        super().on_mount()
        self.say_keys()

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show the rows at once; their state against the beads follows from a thread."""
        fresh = {entry.id for entry in snapshot.journal.entries} - {row.key for row in self._rows}
        known = bool(self._rows)
        self._history = snapshot.journal
        self._make_rows()
        self._say_state(snapshot)
        self._show_rows(changed=fresh if known else frozenset())
        self._appraise(snapshot)

    def tick(self) -> None:
        """Refresh the ages."""
        super().tick()
        if self._rows:
            self._show_rows()

    def show_ages(self) -> None:
        """Show the ages in the detail of a change."""
        if self.detail.size.width:
            self.show_detail()

    def _make_rows(self) -> None:
        # the state of an entry comes from a thread: until then it looks done
        none = EntryStatus("done")
        marks, beads = self._marks, self.console.snapshot.queue.beads
        self._rows = [
            change_row(entry, marks.get(entry.id) or none, beads) for entry in reversed(self._history.entries)
        ]

    def _appraise(self, snapshot: Snapshot) -> None:
        """Compare the entries with the beads, in a thread, if either has changed."""
        last, self._appraised = self._appraised, (snapshot.journal, snapshot.queue.beads)
        history, beads = self._appraised
        # by identity: a snapshot shares unchanged parts with the previous one
        if last is not None and last[0] is history and last[1] is beads:
            return
        work = partial(self._appraiser.marks, history, beads)
        self._jobs.start("appraise", work, self._take_marks, lambda _: None)

    def _take_marks(self, marks: Mapping[str, EntryStatus]) -> None:
        if marks != self._marks:
            old, self._marks = self._marks, marks
            self._make_rows()
            self._show_rows(changed={key for key in old if old[key] != marks.get(key)})
        self.show_detail()

    def _say_state(self, snapshot: Snapshot) -> None:
        self.show_instead(empty_state(snapshot))
        self.say_keys()

    def _show_rows(self, changed: frozenset[str] | set[str] = frozenset()) -> None:
        rows = self.filter.passing(self._rows)
        if rows or not self.filter.words:
            said = notices(self._history)
            source = ChangeRows(rows, self.console.now(), notices=said, narrow=self.is_narrow)
            self.list.show(source, changed=changed, question=self.filter.text)
        else:
            none = Row("none", (("  no change matches; esc shows all", "muted"),), selectable=False)
            self.list.show(Rows([none]), question=self.filter.text)
        count = self.filter_count()
        self.caption.show("journal", count)
        self.tabs.show(filter_text=clean_line(self.filter.text, 200), count=count if self.filter.words else "")

    # --- the change under the cursor ----------------------------------------------------------------------

    @property
    def entry(self) -> JournalEntry | None:
        """The entry under the cursor."""
        return self._history.get(self.list.selected_key or "")

    def show_detail(self) -> None:
        """Show the change under the cursor."""
        entry = self.entry
        self.detail_caption.show("change" if entry is not None else "")
        seen = self.detail.size.width or self.has_class("-reading")  # just opened: it has no width yet
        if entry is None or not seen:
            self.detail.show_change(None)
            return
        mark = self._marks.get(entry.id, EntryStatus("done"))
        snapshot = self.console.snapshot
        self.detail.show_change(facts_of(entry, mark, self._history, snapshot.queue.beads, self.console.now()))

    @on(RowList.Opened, "#changes")
    def open_change(self) -> None:
        """Go to the change."""
        if self.is_narrow or self.entry is not None:
            self.open_detail()

    @on(ChangePane.Followed)
    def follow_line(self, event: ChangePane.Followed) -> None:
        """Open the bead or the entry that a line leads to."""
        if event.kind == "bead":
            self.console.go_to_bead(event.name)
        # the filter hides that entry: drop the filter
        elif not self.list.select(event.name):
            self.filter_with("")
            if not self.list.select(event.name):  # the loop's own
                self.filter_with(f"op:{event.name}")

    def on_resize(self) -> None:
        """Lay the rows out for the new width."""
        self._show_rows()

    # --- keys ---------------------------------------------------------------------------------------------

    def detail_panes(self) -> tuple[ChangePane]:
        """The change."""
        return (self.detail,)

    async def action_back(self) -> None:
        """Go from the change to the list; from a filter to all changes."""
        if not self.back_to_list() and self.filter.words:
            self.return_to("", self.list.selected_key)

    def action_copy_id(self) -> None:
        """Copy the entry's id."""
        if self.entry is not None:
            self.console.copy(self.entry.id, self.entry.id)

    def action_copy_markdown(self) -> None:
        """Copy the change with what ran."""
        if self.entry is not None:
            self.console.copy(as_markdown(self.entry), "as markdown")

    # --- undo and redo ------------------------------------------------------------------------------------

    def action_undo(self) -> None:
        """Undo the change under the cursor."""
        entry = self._plain_entry()
        if entry is not None and not entry.standing:
            self.console.say(f"{entry.id} changed nothing that is still there", "warning")
        elif entry is not None:
            self._look_ahead(UndoRequest("undo", entry))

    def action_redo(self) -> None:
        """Redo the change under the cursor."""
        entry = self._plain_entry()
        if entry is not None and not entry.undone_by:
            self.console.say(f"{entry.id} has not been undone", "warning")
        elif entry is not None:
            self._look_ahead(UndoRequest("redo", entry))

    def action_restore(self) -> None:
        """Restore the state right after the change under the cursor."""
        entry = self.entry
        if entry is not None and not self._history.back_to(entry.id):
            self.console.say(f"nothing has changed since {entry.id}")
        elif entry is not None:
            self._look_ahead(RestoreRequest(entry))

    def _plain_entry(self) -> JournalEntry | None:
        """The change under the cursor; for an undo, the change that it undid."""
        entry = self.entry
        return self._history.get(entry.of) if entry is not None and entry.of else entry

    def _look_ahead(self, request: ChangeRequest) -> None:
        """Preview it; nothing runs before the user confirms."""
        try:
            self.console.change_runner.check()
        except WritesForbidden as error:
            self.console.say(str(error), "warning")
            return
        self.console.push_screen(PreviewSheet(request))

    def say_keys(self) -> None:
        """Show the keys that may be pressed here; with the change, also the one that goes back."""
        forbidden = self.console.change_runner.curator.gate.read_only
        keys = self.WATCHING_FOOTER if forbidden else self.FOOTER
        self.show_keys(("go.back", *keys) if self.focused is self.detail else keys)

    # --- the filter ---------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self.filter.text

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Completions."""
        start = text.rfind(" ", 0, cursor) + 1
        return [Completion(way, start, meaning) for way, meaning in self.filter.ways(text[start:cursor])]

    def filter_problem(self, text: str) -> str:
        """The part of a text that is not understood."""
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
        """How many rows pass, of how many."""
        shown, total = len(self.filter.passing(self._rows)), len(self._rows)
        if not self.filter.words:
            return f"{shown:,}, {total - shown:,} by the loop: / who:{LOOP}" if shown < total else f"{total:,}"
        return f"{shown:,} of {total:,}"
