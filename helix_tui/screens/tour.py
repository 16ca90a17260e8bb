"""A tour of two minutes: a card at the bottom says what to look at and which key to press; the console stays live.

It is offered at the first start, and runs on the demo, where nothing can be broken. A step is over as soon as
its key was pressed, or with the key for the next step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.keymap import BY_ID, names, shown
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Line, ascii_only, palette_of, rule, to_strip, wrap_spans

LEAST = Size(60, 20)
"""Below this there is no room for the card."""


class Step(Struct, frozen=True):
    """One thing to look at. ``{id}`` in the text is the key of that id."""

    title: str
    text: str
    keys: tuple[str, ...] = ()
    """Ids of the keys that end it."""


OFFER = Step(
    "new here?",
    "A tour of two minutes shows this console on a throw-away project, where nothing can be broken: {tour.next} starts"
    " it, {tour.end} closes this line. Start it at any time with {go.to} and the word “tour”.",
)

STEPS = (
    Step(
        "the queue",
        "Each row is a bead: one unit of work. ○ is ready, ◌ waits on another bead, ◉ runs now, ◆ waits for you, ▸ is"
        " picked next. Press {move.down} and {move.up} to move.",
        ("move.down", "move.up"),
    ),
    Step(
        "why, and what follows",
        "The bead under the cursor says why it is next or not, what it waits on and what closing it unblocks."
        " {move.dependent} goes to a bead that it blocks, {move.needed} to one that blocks it.",
        ("move.dependent", "move.needed"),
    ),
    Step(
        "other ways to look",
        "{go.view} turns from the graph to the tree, the lanes and the pick order; {list.sort} sorts, {list.views} has"
        " saved views, {list.columns} chooses columns, {pane.zoom} zooms. Press {go.view}.",
        ("go.view", "go.view-back"),
    ),
    Step(
        "finding",
        "{find.filter} filters as you type: ready:yes, p<=1, label:area:*, order:unblocks. Press {find.filter}, type"
        " ready:yes and enter; {go.back} shows all again.",
        ("find.filter",),
    ),
    Step(
        "what runs",
        "Press {go.loop}: the attempts, the running one on top with its last actions. An attempt landed, was kept"
        " aside, refused by review, changed nothing or failed; its evidence is beside it.",
        ("go.loop",),
    ),
    Step(
        "what needs you",
        "Press {go.needs-me}: everything that waits for a person, each with the keys that deal with it.",
        ("go.needs-me",),
    ),
    Step(
        "changes",
        "Go back with {go.queue} and press {change.what-if} on a bead: what closing it would do, without doing it."
        " Every change shows its commands before it runs, is in the journal, and {change.undo} undoes it.",
        ("change.what-if",),
    ),
    Step(
        "memory and money",
        "{go.memory} has what was learned and whether it helped, {go.insights} what landing costs by model, and when "
        "the queue is done. Press {go.insights}.",
        ("go.insights", "go.memory"),
    ),
    Step(
        "help",
        "{app.help} has every key, sign and word; {go.palette} every command with its key; {go.to} goes to a bead, a"
        " screen or a command. That is all: {tour.end} ends the tour, {app.quit} leaves.",
        ("app.help", "go.palette"),
    ),
)


class TourCard(Widget):
    """A rule and a few lines above the footer."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "TourCard { height: auto; width: 1fr; background: $helix-ground; }"

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[str, str, str] = ("", "", "")

    def show(self, title: str, right: str, text: str) -> None:
        """Say another step."""
        self._said = title, right, text
        self.styles.height = len(self._lines(self.app.size.width))
        self.refresh()

    def _lines(self, width: int) -> list[Line]:
        title, right, text = self._said
        return [rule(title, width, right), *wrap_spans([(" ", "text"), (text, "running")], width - 1, 1)]

    def on_resize(self) -> None:
        """Other widths break lines elsewhere."""
        self.styles.height = len(self._lines(self.app.size.width))

    def render_line(self, y: int) -> Strip:
        """One of them."""
        width = self.size.width
        lines = self._lines(width)
        return to_strip(lines[y] if y < len(lines) else (), width, palette_of(self), plain=ascii_only(self))


class TourHost(Protocol):
    """What the tour asks of the app."""

    keymap: dict[str, str]

    @property
    def screen_stack(self) -> Any: ...

    @property
    def size(self) -> Size: ...

    def end_tour(self) -> None: ...


class Tour:
    """Where somebody is in the tour; -1 while it is only offered."""

    def __init__(self, host: TourHost, *, offer: bool) -> None:
        self._host = host
        self.place = -1 if offer else 0

    @property
    def offered(self) -> bool:
        """Nobody has started it yet."""
        return self.place < 0

    def show_on(self, screen: object) -> None:
        """Put the card on a screen, or bring it up to date; a sheet and a narrow screen have none."""
        if not isinstance(screen, HelixScreen) or isinstance(screen, Sheet) or not screen.footer.is_attached:
            return
        card = next(iter(screen.query_children(TourCard)), None)
        if self._host.size.width < LEAST.width or self._host.size.height < LEAST.height:
            if card is not None:
                card.remove()
            return
        if card is None:
            card = TourCard()
            screen.mount(card, before=screen.footer)
        card.show(*self.said())

    def said(self) -> tuple[str, str, str]:
        """Title, keys and text of the present step."""
        step, keymap = (OFFER if self.offered else STEPS[self.place]), self._host.keymap
        on, off = (shown(BY_ID[key_id], keymap) for key_id in ("tour.next", "tour.end"))
        where = "" if self.offered else f"tour {self.place + 1} of {len(STEPS)} · "
        right = f"{on} start  {off} close" if self.offered else f"{on} next  {off} end"
        return f"{where}{step.title}", right, with_keys(step.text, keymap)

    def pressed(self, name: str) -> None:
        """A key did something: is it what the step asked for?"""
        if not self.offered and any(
            name in names(self._host.keymap.get(key_id, BY_ID[key_id].keys)) for key_id in STEPS[self.place].keys
        ):
            self.go_on()

    def go_on(self) -> None:
        """The next step; after the last one the tour is over."""
        if self.place + 1 >= len(STEPS):
            self._host.end_tour()
            return
        self.place += 1
        for screen in self._host.screen_stack:
            self.show_on(screen)

    def leave(self, screens: Any) -> None:
        """Take the card from every screen."""
        for screen in screens:
            for card in screen.query(TourCard):
                card.remove()


def with_keys(text: str, keymap: Mapping[str, str]) -> str:
    """A text with the keys that it names by id."""
    return re.sub(r"\{([a-z.-]+)\}", lambda found: shown(BY_ID[found[1]], keymap), text)
