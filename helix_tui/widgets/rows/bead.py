"""One bead as one line: sign, lanes, title, and on the right the most important fact about its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy

from msgspec import Struct
from rich.cells import cell_len

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.states import STATES, Sign
from helix_tui.core.beads.views import QueueView, ViewRow
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.ground.time import NS, format_age, parse_instant
from helix_tui.core.statements.why import Note, note_on, place_words
from helix_tui.themes import RUN_SIGNS
from helix_tui.widgets.base.line import Line, Span, cut, heading, spread, width_of
from helix_tui.widgets.base.row_source import Column, KeyedRows, fitting, sorted_first

STATE_CELLS = 8
"""The least width of a state that is cut; below, the title has its room."""

TITLE_CELLS = 24
"""The width that a title keeps before a column on the right is dropped."""

WIDE_ROW = 58
"""The width from which a row has default columns."""

ROOMY_TITLE = 61
"""The width that a title keeps before columns other than the priority show by default."""

_LEAD_CELLS = 6
"""Cells before a title, most of the time."""

BEAD_COLUMNS = (
    Column("pick", 4, name="pick", help="its place in DDx's order", asked=True),
    Column("path", 5, name="path", help="its place in the longest chain of beads through it", asked=True),
    Column("state", 14, name="state", help="ready, running, why not …", asked=True, words=True),
    Column("unbl", 4, name="unblocks", help="beads that are ready as soon as this one closes", asked=True),
    Column("hold", 4, name="holds", help="beads that wait on it, directly or through others", asked=True),
    Column("type", 6, name="type", help="task, bug, epic …", asked=True, words=True),
    Column("labels", 15, 2, name="labels", help="labels, areas first", words=True),
    Column("epic", 18, 3, name="epic", help="the bead that it is part of", words=True),
    Column("owner", 10, name="owner", help="who holds or held it", asked=True, words=True),
    Column("id", 8, name="id", help="the end of its id", asked=True, words=True),
    Column("upd", 4, name="updated", help="time since its last change", asked=True),
    Column("P", 2, 0, name="priority", help="priority, P0 is highest"),
    Column("age", 4, 1, name="age", help="time since it was created"),
)
"""The columns of the queue besides sign, title and state."""

ORDER_COLUMNS = {"p": "priority", "label": "labels"}
"""The column of an order that has another name."""


class RowContext(Struct, frozen=True):
    """What a row needs besides its bead."""

    queue: Queue
    runs: Mapping[str, Run]
    """The run on each bead, by bead id; a live run takes precedence over a dead one."""
    now: int
    asked: Mapping[str, str] = {}
    """The id of the open question about each bead, by bead id."""

    def note_on(self, bead: Bead, *, brief: bool = False) -> Note | None:
        """The most important fact about a bead's state in a few words."""
        run, asked = self.runs.get(bead.id), self.asked.get(bead.id, "")
        return note_on(bead, self.queue, self.now, run=run, asked=asked, brief=brief)


def runs_by_bead(runs: tuple[Run, ...]) -> dict[str, Run]:
    """One run per bead; a live run takes precedence over a dead one."""
    found: dict[str, Run] = {}
    for run in runs:
        if run.bead_id and (run.bead_id not in found or (run.live and not found[run.bead_id].live)):
            found[run.bead_id] = run
    return found


def sign_of(bead: Bead, world: RowContext) -> Sign:
    """The sign of a bead's state, or of its run if there is one."""
    run = world.runs.get(bead.id)
    # a silent or dead worker is not recorded in the bead: only its run shows it
    if run is not None and run.verdict != "alive":
        return RUN_SIGNS[run.verdict]
    return STATES[world.queue.state(bead.id)].sign


def age_of(bead: Bead, now: int) -> str:
    """How long ago the bead was created, in at most four cells."""
    return _since(bead.created_at, now)


def _since(text: str, now: int) -> str:
    instant = parse_instant(text)
    return "" if instant is None else format_age((now - instant) / NS)


def _epic(bead: Bead, world: RowContext) -> Span:
    parent = world.queue.beads.get(bead.parent)
    title = parent.title if parent is not None else short_id(bead.parent)
    return clean_line(title, 60), "muted"


def _labels(bead: Bead, world: RowContext) -> Span:
    """Labels with areas first, without the word `area`: they distinguish beads best."""
    areas = [label.removeprefix("area:") for label in bead.labels if label.startswith("area:")]
    others = [label for label in bead.labels if not label.startswith("area:")]
    return clean_line(" ".join([*areas, *others]), 60), "muted"


def _unblocks(bead: Bead, world: RowContext) -> Span:
    freed = world.queue.unblock_counts.get(bead.id, 0)
    return (str(freed) if freed else ""), "text"


