"""The list of the Loop screen: what runs on top with its last actions, then attempts, newest first.

Rows are keyed by attempt id: the selection stays with an attempt when it ends and moves down into the list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rich.cells import cell_len

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.ground.time import NS, format_span, midnight
from helix_tui.themes.roles import SIGNS
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, cut, fit, spread, width_of, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import RowSource
from helix_tui.widgets.chrome.actions import Action, outcome
from helix_tui.widgets.outcomes import LOOKS, look_of

STATUS_CELLS = 11
TITLE_CELLS = 40
"""Cells that a title keeps before a column gives way: the title is what one reads."""

ACTIONS = 3
ACTIONS_NARROW = 1
NARROW = 56
"""Cells below which a running entry has one action, and an attempt's figures move to its second line."""

_ENDED = "caption:ended"
_MEASURED = 200


@dataclass(frozen=True, slots=True)
class RunView:
    """One run with its last actions, the newest last."""

    run: Run
    actions: tuple[Action, ...] = ()

    @property
    def key(self) -> str:
        """The attempt's id where it is known, so that its row stays selected when the attempt has ended."""
        run = self.run
        return run.attempt_id or f"run:{run.bead_id or run.worker_id or run.pid}"


class Order:
    """Finished attempts, newest first, with their places."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self.attempts = tuple(attempts)
        self.places = {attempt.attempt_id: place for place, attempt in enumerate(self.attempts)}
        newest = (attempt.model or attempt.harness for attempt in self.attempts[:_MEASURED])
        self.model_cells = max(map(len, newest), default=0)
        """Characters of the longest model name among the newest attempts."""


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the list shows at one moment."""

    runs: tuple[RunView, ...] = ()
    order: Order = field(default_factory=Order)
    beads: Mapping[str, Bead] | None = None
    now: int = 0
    hidden: int = 0
    """Attempts that a filter leaves out."""
    older: int = 0
    """Workers that are gone too, and longer than those among ``runs``."""
    heading: bool = True
    """Whether the attempts stand under a line that sums up the day."""


def title_of(bead_id: str, beads: Mapping[str, Bead] | None) -> Span:
    """The title of a bead, or its id where the tracker does not hold it."""
    bead = (beads or {}).get(bead_id)
    title = clean_line(bead.title, 1000) if bead is not None else ""
    if title:
        return (title, "text")
    return (clean_line(bead_id, 80) or "no bead named", "muted")


class AttemptRows(RowSource):
    """The rows of a board. A run takes a line and one for each action shown below it."""

    def __init__(self, board: Board, width: int, *, most: int | None = None) -> None:
        self.board = board
        self._heads: list[tuple[str, RunView | None, Line | None]] = []
        """Rows above the attempts: key, run, and the line where it is not the first of the run's entry."""
        for view in board.runs:
            self._heads.append((view.key, view, None))
            below = enumerate(_below(view, width))
            self._heads += [(f"{view.key}/{number}", view, line) for number, line in below]
        if board.heading:
            self._heads.append((_ENDED, None, None))
        self._most = len(board.order.attempts) if most is None else min(most, len(board.order.attempts))
        self._head_places = {key: place for place, (key, _, _) in enumerate(self._heads)}

    def __len__(self) -> int:
        return len(self._heads) + self._most

    def key(self, index: int) -> str:
        if index < len(self._heads):
            return self._heads[index][0]
        return self.board.order.attempts[index - len(self._heads)].attempt_id

    def index(self, key: str) -> int | None:
        place = self._head_places.get(key)
        if place is not None:
            return place
        place = self.board.order.places.get(key)
        return None if place is None or place >= self._most else place + len(self._heads)

    def selectable(self, index: int) -> bool:
        if index >= len(self._heads):
            return True
        _, view, line = self._heads[index]
        return view is not None and line is None

    def run(self, index: int) -> RunView | None:
        """The run that a row stands for."""
        return self._heads[index][1] if 0 <= index < len(self._heads) else None

    def attempt(self, index: int) -> Attempt | None:
        """The attempt that a row stands for."""
        place = index - len(self._heads)
        return self.board.order.attempts[place] if 0 <= place < self._most else None

    def paint(self, index: int, width: int) -> Line:
        attempt = self.attempt(index)
        if attempt is not None:
            return paint_attempt(attempt, self.board, width)
        _, view, line = self._heads[index]
        if view is None:
            return _caption(self.board, width)
        return paint_run(view, self.board, width) if line is None else line

    def paint_more(self, index: int, width: int) -> Line | None:
        attempt = self.attempt(index)
        if attempt is None or width >= NARROW:
            return None
        return _figures_line(attempt, width)

    def text(self, index: int) -> str:
        attempt = self.attempt(index)
        if attempt is None:
            return "".join(text for text, _ in self.paint(index, 400))
        title, _ = title_of(attempt.bead_id, self.board.beads)
        parts = (look_of(attempt).word, attempt.status, title, attempt.bead_id, attempt.attempt_id)
        return " ".join((*parts, attempt.harness, attempt.model))


