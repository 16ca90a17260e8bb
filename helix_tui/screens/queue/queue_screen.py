"""The queue: the bead DAG, tree, lanes or pick order on the left, the bead under the cursor on the right.

Below 40 columns the digest takes its place. Lines of the tracker that are not beads open on a screen of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.beads.query import Query, complete, matching, parse_query
from helix_tui.core.beads.readiness import Queue, classify
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import STATES
from helix_tui.core.beads.views import (
    FOLD_DONE,
    FOLD_LOOSE,
    FOLD_REST,
    VIEWS,
    Folding,
    QueueView,
    ViewKind,
    ViewRow,
    build_view,
)
from helix_tui.core.ground.text import clean_line
from helix_tui.core.snapshot.snapshot import Change
from helix_tui.core.supervision.decide.need_kinds import KINDS
from helix_tui.keymap import bindings
from helix_tui.screens.editing.keys import MarkKeys
from helix_tui.screens.external_editor import open_first_change
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.layout import BROAD
from helix_tui.screens.panes import DETAIL_DELAY
from helix_tui.screens.queue.bead_screen import BeadDetails, row_context
from helix_tui.screens.queue.keys import Along, SliceKeys
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.screens.status_bar_model import notice_forms
from helix_tui.widgets.base.line import Span, cut, heading, spread, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows, RowSource
from helix_tui.widgets.chrome.bottom import Chooser
from helix_tui.widgets.chrome.empty_state import empty_state
from helix_tui.widgets.chrome.header import Caption
from helix_tui.widgets.rows.attempts import title_of
from helix_tui.widgets.rows.bead import (
    BEAD_COLUMNS,
    QueueRows,
    RowContext,
    column_heads,
    sign_of,
)
from helix_tui.widgets.rows.lanes import LaneList
from helix_tui.widgets.text.bead import DetailView, as_markdown

if TYPE_CHECKING:
    from helix_tui.core.beads.tracker import Tracker
    from helix_tui.core.snapshot.snapshot import Snapshot
    from helix_tui.core.supervision.decide.needs import Need
    from helix_tui.screens.loop.attempt_stream import AttemptStream
    from helix_tui.widgets.rows.attempts import RunningPanel


MAX_NEXT = 5
MAX_NEEDS = 200


def strip_rows(world: RowContext, needs: Sequence[Need], width: int) -> Rows:
    """The rows of the strip."""
    rows: list[Row] = []
    live = [bead_id for bead_id, run in world.runs.items() if run.live and bead_id in world.queue.beads]
    # a bead that waits for two reasons has one row, with the sign of the more urgent one
    by_bead: dict[str, list[Need]] = {}
    for need in needs[:MAX_NEEDS]:
        by_bead.setdefault(need.bead_id or need.key, []).append(need)
    first = {about: (each[0], len(each)) for about, each in by_bead.items()}
    upcoming = world.queue.ready[:MAX_NEXT]
    for caption, ids in (("running", live), ("next", upcoming)):
        if ids:
            rows.append(Row(f"caption:{caption}", tuple(heading(caption, width)), selectable=False))
            rows += [_bead_row(bead_id, caption, world, width) for bead_id in ids]
    if needs:
        rows.append(Row("caption:needs", tuple(heading("needs me", width, f"{len(needs)}")), selectable=False))
        rows += [_need_row(need, times, world, width) for need, times in first.values()]
    rows.append(Row("caption:counts", tuple(heading("all", width, f"{len(world.queue.beads):,}")), selectable=False))
    for state, count in world.queue.counts().items():
        sign = STATES[state].sign
        rows.append(
            Row(f"count:{state}", ((f"{sign.glyph} ", sign.ink), (sign.word, "text")), ((f"{count:,}", "muted"),))
        )
    return Rows(rows)


def _bead_row(bead_id: str, caption: str, world: RowContext, width: int) -> Row:
    bead = world.queue.beads[bead_id]
    sign, note = sign_of(bead, world), world.note_on(bead, brief=True)
    right = [(cut(note.text, width // 3), note.role)] if note is not None else []
    title, ink = title_of(bead_id, world.queue.beads)
    spans: list[Span] = [(f"{sign.glyph} ", sign.ink), (title, ink)]
    return Row(f"{caption}:{bead_id}", tuple(spread(spans, right, width)))


def _need_row(need: Need, times: int, world: RowContext, width: int) -> Row:
    """The row of a bead that needs somebody; with the number of its needs, so that the rows add up to the caption's."""
    bead = world.queue.beads.get(need.bead_id)
    said, ink_ = title_of(bead.id, world.queue.beads) if bead is not None else (clean_line(need.reason, 200), "text")
    key = f"need:{need.bead_id}" if bead is not None else f"need:{need.key}"
    kind = KINDS[need.kind]
    right: list[Span] = [(f"{times}×", "muted")] if times > 1 else []
    return Row(key, tuple(spread([(f"{kind.glyph} ", kind.ink), (said, ink_)], right, width)))


