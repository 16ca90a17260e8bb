"""Insights: cost and outcome of attempts in tables, and the attempts behind a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.geometry import Size
from textual.strip import Strip

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ground.text import clean_line
from helix_tui.core.insights.cells import shown_values
from helix_tui.core.insights.report import Report, read_measures, read_report
from helix_tui.core.supervision.run_state.budget import with_memories_given
from helix_tui.keymap import bindings
from helix_tui.screens.editing.choices import Choice, ChoiceSheet
from helix_tui.screens.panes import ReadingScreen, keep
from helix_tui.widgets.base.line import SpanLine, ascii_only, fit, packed, palette_of, to_strip, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.empty_state import empty_state
from helix_tui.widgets.chrome.header import Caption, PaneTabs
from helix_tui.widgets.rows.attempts import AttemptList, AttemptOrder, Board
from helix_tui.widgets.rows.cost_tables import ORDERS, TABLES, CellOrder, sortable, table_of, totals

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.widgets.base.line import Line
    from helix_tui.widgets.rows.cost_tables import FiguredRows

MAX_TOTALS = 3
"""How many lines the recent spending may take."""

LOW_ROWS = 20
"""The terminal height below which it takes one line."""

READING: list[Line] = [[("Reading attempts …", "text bold")]]

NOTHING: list[Line] = [
    [("Nothing has been attempted yet.", "text bold")],
    [],
    [
        ("Figures appear here when the first attempt ends: how many landed, with the", "muted"),
        (" interval of that share, cost, tokens, time, and the money spent on beads that", "muted"),
        (" keep failing.", "muted"),
    ],
]


class Totals(SpanLine):
    """The recent spending in one line, or in a few if it does not fit and the screen is high enough."""

    DEFAULT_CSS = "Totals { height: auto; }"

    def __init__(self, id: str = "insight-totals") -> None:
        super().__init__(id=id)
        self._parts: Sequence[Line] = ()

    def show(self, parts: Sequence[Line]) -> None:
        """Show another text."""
        if parts != self._parts:
            self._parts = parts
            self.refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        packs = packed(self._parts, width - 1, gap=3)
        lines: list[Line] = [[(" ", "text"), *line] for pack in packs for line in wrap_spans(pack, width - 1)]
        room = MAX_TOTALS if self.app.size.height >= LOW_ROWS else 1
        return lines if len(lines) <= room else [*lines[: room - 1], [*lines[room - 1], (" …", "muted")]]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as it takes."""
        del container, viewport
        return max(1, len(self._lines(width)))

    def render_line(self, y: int) -> Strip:
        """One of its lines."""
        width = self.size.width
        line = self._lines(width)[y : y + 1]
        return to_strip(fit(line[0] if line else (), width), width, palette_of(self), plain=ascii_only(self))


