"""Rows of figures under column titles, and the tables of the Insights screen with their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from rich.cells import cell_len

from helix_tui.core.ddx.attempts.costs import format_sum
from helix_tui.core.ground.shares import Share
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.insights.cells import UNKNOWN, Cell, percentile, shown_values
from helix_tui.core.insights.failing import Failing
from helix_tui.core.insights.report import Measure, ModelComparison, Report, Trial, key_of, not_counted
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, cut, fit, spread, width_of
from helix_tui.widgets.base.row_source import Column, RowSource, fitting, sorted_first
from helix_tui.widgets.figures import BAR_LEGEND, CELLS, Look, look_of, share_bar

NAME_CELLS = 32
"""The least width of a name before a column is dropped."""

_SHADES = frozenset("█▓░")
"""Bar glyphs: the legend shows only if one is drawn."""

BY_CELL = (
    Column("landed", 4),
    Column("n", 6),
    Column("spent", 9),
    Column("$/landed", 9, rank=1),
    Column("".ljust(CELLS), CELLS, rank=2),
    Column("95 %", 7, rank=2),
    Column("time p50", 8, rank=3),
    Column("tok p50", 7, rank=3),
    Column("p95", 5, rank=3),
)

VERDICTS = {
    "better": ("✓ ", "success"),
    "as good": ("✓ ", "success"),
    "worse": ("✗ ", "error"),
    "unclear": ("? ", "muted"),
}

AT_LEAST = "≥ some costs unknown"
RANKED_LAST = f"{AT_LEAST}: after exact costs"
_PARTLY_SAVED = "≥ at least, ≤ at most, ~ about: a part of the cost is unknown"

_BOUND = {(True, True): "", (True, False): "≥", (False, True): "≤", (False, False): "~"}
"""Sign of what is saved, by whether the costs of the cheaper and of the dearer model are complete."""

_NOT_RUN = Look("·", "muted", "not run")
_TRENDS = {"better": "success", "worse": "error"}

_CELLS: Mapping[str, tuple[str, _Rows, tuple[str, ...]]] = {
    "models": ("model", lambda report: report.tables["models"], ()),
    "harnesses": ("harness", lambda report: report.tables["harnesses"], ()),
    "kinds": ("kind · model · harness", lambda report: report.tables["kinds"], ("kind", "model", "harness")),
    "epics": ("epic", lambda report: report.tables["epics"], ()),
    "areas": ("area · kind", lambda report: report.tables["areas"], ()),
    "outcomes": ("how it ended", lambda report: report.tables["endings"], ()),
    "days": ("day", lambda report: report.burn.days, ()),
    "prompts": ("length of prompt · effort", lambda report: report.tables["prompts"], ()),
    "context": ("context · memories given", lambda report: report.tables["contexts"], ()),
}
"""Table -> the heading of its names, its rows, and the order of their dimensions if it differs."""

TABLES = (
    *("models", "kinds", "failing beads", "days", "epics", "harnesses", "cheaper model", "outcomes", "areas"),
    *("experiments", "prompts", "context", "measures"),
)
"""The tables, in the order of their tabs: what is asked most is a few keys away."""


class Figured(Struct, frozen=True):
    """One row: its name, and the value of each column."""

    key: str
    name: Line
    figures: tuple[Line, ...]


class FiguredRows(RowSource):
    """Rows under a line of column titles. If room is short, columns of the lowest rank stay."""

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        rows: Iterable[Figured],
        *,
        empty: str = "",
        legend: str = "",
        note: str = "",
    ) -> None:
        """Make the rows.

        Args:
            title: the heading of the names.
            columns: the columns, the most important first.
            rows: the rows.
            empty: the text if there are none.
            legend: what the bars mean, below the last row where one is drawn.
            note: what other signs and the order mean, on the same line.
        """
        self.rows = tuple(rows)
        self._title, self._columns, self._empty = title, tuple(columns), empty
        self._legend, self._note = legend, note
        self._places = {row.key: place for place, row in enumerate(self.rows, 1)}
        self._name_cells = max(cell_len(title), *(width_of(row.name) for row in self.rows), 0) + 4

    def __len__(self) -> int:
        return len(self.rows) + 1 + bool((self._legend or self._note) and self.rows)

    def key(self, index: int) -> str:
        return "head:" if not index else self.rows[index - 1].key if index <= len(self.rows) else "legend:"

    def index(self, key: str) -> int | None:
        if key == "legend:":
            return len(self) - 1 if len(self) > len(self.rows) + 1 else None
        return 0 if key == "head:" else self._places.get(key)

    def selectable(self, index: int) -> bool:
        return 0 < index <= len(self.rows)

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.rows[index - 1].name) if self.selectable(index) else ""

    def row(self, key: str | None) -> Figured | None:
        """The row of a key."""
        place = self._places.get(key or "")
        return self.rows[place - 1] if place is not None else None

    def paint(self, index: int, width: int) -> Line:
        if index == 0:
            return self.head(width) if self.rows else [(f"  {self._empty}", "muted")]
        if index > len(self.rows):
            # the column with the bars may be dropped at this width
            drawn = "".join(text for text, _ in self.paint(1, width))
            bars = bool(self._legend) and not {*drawn}.isdisjoint(_SHADES)
            said = "   ".join(filter(None, (self._note, self._legend if bars else "")))
            return [(f" {said}", "muted")] if said else []
        shown = self._shown(width)
        row = self.rows[index - 1]
        figures: list[Span] = []
        for column, spans in zip(self._columns, row.figures, strict=True):
            if column not in shown:
                continue
            fitted = fit(spans, column.cells)
            figures += [(" " * (2 + column.cells - width_of(fitted)), "text"), *fitted]
        return spread(row.name, figures, width)

    def head(self, width: int) -> Line:
        """The titles of the columns."""
        heads: list[Span] = [(f"  {column.title:>{column.cells}}", "muted") for column in self._shown(width)]
        return spread([(self._title, "muted")], heads, width)

    def _shown(self, width: int) -> list[Column]:
        return fitting(self._columns, width - min(NAME_CELLS, width // 2 - 2, self._name_cells))


def cell(text: str, ink: str = "text") -> Line:
    """One figure."""
    return [(cut(clean_line(text, 60), 60), ink)]


class CellOrder(Struct, frozen=True):
    """One order of the rows."""

    name: str
    key: str
    """The key that chooses it."""
    first: str
    """What comes first, shown to the user."""
    value: Callable[[Cell], float | None]
    """The sort key; None for unknown values, which come last."""
    descending: bool = False
    column: str = ""
    """The title of its column, if that differs from its name."""
    judges: bool = True
    """Whether it compares rows: those with too few attempts for that come after the others."""


ORDERS: Mapping[str, CellOrder] = {
    order.name: order
    for order in (
        CellOrder("attempts", "n", "the most", lambda row: row.n, descending=True, column="n", judges=False),
        CellOrder("$/landed", "d", "the cheapest", lambda row: row.cost_per_landed),
        CellOrder("landed", "l", "the highest share", lambda row: row.landed.rate, descending=True),
        CellOrder("time", "t", "the fastest", lambda row: percentile(row.durations, 0.5), column="time p50"),
        CellOrder("tokens", "k", "the fewest", lambda row: percentile(row.tokens, 0.5), column="tok p50"),
        CellOrder("spent", "s", "the most expensive", lambda row: row.cost, descending=True, judges=False),
    )
}
"""The orders that can be chosen for a table of cells."""


def ordered(rows: Iterable[Cell], order: str, *, turned: bool = False) -> list[Cell]:
    """The rows in an order; without one they stay as they are. Partly known costs come after complete ones."""
    if order not in ORDERS:
        return list(rows)
    by = ORDERS[order]

    def place(row: Cell) -> tuple[bool, bool, bool, float]:
        value = by.value(row)
        partly = by.value is ORDERS["$/landed"].value and not row.cost_complete
        sign = -1.0 if by.descending is not turned else 1.0
        # the first three keys ignore the direction: rows that cannot be compared come last both ways
        return value is None, by.judges and row.small, partly, sign * (value or 0.0)

    return sorted(rows, key=place)


def percent(part: float | None) -> str:
    """A share in whole percent; n/a for none."""
    return figures.UNKNOWN if part is None else f"{part * 100:.0f}%"


def spent(row: Cell) -> str:
    """The known cost of attempts, with ``≥`` if the cost of some is unknown."""
    return format_sum(row.sums)


def per_landed(row: Cell) -> str:
    """Known cost per landed bead."""
    return figures.money(row.cost_per_landed, row.cost_complete)


def _interval(landed: Share) -> str:
    low, high = f"{landed.low * 100:.0f}", f"{landed.high * 100:.0f}"
    return f"{high}%" if low == high else f"{low}–{high}%"


def _figures(row: Cell) -> tuple[Line, ...]:
    """A row's figures, in the order of `BY_CELL`; those of a small one are muted."""
    ink, landed = ("muted" if row.small else "text"), row.landed
    return (
        cell(percent(landed.rate), ink if row.small else "text bold"),
        cell(f"{row.n:,}", ink),
        cell(spent(row), ink),
        cell(per_landed(row), ink),
        share_bar(landed.rate, landed.low, landed.high, ink="muted" if row.small else "success"),
        cell(_interval(landed), "muted"),
        cell(figures.short_span(percentile(row.durations, 0.5)), "muted"),
        cell(figures.tokens(percentile(row.tokens, 0.5)), "muted"),
        cell(figures.short_span(percentile(row.durations, 0.95)), "muted"),
    )