class Panes(Container):
    """A container that its children cover, so it has nothing to draw itself."""

    BLANK = True


class QueueScreen(SliceKeys, MarkKeys, FilteringScreen):
    """Screen 1."""

    NAME = "queue"
    PANES = "#panes"
    COLUMNS = BEAD_COLUMNS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("queue")]
    FOOTER = ("change.actions", "change.mark", "change.what-if", "change.undo", "find.filter", "app.help")
    MARKED_FOOTER = ("change.eligible", "change.depend", "change.close", "change.what-if", "go.back=unmark", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.kind: ViewKind = "dag"
        self.filter = parse_query("")
        self.folding = Folding()
        # beads that no fold may hide; kept apart from the folds because the feed's thread sets it
        self._kept: frozenset[str] = frozenset()
        self.world = RowContext(classify({}, now=0), {}, 0)
        self.lanes = LaneList(id="queue")
        self.list: RowList = self.lanes
        self.detail = DetailView(id="detail")
        self.third = Vertical(id="third")
        self.stream: AttemptStream | None = None
        """The third pane's content; created when the layout first needs it."""
        self.list_caption = Caption()
        self.detail_caption = Caption()
        self.around = BeadDetails(self, self._show_more)
        self.along = Along(self)
        self._shown_breakpoint = ""
        self._archive = classify({}, now=0)
        self._view = build_view(self.world.queue)
        self._built: tuple[tuple[object, ...], QueueView] = ((), self._view)

    def compose_body(self) -> ComposeResult:
        """List, detail, and on wide screens a third pane, below or beside the detail."""
        self.set_class(self.app.size.width >= BROAD, "-broad")
        with Panes(id="panes"):
            with Panes(id="left"):
                yield self.list_caption
                yield self.list
            with Container(id="aside", classes="beside"):
                with Vertical(id="right"):
                    yield self.detail_caption
                    yield self.detail
                yield self.third
        yield self.empty_state

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show rows and detail, or the text in their place."""
        if self.is_bare or not snapshot.has_queue:
            self.show_instead(empty_state(snapshot))
        self.world = row_context(self.console)
        self._show_rows(changed=frozenset() if change.everything else change.beads)
        self.keep_marks(snapshot.queue)
        if change.everything:
            self.show_detail_soon()  # the rows do not wait for this
        else:
            self.show_detail()
        if self.stream is not None and self.breakpoint == "wide":
            self.stream.show_snapshot(snapshot, change, self.world.now)

    def tick(self) -> None:
        """Refresh ages and remaining times; those of seconds only while something runs."""
        if any(run.live for run in self.world.runs.values()):
            self._show_row_ages()
        if self.stream is not None:
            self.stream.tick(self.console.now())
        super().tick()

    def show_ages(self) -> None:
        """Refresh those of the rows and of the bead's detail."""
        self._show_row_ages()
        self.show_detail()

    def _show_row_ages(self) -> None:
        source = self.list.source
        if isinstance(source, QueueRows):
            self.world = replace(self.world, now=self.console.now())
            self.list.show(source.later(self.world))

    def on_resize(self) -> None:
        """Rebuild the rows for the new layout."""
        self.set_class(self.app.size.width >= BROAD, "-broad")
        if self.breakpoint != self._shown_breakpoint:
            self._shown_breakpoint = self.breakpoint
            self._show_rows()
            if self.breakpoint == "wide":
                self.set_timer(DETAIL_DELAY, self._show_stream)

    async def _show_stream(self) -> None:
        """Fill the third pane, once the queue is on screen."""
        if self.stream is None:
            from helix_tui.screens.loop.attempt_stream import AttemptStream

            self.stream = AttemptStream(id="stream")
            await self.third.mount(self.stream)
        self.stream.show_snapshot(self.console.snapshot, Change(everything=True), self.console.now())

    def _rows(self) -> RowSource:
        view = self._view
        if not view.rows:
            return Rows([Row("none", (("  no bead matches; esc shows all", "muted"),), selectable=False)])
        # a filter shows the matching beads, not the digest
        if self.breakpoint == "strip" and not self.filter.tests and self.prompt is None:
            return strip_rows(self.world, self.console.needs, max(1, self.size.width - 2))
        return QueueRows(
            view,
            self.world,
            two_lines=self.is_narrow,
            chosen=self.chosen_columns,
            order=self.filter.order,
        )

    def columns_changed(self) -> None:
        """Show the rows with their new columns."""
        self._show_rows()

    def prepare_snapshot(self, snapshot: Snapshot) -> None:
        """Build the rows in the feed's thread: 10,000 beads take a tenth of a second.

        The bead under the cursor stays in its place when it closes, until the cursor leaves it.
        """
        key = self.list.held_key
        self._kept = frozenset((key,)) if key else frozenset()
        self._build(snapshot.queue)

    def _build(self, queue: Queue) -> QueueView:
        """The rows as needed now; built once per queue and view."""
        wanted = (queue, self.kind, self.filter, replace(self.folding, keep=self._kept))
        built_for, view = self._built
        if built_for != wanted:
            view = build_view(*wanted)
            # one assignment, because the feed's thread and the app's both come here
            self._built = wanted, view
        return view

    def _show_rows(self, changed: frozenset[str] = frozenset()) -> None:
        view = self._view = self._build(self.world.queue)
        self.list.show(self._rows(), changed=changed, question=(self.kind, self.filter.text))
        archived = len(self.console.snapshot.archive)
        total = f"{view.total:,} · {archived:,} archived" if archived else f"{view.total:,}"
        count = self.filter_count() if self.filter.tests else total
        said = f"{view.kind} by {', '.join(self.filter.order)} ·" if self.filter.order else view.kind
        self.list_caption.show(f"{said} {self.marking} · {count}" if self.marking else f"{said} {count}")
        self._show_heads()
        text = clean_line(self.filter.text, 200)
        self.tabs.show(filter_text=text, count=count if self.filter.tests else "")
        if self.prompt is None:
            keys = self.MARKED_FOOTER if self.marked else self.FOOTER
            self.show_keys(keys, f"/ {text}  {count}" if text and self.is_narrow and not self.marked else "")

    def _show_heads(self) -> None:
        """Show the column headings over the list."""
        order, wanted = self.filter.order, self.chosen_columns
        if self.kind == "lanes" or not self._view.rows:
            order, wanted = (), ()
        self.list_caption.show_heads(lambda width: column_heads(width, wanted, order))

    def marks_changed(self) -> None:
        """Show how many beads are marked, and their keys."""
        self._show_rows()

    # --- the detail ---------------------------------------------------------------------------------------

    @property
    def selected_bead(self) -> str | None:
        """The bead under the cursor."""
        key = self.list.selected_key or ""
        row = self._row(key)
        bead_id = row.bead_id if row is not None and row.kind == "bead" else key.partition(":")[2]
        return bead_id if bead_id in self.world.queue.beads else None

    def _row(self, key: str | None) -> ViewRow | None:
        index = self.list.source.index(key) if key is not None else None
        source = self.list.source
        return source.rows[index] if index is not None and isinstance(source, QueueRows) else None

    def show_detail(self) -> None:
        """Show the bead under the cursor."""
        if not self.detail.size.width:
            if not self._shown_breakpoint:
                self.call_after_refresh(self.show_detail)  # the first frame does not wait for it
            return
        row = self._row(self.list.selected_key)
        self.detail_caption.show("bead" if row is not None and row.bead_id else "")
        if row is not None and row.kind in ("bead", "missing"):
            self.detail.show_bead(self.around.facts(row.bead_id, self.world))
        else:
            self.detail.show_bead(None)

    def _show_more(self, bead_id: str) -> None:
        """Show the detail again once more is known of its bead."""
        row = self._row(self.list.selected_key)
        if row is not None and row.bead_id == bead_id:
            self.show_detail()

    @on(DetailView.BeadChosen)
    def go_to_chosen(self, event: DetailView.BeadChosen) -> None:
        """Go to the bead that a line of the detail leads to."""
        if event.bead_id in self.console.snapshot.archive:
            self.console.open_bead(event.bead_id)
        elif not self.go_to(event.bead_id):
            self.app.notify(f"{event.bead_id} is not in the tracker", markup=False)

    @on(DetailView.AttemptChosen)
    def open_attempt(self, event: DetailView.AttemptChosen) -> None:
        """Go to the attempt that a line of the detail leads to."""
        self.console.open_attempt(event.attempt_id)

    def on_running_panel_chosen(self, event: RunningPanel.Chosen) -> None:
        """Go to the attempt of a row in the third pane, or to its bead if there is no attempt yet."""
        if event.attempt_id:
            self.console.open_attempt(event.attempt_id)
        elif event.bead_id:
            self.go_to(event.bead_id)

    # --- navigation-----------------------------------------------------------------------------------------

    def go_to(self, bead_id: str) -> bool:
        """Put the cursor on a bead, opening whatever hides it; False if there is no such bead."""
        if bead_id not in self.world.queue.beads:
            return False
        if self.list.select(bead_id):
            return True
        # first open every fold that may hide it; drop the filter, which the user typed, last
        opened = {FOLD_DONE, FOLD_LOOSE, FOLD_REST, f"done:{self.world.queue.beads[bead_id].parent}"}
        self.folding = replace(self.folding, unfolded=self.folding.unfolded | opened, collapsed=frozenset())
        self._show_rows()
        if not self.list.select(bead_id) and self.filter.tests:
            self.filter = parse_query("")
            self._show_rows()
        return self.list.select(bead_id)

    @on(RowList.Selected, "#queue")
    def release_closed(self, event: RowList.Selected) -> None:
        """Let a bead that closed under the cursor go to the other closed ones once the cursor has left it."""
        beads = self.world.queue.beads
        closed = any(key in beads and beads[key].status in TERMINAL for key in self._kept)
        if closed and event.key not in self._kept:
            self._kept = frozenset()
            self._show_rows()

    @on(RowList.Opened, "#queue")
    def open_row(self, event: RowList.Opened) -> None:
        """Open or close a fold; open a bead beside the list, or over it if there is no room."""
        row = self._row(event.key)
        kind, _, rest = event.key.partition(":")
        if row is not None and row.kind in ("fold", "heading"):
            self._toggle(row)
        elif kind == "count":
            self.filter_with(f"state:{rest}")
        elif kind == "more":
            self.filter_with(f"{rest}:yes")
        elif kind == "need" and self.selected_bead is None:
            self.console.list_unread()
        elif self.detail.size.width:
            self.detail.focus(scroll_visible=False)
        elif self.selected_bead is not None:
            self.console.open_bead(self.selected_bead)

    def _toggle(self, row: ViewRow) -> None:
        folding = self.folding
        if row.kind == "fold" or row.key == FOLD_DONE:
            self.folding = replace(folding, unfolded=folding.unfolded ^ {row.key})
        else:
            folded = row.text if row.kind == "heading" else row.bead_id
            self.folding = replace(folding, collapsed=folding.collapsed ^ {folded})
        self._show_rows()

    async def action_back(self) -> None:
        """Go from the detail to the list; else remove the marks; else drop the filter."""
        if self.focused is not self.list:
            self.list.focus(scroll_visible=False)
        elif self.drop_marks():
            return
        elif self.filter.text:
            self.return_to("", self.list.selected_key)

    def action_fold(self) -> None:
        """Fold what is open; from the detail, back to the list; in the tree, up to the parent."""
        row = self._row(self.list.selected_key)
        if self.focused is not self.list:
            self.list.focus(scroll_visible=False)
        elif self.lanes.side_by_side:
            self.lanes.move_lane(-1)
        elif row is not None and row.open and (row.kind in ("fold", "heading") or row.count):
            self._toggle(row)
        elif row is not None and self.kind == "tree" and row.kind == "bead":
            self.list.select(self.world.queue.beads[row.bead_id].parent)

    def action_unfold(self) -> None:
        """Open what is folded; else go to the detail."""
        row = self._row(self.list.selected_key)
        if self.focused is self.list and self.lanes.side_by_side:
            self.lanes.move_lane(1)
        elif row is not None and not row.open:
            self._toggle(row)
        elif self.detail.size.width:
            self.detail.focus(scroll_visible=False)

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or previous view."""
        # on a line about an attempt the two keys lead to its diff and its comparison
        if attempt_id := self.detail.attempt_id:
            self.console.open_attempt(attempt_id, "diff" if step > 0 else "compare")
        else:
            self.show_view(VIEWS[(VIEWS.index(self.kind) + step) % len(VIEWS)])

    def action_open_editor(self) -> None:
        """Open in the editor the first change of the line's attempt, else of the bead's latest one."""
        attempts, beads = self.console.snapshot.attempts, self.bead_ids()
        tried = attempts.of_bead(beads[0]) if len(beads) == 1 else ()
        open_first_change(self, attempts.get(self.detail.attempt_id) or next(iter(tried), None))

    def show_view(self, kind: ViewKind) -> None:
        """Look at the queue another way."""
        self.kind = kind
        self.set_class(kind == "lanes", "-board")  # lanes need the width: they take the detail's place
        self._show_rows()

    def action_zoom(self) -> None:
        """In the lanes, zoom the lane under the cursor."""
        super().action_zoom()
        self.lanes.expand_lane(on=self.zoomed and self.focused is self.list)

    def unzoom(self) -> bool:
        """Show all lanes again, and all panes."""
        self.lanes.expand_lane(on=False)
        return super().unzoom()

    async def action_dependent(self) -> None:
        """Follow an edge to a bead that this one blocks; in the detail, go to its next section."""
        if self.focused is self.detail:
            self.detail.turn_part(1)
        else:
            await self.along.step("dependents")

    async def action_needed(self) -> None:
        """Follow an edge to a bead that blocks this one; in the detail, go to its previous section."""
        if self.focused is self.detail:
            self.detail.turn_part(-1)
        else:
            await self.along.step("needed")

    @on(Chooser.Looked)
    def look_along(self, event: Chooser.Looked) -> None:
        """Show one of several neighbours."""
        self.along.look(event.key)

    @on(Chooser.Done)
    async def go_along(self, event: Chooser.Done) -> None:
        """One of several neighbours was chosen, or none."""
        await self.along.done(event.chooser, event.key)

    # --- the filter ---------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self.filter.text

    def ways_on(self, text: str, cursor: int) -> list[Completion]:
        """Fields, and values that the tracker holds."""
        return complete(text, cursor, self.world.queue, limit=8)

    def filter_problem(self, text: str) -> str:
        """The part of a text that is not understood."""
        return parse_query(text.strip()).problem

    def filter_with(self, text: str) -> None:
        """Show what matches."""
        if self.saved is not None and self.saved.filter != text.strip():
            self.hold_view(None)
        self.filter = parse_query(text.strip())
        self._show_rows()
        self.list.mark_matches(_pattern(self.filter))

    def has_matches(self) -> bool:
        """Whether any row matches."""
        return bool(self._view.rows)

    def filter_count(self) -> str:
        """Beads that match, of all."""
        count = f"{self._view.matching:,} of {self._view.total:,}"
        away = self._archived_matching() if self.filter.tests else 0
        return f"{count}, {away:,} archived (: goes there)" if away else count

    def _archived_matching(self) -> int:
        """How many archived beads pass the filter."""
        archive = self.console.snapshot.archive
        if self._archive.beads is not archive:
            self._archive = classify(archive, now=self.console.now())
        return len(matching(self.filter, self._archive))

    # --- copying ------------------------------------------------------------------------------------------

    def action_copy_id(self) -> None:
        """Copy the id."""
        if self.selected_bead is not None:
            self.console.copy(clean_line(self.selected_bead), clean_line(self.selected_bead, 60))

    def action_ask(self) -> None:
        """Ask the repository about the bead, in the bead's own words."""
        if self.selected_bead is not None:
            bead = self.world.queue.beads[self.selected_bead]
            said = bead.document().get("description")
            self.console.ask_about(f"{bead.title}\n\n{said if isinstance(said, str) else ''}".strip())

    def action_copy_markdown(self) -> None:
        """Copy the bead as text."""
        bead_id = self.selected_bead
        if bead_id is not None:
            self.console.copy(as_markdown(self.world.queue.beads[bead_id], self.world), "as markdown")

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """The four views by name, and what can be done to beads."""
        for kind in VIEWS:
            yield f"view {kind}", "another way to look at the queue", partial(self.show_view, kind)
        yield from super().commands()

    def panes(self) -> list[Widget]:
        """List, detail and stream, where they show."""
        panes: list[Widget] = [self.list, self.detail]
        if self.stream is not None:
            panes.append(self.stream.list)
        return [pane for pane in panes if pane.size.width]


def _pattern(query: Query) -> re.Pattern[str] | None:
    """The text that the words of a filter highlight in the rows."""
    if not query.words:
        return None
    return re.compile("|".join(map(re.escape, query.words)), re.IGNORECASE)


class UnreadScreen(OverlayScreen):
    """The notices in full, the unreadable lines one by one, and ids that occur on several lines."""

    TITLE_TEXT = "notices · unreadable lines"

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show every notice, then every unreadable line in the order of the file."""
        tracker = snapshot.tracker
        self.caption.show(self.TITLE_TEXT, f"{len(tracker.dropped):,} of {tracker.rows:,} in {tracker.path.name}")
        rows = [*self._notices(snapshot), *_rows(tracker)]
        none = Row("none", (("  no notices; every line can be read", "muted"),), selectable=False)
        self.list.show(Rows(rows or [none]))

    def on_resize(self) -> None:
        """Wrap the notices for the new width."""
        self.show_snapshot(self.console.snapshot, Change())

    def _notices(self, snapshot: Snapshot) -> list[Row]:
        rows = []
        for number, forms in enumerate(notice_forms(snapshot)):
            lines = wrap_spans([("! ", "attention bold"), (forms[0], "attention")], self.app.size.width - 4, 2)
            rows += [Row(f"notice:{number}/{at}", line, selectable=not at) for at, line in enumerate(lines)]
        return rows


def _rows(tracker: Tracker) -> list[Row]:
    digits = max((len(str(dropped.line)) for dropped in tracker.dropped), default=1)
    rows = []
    for dropped in tracker.dropped:
        number: Span = (f"{dropped.line:>{digits}}  ", "muted")
        rows.append(Row(f"line:{dropped.line}", (number, (dropped.reason, "error"))))
        excerpt = (" " * (digits + 2), "text"), (dropped.excerpt or "(nothing readable)", "muted")
        rows.append(Row(f"line:{dropped.line}/text", excerpt, selectable=False))
    for bead_id, lines in tracker.folded.items():
        said = f"{bead_id} is on lines {', '.join(map(str, lines[:8]))}; the last one counts, as in DDx"
        rows.append(Row(f"folded:{bead_id}", ((said, "text"),)))
    return rows
