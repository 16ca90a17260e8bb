"""The pulse: line 1 of every screen. What runs, what is next, what needs me, at any width.

Parts go in this order when it gets narrow: cost, the words of the next action, the length of project and
branch, age, branch, the words of the counts, and at last the project. What is wrong (no tracker, unread
lines, a simulation) stays as long as a cell is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.timer import Timer

from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import format_age
from helix_tui.themes.roles import ASCII_SPINNER, SPINNER
from helix_tui.widgets.base.line import Line, Span, SpanLine, cut, fit, width_of
from helix_tui.widgets.gesture import Gesture
from helix_tui.widgets.outcomes import ascii_only

FRAME_SECONDS = 0.2

Piece = tuple[str, Line]
"""A part of the pulse, by name where a click on it leads somewhere, and its spans."""

Pieces = Sequence[Piece]


class PulseFacts(Struct, frozen=True):
    """What the pulse says. Empty and zero parts are left out, but for the three counts."""

    project: str = ""
    branch: str = ""
    age_s: float | None = None
    """Since the newest write; None before anything was read."""
    stale: bool = False
    running: int = 0
    stale_claims: int = 0
    """Claims of workers that are gone, on beads that nobody else gets: those of Needs me."""
    ready: int = 0
    needs_me: int = 0
    memory: str = ""
    """How many memories there are, how effective, how many of them systemic; in words, the number before a comma."""
    spent: str = ""
    """Cost and tokens of today, in words."""
    cost: str = ""
    """The same as short as can be: it stays at any width while something runs."""
    over: bool = False
    """A part of the budget is spent."""
    loop: str = ""
    """How HELIX's own loop stands, where it is worth a word."""
    action: str = ""
    because: str = ""
    focus: str = ""
    """Title of the epic that workers are kept to."""
    simulation: bool = False
    unread: int = 0
    trouble: str = ""
    """In place of the counts, where there is no queue: what is wrong in two or three words."""


class StatusBar(SpanLine):
    """Line 1. While lines are unread it is a pane that ``tab`` comes to, and enter lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "list_unread", show=False, id="go.open")]

    class Pressed(Gesture):
        """Somebody asks what a part stands for.

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
        """Show other facts; repaints only when they differ."""
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
        """Show where the focus is."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that it is elsewhere."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click on a part leads to what it counts."""
        for part, cells in self._parts:
            if event.x in cells:
                self.post_message(self.Pressed(part))

    def _spin(self, on: bool) -> None:
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
        self._parts = _places(pieces)
        return fit([span for _, spans in pieces for span in spans], width)

    def _forms(self, width: int) -> Iterator[Pieces]:
        """Ways to say it, the richest first."""
        facts = self.facts
        yield self._form(facts, True, width)
        yield self._form(replace(facts, memory=facts.memory.partition(",")[0]), True, width)
        facts = replace(facts, memory="")
        yield self._form(facts, True, width)
        facts = replace(facts, spent=facts.cost if facts.running else "")
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
            return [_blank(width + 1)]
        return [_blank(1), *left, _blank(len(gap)), *middle, _blank(between), *right, _blank(1)]

    def _least(self, facts: PulseFacts) -> Pieces:
        action: Line = [(" · ", "muted"), (facts.action, "text bold")] if facts.action else ()
        unread: Line = [(f" {facts.unread} unread", "attention")] if facts.unread else ()
        cost: Line = [(f" {facts.cost}", _cost_ink(facts))] if facts.running and facts.cost else ()
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
        pieces += [gap, _count("needs", "◆", facts.needs_me, _need(facts.needs_me), "attention bold", words)]
        return pieces


def _blank(cells: int) -> Piece:
    return "", [(" " * cells, "text")]


def _as_read(facts: PulseFacts) -> tuple[PulseFacts, str]:
    """What somebody sees of them: an age in words."""
    return replace(facts, age_s=None), "" if facts.age_s is None else format_age(facts.age_s)


def _width(pieces: Iterable[Piece]) -> int:
    return sum(width_of(spans) for _, spans in pieces)


def _count(part: str, glyph: str, count: int, word: str, ink: str, words: bool) -> Piece:
    if not count:
        ink = "muted"
    return part, [(f"{glyph} {count:,} {word}" if words else f"{glyph}{count}", ink)]


def _need(count: int) -> str:
    return "needs you" if count == 1 else "need you"


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