class InsightsScreen(ReadingScreen):
    """Screen 5."""

    NAME = "insights"
    PANES = "#insights-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("insights")]
    FOOTER = ("go.open", "go.view", "list.sort", "go.pane", "go.to", "app.help")
    READING_FOOTER = FOOTER

    def __init__(self) -> None:
        super().__init__()
        self.report: Report | None = None
        self.table = TABLES[0]
        self.views = PaneTabs(TABLES, id="insight-views")
        self.totals = Totals()
        self.drained = Totals("insight-forecast")
        self.list = RowList(id="insights")
        self.caption = Caption("attempts")
        self.behind = AttemptList(id="behind-row")
        self._wanted: tuple[object, ...] = ()

    def compose_body(self) -> ComposeResult:
        """Views and totals, the table, the attempts behind its row."""
        with Container(id="insights-panes"):
            with Vertical(id="insights-left"):
                yield self.views
                yield self.totals
                yield self.drained
                yield self.list
            with Vertical(id="behind", classes="beside"):
                yield self.caption
                yield self.behind
        yield self.empty_state

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Compute the tables in a thread when attempts or beads have changed."""
        without = empty_state(snapshot)
        if without is not None:
            self._wanted = ()
            self._bare(without)
            return
        if len(snapshot.attempts):
            self._bare(None)  # else the tables show whether there is anything
        elif not snapshot.attempts_read:
            self._bare(READING)
        wanted = (snapshot.attempts, snapshot.queue.beads, snapshot.attempts_read)
        # by identity: a snapshot shares unchanged parts with the previous one
        if any(one is not other for one, other in zip(wanted, self._wanted, strict=False)) or not self._wanted:
            self._wanted = wanted
            read = partial(read_figures, snapshot, self.console.now())
            self.run_worker(partial(self._read, read), thread=True, group="insights", exclusive=True)

    def _read(self, read: Callable[[], Report]) -> None:
        report = read()
        # a row's text is computed on first use: do that here, not while a key waits
        self._rows_of(report)
        self.app.call_from_thread(self._take, report)

    def _take(self, report: Report) -> None:
        self.report = report
        read = self.console.snapshot.attempts_read
        self._bare(None if report.tables["models"] else NOTHING if read else READING)
        self._show_table()

    def _bare(self, instead: list[Line] | None) -> None:
        """Show paragraphs instead of tables, or the tables."""
        self.show_instead(instead)
        self.show_keys(self.FOOTER)

    def _show_table(self) -> None:
        if self.report is None:
            return
        rows = self._rows_of(self.report)
        self.list.show(rows, question=(self.table, self.console.kept.order(self.NAME)))
        self.views.show(self.table, f"{len(rows.rows):,}")
        self.totals.show(totals(self.report))
        self.drained.show([[(self.report.forecast.describe(), "muted")]])
        self.show_detail()

    def _rows_of(self, report: Report) -> FiguredRows:
        order, turned = self.console.kept.order(self.NAME)
        return table_of(self.table, report, order, turned=turned)

    def show_detail(self) -> None:
        """Show the attempts behind the row under the cursor."""
        if self.report is None:
            return
        key = self.list.selected_key or ""
        attempts = self.report.attempts_behind(key)
        order = AttemptOrder(sorted(attempts, key=_when, reverse=True), passing=key)
        beads = self.console.snapshot.queue.beads
        self.behind.show_board(Board(order=order, beads=beads, now=self.console.now(), heading=False))
        begun, _, values = key.partition(":")
        names = begun.split(",")
        words = " · ".join(shown_values(zip(names, values.split(" · ", len(names) - 1), strict=False)))
        self.caption.show(f"attempts: {clean_line(words, 80)}", f"{len(order.attempts):,}")

    # --- keys ---------------------------------------------------------------------------------------------

    def detail_panes(self) -> tuple[AttemptList]:
        """The attempts behind a row."""
        return (self.behind,)

    @on(RowList.Opened, "#insights")
    def go_behind(self, event: RowList.Opened) -> None:
        """Go to the attempts."""
        event.stop()
        self.open_detail()

    @on(RowList.Opened, "#behind-row")
    def open_attempt(self, event: RowList.Opened) -> None:
        """Open an attempt on the Loop screen."""
        event.stop()
        self.console.open_attempt(event.key)

    @on(PaneTabs.Pressed)
    def press_view(self, event: PaneTabs.Pressed) -> None:
        """Show the view that was clicked."""
        self.show_table(event.name)

    def show_table(self, name: str) -> None:
        """Show another table from its top."""
        if name != self.table:
            self.table = name
            self._show_table()

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or previous table."""
        self.show_table(TABLES[(TABLES.index(self.table) + step) % len(TABLES)])

    def action_sort(self) -> None:
        """Choose the order of the rows; choosing the present one reverses it."""
        if not sortable(self.table):
            self.console.say(f"the table {self.table} cannot be sorted")
            return
        now, turned = self.console.kept.order(self.NAME)
        choices = []
        for order in ORDERS.values():
            first = f"{order.first} first" + ("; again: last" if order.name == now and not turned else "")
            label = f"{order.name} ▾" if order.name == now else order.name
            choices.append(Choice(order.key, order.key, label, first, partial(self._sort_by, order)))
        self.console.push_screen(ChoiceSheet("order of the rows", choices))

    def _sort_by(self, order: CellOrder) -> None:
        """Sort, and keep the order for the next start."""
        now, turned = self.console.kept.order(self.NAME)
        self.console.kept.choose_order(self.NAME, order.name, turned=order.name == now and not turned)
        keep(self, self.console.kept.write)
        self._show_table()


def read_figures(snapshot: Snapshot, now: int) -> Report:
    """Every table, with what ddx's loop recorded of attempts without evidence; reads documents and a few files."""
    attempts = with_memories_given(snapshot.project, tuple(snapshot.attempts))
    measures = read_measures(snapshot.project, attempts)
    return read_report(
        attempts, snapshot.queue, now, snapshot.attempts.other_calls, measures=measures, archive=snapshot.archive
    )


def _when(attempt: Attempt) -> int:
    return attempt.started_at or attempt.finished_at or 0