def _caption(board: Board, width: int) -> Line:
    total = len(board.order.attempts)
    right = f"{total:,} of {total + board.hidden:,}" if board.hidden else f"{total:,}"
    tail: list[Span] = [(right, "muted")] if total or board.hidden else []
    return _ruled(_today(board, width - 10 - len(right)), tail, width)


def _today(board: Board, room: int) -> list[Span]:
    """``today 9 landed · 2 kept aside · 3 no change · 1 failed``, by glyph where that is too long."""
    begin = midnight(board.now)
    counts: dict[Outcome, int] = {}
    for attempt in board.order.attempts:
        at = attempt.finished_at or attempt.started_at
        if at is not None and at < begin:
            break
        outcome = attempt.verdict.outcome
        counts[outcome] = counts.get(outcome, 0) + 1
    if not counts:
        return [("no attempts today" if board.order.attempts else "no attempts yet", "muted")]
    words: list[Span] = [("today", "muted")]
    glyphs: list[Span] = [("today", "muted")]
    for outcome, look in LOOKS.items():
        count = counts.get(outcome, 0)
        if count or outcome == "landed":
            ink = look.ink if count else "muted"
            words += [(" · " if len(words) > 1 else " ", "muted"), (f"{count} {look.word}", ink)]
            glyphs.append((f" {look.glyph}{count}", ink))
    return words if width_of(words) <= room else glyphs


def _ruled(caption: list[Span], right: list[Span], width: int) -> Line:
    """A thin rule with a caption of several inks."""
    tail: list[Span] = [(" ", "rule"), *right, (" ──", "rule")] if right else []
    head = fit([("── ", "rule"), *caption, (" ", "rule")], max(0, width - width_of(tail)))
    gap = width - width_of(head) - width_of(tail)
    return [*head, ("─" * max(0, gap), "rule"), *tail]


def paint_run(view: RunView, board: Board, width: int) -> Line:
    """The first line of a running entry: what, by whom, for how long, at what cost."""
    run = view.run
    sign = SIGNS["running" if run.verdict == "alive" else run.verdict]
    title, ink = title_of(run.bead_id, board.beads) if run.bead_id else ("worker between beads", "muted")
    left: list[Span] = [(f"{sign.glyph} ", sign.ink), (title, f"{ink} bold")]
    room = width - 2 - min(cell_len(title), TITLE_CELLS)
    return spread(left, _run_figures(run, board.now, width, room), width)


