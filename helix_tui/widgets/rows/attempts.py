"""Runs with their last actions, and below them attempts, newest first: the list of the Loop screen and the pane
beside the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from msgspec import Struct, field
from msgspec.structs import replace
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import format_sum
from helix_tui.core.ddx.runs.running import Run, beads_at_work
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.ground.time import NS, format_span, midnight
from helix_tui.themes import RUN_SIGNS
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, cells_of, cut, heading, spread, width_of, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Column, Gesture, RowSource
from helix_tui.widgets.chrome.actions import Action, outcome
from helix_tui.widgets.chrome.header import Caption
from helix_tui.widgets.figures import look_of
from helix_tui.widgets.rows.attempt_table import (
    MEASURED,
    MODEL_CELLS,
    NARROW,
    SORT_COLUMNS,
    SORTS,
    AttemptGroup,
    Cells,
    GroupPlaces,
    SortKey,
    beside_title,
    ending_of,
    filled,
    grouped,
    model_of,
    paint_cells,
    shown_columns,
)

_LONGEST = 1_000
"""Characters of a title that are read."""
TITLE_CELLS = 60
"""The width that a title keeps before a column is dropped: the title matters most."""

ACTIONS = 3
ACTIONS_NARROW = 1
MAX_LINES = 1_000
_ENDED = "caption:ended"
_MORE = "caption:more"
_GROUP = "group:"

_INDENT = "    "

_USUAL_PHASES = frozenset({"", "running", "active", "candidate", "resolving"})
"""Phases in which the agent itself works, so that its last action says more than the word."""


class RunView(Struct, frozen=True):
    """One run with its last actions, the newest last."""

    run: Run
    actions: tuple[Action, ...] = ()

    @property
    def key(self) -> str:
        """The attempt's id if it is known, so that its row stays selected when the attempt has ended."""
        run = self.run
        return run.attempt_id or f"run:{run.bead_id or run.worker_id or run.pid}"