def _name(row: Cell, dimensions: tuple[str, ...], titles: Mapping[str, str]) -> Line:
    """The most distinguishing part first, because the end of a name is cut if room is short; epics by their title."""
    values = {name: titles.get(value, value) for name, value in row.key}
    spans: list[Span] = []
    for place, value in enumerate(shown_values((name, values[name]) for name in dimensions or values)):
        ink = "text" if not row.small and not value.endswith(UNKNOWN) else "muted"
        spans += [(" · ", "muted")] if place else []
        spans.append((clean_line(value, 60), ink))
    return spans


def _columns(order: str, *, turned: bool) -> list[Column]:
    """The columns; the one by which the rows are sorted is marked, and stays when others are dropped."""
    by = ORDERS.get(order)
    return sorted_first(BY_CELL, {by.column or by.name: "▴" if turned else "▾"} if by is not None else {})


def _partly(rows: Iterable[Cell], note: str) -> str:
    """The note about costs of which a part is unknown, if there are any."""
    return note if any(row.cost is not None and not row.cost_complete for row in rows) else ""


def _failing(report: Report) -> FiguredRows:
    columns = (Column("tries", 5), Column("spent", 9), Column("last", 20), Column("tokens", 7), Column("bead", 14))
    note, empty = _partly((each.cell for each in report.failing), AT_LEAST), "no unfinished bead failed twice"
    return FiguredRows("keeps failing", columns, map(_lost, report.failing), empty=empty, note=note)