def _holds(bead: Bead, world: RowContext) -> Span:
    chains = world.queue.graph.chains
    held = chains.holds_up.get(bead.id, 0)
    return (str(held) if held else ""), "waiting" if chains.on_critical_path(bead.id) else "text"


def _path(bead: Bead, world: RowContext) -> Span:
    place, of = world.queue.graph.chains.chain_through(bead.id)
    return f"{place}/{of}" if of > 1 else "", "text"


_CELLS: Mapping[str, Callable[[Bead, RowContext], Span]] = {
    "pick": lambda bead, world: (str(world.queue.position.get(bead.id, "")), "text"),
    "path": _path,
    "state": lambda bead, world: (sign_of(bead, world).word, sign_of(bead, world).ink),
    "unblocks": _unblocks,
    "holds": _holds,
    "type": lambda bead, world: (clean_line(bead.issue_type, 20), "muted"),
    "labels": _labels,
    "epic": _epic,
    "owner": lambda bead, world: (clean_line(bead.owner, 40), "muted"),
    "id": lambda bead, world: (short_id(clean_line(bead.id, 60)), "muted"),
    "updated": lambda bead, world: (_since(bead.updated_at, world.now), "muted"),
    "priority": lambda bead, world: (f"P{bead.priority}", "text" if bead.priority == 0 else "muted"),
    "age": lambda bead, world: (age_of(bead, world.now), "muted"),
}