class AttemptOrder:
    """Finished attempts in an order, with their places, groups and columns."""

    def __init__(
        self,
        attempts: Iterable[Attempt] = (),
        sort: SortKey = SORTS["time"],
        *,
        turned: bool = False,
        chosen: Sequence[str] | None = None,
        passing: str = "",
    ) -> None:
        """Take attempts that are already in this order (`arranged`).

        Args:
            chosen: names of the columns to show; None lets the width decide.
            passing: the filter that they pass.
        """
        self.attempts = tuple(attempts)
        self.sort, self.turned, self.chosen = sort, turned, chosen
        self.question = (sort.name, turned, passing)
        self._groups: tuple[int, tuple[AttemptGroup, ...]] = (-1, ())
        self._columns: tuple[Cells | None, list[Column]] = (None, [])

    def groups(self, now: int) -> tuple[AttemptGroup, ...]:
        """Its groups as of an instant; their names depend on the day."""
        day = midnight(now)
        # group 20,000 attempts once a day, not on every tick
        if self._groups[0] != day:
            self._groups = (day, grouped(self.attempts, self.sort, now))
        return self._groups[1]

    def columns(self, cells: Cells) -> list[Column]:
        """The columns that its first rows can fill."""
        # of all cells only the time of the end depends on now, and only on the day
        if self._columns[0] is None or midnight(self._columns[0].now) != midnight(cells.now):
            by = SORT_COLUMNS.get(self.sort.name, self.sort.name)
            marks = {by: "▾" if self.sort.descending is not self.turned else "▴"}
            self._columns = (cells, filled(self.attempts, cells, self.chosen, {} if by == "ended" else marks))
        return self._columns[1]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Attempt id to its place in the order."""
        return {attempt.attempt_id: place for place, attempt in enumerate(self.attempts)}

    @cached_property
    def models(self) -> frozenset[str]:
        """The models of its first rows."""
        return frozenset(map(model_of, self.attempts[:MEASURED]))


class Board(Struct, frozen=True):
    """Everything that the list shows at one moment."""

    runs: tuple[RunView, ...] = ()
    order: AttemptOrder = field(default_factory=AttemptOrder)
    beads: Mapping[str, Bead] | None = None
    now: int = 0
    hidden: int = 0
    """Attempts that a filter leaves out."""
    older: int = 0
    """How many more workers are dead, longer than those among ``runs``."""
    at_large: str = ""
    """How many of the dead workers hold no bead any more, after a comma."""
    heading: bool = True
    """Whether the attempts are grouped, each group under a line with its sums."""
    folded: frozenset[str] = frozenset()
    """Names of the folded groups."""

    @property
    def cells(self) -> Cells:
        """What the columns hold."""
        return Cells(self.now, self.heading and self.order.sort.name == "time", self.order.models, self.heading)

    def columns(self, width: int) -> list[Column]:
        """The columns right of the title, for a row of a width."""
        return shown_columns(self.order.columns(self.cells), width, self.order.chosen)

    def heads(self, width: int) -> list[Span]:
        """The names of those columns."""
        return [column.head for column in self.columns(width)]


def title_of(bead_id: str, beads: Mapping[str, Bead] | None) -> Span:
    """The title of a bead, or its id if the tracker does not hold it."""
    bead = (beads or {}).get(bead_id)
    title = clean_line(bead.title, _LONGEST) if bead is not None else ""
    if title:
        return (title, "text")
    return (clean_line(bead_id, 80) or "no bead named", "muted")


class AttemptRows(RowSource):
    """The rows of a board: a line per run and per action shown below it, a caption per group, a line per attempt."""

    def __init__(self, board: Board, width: int, *, most: int | None = None, height: int = MAX_LINES) -> None:
        """Make the rows.

        Args:
            board: what they show.
            width: cells of a row.
            most: how many attempts are listed at most; None for all.
            height: lines of the list; what runs takes at most half of them.
        """
        self.board = board
        live = [view for view in board.runs if view.run.live]
        blocks = _pinned_blocks(live, width, height // 2)
        self._heads: list[tuple[str, RunView | None, Line | None]] = []
        """Rows above the attempts: key, run, and its line within the run's entry."""
        for view, below in blocks:
            self._heads.append((view.key, view, None))
            self._heads += [(f"{view.key}/{number}", view, line) for number, line in enumerate(below)]
        others = live[len(blocks) :]
        if blocks and others:
            self._heads.append((_MORE, None, [(f"  and {len(others)} more, below", "muted")]))
        self.pinned = len(self._heads)
        self._heads += [(view.key, view, None) for view in (*others, *(v for v in board.runs if not v.run.live))]
        if board.heading and not board.order.attempts:
            self._heads.append((_ENDED, None, None))
        count = len(board.order.attempts)
        self._most = count if most is None else min(most, count)
        self._groups = GroupPlaces(board.order.groups(board.now), board.folded) if board.heading else None
        self._head_places = {key: place for place, (key, _, _) in enumerate(self._heads)}
        self._count = self._most
        if self._groups is not None:
            self._count = len(self._groups) if self._most == count else self._groups.row_of(self._most)

    def __len__(self) -> int:
        return len(self._heads) + self._count

    def key(self, index: int) -> str:
        if index < len(self._heads):
            return self._heads[index][0]
        attempt = self.attempt(index)
        return attempt.attempt_id if attempt is not None else f"{_GROUP}{self._group(index).name}"

    def index(self, key: str) -> int | None:
        place = self._head_places.get(key)
        if place is not None:
            return place
        if key.startswith(_GROUP) and self._groups is not None:
            row = self._groups.caption_row(key.removeprefix(_GROUP))
        else:
            place = self.board.order.places.get(key)
            if place is None or place >= self._most:
                return None
            row = self._groups.row_of(place) if self._groups is not None else place
        return None if row is None or row >= self._count else row + len(self._heads)

    def _group(self, index: int) -> AttemptGroup:
        assert self._groups is not None
        return self._groups.at(index - len(self._heads))[0]

    def selectable(self, index: int) -> bool:
        if index >= len(self._heads):
            return self.attempt(index) is not None or self._group(index).name in self.board.folded
        _, view, line = self._heads[index]
        return view is not None and line is None

    def run(self, index: int) -> RunView | None:
        """The run of a row."""
        return self._heads[index][1] if 0 <= index < len(self._heads) else None

    def attempt(self, index: int) -> Attempt | None:
        """The attempt of a row."""
        row = index - len(self._heads)
        if not 0 <= row < self._count:
            return None
        if self._groups is None:
            return self.board.order.attempts[row]
        group, place = self._groups.at(row)
        return group.attempts[place] if place >= 0 else None

    def sibling(self, index: int, bead_id: str, step: int) -> str | None:
        """The key of the next or previous row of the same bead, in the order; None if there is none."""
        runs = [
            key for key, view, line in self._heads if view is not None and line is None and view.run.bead_id == bead_id
        ]
        order, here = self.board.order, self.key(index)
        place = order.places.get(here, -1)
        if place < 0 and here in runs:
            at = runs.index(here) + step
            if at < 0 or (at >= len(runs) and step < 0):
                return None
            if at < len(runs):
                return runs[at]
        place += step
        while 0 <= place < self._most:
            if order.attempts[place].bead_id == bead_id:
                return order.attempts[place].attempt_id
            place += step
        return runs[-1] if step < 0 and runs and here not in runs else None

    def group_of(self, index: int) -> str:
        """The name of the group that a row is in; empty for what runs."""
        grouped_ = self._groups is not None and len(self._heads) <= index < len(self)
        return self._group(index).name if grouped_ else ""

    def paint(self, index: int, width: int) -> Line:
        attempt = self.attempt(index)
        if attempt is not None:
            return paint_attempt(attempt, self.board, width)
        if index >= len(self._heads):
            group = self._group(index)
            return group.caption(width, folded=group.name in self.board.folded)
        _, view, line = self._heads[index]
        if line is not None:
            return line
        if view is None:
            return heading("no attempts match" if self.board.hidden else "no attempts yet", width)
        return paint_run(view, self.board, width)

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        attempt, view = self.attempt(index), self.run(index)
        if view is not None and index >= self.pinned:
            return _below(view, width, ACTIONS_NARROW)
        if attempt is None or width >= NARROW:
            return ()
        return [_figures_line(attempt, width)]

    def text(self, index: int) -> str:
        attempt = self.attempt(index)
        if attempt is None:
            return "".join(text for text, _ in self.paint(index, 400))
        title, _ = title_of(attempt.bead_id, self.board.beads)
        parts = (look_of(attempt).word, attempt.status, title, attempt.bead_id, attempt.attempt_id)
        return " ".join((*parts, attempt.harness, attempt.model))


