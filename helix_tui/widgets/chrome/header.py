"""The three lines at the top of every screen: the status bar (what runs, what is next, what needs me, at any width),
the tabs of the screens, and a notice if something about the project affects how far its queue can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import format_age
from helix_tui.themes import ASCII_SPINNER, SPINNER
from helix_tui.widgets.base.line import (
    Line,
    Span,
    SpanLine,
    ascii_only,
    cut,
    fit,
    heading,
    palette_of,
    spread,
    to_strip,
    width_of,
)
from helix_tui.widgets.base.row_source import Gesture

FRAME_SECONDS = 0.2

Piece = tuple[str, Line]
"""A part of the status bar: its name if it can be clicked, and its spans."""

Pieces = Sequence[Piece]

MORE = "…"

MIN_CAPTION = 16
"""The width that a caption keeps before column headings are dropped."""


class PulseFacts(Struct, frozen=True):
    """The status bar's content. Empty and zero parts are left out, except the three counts."""

    project: str = ""
    branch: str = ""
    age_s: float | None = None
    """Time since the newest write; None before anything was read."""
    stale: bool = False
    running: int = 0
    stale_claims: int = 0
    """Claims of dead workers on beads that are not handed out again: those in Needs me."""
    ready: int = 0
    needs_me: int | None = 0
    """None until everything that may wait for a person has been read."""
    memory: str = ""
    """The number of memories, their effectiveness, how many are systemic; in words, the number before a comma."""
    spent: str = ""
    """Cost and tokens of today, in words."""
    cost: str = ""
    """The same in the shortest form, shown at any width while something runs, between two beads too."""
    over: bool = False
    """Whether part of the budget is spent."""
    loop: str = ""
    """The state of HELIX's own loop, if it matters."""
    action: str = ""
    because: str = ""
    focus: str = ""
    """Title of the epic in focus."""
    simulation: bool = False
    unread: int = 0
    trouble: str = ""
    """Shown instead of the counts without a queue: what is wrong, in two or three words."""


class StatusBar(SpanLine):
    """Line 1. While there are unreadable lines, ``tab`` can focus it, and enter lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "list_unread", show=False, id="go.open")]

    class Pressed(Gesture):
        """A part was clicked.

        It is one of ``running stale ready needs unread memory spent loop next``.
        """

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__()
        self.facts = PulseFacts()
        self._frame = 0
        self._timer: Timer | None = None
        self._parts: list[tuple[str, range]] = []

    def show(self, facts: PulseFacts) -> None:
        """Show new facts; repaints only if they differ."""
        was, self.facts = self.facts, facts
        if _as_read(facts) != _as_read(was):
            self.can_focus = facts.unread > 0
            self._spin(facts.running > 0)
            self.refresh()

    def action_list_unread(self) -> None:
        """List the unread lines."""
        if self.facts.unread:
            self.post_message(self.Pressed("unread"))

    def on_focus(self) -> None:
        """Show that it has the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that it has lost the focus."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Open what the clicked part counts."""
        for part, cells in self._parts:
            if event.x in cells:
                self.post_message(self.Pressed(part))

    def _spin(self, on: bool) -> None:
        # a timer only while something runs: each of its frames is written to the terminal
        if on and self._timer is None:
            self._timer = self.set_interval(FRAME_SECONDS, self._turn)
        elif not on and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _turn(self) -> None:
        self._frame += 1
        self.refresh()

    def spans(self, width: int) -> Line:
        """The richest form that fits."""
        pieces: Pieces = ()
        for pieces in self._forms(width):
            if _width(pieces) <= width:
                break
        # clicks are matched against the form that was drawn
        self._parts = _places(pieces)
        return fit([span for _, spans in pieces for span in spans], width)

    def _forms(self, width: int) -> Iterator[Pieces]:
        """Its forms, the richest first."""
        facts = self.facts
        yield self._form(facts, True, width)
        yield self._form(replace(facts, memory=facts.memory.partition(",")[0]), True, width)
        facts = replace(facts, memory="")
        yield self._form(facts, True, width)
        facts = replace(facts, spent=facts.cost)
        yield self._form(facts, True, width)
        if not _costs_now(facts):
            facts = replace(facts, spent="")
            yield self._form(facts, True, width)
        bare = replace(facts, because="")
        yield self._form(bare, True, width)
        short = replace(bare, project=cut(facts.project, 16), branch=cut(facts.branch, 12))
        ageless, placeless = replace(short, age_s=None), replace(short, age_s=None, branch="")
        for form in (short, ageless, placeless):
            yield self._form(form, True, width, gap="  ")
        for form in (short, ageless, placeless):
            yield self._form(form, False, width, gap="  ")
        yield self._least(facts)

    def _form(self, facts: PulseFacts, words: bool, width: int, gap: str = "    ") -> Pieces:
        left = [_simulation(facts), _place_and_age(facts)]
        middle = [*self._counts(facts, words), _focus(facts, words), _unread(facts, self.has_focus)]
        right = _on_the_right(facts)
        between = width - _width([*left, *middle, *right]) - 2 - len(gap)
        if between < len(gap):
            # wider than the line, so the next form is tried
            return [_blank(width + 1)]
        return [_blank(1), *left, _blank(len(gap)), *middle, _blank(between), *right, _blank(1)]

    def _least(self, facts: PulseFacts) -> Pieces:
        action: Line = [(" · ", "muted"), (facts.action, "text bold")] if facts.action else ()
        unread: Line = [(f" {facts.unread} unread", "attention")] if facts.unread else ()
        cost: Line = [(f" {facts.cost}", _cost_ink(facts))] if _costs_now(facts) and facts.cost else ()
        return [
            *self._counts(facts, False),
            ("spent", cost),
            _focus(facts, False),
            ("next", action),
            ("unread", unread),
            _blank(1 if facts.simulation else 0),
            _simulation(facts),
        ]

    def _counts(self, facts: PulseFacts, words: bool) -> list[Piece]:
        if facts.trouble:
            return [("", [(facts.trouble, "attention bold")])]
        gap = _blank(2 if words else 1)
        pieces = [_count("running", "◉", facts.running, "running", "running bold", words)]
        if facts.running and words:
            frames = ASCII_SPINNER if ascii_only(self) else SPINNER
            pieces.append(("running", [(f" {frames[self._frame % len(frames)]}", "running")]))
        if facts.stale_claims:
            pieces += [gap, _count("stale", "!", facts.stale_claims, "stale", "error bold", words)]
        pieces += [gap, _count("ready", "○", facts.ready, "ready", "success", words)]
        pieces += [gap, _needs(facts.needs_me, words)]
        return pieces


