"""The pulse: line 1 of every screen. What runs, what is next, what needs me, at any width.

Parts go in this order when it gets narrow: cost, the words of the next action, the length of project and
branch, age, branch, the words of the counts, and at last the project. What is wrong (no tracker, unread
lines, a rehearsal) stays as long as a cell is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from helix_tui.core.clock import format_age
from helix_tui.themes.alphabet import ASCII_SPINNER, SPINNER
from helix_tui.widgets.lists.line import Line, Span, cut, fit, width_of
from helix_tui.widgets.lists.spanline import SpanLine
from helix_tui.widgets.palette import ascii_only

FRAME_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PulseFacts:
    """What the pulse says. Empty and zero parts are left out, but for the three counts."""

    project: str = ""
    branch: str = ""
    age_s: float | None = None
    """Since the newest write; None before anything was read."""
    stale: bool = False
    running: int = 0
    dead: int = 0
    """Runs that are called running and are not."""
    ready: int = 0
    needs_me: int = 0
    memory: str = ""
    """How many memories there are, how effective, how many of them systemic; in words."""
    spent: str = ""
    """Cost and tokens of today, in words."""
    loop: str = ""
    """How HELIX's own loop stands, where it is worth a word."""
    action: str = ""
    because: str = ""
    focus: str = ""
    """Title of the epic that workers are kept to."""
    rehearsal: bool = False
    unread: int = 0
    trouble: str = ""
    """In place of the counts, where there is no queue: what is wrong in two or three words."""


class Pulse(SpanLine):
    """Line 1. While lines are unread it is a pane that ``tab`` comes to, and enter lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "list_unread", show=False, id="go.open")]

    class Pressed(Message):
        """Somebody asks what a part counts: ``running``, ``dead``, ``ready``, ``needs`` or ``unread``."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__()
        self.facts = PulseFacts()
        self._frame = 0
        self._timer: Timer | None = None
        self._parts: dict[str, range] = {}
        """The cells of each part that can be clicked."""

    def show(self, facts: PulseFacts) -> None:
        """Show other facts; repaints only when they differ."""
        if facts != self.facts:
            self.facts = facts
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
        for part, cells in self._parts.items():
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
        spans: Line = ()
        for spans in self._forms(width):
            if width_of(spans) <= width:
                break
        spans = fit(spans, width)
        self._parts = _places(spans)
        return spans

    def _forms(self, width: int) -> Iterator[Line]:
        """Ways to say it, the richest first."""
        facts = self.facts
        yield self._form(facts, True, width)
        facts = replace(facts, memory="")
        yield self._form(facts, True, width)
        yield self._form(replace(facts, spent=""), True, width)
        bare = replace(facts, spent="", because="")
        yield self._form(bare, True, width)
        short = replace(bare, project=cut(facts.project, 16), branch=cut(facts.branch, 12))
        ageless, placeless = replace(short, age_s=None), replace(short, age_s=None, branch="")
        for form in (short, ageless, placeless):
            yield self._form(form, True, width, gap="  ")
        for form in (short, ageless, placeless):
            yield self._form(form, False, width, gap="  ")
        yield self._least(facts)

    def _form(self, facts: PulseFacts, words: bool, width: int, gap: str = "    ") -> Line:
        left = [*_rehearsal(facts), *_place_and_age(facts)]
        middle = [*self._counts(facts, words), *_focus(facts, words), *_unread(facts, self.has_focus)]
        words_right = "   ".join(part for part in (facts.memory, facts.spent) if part)
        right: list[Span] = [(words_right, "muted")] if words_right else []
        right += [("    ", "text")] if right and (facts.action or facts.loop) else []
        right += [*_loop(facts), *_action(facts)]
        taken = width_of(left) + width_of(middle) + width_of(right) + len(gap) * 2 + 2
        if taken > width:
            return [("x" * (width + 1), "text")]
        return [
            (" ", "text"),
            *left,
            (gap, "text"),
            *middle,
            (" " * (width - taken + len(gap)), "text"),
            *right,
            (" ", "text"),
        ]

    def _least(self, facts: PulseFacts) -> Line:
        action: list[Span] = [(" · ", "muted"), (facts.action, "text bold")] if facts.action else []
        unread: list[Span] = [(f" {facts.unread} unread", "attention")] if facts.unread else []
        return [
            *self._counts(facts, False),
            *_focus(facts, False),
            *action,
            *unread,
            (" " if facts.rehearsal else "", "text"),
            *_rehearsal(facts),
        ]

    def _counts(self, facts: PulseFacts, words: bool) -> list[Span]:
        if facts.trouble:
            return [(facts.trouble, "attention bold")]
        gap: Span = ("  " if words else " ", "text")
        spans = [*_count("◉", facts.running, "running", "running bold", words)]
        if facts.running:
            frames = ASCII_SPINNER if ascii_only(self) else SPINNER
            spans.append((" " + frames[self._frame % len(frames)] if words else "", "running"))
        if facts.dead:
            spans += [gap, *_count("!", facts.dead, "dead", "error bold", words)]
        spans += [gap, *_count("○", facts.ready, "ready", "success", words)]
        spans += [gap, *_count("◆", facts.needs_me, "need me", "attention bold", words)]
        return spans


def _count(glyph: str, count: int, word: str, ink: str, words: bool) -> list[Span]:
    if not count:
        ink = "muted"
    return [(f"{glyph} {count:,} {word}" if words else f"{glyph}{count}", ink)]


def _rehearsal(facts: PulseFacts) -> list[Span]:
    return [("REHEARSAL", "attention bold reverse"), (" ", "text")] if facts.rehearsal else []


def _place_and_age(facts: PulseFacts) -> list[Span]:
    spans: list[Span] = [(cut(facts.project, 28), "text bold")]
    if facts.branch:
        spans.append((f" ⎇ {cut(facts.branch, 28)}", "muted"))
    if facts.age_s is not None:
        spans += [(" · ", "muted"), (format_age(facts.age_s), "waiting bold" if facts.stale else "muted")]
    return spans


def _unread(facts: PulseFacts, focused: bool) -> list[Span]:
    if not facts.unread:
        return []
    ink = "attention reverse" if focused else "attention"
    return [("  ", "text"), (f"{facts.unread} line{'s' * (facts.unread > 1)} unread ▸", ink)]


def _focus(facts: PulseFacts, words: bool) -> list[Span]:
    if not facts.focus:
        return []
    title: list[Span] = [(f" {cut(facts.focus, 20)}", "text")] if words else []
    return [("  " if words else " ", "text"), ("FOCUS", "running bold"), *title]


def _loop(facts: PulseFacts) -> list[Span]:
    if not facts.loop:
        return []
    ink = "error" if "died" in facts.loop else "waiting" if facts.loop != "loop" else "running"
    return [(facts.loop, ink), (" · " if facts.action else "", "muted")]


def _action(facts: PulseFacts) -> list[Span]:
    if not facts.action:
        return []
    because: list[Span] = [(f" ▸ {facts.because}", "muted")] if facts.because else []
    return [(facts.action, "text bold"), *because]


_MARKS = {"◉": "running", "!": "dead", "○": "ready", "◆": "needs"}


def _places(spans: Line) -> dict[str, range]:
    """The cells of each count, by its glyph, and of the unread lines."""
    found: dict[str, range] = {}
    at = 0
    for text, ink in spans:
        size = width_of([(text, ink)])
        part = "unread" if "unread" in text else _MARKS.get(text[:1])
        if part is not None:
            found.setdefault(part, range(at, at + size))
        at += size
    return found