def _lost(each: Failing) -> Figured:
    look = look_of(each.last)
    last: Line = cell(each.last.status or look.word, look.ink)
    return Figured(
        key_of(each.cell),
        [(clean_line(each.title, 300) or clean_line(each.bead_id, 80), "text")],
        (
            cell(f"{each.cell.n:,}×"),
            cell(spent(each.cell)),
            last,
            cell(figures.tokens(each.cell.tokens_total), "muted"),
            cell(short_id(clean_line(each.bead_id, 60)), "muted"),
        ),
    )


def _compared(report: Report) -> FiguredRows:
    columns = (
        Column("saved", 8),
        Column("cheaper", 14),
        Column("dearer", 14),
        Column("$/landed", 19),
        Column("rescued", 7),
    )
    return FiguredRows(
        "would a cheaper model have been enough",
        columns,
        map(_comparison, report.models),
        empty="needs costs of two models on one kind of bead",
        note=_partly((cell for model in report.models for cell in (model.cheaper, model.dearer)), _PARTLY_SAVED),
    )


def _saved(each: ModelComparison) -> str:
    """Dollars saved on each landed bead, with the sign of a bound where a cost is one."""
    if each.saved is None:
        return figures.UNKNOWN
    minus = "−" if each.saved < 0 else ""
    bound = _BOUND[each.cheaper.cost_complete, each.dearer.cost_complete]
    return f"{bound}{minus}{figures.money(abs(each.saved))}"


def _comparison(each: ModelComparison) -> Figured:
    cheaper, dearer = (clean_line(dict(row.key)["model"], 40) for row in (each.cheaper, each.dearer))
    sign, ink = VERDICTS[each.verdict]
    name: list[Span] = [(sign, ink), (cheaper, "text"), (f" for {dearer} on {clean_line(each.kind, 30)}", "muted")]
    return Figured(
        key_of(each),
        [*name, (f"  {each.verdict}", ink)],
        (
            cell(_saved(each)),
            cell(f"{percent(each.cheaper.landed.rate)} of {each.cheaper.n:,}"),
            cell(f"{percent(each.dearer.landed.rate)} of {each.dearer.n:,}"),
            cell(f"{per_landed(each.cheaper)} / {per_landed(each.dearer)}", "muted"),
            cell(f"{each.rescued:,}", "muted"),
        ),
    )


def _experiments(report: Report) -> FiguredRows:
    columns = (Column("cost", 8), Column("tries", 5), Column("time", 6), Column("tokens", 7), Column("model", 16))
    rows = [_trial(batch.name, trial, best=trial is batch.best) for batch in report.batches for trial in batch.trials]
    note = _partly((trial.cell for batch in report.batches for trial in batch.trials), RANKED_LAST)
    empty = "no experiment: helix-tui label ID --add experiment:NAME"
    return FiguredRows("experiments", columns, rows, empty=empty, note=note)