def _pinned_blocks(live: Sequence[RunView], width: int, room: int) -> list[tuple[RunView, list[Line]]]:
    """The runs that stay in view, each with the lines below it: if room is short with fewer lines, then fewer runs."""
    blocks: list[tuple[RunView, list[Line]]] = []
    for actions in (ACTIONS, ACTIONS_NARROW):
        blocks = [(view, _below(view, width, actions)[: max(0, room - 2)]) for view in live]
        if sum(1 + len(lines) for _, lines in blocks) <= room:
            return blocks
    # the last line says how many more there are
    ends = accumulate(1 + len(lines) for _, lines in blocks)
    return blocks[: sum(end < room for end in ends)]


def paint_run(view: RunView, board: Board, width: int) -> Line:
    """The first line of a running entry: what, for how long, with how many tokens."""
    run = view.run
    sign = RUN_SIGNS[run.verdict]
    title, ink = title_of(run.bead_id, board.beads) if run.bead_id else ("worker between beads", "muted")
    figures_ = _run_figures(run, board.now, width, width - 2 - min(cell_len(title), TITLE_CELLS))
    return spread([(f"{sign.glyph} ", sign.ink), (title, f"{ink} bold")], figures_, width)


def _run_figures(run: Run, now: int, width: int, room: int) -> list[Span]:
    """Time, verdict and tokens; if the title needs room, the tokens go."""
    parts: list[Span] = []
    if run.started_at is not None and run.live:
        span = format_span((now - run.started_at) / NS)
        parts.append(
            (span if width >= NARROW else span.replace(" ", ""), "running" if run.verdict == "alive" else "text")
        )
    if not run.live:
        parts.append(("dead", "error bold"))
    elif run.verdict == "silent":
        parts.append(("silent", "error bold"))
    tokens: Span = (f"{figures.tokens(run.tokens)} tok", "text")
    if run.tokens is not None and width >= 44 and width_of([*parts, tokens]) + 2 * len(parts) + 2 <= room:
        parts.append(tokens)
    return [span for part in parts for span in (("  ", "text"), part)]


def _below(view: RunView, width: int, actions: int) -> list[Line]:
    """The lines below a running entry: what is wrong with it, then its last actions, the last one with the model."""
    run = view.run
    lines: list[Line] = []
    if run.verdict != "alive":
        why = wrap_spans([(clean_line(run.why, 300), "error")], max(8, width - len(_INDENT)))
        lines = [[(_INDENT, "text"), *line] for line in why[:2]]
    if run.verdict == "dead":
        return lines
    model: Span = (cut(model_of(run), MODEL_CELLS), "muted")
    room = width - cell_len(model[0]) - 3
    slots = max(1, (actions if width >= NARROW else ACTIONS_NARROW) - len(lines))
    if not view.actions:
        lines.append(_doing_line(run, room))
    elif run.phase in _USUAL_PHASES:
        lines += [_action_line(action, run, room) for action in view.actions[-slots:]]
    else:
        lines += [_action_line(action, run, room) for action in view.actions[-slots:][:-1]]
        message: Span = (clean_line(run.message, 300), "text")
        lines.append([(_INDENT, "text"), (clean_line(run.phase, 40), "running bold"), ("  ", "text"), message])
    lines[-1] = spread(lines[-1], [("  ", "text"), model], width)
    return lines


