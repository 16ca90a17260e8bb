"""Sheets to choose from: one of a few actions by letter, one of many rows by typing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from helix_tui.core.ground.text import clean_line
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.entry import Entry
from helix_tui.widgets.base.line import Line, Span, SpanLine, width_of
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.text.page import Page

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead

SHOWN = 100
"""How many rows are offered at once; typing finds the others."""

_STEPS = {"down": 1, "ctrl+n": 1, "up": -1, "ctrl+p": -1}


def whom(beads: Sequence[Bead]) -> str:
    """The beads as part of a sentence."""
    return f"“{clean_line(beads[0].title, 100)}”" if len(beads) == 1 else f"{len(beads):,} beads"


class Choice(Struct, frozen=True):
    """One of a few actions."""

    key: str
    """Its key, in Textual's spelling; empty if it can only be reached with the cursor."""
    shown: str
    label: str
    help: str
    do: Callable[[], object]
    off: str = ""
    """Why it cannot be done now; empty if it can."""


class ChoiceSheet(Sheet):
    """A few actions, each with its key."""

    FOOTER = ("go.open=choose", "move.down", "move.up", "go.back")

    def __init__(self, title: str, choices: Sequence[Choice], about: str = "") -> None:
        """``about``: the subject, in full above the actions."""
        super().__init__(clean_line(title, 200))
        self.choices = tuple(choices)
        self._about = about
        self._stands = False
        """Whether the cursor has been placed on an action."""

    def rewrite(self) -> None:
        """Write the page; at first put the cursor on the first possible action."""
        super().rewrite()
        if not self._stands:  # only after the page has its height: it would scroll to the cursor
            self.call_after_refresh(self._stand)

    def _stand(self) -> None:
        if not self._stands:
            self._stands = any(self.list.select(key) for key, choice in self._keyed().items() if not choice.off)

    def write(self, page: Page) -> None:
        """The actions; those that cannot be done say why."""
        if self._about:
            page.paragraph([(self._about, "text")], selectable=False)
            page.blank()
        wide = max((len(choice.label) for choice in self.choices), default=0) + 2
        keys = max(3, *(len(choice.shown) + 1 for choice in self.choices), 0)
        for key, choice in self._keyed().items():
            words: Span = (choice.help, "muted")
            if choice.off:
                words = (choice.off, "waiting")
            lead: Line = [
                (f"{choice.shown:<{keys}}", "muted" if choice.off else "running"),
                (choice.label.ljust(wide), "muted" if choice.off else "text"),
            ]
            page.choice(lead, words, key=key)

    def _keyed(self) -> dict[str, Choice]:
        """Each choice by the key of its row: its label, numbered if the label is not unique."""
        keyed: dict[str, Choice] = {}
        seen: Counter[str] = Counter()
        for choice in self.choices:
            same = seen[choice.label]
            keyed[f"choice{same or ''}:{choice.label}"] = choice
            seen[choice.label] += 1
        return keyed

    def on_key(self, event: events.Key) -> None:
        """Run an action by its key."""
        # choices without a key have an empty one: they are reached with the cursor only
        choice = next((choice for choice in self.choices if event.key and choice.key == event.key), None)
        if choice is not None:
            event.stop()
            self._do(choice)

    @on(RowList.Opened)
    def choose(self, event: RowList.Opened) -> None:
        """The action under the cursor."""
        event.stop()
        found = self._keyed().get(event.key)
        if found is None and event.key.startswith("choice"):
            self.console.say(f"no longer available: {event.key.partition(':')[2]}", "warning")
        elif found is not None:
            self._do(found)

    def _do(self, choice: Choice) -> None:
        if choice.off:
            self.console.say(choice.off, "warning")
            return
        # first, because the action may open another sheet over the screen below
        self.dismiss()
        choice.do()


class Pick(Struct, frozen=True):
    """One row that can be picked."""

    key: str
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()