def _trial(batch: str, trial: Trial, *, best: bool) -> Figured:
    look = look_of(trial.shown) if trial.shown is not None else _NOT_RUN
    row = trial.cell
    model = trial.shown.model or trial.shown.harness if trial.shown else ""
    return Figured(
        key_of(row),
        [
            (f"{look.glyph} ", look.ink),
            (f"{clean_line(batch, 30)}  ", "muted"),
            (clean_line(trial.bead.title, 300), "text bold" if best else "text"),
        ],
        (
            cell(spent(row)),
            cell(f"{row.n:,}×", "muted"),
            cell(figures.short_span(sum(row.durations) or None), "muted"),
            cell(figures.tokens(row.tokens_total), "muted"),
            cell(model or "—", "muted"),
        ),
    )


def _measures(report: Report) -> FiguredRows:
    columns = (
        Column("value", 12),
        Column("trend", 6),
        Column("baseline", 12, rank=1),
        Column("ratchet", 14, rank=1),
        Column("goal", 12, rank=2),
        Column("n", 5, rank=2),
    )
    rows = [_measure(measure) for measure in report.measures]
    empty = "no document has `metric:` in its frontmatter, and ddx measured none"
    return FiguredRows("measures", columns, rows, empty=empty)


def _measure(each: Measure) -> Figured:
    sign = "≤" if each.direction == "lower-is-better" else "≥"
    name: list[Span] = [(clean_line(each.title or each.name, 200), "text")]
    if each.title:
        name.append((f"  {clean_line(each.name, 60)}", "muted"))
    return Figured(
        f"measure:{each.name}",
        name,
        (
            cell(each.show(each.value) or "—", "error bold" if each.holds is False else "text"),
            cell(each.trend or "—", _TRENDS.get(each.trend, "muted")),
            cell(each.show(each.baseline) or "—", "muted"),
            cell(f"{sign} {each.show(each.ratchet)}" if each.ratchet is not None else "—", "muted"),
            cell(each.show(each.goal) or "—", "muted"),
            cell(f"{len(each.samples):,}", "muted"),
        ),
    )


def totals(report: Report) -> list[Line]:
    """Recent spending and the cost of what is left, in parts."""
    burn = report.burn
    day = burn.last_day
    rate: Line = [(f" · {figures.money(burn.per_day)} a day", "muted")] if burn.per_day is not None else []
    parts: list[Line] = [
        [("24 h ", "muted"), (f"{day.counts['landed']} landed of {day.n:,} {spent(day)}", "text")],
        [
            ("7 d ", "muted"),
            (f"{burn.recent.counts['landed']} of {burn.recent.n:,} {spent(burn.recent)}", "text"),
            *rate,
        ],
    ]
    if burn.left is not None and burn.open_beads:
        parts.append([(f"{burn.open_beads:,} open would cost {figures.money(burn.left)}", "muted")])
    lost = sum(each.cell.cost or 0.0 for each in report.failing)
    if lost:
        known = all(each.cell.cost_complete for each in report.failing)
        parts.append([(f"{figures.money(lost, known)} in beads that keep failing", "attention")])
    if report.without_result:
        parts.append([(not_counted(report.without_result), "muted")])
    return parts


def _by_kind(rows: Iterable[Cell]) -> list[Cell]:
    """The rows grouped by kind of bead, otherwise in their order."""
    return sorted(rows, key=lambda row: dict(row.key)["kind"])


_Rows = Callable[[Report], Iterable[Cell]]


def _cells_of(name: str, report: Report, order: str = "", *, turned: bool = False) -> FiguredRows:
    head, cells_of, dimensions = _CELLS[name]
    order = order or ("$/landed" if name == "kinds" else "")
    placed = ordered(cells_of(report), order, turned=turned)
    rows = _by_kind(placed) if name == "kinds" else placed
    note = RANKED_LAST if order == "$/landed" else AT_LEAST
    named = [Figured(key_of(row), _name(row, dimensions, report.titles), _figures(row)) for row in rows]
    columns, note = _columns(order, turned=turned), _partly(rows, note)
    return FiguredRows(head, columns, named, empty="no attempt has ended", legend=BAR_LEGEND, note=note)


_OTHERS: Mapping[str, Callable[[Report], FiguredRows]] = {
    "failing beads": _failing,
    "cheaper model": _compared,
    "experiments": _experiments,
    "measures": _measures,
}


def sortable(name: str) -> bool:
    """Whether its rows can be sorted."""
    return name in _CELLS


def table_of(name: str, report: Report, order: str = "", *, turned: bool = False) -> FiguredRows:
    """The rows of a table, in the chosen order if it can be sorted."""
    return _OTHERS[name](report) if name in _OTHERS else _cells_of(name, report, order, turned=turned)