def _blank(cells: int) -> Piece:
    return "", [(" " * cells, "text")]


def _as_read(facts: PulseFacts) -> tuple[PulseFacts, str]:
    """The facts as shown, with the age in words."""
    return replace(facts, age_s=None), "" if facts.age_s is None else format_age(facts.age_s)


def _width(pieces: Iterable[Piece]) -> int:
    return sum(width_of(spans) for _, spans in pieces)


def _count(part: str, glyph: str, count: int, word: str, ink: str, words: bool) -> Piece:
    if not count:
        ink = "muted"
    return part, [(f"{glyph} {count:,} {word}" if words else f"{glyph}{count}", ink)]


def _needs(count: int | None, words: bool) -> Piece:
    if count is None:
        return "needs", [("◆ … need you" if words else "◆…", "muted")]
    return _count("needs", "◆", count, "needs you" if count == 1 else "need you", "attention bold", words)


def _simulation(facts: PulseFacts) -> Piece:
    return "", [("SIMULATION", "attention bold reverse"), (" ", "text")] if facts.simulation else []


def _place_and_age(facts: PulseFacts) -> Piece:
    spans: list[Span] = [(cut(facts.project, 28), "text bold")]
    if facts.branch:
        spans.append((f" ⎇ {cut(facts.branch, 28)}", "muted"))
    if facts.age_s is not None:
        spans += [(" · ", "muted"), (format_age(facts.age_s), "waiting bold" if facts.stale else "muted")]
    return "", spans


def _unread(facts: PulseFacts, focused: bool) -> Piece:
    if not facts.unread:
        return "", []
    ink = "attention reverse" if focused else "attention"
    return "unread", [("  ", "text"), (f"{counted(facts.unread, 'line')} unread ▸", ink)]


def _focus(facts: PulseFacts, words: bool) -> Piece:
    if not facts.focus:
        return "", []
    title: list[Span] = [(f" {cut(facts.focus, 20)}", "text")] if words else []
    return "", [("  " if words else " ", "text"), ("FOCUS", "running bold"), *title]


def _on_the_right(facts: PulseFacts) -> list[Piece]:
    """Memory, cost, the loop, the next action."""
    words = [(part, text) for part, text in (("memory", facts.memory), ("spent", facts.spent)) if text]
    pieces: list[Piece] = []
    for part, text in words:
        ink = _cost_ink(facts) if part == "spent" else "muted"
        pieces += [_blank(3 if pieces else 0), (part, [(text, ink)])]
    pieces.append(_blank(4 if words and (facts.action or facts.loop) else 0))
    return [*pieces, _loop(facts), _action(facts)]


def _costs_now(facts: PulseFacts) -> bool:
    """Whether the cost is shown at any width: something runs, or part of the budget is reached."""
    return bool(facts.running or facts.loop or facts.over)