def _doing_line(run: Run, width: int) -> Line:
    """What the feed knows of a run before its transcript is read."""
    tool, _, target = clean_line(run.last_tool, 300).partition(" ")
    if tool:
        return _action_line(Action(tool, target), run, width)
    phase = clean_line(run.phase, 60) or "claimed"
    return [(_INDENT, "text"), (f"{phase}  ", "running"), (clean_line(run.message, 300), "text")]


def _action_line(action: Action, run: Run, width: int) -> Line:
    wide = width >= NARROW
    ink = {"tool": "running", "error": "error bold"}.get(action.kind, "muted")
    name = cut(action.name, 9)
    target: Span = (action.target, "text" if action.kind == "tool" else "muted")
    spans: list[Span] = [(_INDENT, "text"), (f"{name:<9} " if wide else f"{name} ", ink), target]
    right = outcome(action.ok, action.duration_ms if wide else None) if action.kind == "tool" else []
    if wide:
        right.append((f"{figures.since_start(action.at, run.started_at):>9}", "muted"))
    return spread(spans, [(" ", "text"), *right] if right else [], width)


def paint_attempt(attempt: Attempt, board: Board, width: int) -> Line:
    """One attempt in one line; columns without room are dropped, the title stays."""
    title, ink = title_of(attempt.bead_id, board.beads)
    # a row alone, as the title line of an attempt is, measures its columns by itself
    if not board.order.attempts:
        board = replace(board, order=AttemptOrder([attempt]), heading=False)
    columns = paint_cells(attempt, board.columns(width), board.cells)
    look = look_of(attempt)
    ending = beside_title(attempt) if width >= NARROW else ""
    room = width - 2 - cells_of(ending) - width_of(columns) - 1
    named: list[Span] = [(f"{look.glyph} ", look.ink), (cut(title, room), ink), (ending, look.ink)]
    return spread(named, columns, width)


def _figures_line(attempt: Attempt, width: int) -> Line:
    """The figures that a narrow row has no room for, as many as fit."""
    look, sums = look_of(attempt), attempt.sums
    total, cost = sums.tokens, format_sum(sums)
    parts = [
        model_of(attempt),
        f"{figures.tokens(total)} tok" if total is not None else "",
        f"cost {cost}" if cost == figures.UNKNOWN else cost,
        short_id(clean_line(attempt.bead_id, 60), 16),
    ]
    line: list[Span] = [("   ", "text"), (ending_of(attempt), look.ink)]
    for part in filter(None, parts):
        span: Span = (f" · {part}", "muted")
        if width_of([*line, span]) <= width:
            line.append(span)
    return line


