"""The loop: what runs with its last actions, every attempt below, and the one under the cursor in tabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.keymap import bindings
from helix_tui.screens.editing.choices import Choice, ChoiceSheet
from helix_tui.screens.editing.keys import BeadKeys
from helix_tui.screens.external_editor import open_at, open_first_change
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.loop.attempt_screen import AttemptView
from helix_tui.screens.loop.attempt_stream import AttemptStream, RunTail
from helix_tui.screens.panes import ReadingScreen, keep
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.empty_state import empty_state
from helix_tui.widgets.rows.attempt_table import ATTEMPT_COLUMNS, SORTS, AttemptFilter, SortKey
from helix_tui.widgets.rows.attempts import AttemptList, RunningPanel
from helix_tui.widgets.text.attempt_evidence import AttemptSubject, EvidencePane
from helix_tui.widgets.text.diff import DiffPane
from helix_tui.widgets.text.pane import FoldPane
from helix_tui.widgets.text.transcript import RawPane, TranscriptPane

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.widgets.chrome.bottom import Prompt


class LoopScreen(BeadKeys, FilteringScreen, ReadingScreen):
    """Screen 2."""

    NAME = "loop"
    PANES = "#loop-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("loop")]
    COLUMNS = ATTEMPT_COLUMNS
    FOOTER = ("go.open", "go.view", "list.sort", "find.filter", "list.columns", "app.help")
    list: AttemptList
    READING_FOOTER = ("go.back", "go.view", "move.next-part", "copy.id", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.stream = AttemptStream(most=None, id="attempts")
        self.list = self.stream.list
        self.view = AttemptView(id="attempt", classes="beside")
        self.tail = RunTail(id="loop-log")
        self.filter = AttemptFilter("")
        self._marked = ""
        self._searched: RowList | None = None
        """The pane that the prompt searches; None if it filters the list."""
        self._wanted = ""

    def compose_body(self) -> ComposeResult:
        """The stream on the left, the attempt on the right; below, HELIX's own loop."""
        with Container(id="loop-panes"):
            yield self.stream
            yield self.view
        yield self.empty_state
        yield self.tail

    def on_mount(self) -> None:
        """Apply the saved columns and order."""
        super().on_mount()
        self.columns_changed()
        name, turned = self.console.kept.order(self.NAME)
        self.stream.sort_by(SORTS.get(name, SORTS["time"]), turned=turned)

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show rows and attempt, or the text in their place."""
        self._say_state(snapshot)
        self.stream.show_snapshot(snapshot, change, self.console.now())
        if self._wanted and self.list.select(self._wanted):
            self._wanted = ""
        self._say_count()
        self.show_detail()
        self.tail.show_status_summary(self.console.status_summary)

    def tick(self) -> None:
        """Refresh the ages."""
        super().tick()
        self.stream.tick(self.console.now())
        self.tail.show_status_summary(self.console.status_summary)

    def _say_state(self, snapshot: Snapshot) -> None:
        bare = not snapshot.runs and not len(snapshot.attempts)
        self.show_instead(_empty_state(snapshot) if bare else None)
        self.say_keys()

    def _say_count(self) -> None:
        self.tabs.show(filter_text=clean_line(self.filter.text, 200), count=self.filter_count())
        self.say_count()

    # --- the attempt under the cursor ---------------------------------------------------------------------

    def show_detail(self) -> None:
        """Show the attempt under the cursor, if there is room for it."""
        if self.view.size.width:
            self.view.show(self.console.snapshot.project, self.subject())

    def bead_ids(self) -> tuple[str, ...]:
        """The bead of the run or attempt under the cursor."""
        view, attempt = self.list.selected_run, self.list.selected_attempt
        bead_id = view.run.bead_id if view is not None else attempt.bead_id if attempt is not None else ""
        return (bead_id,) if bead_id else ()

    def subject(self) -> AttemptSubject | None:
        """The run or attempt under the cursor, with everything about it that is known without reading files."""
        snapshot, now = self.console.snapshot, self.console.now()
        view, attempt = self.list.selected_run, self.list.selected_attempt
        run = view.run if view is not None else None
        if run is not None:
            attempt = snapshot.attempts.get(run.attempt_id or "") or _attempt_of_run(run, snapshot)
        if attempt is None:
            return None
        siblings = snapshot.attempts.of_bead(attempt.bead_id)
        reading = interpret(attempt, now, snapshot.queue)
        return AttemptSubject(attempt, run, snapshot.queue.beads, siblings, reading, now=now)

    def show_attempt(self, attempt_id: str, tab: str = "") -> bool:
        """Put the cursor on an attempt; False if it is not there yet: it is selected when it appears.

        Args:
            tab: the tab to show it in; empty for the open one.
        """
        if tab:
            self.view.open_tab(tab)
        # drop a filter that hides it
        if not self.list.select(attempt_id) and self.filter.text:
            self.filter_with("")
        if self.list.select(attempt_id):
            # else the next attempt that begins would move the cursor
            self.list.follow_no_more()
            self.open_detail()
            return True
        self._wanted = attempt_id
        return False

    @on(RunningPanel.Chosen)
    def open_chosen(self, event: RunningPanel.Chosen) -> None:
        """Enter on a row."""
        event.stop()
        self.open_detail()

    def show_and_focus(self) -> None:
        """Show the attempt, even in a pane without a size yet: it gets one when it covers the list."""
        self.view.show(self.console.snapshot.project, self.subject())
        self.view.pane.focus(scroll_visible=False)

    @on(EvidencePane.Followed)
    def follow_line(self, event: EvidencePane.Followed) -> None:
        """Open the bead or the other attempt that a line of the evidence leads to."""
        if event.kind == "bead":
            self.console.go_to_bead(event.name)
        elif event.kind == "attempt":
            self.show_attempt(event.name)

    # --- keys ---------------------------------------------------------------------------------------------

    def detail_panes(self) -> Sequence[RowList]:
        """The open tab, and the files of a diff."""
        return (self.view.pane, self.view.files)

    def on_descendant_focus(self) -> None:
        """Keep the attempt that is being read, even if the list follows the newest."""
        self.list.held = not self.in_list

    def say_keys(self) -> None:
        """Show the keys of the focused pane in the footer."""
        if self.prompt is None:
            follows = "move.follow" if self.focused is self.view.transcript else "pane.zoom"
            reading = (*self.READING_FOOTER[:3], follows, *self.READING_FOOTER[3:])
            self.show_keys(self.FOOTER if self.in_list else reading)

    async def action_back(self) -> None:
        """Go from the attempt to the list; from a filter to all attempts."""
        if not self.back_to_list() and self.filter.text:
            self.return_to("", self.list.selected_key)

    def action_sort(self) -> None:
        """Choose the order of the list; choosing the present one reverses it."""
        now, turned = self.stream.sort
        choices = []
        for sort in SORTS.values():
            first = f"{sort.first} first" if sort is not now or turned else f"{sort.first} first; again: last"
            label = f"{sort.name} ▾" if sort is now else sort.name
            choices.append(Choice(sort.key, sort.key, label, first, partial(self._sort_by, sort)))
        self.console.push_screen(ChoiceSheet("order of the attempts", choices))

    def _sort_by(self, sort: SortKey) -> None:
        """Sort, and keep the order for the next start; the present order is reversed."""
        now, turned = self.stream.sort
        self.stream.sort_by(sort, turned=sort is now and not turned)
        self.console.kept.choose_order(self.NAME, sort.name, turned=self.stream.sort[1])
        keep(self, self.console.kept.write)

    def columns_changed(self) -> None:
        """Show the chosen columns."""
        self.stream.choose_columns(self.chosen_columns)

    async def action_fold(self) -> None:
        """Fold the block under the cursor; else go back to the list."""
        pane = self.focused
        if self.in_list:
            self.list.fold()
            return
        folded = isinstance(pane, TranscriptPane | DiffPane | RawPane) and pane.fold()
        if not folded and not self.in_list:
            await self.action_back()

    def action_unfold(self) -> None:
        """Unfold the block under the cursor; from the list, go to the attempt."""
        pane = self.focused
        if self.in_list and self.list.unfold():
            return
        if self.in_list:
            self.open_detail()
        elif pane is self.view.files:
            self.view.diff.focus(scroll_visible=False)
        elif isinstance(pane, TranscriptPane | DiffPane | RawPane):
            pane.unfold()

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or previous tab of the attempt."""
        self.view.turn(step)

    def action_turn_part(self, step: int) -> None:
        """In the list, go to the next attempt on the same bead; in a pane, to the next section, file or failure."""
        pane = self.list if self.in_list else self.focused
        if isinstance(pane, RowList):
            pane.turn_part(step)

    def action_follow(self) -> None:
        """Follow the newest (top of the list, end of a transcript), or stay at the cursor."""
        transcript = self.view.transcript
        if self.focused is transcript:
            transcript.follow(not transcript.following)
            self.view.say_tabs()
        else:
            self.list.follow(not self.list.following)
            self.stream.say_caption()

    def action_mark(self) -> None:
        """Mark the attempt under the cursor to compare others with it; again, to unmark it."""
        attempt = self.list.selected_attempt
        if not self.in_list or attempt is None:
            return
        self._marked = "" if self._marked == attempt.attempt_id else attempt.attempt_id
        self.list.flag({self._marked: ("■", "attention")} if self._marked else {})
        self.view.compare_with(attempt if self._marked else None)

    def action_open_editor(self) -> None:
        """Open the file at the line under the cursor in the editor; else the attempt's first change."""
        reads = self.view.size.width and (not self.in_list or self.view.current == "diff")
        place = self.view.place() if reads else None
        if place is None:
            subject = self.subject()
            open_first_change(self, subject.attempt if subject is not None else None)
        elif said := open_at(self.app, *place):
            self.console.say(said, "warning")

    def action_page(self) -> None:
        """Show the open tab in the pager."""
        if said := self.view.page():
            self.console.say(said, "warning")

    def action_copy_id(self) -> None:
        """Copy the attempt's id."""
        subject = self.subject()
        if subject is not None and subject.attempt.attempt_id:
            shown = clean_line(subject.attempt.attempt_id)
            self.console.copy(shown, shown)

    # --- search in a pane ---------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        """Filter the list, or search the text of a pane, folded parts included."""
        self._searched = None if self.in_list else self.view.pane
        await super().action_filter()

    async def on_prompt_done(self, event: Prompt.Done) -> None:
        """Keep an accepted search highlighted, for n and N to step through."""
        pane, ours = self._searched, event.prompt is self.prompt
        await super().on_prompt_done(event)
        if pane is not None and ours:
            pane.focus(scroll_visible=False)

    def _search(self, text: str) -> None:
        """Highlight a text in the pane and go to its first match from the cursor on."""
        pane = self._searched
        if pane is None:
            return
        words = text.strip()
        # folded text has no row in which it could be found
        if words and isinstance(pane, FoldPane | TranscriptPane):
            pane.unfold_matches(words)
        pane.mark_matches(re.compile(re.escape(words), re.IGNORECASE) if words else None)
        if words:
            pane.action_match_from_here()

    def _matches(self) -> str:
        pattern, source = self._searched.pattern if self._searched is not None else None, self.view.pane.source
        if pattern is None:
            return ""
        # counted again on every key, so with a limit
        count = sum(pattern.search(source.text(index)) is not None for index in range(min(len(source), 20_000)))
        return f"{counted(count, 'line')}; n N step"

    # --- the filter ---------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self.filter.text if self._searched is None else ""

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Fields, and values that the attempts hold."""
        if self._searched is not None:
            return ()
        start = text.rfind(" ", 0, cursor) + 1
        return [
            Completion(way, start, meaning)
            for way, meaning in self.filter.ways(text[start:cursor], self.console.snapshot.attempts)
        ]

    def filter_problem(self, text: str) -> str:
        """The problem with a filter: a field that attempts do not have."""
        if self._searched is not None:
            return ""
        return AttemptFilter(text).problem

    def filter_with(self, text: str) -> None:
        """Show what passes; in a search, what it finds."""
        if self._searched is not None:
            self._search(text)
            return
        self.filter = AttemptFilter(text.strip(), self.console.snapshot.queue.beads)
        self.stream.filter_with(self.filter if self.filter.words else None)
        self.list.mark_matches(self.filter.pattern())
        self._say_count()
        self.show_detail()

    def has_matches(self) -> bool:
        """Whether any attempt passes."""
        if self._searched is not None:
            return True
        return bool(self.stream.order.attempts or self.list.board.runs)

    def filter_count(self) -> str:
        """Attempts that pass, of all; in a search, the matching lines."""
        if self._searched is not None and self.prompt is not None:
            return self._matches()
        book = self.console.snapshot.attempts
        among_runs = sum(book.get(view.run.attempt_id or "") is not None for view in self.list.board.runs)
        # running attempts have their row above: they count, as in `attempts`
        shown = len(self.stream.order.attempts) + among_runs
        return f"{shown:,} of {len(book):,}" if shown < len(book) else f"{shown:,}"


def _attempt_of_run(run: Run, snapshot: Snapshot) -> Attempt:
    """An attempt of which only the run is known."""
    attempt_id = run.attempt_id or ""
    bundle = snapshot.project.records_dir / "executions" / attempt_id if attempt_id else None
    return Attempt(
        attempt_id, run.bead_id or "", harness=run.harness, model=run.model, started_at=run.started_at, bundle=bundle
    )


def _empty_state(snapshot: Snapshot) -> list[Line]:
    """The text in place of the list: why there is no attempt, and how to make one."""
    said = empty_state(snapshot)
    if said is not None and snapshot.condition != "empty":
        return said
    if not snapshot.attempts_read:
        return [[("Reading attempts …", "text bold")]]
    ready = len(snapshot.queue.ready)
    folder = clean_line(str(snapshot.project.records_dir / "executions"), 300)
    waiting = f"{ready:,} beads are ready." if ready != 1 else "One bead is ready."
    return [
        [("Nothing has been attempted yet.", "text bold")],
        [(waiting if ready else "No bead is ready; the queue says why.", "muted")],
        [],
        [("ddx work --once", "running"), ("   takes the next ready bead", "muted")],
        [("ddx work", "running"), ("          drains the queue", "muted")],
        [("helix-tui demo", "running"), ("    shows a simulation in a throw-away project", "muted")],
        [],
        [("Attempts appear here as DDx writes them: ", "muted"), (folder, "muted")],
    ]