def _cost_ink(facts: PulseFacts) -> str:
    return "attention bold" if facts.over else "text" if facts.running else "muted"


def _loop(facts: PulseFacts) -> Piece:
    if not facts.loop:
        return "", []
    waits = any(word in facts.loop for word in ("paus", "stopping"))
    ink = "error" if "died" in facts.loop else "waiting" if waits else "running"
    return "loop", [(facts.loop, ink), (" · " if facts.action else "", "muted")]


def _action(facts: PulseFacts) -> Piece:
    if not facts.action:
        return "", []
    because: list[Span] = [(f" ▸ {facts.because}", "muted")] if facts.because else []
    return "next", [(facts.action, "text bold"), *because]


def _places(pieces: Iterable[Piece]) -> list[tuple[str, range]]:
    """The cells of each part that can be clicked."""
    found: list[tuple[str, range]] = []
    at = 0
    for part, spans in pieces:
        size = width_of(spans)
        if part and size:
            found.append((part, range(at, at + size)))
        at += size
    return found


class Tabs(SpanLine):
    """The tab bar. A click on a tab asks for its screen."""

    class Pressed(Gesture):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, tabs: Sequence[tuple[str, str, str]], current: str) -> None:
        """Show tabs, each ``(key, name, title)``."""
        super().__init__()
        self._tabs = tuple(tabs)
        self._current = current
        self._filter = ""
        self._count = ""
        self._shows_tabs = True

    def show(self, *, filter_text: str = "", count: str = "") -> None:
        """Show the filter, and how many rows pass, of how many."""
        if (filter_text, count) != (self._filter, self._count):
            self._filter, self._count = filter_text, count
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Go to the tab under the pointer."""
        at = 0
        for name, label in self._labels(self.size.width) if self._shows_tabs else ():
            at += width_of(label)
            if event.x < at:
                self.post_message(self.Pressed(name))
                return

    def _labels(self, width: int) -> list[tuple[str, list[Span]]]:
        """Each screen with its label; screens other than the present one by number alone if the names do not fit."""
        fits = sum(len(key) + len(title) + 3 for key, _, title in self._tabs) <= width
        labels = []
        for key, name, title in self._tabs:
            here = name == self._current
            label: list[Span] = [(f" {key}", "running" if here else "muted")]
            shown = f" {title} " if fits or here else " "
            label.append((shown, "text bold underline" if here else "muted"))
            labels.append((name, label))
        return labels

    def spans(self, width: int) -> Line:
        """Tabs on the left; filter and count on the right, if there is room."""
        left = [span for _, label in self._labels(width) for span in label]
        right: list[Span] = []
        if self._filter:
            right = [("/ ", "running"), (cut(self._filter, max(10, width // 3)), "text"), ("   ", "text")]
        right.append((f"{self._count} ", "muted"))
        gap = width - width_of(left) - width_of(right)
        # an active filter must be visible: else it looks as if beads were missing
        self._shows_tabs = gap >= 1 or not self._filter
        if gap < 1:
            return left if self._shows_tabs else fit(right, width)
        return [*left, (" " * gap, "text"), *right]


class PaneTabs(SpanLine):
    """A line of words as tabs. A click opens one."""

    class Pressed(Gesture):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names = tuple(names)
        self.current = self.names[0]
        self.note = ""

    def show(self, current: str, note: str = "") -> None:
        """Show another open tab, or another note on the right."""
        if (current, note) != (self.current, self.note):
            self.current, self.note = current, note
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Open the tab under the pointer."""
        at = 0
        for name, label in self._labels(self.size.width):
            at += len(label) + 2
            if event.x < at:
                self.post_message(self.Pressed(name))
                return

    def _labels(self, width: int) -> list[tuple[str, str]]:
        """The labels, each with the tab that a click opens."""
        shown = self._in_room(width)
        labels = [(self.names[place], self.names[place]) for place in shown]
        if shown.start:
            labels.insert(0, (self.names[shown.start - 1], MORE))
        if shown.stop < len(self.names):
            labels.append((self.names[shown.stop], MORE))
        return labels

    def _in_room(self, width: int) -> range:
        """The tabs that fit: all, or those around the open one."""
        here, first, stop = self.names.index(self.current), 0, len(self.names)
        while stop - first > 1 and self._cells(first, stop) > width:
            # drop tabs from the end that is further from the open one
            if stop - 1 - here >= here - first:
                stop -= 1
            else:
                first += 1
        return range(first, stop)

    def _cells(self, first: int, stop: int) -> int:
        """The width of several tabs."""
        cut = (first > 0) + (stop < len(self.names))
        return sum(len(name) + 2 for name in self.names[first:stop]) + cut * (len(MORE) + 2)

    def spans(self, width: int) -> Line:
        """All tabs, and the note or the end of it, as far as it fits."""
        line: list[Span] = []
        for name, label in self._labels(width):
            ink = "text bold underline" if label == self.current == name else "muted"
            line += [(" ", "text"), (label, ink), (" ", "text")]
        room = width - width_of(line) - 2
        note = _end_of(self.note, room)
        if note:
            line += [(" " * (room - len(note) + 1), "text"), (note, "muted"), (" ", "text")]
        return line