class _Lead(SpanLine):
    """A word before the line that is typed in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._line: Line = ()
        self.say(text)

    def say(self, text: str) -> None:
        """Another word."""
        self._line = [(f" {text} ", "running bold")]
        self.styles.width = width_of(self._line)
        self.refresh()

    def spans(self, width: int) -> Line:
        return self._line


class PickSheet(Sheet):
    """Typing narrows the rows, enter picks one, tab marks several where that is allowed."""

    FOOTER = ("go.open=choose", "go.back")
    AUTO_FOCUS = "Entry"
    AROUND = 5

    def __init__(
        self,
        title: str,
        offer: Callable[[str], Iterable[Pick]],
        picked: Callable[[tuple[str, ...]], None],
        *,
        lead: str = "/",
        several: bool = False,
        turn: Callable[[], tuple[str, str]] | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            title: what is being asked.
            offer: gives the rows for the typed text.
            picked: called with the keys of the picked rows.
            lead: the label before the line.
            several: tab marks a row, and enter picks all that are marked.
            turn: tab reverses the question; returns the new title and lead.
        """
        super().__init__(clean_line(title, 200))
        self._offer, self._picked = offer, picked
        self._several, self._turn = several, turn
        self.marked: tuple[str, ...] = ()
        self._leaving: tuple[str, ...] = ()
        """The marks at the first press of esc."""
        self.entry = Entry(take=self._take)
        self._lead = _Lead(lead)
        # every key belongs to the line; `_take` passes those that move to the list
        self.list.can_focus = False
        if several:
            self.footer.key_ids = ("go.open=continue", "go.pane=mark", "go.back")
        elif turn is not None:
            self.footer.key_ids = ("go.open=choose", "go.pane=reverse direction", "go.back")

    def compose_body(self) -> ComposeResult:
        """The line above, what it leaves below."""
        with Horizontal(id="typing"):
            yield self._lead
            yield self.entry
        yield self.list

    def focus_first(self) -> None:
        """Focus the line."""
        self.entry.focus(scroll_visible=False)

    def rewrite(self) -> None:
        """Show the rows offered for the typed text."""
        # the offer is read lazily: of 10,000 beads only the visible rows are made
        picks = [pick for _, pick in zip(range(SHOWN), self._offer(self.entry.value), strict=False)]
        rows = [Row(pick.key, (self._box(pick.key), *pick.left), pick.right) for pick in picks]
        if not rows:
            rows = [Row("none", (("  nothing matches", "muted"),), selectable=False)]
        self.fill(Rows(rows))

    def _box(self, key: str) -> Span:
        return ("■ ", "attention") if key in self.marked else ("", "text")

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        """Update the rows on every key."""
        event.stop()
        self.rewrite()
        self.list.action_first()

    @on(RowList.Selected)
    def stay(self, event: RowList.Selected) -> None:
        """Keep the event from other widgets."""
        event.stop()

    @on(RowList.Opened)
    def open_row(self, event: RowList.Opened) -> None:
        """Pick the row that was double-clicked."""
        event.stop()
        self._pick(event.key)

    def _take(self, key: str) -> bool:
        if key == "escape":
            self._leave()
        elif key == "enter":
            self._pick(self.list.selected_key)
        elif key == "tab":
            self._tab()
        elif key in _STEPS:
            (self.list.action_cursor_down if _STEPS[key] > 0 else self.list.action_cursor_up)()
        elif key in ("pagedown", "pageup"):
            (self.list.action_page_down if key == "pagedown" else self.list.action_page_up)()
        else:
            return False
        return True

    def _leave(self) -> None:
        """Leave; with marks, only on the second press."""
        if self.marked != self._leaving:
            self._leaving = self.marked
            self.console.say("Press esc again to discard what you marked", "warning")
        else:
            self.dismiss()

    def _tab(self) -> None:
        if self._turn is not None:
            title, lead = self._turn()
            self.caption.show(clean_line(title, 200))
            self._lead.say(lead)
        elif self._several and (key := self.list.selected_key) is not None:
            left = tuple(other for other in self.marked if other != key)
            self.marked = left if len(left) < len(self.marked) else (*self.marked, key)
        self.rewrite()

    def _pick(self, key: str | None) -> None:
        keys = self.marked or ((key,) if key is not None and key != "none" else ())
        if keys:
            self.dismiss()
            self._picked(keys)


class LineSheet(Sheet):
    """A sheet with one line of text, which may be empty."""

    FOOTER = ("go.open=continue", "go.back")
    AUTO_FOCUS = "Entry"

    def __init__(
        self,
        title: str,
        lead: str,
        written: Callable[[str], None],
        about: str = "",
        *,
        text: str = "",
        problem: Callable[[str], str] = lambda text: "",
    ) -> None:
        """Ask for a line.

        Args:
            about: the text that the line answers, in full above it.
            text: what it begins with.
            problem: what is wrong with a line, which is then asked for again; empty if nothing is.
        """
        super().__init__(clean_line(title, 200))
        self._problem = problem
        self.list.can_focus = False
        self._written = written
        self._about = about
        self._lead = _Lead(lead)
        self._warned = text
        """The text at the first press of esc."""
        self.entry = Entry(text, take=self._take)

    def compose_body(self) -> ComposeResult:
        """The text above, and the line."""
        if self._about:
            yield self.list
        with Horizontal(id="typing"):
            yield self._lead
            yield self.entry

    def write(self, page: Page) -> None:
        """The text that the line answers."""
        page.paragraph([(self._about, "text")])

    def rewrite(self) -> None:
        """Without a text above the line there is no page."""
        if self._about:
            super().rewrite()

    def _take(self, key: str) -> bool:
        if key == "escape":
            self._leave()
        elif key == "enter" and (problem := self._problem(self.entry.value.strip())):
            self.console.say(problem, "warning")
        elif key == "enter":
            self.dismiss()
            self._written(self.entry.value.strip())
        else:
            return False
        return True

    def _leave(self) -> None:
        """Leave; with typed text, only on the second press."""
        typed = self.entry.value
        if typed.strip() and self._warned != typed:
            self._warned = typed
            self.console.say("Press esc again to discard what you typed", "warning")
        else:
            self.dismiss()