class AttemptList(RowList):
    """The list itself. It follows while the cursor is on the first row, unless following was turned off."""

    def __init__(self, *, id: str | None = None, most: int | None = None) -> None:
        super().__init__(id=id, follow_top=True, cursor_needs_focus=most is not None)
        self.board = Board()
        self.held = False
        """The user is reading the row under the cursor: stay on it when rows are added."""
        self._most = most

    @property
    def following(self) -> bool:
        """Whether the cursor stays on top when a row is added."""
        return self._follow_top and self.selected_index == self._first()

    def follow(self, on: bool) -> None:
        """Stay on top, or stay with the row under the cursor."""
        self._follow_top = on
        if on:
            self.action_first()

    def follow_no_more(self) -> None:
        """Go to a row and stay there."""
        self._follow_top = False

    def show_board(self, board: Board, *, changed: Collection[str] = ()) -> None:
        """Show a new state; what is folded stays so."""
        self.board = replace(board, folded=self.board.folded)
        if self.size.width:
            # only for this update: afterwards the list may follow again
            follows = self._follow_top
            self._follow_top = follows and not self.held and board.order.sort.name == "time"
            self.show(self._rows(), changed=changed, question=board.order.question)
            self._follow_top = follows

    def _rows(self) -> AttemptRows:
        return AttemptRows(self.board, self._text_width, most=self._most, height=self.size.height)

    def on_resize(self) -> None:
        """Rebuild the rows: running entries are shorter in a narrow list."""
        self.show(self._rows())

    @property
    def selected_run(self) -> RunView | None:
        """The run under the cursor."""
        source = self.source
        return source.run(self.selected_index) if isinstance(source, AttemptRows) else None

    @property
    def selected_attempt(self) -> Attempt | None:
        """The attempt under the cursor."""
        source = self.source
        return source.attempt(self.selected_index) if isinstance(source, AttemptRows) else None

    def fold(self) -> bool:
        """Fold the group under the cursor; False if there is none to fold."""
        source = self.source
        name = source.group_of(self.selected_index) if isinstance(source, AttemptRows) else ""
        if not name or name in self.board.folded or source.attempt(self.selected_index) is None:  # type: ignore[attr-defined]
            return False
        self._set_folded(self.board.folded | {name}, name)
        return True

    def unfold(self) -> bool:
        """Unfold the group whose caption is under the cursor; False if there is none."""
        source = self.source
        name = source.group_of(self.selected_index) if isinstance(source, AttemptRows) else ""
        if name not in self.board.folded:
            return False
        self._set_folded(self.board.folded - {name}, name)
        return True

    def _set_folded(self, folded: frozenset[str], name: str) -> None:
        self._follow_top = False
        row = self.source.index(f"{_GROUP}{name}")
        self.board = replace(self.board, folded=folded)
        self.show(self._rows())
        if row is not None:
            at = row if name in folded else min(row + 1, len(self.source) - 1)
            self._move_to(at)

    def _step(self, count: int) -> None:
        super()._step(count)
        # moving back to the top by hand turns following on again
        self._follow_top = self.selected_index == self._first()

    def turn_part(self, step: int) -> None:
        """Go to the next older or newer attempt on the same bead."""
        source = self.source
        if not isinstance(source, AttemptRows):
            return
        bead_id = _bead_at(source, self.selected_index)
        key = source.sibling(self.selected_index, bead_id, step) if bead_id else None
        if key is not None and (index := source.index(key)) is not None:
            self._follow_top = False
            self._move_to(index)


def _bead_at(source: AttemptRows, index: int) -> str | None:
    view, attempt = source.run(index), source.attempt(index)
    return view.run.bead_id if view is not None else attempt.bead_id if attempt is not None else None


class RunningPanel(Vertical):
    """The pane. Beside queue and detail it shows the newest attempts only."""

    DEFAULT_CSS = "RunningPanel { height: 1fr; width: 1fr; background: $helix-ground; }"

    class Chosen(Gesture):
        """Enter on a run or an attempt; the attempt of a run that has none yet is empty."""

        def __init__(self, attempt_id: str, bead_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id
            self.bead_id = bead_id

    def __init__(self, *, most: int | None = 60, id: str | None = None) -> None:
        """Make a panel.

        Args:
            most: how many attempts are listed at most; None for all.
            id: of the widget.
        """
        super().__init__(id=id)
        self.caption = Caption("running")
        self.list = AttemptList(most=most)

    def compose(self) -> ComposeResult:
        """Caption and list."""
        yield self.caption
        yield self.list

    def show_board(self, board: Board, *, changed: Collection[str] = ()) -> None:
        """Show a new state; attempts in ``changed`` are tinted a moment."""
        self.list.show_board(board, changed=changed)
        self.say_caption()

    def say_caption(self) -> None:
        """Show how many runs there are, and whether the list follows."""
        runs = self.list.board.runs
        working = len(beads_at_work(view.run for view in runs))
        between = sum(view.run.live and view.run.bead_id is None for view in runs)
        words = f"running {working}" if working else "idle"
        words += f" · {between} between beads" if between else ""
        dead, older = sum(not view.run.live for view in runs), self.list.board.older
        if dead + older:
            shown = f", {dead} shown" if dead and older else ""
            words += f" · {dead + older} dead{self.list.board.at_large}{shown}"
        self.caption.show(words, "follows" if working and self.list.following else "")

    @on(RowList.Selected)
    def _say_whether_it_follows(self) -> None:
        self.say_caption()

    @on(RowList.Opened)
    def _choose(self, event: RowList.Opened) -> None:
        event.stop()
        if self.list.unfold():
            return
        view, attempt = self.list.selected_run, self.list.selected_attempt
        if view is not None:
            self.post_message(self.Chosen(view.run.attempt_id or "", view.run.bead_id or ""))
        elif attempt is not None:
            self.post_message(self.Chosen(attempt.attempt_id, attempt.bead_id))