def bead_columns(width: int, chosen: Sequence[str] | None, order: Sequence[str] = ()) -> list[Column]:
    """The columns of a list of a width, the same for every row; a narrow list has those that it is sorted by."""
    names = {name: name.removeprefix("-") for name in order}
    marks = {ORDER_COLUMNS.get(name, name): "▾" if name == given else "▴" for given, name in names.items()}
    columns = sorted_first(BEAD_COLUMNS, marks)
    if chosen is not None:
        return fitting(columns, width - _LEAD_CELLS - TITLE_CELLS, chosen)
    if width < WIDE_ROW:
        return fitting([column for column in columns if column.rank < 0], width - _LEAD_CELLS - TITLE_CELLS // 2)
    # the priority shows at any width that has columns, however long the titles
    least = sum(column.cells + 2 for column in columns if column.rank <= 0 and not column.asked)
    return fitting(columns, max(least, width - _LEAD_CELLS - ROOMY_TITLE))


def column_heads(width: int, chosen: Sequence[str] | None, order: Sequence[str] = ()) -> list[Span]:
    """The names of those columns, each as wide as its column."""
    return [column.head for column in bead_columns(width, chosen, order)]


def bead_line(
    bead: Bead,
    world: RowContext,
    width: int,
    *,
    lead: Line,
    gutter: Line = (),
    links: str = "",
    faint: bool = False,
    chosen: Sequence[str] | None = None,
    order: Sequence[str] = (),
) -> list[Span]:
    """The whole row: ``lead`` and the sign at the left, then the gutter, the title, and the columns.

    Args:
        bead: the bead.
        world: what is known beside it.
        width: cells of the row.
        lead: what precedes the sign.
        gutter: the lanes of the graph.
        links: further prerequisites, shown if there is room.
        faint: shown only because of something under it.
        chosen: names of the columns to show; None where the width decides.
        order: what the list is sorted by.
    """
    sign = sign_of(bead, world)
    title = clean_line(bead.title, 400) or "(no title)"
    spans: list[Span] = [*lead, (sign.glyph, sign.ink), *gutter, (" ", "text")]
    used = width_of(spans)
    right = _state(bead, world, width, chosen)
    columns = [column.placed(*_CELLS[column.name](bead, world)) for column in bead_columns(width, chosen, order)]
    right = _shortened(right, width - used - TITLE_CELLS - width_of(columns)) + columns
    whole = used + cell_len(title)
    if links and whole + width_of(right) + len(links) + 4 <= width:
        right = [(links, "edge"), ("  ", "text"), *right]
    spans.append((title, "muted" if faint else sign.title_ink))
    return spread(spans, right, width)


def _state(bead: Bead, world: RowContext, width: int, chosen: Sequence[str] | None) -> list[Span]:
    """The state in a few words; if there is nothing to say and there are no columns, the priority."""
    note = world.note_on(bead, brief=width < WIDE_ROW)
    if note is not None:
        return [(cut(note.text, max(STATE_CELLS, width // 3)), note.role)]
    return [_CELLS["priority"](bead, world)] if chosen is None and width < WIDE_ROW else []


def _shortened(right: list[Span], room: int) -> list[Span]:
    """The columns in the room that the title leaves; the first one is dropped first."""
    over = width_of(right) - room
    if over <= 0 or not right:
        return right
    (text, ink), *others = right
    kept = cell_len(text) - over
    # “pro…” and “in 5…” say nothing that the sign does not say
    return [(cut(text, kept), ink), *others] if kept >= STATE_CELLS else others


class QueueRows(KeyedRows[ViewRow]):
    """A view of the queue as rows."""

    def __init__(
        self,
        view: QueueView,
        world: RowContext,
        *,
        two_lines: bool = False,
        chosen: Sequence[str] | None = None,
        order: Sequence[str] = (),
    ) -> None:
        """Make the rows.

        Args:
            view: which beads, in which order.
            world: what is known besides them.
            two_lines: the row under the cursor has a second line.
            chosen: names of the columns, None where the width decides.
            order: what they are sorted by; its columns show.
        """
        self.view = view
        self._chosen, self._order = chosen, order
        super().__init__(view.rows)
        self._world = world
        self._two_lines = two_lines
        self._gutters = _gutter_widths(view.rows)
        self._digits = len(str(len(world.queue.ready)))

    def later(self, world: RowContext) -> QueueRows:
        """The same rows at a later instant: only ages and remaining times differ."""
        # shares rows, places and titles: this comes every second
        other = copy(self)
        other._world = world
        return other

    def text(self, index: int) -> str:
        row = self.rows[index]
        if row.kind != "bead":
            return row.text
        return f"{clean_line(self._world.queue.beads[row.bead_id].title)} {row.bead_id}"

    def heads(self, index: int) -> bool:
        return self.rows[index].kind == "heading"

    def paint(self, index: int, width: int) -> Line:
        row = self.rows[index]
        if row.kind == "heading":
            fold = "▾" if row.open else "▹"
            return [(f"{fold} ", "muted"), *heading(row.text, width - 2, beside=f"{row.count:,}")]
        if row.kind == "fold":
            fold = "▾" if row.open else "…"
            return [("  " * (row.depth + 1), "text"), (f"{fold} {row.text}", "muted")]
        if row.kind == "missing":
            missing = clean_line(row.bead_id, 80)
            return [
                ("  ", "text"),
                ("?", "error bold"),
                *self._lanes(index),
                (f" {missing}", "text"),
                (" is not in the tracker", "muted"),
            ]
        bead = self._world.queue.beads[row.bead_id]
        links = " ".join(f"↳ {short_id(clean_line(target, 60))}" for target in row.see[:2])
        return bead_line(
            bead,
            self._world,
            width,
            lead=self._lead(row),
            gutter=self._lanes(index),
            links=links + (f" +{len(row.see) - 2}" if len(row.see) > 2 else ""),
            faint=row.context,
            chosen=None if self.view.kind == "lanes" and width < WIDE_ROW else self._chosen,
            order=self._order,
        )

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        row = self.rows[index]
        if not self._two_lines or row.kind != "bead":
            return ()
        return [second_line(self._world.queue.beads[row.bead_id], self._world, width)]

    def _lead(self, row: ViewRow) -> Line:
        if self.view.kind == "order":
            place = str(row.position) if row.position else ""
            return [(f"{place.rjust(self._digits)} ", "success bold" if row.position == 1 else "muted")]
        return [("▸ " if row.position == 1 else "  ", "success bold")]

    def _lanes(self, index: int) -> Line:
        row = self.rows[index]
        if self.view.kind == "tree":
            fold = ("▾" if row.open else "▹") if row.count else " "
            return [("  " * min(row.depth, 8), "text"), (f" {fold}", "muted")]
        if self.view.kind == "dag":
            return [(row.gutter.ljust(self._gutters[index]), "edge")]
        return ()


def _gutter_widths(rows: Sequence[ViewRow]) -> list[int]:
    """The width of each row's gutter: titles of connected beads are aligned."""
    widths: list[int] = []
    run: list[int] = []
    for row in rows:
        if row.gutter:
            run.append(len(row.gutter))
            continue
        widths += [max(run)] * len(run) if run else []
        run = []
        widths.append(0)
    return widths + ([max(run)] * len(run) if run else [])


def second_line(bead: Bead, world: RowContext, width: int) -> Line:
    """The line below the selected row of a narrow list: id, state, what closing it unblocks."""
    run = world.runs.get(bead.id)
    ident: Span = (f"      {short_id(clean_line(bead.id, 60))} ", "muted")
    if run is not None:
        doing = clean_line(run.last_tool or run.phase or run.message, 120)
        tokens = f"{run.tokens / 1000:.0f}k tok" if run.tokens else ""
        return spread([ident, (doing, "text")], [(tokens, "muted")], width)
    queue = world.queue
    reasons = queue.standing(bead.id).reasons
    words = clean_line(reasons[0].detail, 160) if reasons else place_words(bead.id, queue, asked=bead.id in world.asked)
    freed = len(queue.unblocks(bead.id))
    return [ident, (words, "text"), (f" · unblocks {freed}" if freed else "", "muted")]
