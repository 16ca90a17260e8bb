"""Memory: the memories, which of them help by verified outcomes, and the lessons that wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer

from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory.changes import MemoryChange
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Memory, Recall, Recalled
from helix_tui.core.supervision.agents.plan_beads import bead_operations, beads_of
from helix_tui.core.supervision.requests import request_for
from helix_tui.keymap import BY_ID, bindings, shown
from helix_tui.screens.background import JobHost
from helix_tui.screens.editing.choices import ChoiceSheet
from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.memory import changes, view_state
from helix_tui.screens.memory.view_state import MemorySession, MemoryViewState, page_of
from helix_tui.screens.panes import ReadingScreen
from helix_tui.screens.sheet import LinesSheet
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows, RowSource
from helix_tui.widgets.chrome.bottom import Words
from helix_tui.widgets.chrome.header import Caption, PaneTabs
from helix_tui.widgets.text.memory import MemoryPane, MemoryRow, MemoryRows, heading
from helix_tui.widgets.text.pane import Para

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot

LOOK_SECONDS = 2.0
"""How often the screen checks for new memories and outcomes."""

TYPING_DELAY = 0.15
"""Seconds that typing rests before a search: each one encodes its text."""

MAX_HITS = 200


class MemoryScreen(JobHost, FilteringScreen, ReadingScreen):
    """Screen 3."""

    NAME = "memory"
    PANES = "#memory-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("memory")]
    FOOTER = ("go.open", "go.view", "find.filter", "memory.edit", "change.actions", "change.undo", "app.help")
    READING_FOOTER = ("go.back", "go.open", "move.next-part", "copy.id", "change.actions", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.view = view_state.VIEWS[0]
        self.views = PaneTabs(view_state.VIEWS, id="memory-views")
        self.alerts = Words(id="memory-alerts")
        self.heading = Words(id="memory-heading")
        self.list = RowList(id="memories")
        self.caption = Caption("memory", id="memory-caption")
        self.page = MemoryPane(id="memory-text")
        self.memory_view = MemoryViewState()
        self.answer: Recall | None = None
        """The search results; None without a search."""
        self._query = ""
        self._answered = ""
        """The search text of `answer`."""
        self._rows: list[MemoryRow] = []
        self._memory_session: MemorySession | None = None
        self._typing: Timer | None = None
        self._wanted = ""

    def compose_body(self) -> ComposeResult:
        """The table above, the memory under the cursor below; side by side if there is room."""
        with Container(id="memory-panes"):
            with Vertical(id="shelf"):
                yield self.views
                yield self.alerts
                yield self.heading
                yield self.list
            with Vertical(id="memory-page", classes="beside"):
                yield self.caption
                yield self.page
        yield self.empty_state

    def on_mount(self) -> None:
        """Start watching the memory."""
        super().on_mount()
        self.set_interval(LOOK_SECONDS, self.look)
        self._show_shelf(self.memory_view)
        self.look()

    def on_unmount(self) -> None:
        """Close the database."""
        if self._memory_session is not None:
            self._memory_session.close()

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Look for changes: an attempt that ended may have changed the memory."""
        self.look()

    @property
    def memory_session(self) -> MemorySession:
        """The project's memory, opened on first use."""
        if self._memory_session is None:
            self._memory_session = MemorySession(
                self.console.snapshot.project, read_only=self.read_only, clock=self.console.now
            )
        return self._memory_session

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed."""
        return bool(getattr(self.app, "read_only", False))

    def look(self) -> None:
        """Check for changes, unless a check is running."""
        # a covered screen checks again when it comes into view
        if self.is_current and not self._jobs.busy("shelf"):
            read = partial(self.memory_session.read, self.memory_view)
            self._jobs.start("shelf", read, self._take_shelf, self._say_trouble)

    def on_screen_resume(self) -> None:
        """Look for changes made meanwhile; Textual calls the superclass's too."""
        self.look()

    def _take_shelf(self, memory_view: MemoryViewState) -> None:
        if memory_view is not self.memory_view:
            self._show_shelf(memory_view)

    def _say_trouble(self, why: str) -> None:
        self._show_shelf(MemoryViewState("unreadable", why, path=str(self.memory_session.path)))

    def _show_shelf(self, memory_view: MemoryViewState) -> None:
        known, self.memory_view = self.memory_view, memory_view
        if memory_view.health is not None:
            self.console.memory_health = memory_view.health.words
            self.show_pulse()
        self.show_instead(view_state.empty_state(memory_view))
        self.say_keys()
        self._make_rows()
        self.show_rows(changed=view_state.fresh(known, memory_view))
        if self._query:
            self._search()

    # --- rows ---------------------------------------------------------------------------------------------

    def _make_rows(self) -> None:
        hits: Mapping[str, Recalled] | None = None
        if self.answer is not None:
            hits = {hit.memory.name: hit for hit in self.answer.found}
        self._rows = view_state.memory_rows(self.memory_view, self.console.now(), hits)

    def _nothing(self) -> Row:
        turn = shown(BY_ID["go.view"], self.console.keymap)
        return view_state.nothing(self.view, self._query, turn)

    def show_rows(self, *, changed: frozenset[str] = frozenset()) -> None:
        """Update the rows of the view, and the text around them."""
        now = self.console.now()
        if self.view in ("proposed", "plans"):
            rows = (
                view_state.proposal_rows(self.memory_view.proposals, now)
                if self.view == "proposed"
                else view_state.plan_rows(self.memory_view, now)
            )
            source: RowSource = Rows(rows or [self._nothing()])
        else:
            found = view_state.belonging(self._rows, self.view)
            source = MemoryRows(found, now) if found else Rows([self._nothing()])
        self.list.show(source, changed=changed, question=(self.view, self._answered))
        if self._wanted and self.list.select(self._wanted):
            self._wanted = ""
        table = self.view not in ("proposed", "plans")
        searched = self.answer is not None
        mode = self._mode()
        self.heading.show(lambda width: heading(width, mode, searched=searched) if table else ())
        self.views.show(self.view, view_state.counts(self.memory_view, self.size.width))
        self.alerts.show(lambda width: [(" ", "text"), *view_state.alerts(self.memory_view)])
        self.tabs.show(filter_text=clean_line(self._query, 200), count=self.filter_count() if self._query else "")
        self.show_detail()

    def _mode(self) -> str:
        """How memories are searched."""
        if self._jobs.busy("recall"):
            return "searching …"
        health = self.memory_view.health
        mode = self.answer.mode if self.answer is not None else health.mode if health is not None else ""
        return {"keyword": "search: keywords only", "semantic": "search: by meaning"}.get(mode, "")

    def tick(self) -> None:
        """Refresh the ages."""
        super().tick()
        if self.memory_view.condition == "live" and self.list.size.width:
            self._make_rows()
            self.list.show(self.list.source) if not self._rows else self.show_rows()

    def show_ages(self) -> None:
        """Refresh those of the memory's page."""
        self.show_detail()

    def show_memory(self, name: str) -> None:
        """Put the cursor on a memory, whatever is filtered."""
        self._query, self.answer, self._answered, self.view, self._wanted = "", None, "", "all", name
        self._make_rows()
        self.show_rows()

    # --- the page -----------------------------------------------------------------------------------------

    def show_detail(self) -> None:
        """Read the page of the memory under the cursor, and show it."""
        key = self.list.selected_key or ""
        seen = self.page.size.width or self.has_class("-reading")  # just opened: it has no width yet
        if not seen or self.memory_view.condition != "live":
            return
        hits = {hit.memory.name: hit for hit in self.answer.found} if self.answer is not None else {}
        row = next((row for row in self._rows if row.name == key), None)
        work = partial(page_of, self.memory_session, self.memory_view, key, row, hits.get(key), self.console.now())
        self._jobs.start("page", work, partial(self._take_page, key), lambda _: None)

    def _take_page(self, key: str, paras: Sequence[Para]) -> None:
        if key == (self.list.selected_key or ""):
            # the same memory in a newer state keeps its scroll position
            if self.page.paras and paras and self.page.paras[0].spans == paras[0].spans:
                self.page.update_text(paras)
            else:
                self.page.read(paras)

    @on(RowList.Opened)
    def open_row(self, event: RowList.Opened) -> None:
        """Go to the page."""
        if event.rows is self.list:
            event.stop()
            self.open_detail()

    @on(MemoryPane.Followed)
    def follow_line(self, event: MemoryPane.Followed) -> None:
        """Open the memory, attempt or bead that a line leads to."""
        if event.kind == "memory":
            self.show_memory(event.name)
        elif event.kind == "attempt" and self.console.snapshot.attempts.get(event.name):
            self.console.open_attempt(event.name)
        elif event.kind == "bead":
            self.console.go_to_bead(event.name)

    # --- keys ---------------------------------------------------------------------------------------------

    def detail_panes(self) -> tuple[MemoryPane]:
        """The page."""
        return (self.page,)

    async def action_back(self) -> None:
        """Go from the page to the table; from a search to all memories."""
        if not self.back_to_list() and self._query:
            self.return_to("", self.list.selected_key)

    async def action_fold(self) -> None:
        """Go back to the table."""
        await self.action_back()

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or previous view."""
        place = (view_state.VIEWS.index(self.view) + step) % len(view_state.VIEWS)
        self.open_view(view_state.VIEWS[place])

    @on(PaneTabs.Pressed)
    def press_view(self, event: PaneTabs.Pressed) -> None:
        """Show the view that was clicked."""
        self.open_view(event.name)

    def open_view(self, view: str) -> None:
        """Show another view."""
        self.view = view
        self.show_rows()

    def action_copy_id(self) -> None:
        """Copy the name of the memory."""
        key = self.list.selected_key
        if key:
            shown = clean_line(key, 300)
            self.console.copy(shown, shown)

    # --- searching ----------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The search text."""
        return self._query

    def filter_with(self, text: str) -> None:
        """Search by meaning once typing rests."""
        self._query = text.strip()
        if self._typing is not None:
            self._typing.stop()
        if not self._query:
            # the results for the previous text must not replace the whole list
            self._jobs.drop("recall")
            self.answer, self._answered = None, ""
            self._make_rows()
            self.show_rows()
        elif self.memory_view.condition == "live":
            self._typing = self.set_timer(TYPING_DELAY, self._search)

    def _search(self) -> None:
        query = self._query

        def recall() -> Recall:
            return self.memory_session.store().recall(query, limit=MAX_HITS)

        if query:
            self._jobs.start("recall", recall, partial(self._take_answer, query), self._not_found)
            self.views.show(self.view, self._mode())

    def _take_answer(self, query: str, answer: Recall) -> None:
        if query == self._query:
            self.answer = answer
            self._answered = query
            self._make_rows()
            self.show_rows()
            self.say_count()

    def _not_found(self, why: str) -> None:
        self.console.say(why, "warning")

    def has_matches(self) -> bool:
        """Whether anything is found, or the search is still running."""
        return True

    def filter_count(self) -> str:
        """How many are found, and how."""
        if self.answer is None:
            return f"{len(self._rows):,}"
        how = "semantic" if self.answer.mode == "semantic" else "keywords only"
        return f"{len(self.answer.found):,} {how}"

    # --- changing -----------------------------------------------------------------------------------------

    def action_actions(self) -> None:
        """Open the menu of actions."""
        if self.memory_view.condition != "live":
            return
        if self.read_only:
            self.console.say("nothing can be changed: started with --read-only", "warning")
            return
        key = self.list.selected_key or ""
        self.app.push_screen(ChoiceSheet("memory", changes.choices(self.memory_view, key, partial(self._act, key))))

    def _act(self, key: str, choice: str) -> None:
        if choice in ("beads", "edit", "supersede"):
            ways = {"edit": self.action_edit_memory, "supersede": self.action_supersede_memory}
            ways.get(choice, partial(self._make_beads, key))()
            return
        plan = changes.foresee(self.memory_view, key, choice)
        if plan is None:
            return
        self.app.push_screen(LinesSheet(plan.title, plan.lines, plan.note, partial(self.change, plan.work)))

    def _make_beads(self, key: str) -> None:
        """Create beads from a plan, in one change that is previewed."""
        plan = next((each for each in self.memory_view.plans if f"plan {each.id}" == key), None)
        if plan is None:
            return
        if plan.problems:
            self.console.say(clean_line(plan.problems[0], 200), "warning")
            return
        beads = self.console.snapshot.queue.beads
        wanted = bead_operations(plan, beads, epic=len(plan.tasks) > 1)
        if not any(task.seq not in beads_of(plan, beads) for task in plan.tasks):
            self.console.say("every task of this plan has a bead already")
            return
        title = f"create {counted(len(wanted), 'bead')} from plan {plan.id}"
        self.app.push_screen(PreviewSheet(request_for(wanted, title)))

    def change(self, work: changes.Work, done: Callable[[], object] = lambda: None) -> None:
        """Change the memory in a thread, report the result, then call ``done``."""

        def ended(said: str) -> None:
            self.console.say(said)
            done()
            self.look()

        self._jobs.start("change", lambda: work(self.memory_session.store()), ended, self._not_found)

    def foresee(self, plan: Callable[[MemoryStore], Any], show: Callable[[Any], None]) -> None:
        """Work out in a thread what a change would do, and show it."""
        self._jobs.start("foreseen", lambda: plan(self.memory_session.store()), show, self._not_found)

    def _memory_here(self) -> Memory | None:
        """The memory under the cursor, if it may be changed."""
        if self.read_only:
            self.console.say("nothing can be changed: started with --read-only", "warning")
            return None
        name = self.memory_view.names.get(self.list.selected_key or "")
        if name is None:
            self.console.say("select a memory first", "warning")
        return name

    def action_edit_memory(self) -> None:
        """Correct the memory's text."""
        if (memory := self._memory_here()) is not None:
            changes.edit(self, memory)

    def action_supersede_memory(self) -> None:
        """Replace it by another memory."""
        if (memory := self._memory_here()) is not None:
            changes.supersede(self, memory)

    def action_remove_memory(self) -> None:
        """Remove it."""
        if (memory := self._memory_here()) is not None:
            self._act(memory.name, "remove")

    def action_undo(self) -> None:
        """Undo the last change of the memory."""
        if self.read_only:
            self.console.say("nothing can be changed: started with --read-only", "warning")
        elif self.memory_view.condition in ("live", "empty"):
            self._jobs.start("change", partial(changes.undo, self.memory_session), self._undone, self._not_found)

    def _undone(self, change: MemoryChange | None) -> None:
        self.console.say(f"undone: {change.title}" if change is not None else "there is nothing to undo")
        self.look()