def _end_of(note: str, room: int) -> str:
    """As many of the last parts of a note as fit; a cut one would say nothing."""
    parts = note.split(" · ")
    while len(parts) > 1 and len(" · ".join(parts)) > room:
        parts.pop(0)
    note = " · ".join(parts)
    return note if len(note) <= room else ""


class NoticeLine(SpanLine):
    """The first notice in the longest form that fits; hidden while there is none.

    ``tab`` focuses it, and enter lists all notices in full.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "list_notices", show=False, id="go.open")]

    class Pressed(Gesture):
        """All notices are to be shown in full."""

    def __init__(self) -> None:
        super().__init__()
        self._notices: tuple[tuple[str, ...], ...] = ()
        self.display = False

    def show(self, notices: Sequence[tuple[str, ...]]) -> None:
        """Show notices, each in its forms, the longest first."""
        if tuple(notices) != self._notices:
            self._notices = tuple(notices)
            self.display = self.can_focus = bool(notices)
            self.refresh()

    def action_list_notices(self) -> None:
        """List them in full."""
        self.post_message(self.Pressed())

    def on_click(self, event: events.Click) -> None:
        """A click does the same as enter."""
        event.stop()
        self.post_message(self.Pressed())

    def on_focus(self) -> None:
        """Show that it has the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that it has lost the focus."""
        self.refresh()

    def spans(self, width: int) -> Line:
        """The longest form that fits, with a sign if there is more to read."""
        if not self._notices:
            return ()
        more = len(self._notices) - 1
        forms = self._notices[0]
        ink = "attention reverse" if self.has_focus else "attention"
        for form in forms:
            notice: Line = [("! ", "attention bold"), (form, ink)]
            rest = f"+{more} ▸" if more else "▸" if form != forms[0] else ""
            right: Line = [(rest, "attention bold")] if rest else []
            if width_of(notice) + width_of(right) + 2 <= width:
                return spread(notice, [*right, (" ", "text")], width)
        return (
            spread(notice, [(f"+{more} ▸" if more else "▸", "attention bold")], width)
            if width > 8
            else fit(notice, width)
        )


class Caption(SpanLine):
    """One line above a pane: ``Dag               18 of 188``."""

    def __init__(self, text: str = "", right: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._right = text, right
        self._heads: Callable[[int], Line] = lambda width: ()

    def show(self, text: str, right: str = "") -> None:
        """Show another text."""
        if (text, right) != (self._text, self._right):
            self._text, self._right = text, right
            self.refresh()

    def show_heads(self, heads: Callable[[int], Line]) -> None:
        """Show column headings for the list below: ``heads``, as wide as its rows, each over its column."""
        self._heads = heads
        self.refresh()

    def spans(self, width: int) -> Line:
        """The caption, and the headings of columns."""
        # rows leave a cell at the left for the cursor's bar, and one at the right for the scrollbar
        heads = self._heads(width - 2)
        taken = width_of(heads)
        if not taken or taken + MIN_CAPTION > width:
            return [(" ", "text"), *heading(self._text, width - 2, self._right)]
        return [(" ", "text"), *spread(heading(self._text, width - taken - 3, self._right), heads, width - 2)]


class LogTail(Widget):
    """A caption, a status line, and as many of the last lines as fit."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "LogTail { height: auto; width: 1fr; background: $helix-ground; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._caption = ("", "")
        self._standing: Span = ("", "text")
        self._lines: tuple[str, ...] = ()

    def show(self, caption: str, right: str, standing: Span, lines: Sequence[str]) -> None:
        """Show another text. All of it has been cleaned."""
        said = ((caption, right), standing, tuple(lines))
        if said != (self._caption, self._standing, self._lines):
            self._caption, self._standing, self._lines = said
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The caption, the status line, or one of the last lines."""
        width, room = self.size.width, self.size.height - 2
        spans: Line = []
        if y == 0:
            spans = [(" ", "text"), *heading(*self._heading(width))]
        elif y == 1:
            spans = fit([("  ", "text"), self._standing], width)
        elif shown := self._lines[-room:]:
            spans = fit([("  ", "text"), (shown[y - 2], "muted")], width) if y - 2 < len(shown) else []
        return to_strip(spans, width, palette_of(self), plain=ascii_only(self))

    def _heading(self, width: int) -> tuple[str, int, str]:
        return self._caption[0], width - 2, self._caption[1] if width >= 60 else ""