def _run_figures(run: Run, now: int, width: int, room: int) -> list[Span]:
    """Model, time, verdict and tokens; model first, then tokens go where a title needs their room."""
    harness, model = clean_line(run.harness, 20), clean_line(run.model, 28)
    by = model if harness in model else f"{harness} {model}".strip()
    parts: list[Span] = []
    if by and width >= NARROW:
        parts.append((cut(by, width // 3), "muted"))
    if run.started_at is not None and run.live:
        span = format_span((now - run.started_at) / NS)
        parts.append(
            (
                span if width >= NARROW else span.replace(" ", ""),
                "running" if run.verdict == "alive" else "text",
            )
        )
    if not run.live:
        parts.append(("gone", "error bold"))
    elif run.verdict == "silent":
        parts.append(("silent", "error bold"))
    if run.tokens is not None and width >= 44:
        parts.append((f"{figures.tokens(run.tokens)} tok", "text"))
    if by and width >= NARROW and _joined_cells(parts) > room:
        parts = parts[1:]
    if run.tokens is not None and width >= 44 and _joined_cells(parts) > room:
        parts = parts[:-1]
    return [span for part in parts for span in (("  ", "text"), part)]


def _joined_cells(parts: list[Span]) -> int:
    return width_of(parts) + 2 * len(parts)


def _below(view: RunView, width: int) -> list[Line]:
    """The lines below a running entry: what is wrong with it, then its last actions."""
    run, wide = view.run, width >= NARROW
    lines: list[Line] = []
    if run.verdict != "alive":
        why = wrap_spans([(clean_line(run.why, 300), "error")], max(8, width - len(_INDENT)))
        lines = [[(_INDENT, "text"), *line] for line in why[:2]]
    if run.verdict == "dead":
        return lines
    slots = max(1, (ACTIONS if wide else ACTIONS_NARROW) - len(lines))
    if not view.actions:
        lines.append(_doing_line(run, width))
    elif run.phase in _USUAL_PHASES:
        lines += [_action_line(action, run, width) for action in view.actions[-slots:]]
    else:
        lines += [_action_line(action, run, width) for action in view.actions[-slots:][:-1]]
        said: Span = (clean_line(run.message, 300), "text")
        lines.append([(_INDENT, "text"), (clean_line(run.phase, 40), "running bold"), ("  ", "text"), said])
    return lines


_INDENT = "    "

_USUAL_PHASES = frozenset({"", "running", "active", "candidate", "resolving"})
"""Phases in which the agent itself works, so that its last action says more than the word."""


def _doing_line(run: Run, width: int) -> Line:
    """What the feed knows of a run before its transcript was looked at."""
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
    left: list[Span] = [(_INDENT, "text"), (f"{name:<9} " if wide else f"{name} ", ink), target]
    right = outcome(action.ok, action.duration_ms if wide else None) if action.kind == "tool" else []
    if wide:
        right.append((f"{figures.since_start(action.at, run.started_at):>9}", "muted"))
    return spread(left, [(" ", "text"), *right] if right else [], width)


def paint_attempt(attempt: Attempt, board: Board, width: int) -> Line:
    """One attempt in one line; columns that have no room go, the title stays."""
    look = look_of(attempt)
    title = title_of(attempt.bead_id, board.beads)
    when = figures.day_or_time(attempt.finished_at or attempt.started_at, board.now)
    if width < NARROW:
        narrow: list[Span] = [(f"{look.glyph} ", look.ink), title]
        return spread(narrow, [(f" {when:>6}", "muted")], width)
    word = cut(look.word, STATUS_CELLS * 2)
    left: list[Span] = [(f"{look.glyph} ", look.ink), (f"{word:<{STATUS_CELLS}} ", look.ink), title]
    return spread(left, _columns(attempt, board, when, width), width)


def _columns(attempt: Attempt, board: Board, when: str, width: int) -> list[Span]:
    """Model, duration, tokens, cost, time: as many as leave the title its room, the dearest kept longest."""
    model = clean_line(attempt.model or attempt.harness, 40)
    cells = min(board.order.model_cells, 14)
    if width >= 110:
        cells = min(board.order.model_cells + 12, 24)
        if attempt.model and attempt.harness:
            model = f"{clean_line(attempt.harness, 20)} {model}"
    cost = figures.money(attempt.cost_usd)
    columns: list[Span] = [
        (f" {cut(model, cells):<{cells}}", "muted"),
        (f" {figures.short_span(attempt.duration_ms):>4}", "muted"),
        (f" {figures.tokens(attempt.tokens.total):>5}", "muted"),
        (f" {cost:>6}", "muted" if cost == figures.UNKNOWN else "text"),
        (f" {when:>6}", "muted"),
    ]
    return _affordable(columns, (3, 4, 1, 0, 2), width - STATUS_CELLS - 4)


def _affordable(columns: list[Span], worth: Iterable[int], room: int) -> list[Span]:
    """The columns that leave a title its cells, chosen by worth, in the order in which they stand."""
    kept: set[int] = set()
    for place in worth:
        cells = width_of([columns[place]])
        if kept and room - cells < TITLE_CELLS:
            break  # for every row alike: columns stay columns
        kept.add(place)
        room -= cells
    return [column for place, column in enumerate(columns) if place in kept]


def _figures_line(attempt: Attempt, width: int) -> Line:
    """What a narrow row has no room for: as much of it as fits whole."""
    look = look_of(attempt)
    cost, total = figures.money(attempt.cost_usd), attempt.tokens.total
    parts = [
        f"cost {cost}" if cost == figures.UNKNOWN else cost,
        figures.short_span(attempt.duration_ms) if attempt.duration_ms is not None else "",
        clean_line(attempt.model or attempt.harness, 16),
        f"{figures.tokens(total)} tok" if total is not None else "",
        short_id(clean_line(attempt.bead_id, 60), 16),
    ]
    line: list[Span] = [("   ", "text"), (look.word, look.ink)]
    for part in filter(None, parts):
        span: Span = (f" · {part}", "muted")
        if width_of([*line, span]) <= width:
            line.append(span)
    return line


class AttemptList(RowList):
    """The list itself. It follows while its cursor is on the first row and nobody said otherwise."""

    def __init__(self, *, id: str | None = None, most: int | None = None) -> None:
        super().__init__(id=id, follow_top=True, cursor_needs_focus=most is not None)
        self.board = Board()
        self.held = False
        """Somebody reads what is under the cursor: it stays, whatever comes."""
        self._most = most

    @property
    def following(self) -> bool:
        """Whether the cursor stays on top when something new comes."""
        return self._follow_top and self.selected_index == self._first()

    def follow(self, on: bool) -> None:
        """Stay on top, or stay with the row under the cursor."""
        self._follow_top = on
        if on:
            self.action_first()

    def follow_no_more(self) -> None:
        """Somebody went to a row: stay there."""
        self._follow_top = False

    def show_board(self, board: Board, *, changed: Collection[str] = ()) -> None:
        """Show a new state."""
        self.board = board
        if self.size.width:
            follows, self._follow_top = self._follow_top, self._follow_top and not self.held
            self.show(self._rows(), changed=changed)
            self._follow_top = follows

    def _rows(self) -> AttemptRows:
        return AttemptRows(self.board, self._text_width, most=self._most)

    def on_resize(self) -> None:
        """Running entries are shorter in a narrow list."""
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

    def _step(self, count: int) -> None:
        super()._step(count)
        self._follow_top = self.selected_index == self._first()

    def action_next_part(self) -> None:
        """To the next older attempt on the same bead."""
        self._to_sibling(1)

    def action_previous_part(self) -> None:
        """To the next newer attempt on the same bead."""
        self._to_sibling(-1)

    def _to_sibling(self, step: int) -> None:
        source = self.source
        if not isinstance(source, AttemptRows):
            return
        bead_id = _bead_at(source, self.selected_index)
        index = self.selected_index + step
        while bead_id and 0 <= index < len(source):
            if source.selectable(index) and _bead_at(source, index) == bead_id:
                self._follow_top = False
                self._move_to(index)
                return
            index += step


def _bead_at(source: AttemptRows, index: int) -> str | None:
    view, attempt = source.run(index), source.attempt(index)
    return view.run.bead_id if view is not None else attempt.bead_id if attempt is not None else None
