"""Help: every key, screen by screen, from the registry; the filter language; the mouse; the signs; and the tour.

The tour takes two minutes: a card at the bottom says what to look at and which key to press while the console stays
live. It is offered at the first start, and runs on the demo, where nothing can break. A step ends as soon as its
key is pressed, or with the key for the next step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct
from textual.binding import BindingType
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.core.beads.query import FIELDS
from helix_tui.core.beads.states import STATES
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.keymap import BY_ID, bindings, keys_of, names, shown, shown_all
from helix_tui.screens import SCREENS
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.sheet import OverlayScreen, Sheet
from helix_tui.themes import RUN_SIGNS
from helix_tui.widgets.base.line import Line, Span, ascii_only, heading, palette_of, to_strip, wrap_spans
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.figures import LOOKS
from helix_tui.widgets.rows.attempt_table import AttemptFilter

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot

_KEY_CELLS = 16
_EXAMPLE_CELLS = 26
_WORD_CELLS = 28

_ALSO = {"queue": ("beads", "panes"), **dict.fromkeys(("loop", "memory", "ask", "insights", "journal"), ("panes",))}
"""Further key scopes that apply on a screen."""

_ELSEWHERE = (
    ("everywhere", ("app", "screen")),
    ("in every list", ("list",)),
    ("needs me", ("needs",)),
    ("in forms and choices", ("form", "sheet", "half-way", "columns")),
    ("in the tour", ("tour",)),
)

_LANGUAGE = (
    ("two words", "both words in id or title; in quotes, the exact phrase"),
    ("-label:docs", "- excludes"),
    ("status:open,blocked", "a comma is “or”; terms are joined by “and”"),
)

_MEMORY = (
    ("█", "sure: up to the lower end of the 95 % interval of the share that helped"),
    ("▓", "up to the share that helped, from 5 outcomes on"),
    ("░", "possible: up to the upper end of the interval"),
    ("n 3", "only 3 outcomes: too few for a percentage"),
    ("unproven", "no outcome yet"),
    ("proven", "5 or more verified outcomes, and the lower end is above 50 %"),
    ("F P S", "failure, pattern, systemic, where there is no room for the word"),
)
WORDS = (
    ("acceptance", "what must be true for a bead to be done; ideally a command and its result"),
    ("attempt", "one execution of one bead"),
    ("bead", "one unit of work in the DDx tracker: an issue"),
    ("blocks, blocked by", "the dependency edge, from either end"),
    ("claim, lease, heartbeat", "a worker's hold on a bead; how long it lasts; the sign of life that renews it"),
    (
        "conflict, gap",
        "documents that supersede each other, or a superseded one in use; a document that is named and missing",
    ),
    ("cooldown", "the time after an attempt in which DDx does not try its bead again"),
    ("critical path", "the longest chain of unfinished beads in which each waits on the one before"),
    ("DDx", "keeps the queue and runs the attempts; this console reads its files and writes through its commands"),
    ("drift", "the bead's governing document or parent changed since the bead was written"),
    ("effectiveness", "verified helped / (helped + failed), with its 95 % interval and n"),
    ("eligible", "workers may pick it"),
    ("epic, parent, part of", "a bead that consists of others"),
    ("evidence", "what an attempt left: prompt, transcript, diff, checks, usage"),
    ("family, era", 'the releases of DDx that share a rule: April 2026, and August 2026 ("head")'),
    ("focus", "workers may pick only what one epic needs"),
    ("HELIX", "the method over DDx: which stage comes next, what is reviewed, what is remembered"),
    ("injection, ledger", "memories put before an agent; the record of who was shown what"),
    ("journal", "every change made with helix-tui, and how to undo it"),
    ("kept aside (preserved)", "finished but not merged: its commit is kept at its own ref until a person decides"),
    ("landed", "merged into the branch: the revision is in its history"),
    ("memory, lesson, systemic", "something remembered; one that waits for acceptance; one that came back three times"),
    ("next action", "what HELIX says should happen next: BUILD, DESIGN, ALIGN, BACKFILL, POLISH, WAIT, GUIDANCE, STOP"),
    ("orphan", "a claim whose process is dead and that is older than two hours"),
    ("outcome", ", ".join(OUTCOME_WORDS.values())),
    (
        "question, sources, which one?, nothing found, answer (a model's)",
        "Ask; the passages that it cites; two readings to choose from; no passage fits; written by a model",
    ),
    ("queue", "all beads of a project"),
    ("ready", "every dependency closed and nothing else holds it"),
    ("refused by review", "a reviewing agent found faults, and the change was not merged"),
    ("run record, sidecar", "the file in which a running attempt or a worker records what it is doing"),
    ("simulation", "what `demo` and `helix-ddx` do in place of real agents"),
    ("slice, saved view", "a part of the queue by filter, order and columns, kept under a name"),
    ("supervisory bead", "a review or alignment that HELIX injected"),
    ("tracker", "the file `.ddx/beads.jsonl` and DDx's commands on it"),
    ("verdict", "the one decision on how an attempt ended, with its proof"),
    ("worker, harness, model", "the process that runs beads; the agent program it starts; the model behind it"),
)
"""What the words on the screen mean; docs/glossary.md is the same table."""

_MOUSE = (
    ("click", "selects a row; a second click opens it"),
    ("wheel", "scrolls the list under the pointer; the cursor stays"),
    ("drag", "moves the scrollbar at the right edge of a list"),
    ("top line", "a click on a count, memory, cost or the next action opens it"),
    ("tabs, last line", "a click on a tab or a key does what the key does"),
    ("shift+drag", "selects text, in most terminals"),
)

MIN_CARD_SIZE = Size(60, 20)
"""The least height for the card."""


def places(here: str) -> list[tuple[str, tuple[str, ...]]]:
    """Headings with the scopes under them: the screen ``here`` first, then everywhere, then other screens."""
    screens = [(f"on {entry.title}", (entry.name, *_ALSO.get(entry.name, ()))) for entry in SCREENS.values()]
    every = [*_ELSEWHERE, *screens]
    first = [place for place in every if place[1][0] == here]
    return [*first, *(place for place in every if place not in first)]


class HelpScreen(OverlayScreen, FilteringScreen):
    """``?``"""

    SCOPE = "help"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("help")]
    TITLE_TEXT = "keys, signs, words, filter language, mouse"
    FOOTER = ("go.back", "find.filter=search", "move.down", "move.up", "app.quit")

    def __init__(self) -> None:
        super().__init__()
        self._searched = ""
        self._rows: list[Row] = []
        self._found: list[Row] = []

    @property
    def filter_text(self) -> str:
        """What is searched for."""
        return self._searched

    def filter_with(self, text: str) -> None:
        """Keep only lines with all of these words, each under its heading."""
        self._searched = text.strip()
        self.show_lines()

    def filter_count(self) -> str:
        """The lines that match."""
        return f"{sum(row.selectable for row in self._found):,}"

    def has_matches(self) -> bool:
        """Whether any line matches."""
        return any(row.selectable for row in self._found)

    def _find(self) -> list[Row]:
        """The rows with all words searched for, each below its heading."""
        wanted = self._searched.lower().split()
        if not wanted:
            return self._rows
        rows: list[Row] = []
        heading: Row | None = None
        title = ""
        # an entry of several lines is found as a whole, or not at all
        for _, lines in groupby(self._rows, lambda row: row.key.rpartition("/")[0] or row.key):
            entry = list(lines)
            if entry[0].key.startswith("group:"):
                heading, title = entry[0], entry[0].key.removeprefix("group:").lower()
                continue
            whole = "".join(text for row in entry for text, _ in row.left).lower()
            if all(word in whole or word in title for word in wanted):
                rows += entry if heading is None else (heading, *entry)
                heading = None
        return rows or [Row("none", (("  nothing matches these words; esc shows all", "muted"),), selectable=False)]

    def show_lines(self) -> None:
        """Show the lines that match."""
        self._found = self._find()
        self.list.show(Rows(self._found), question=self._searched)

    async def action_back(self) -> None:
        """End a search; else go back."""
        if self._searched:
            self.filter_with("")
        else:
            await super().action_back()

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Do nothing: nothing in here depends on the queue."""
        self.on_resize()

    def on_resize(self) -> None:
        """Wrap the text for the new width."""
        width = max(20, self.size.width - 3)
        below = [screen for screen in self.app.screen_stack if isinstance(screen, HelixScreen) and screen is not self]
        # the keys of the screen that opened the help come first
        here = next((name for screen in reversed(below) if (name := screen.NAME or screen.SCOPE)), "")
        keymap = dict(self.console.keymap)
        mine, *others = places(here)
        # what is drawn on the screen that one comes from needs explaining
        legends = [_bead_signs(width), _attempt_signs(width), [*_memory(width)]]
        legends.insert(0, legends.pop({"loop": 1, "memory": 2, "insights": 2}.get(here, 0)))
        legend, *rest = legends
        self._rows = [
            *_keys(width, [mine], keymap),
            *legend,
            *_section("words", WORDS, _WORD_CELLS, width),
            *_keys(width, others, keymap),
            *_language(width),
            *_mouse(width),
            *chain.from_iterable(rest),
        ]
        self.show_lines()


def _keys(width: int, where: Iterable[tuple[str, tuple[str, ...]]], keymap: dict[str, str]) -> Iterator[Row]:
    for title, scopes in where:
        pairs = [(shown_all(key, keymap), key.help) for key in keys_of(scopes)]
        yield from _section(title, pairs, _KEY_CELLS, width)


def _language(width: int) -> Iterator[Row]:
    pairs = [*_LANGUAGE, *((field.example, field.help) for field in FIELDS.values())]
    yield from _section("filter language of the queue", pairs, _EXAMPLE_CELLS, width)
    words = [(f"{name}:…", f"part of an attempt's {name}") for name in AttemptFilter.FIELDS]
    yield from _section("filter of the loop", words, _EXAMPLE_CELLS, width)


def _mouse(width: int) -> Iterator[Row]:
    yield from _section("mouse", _MOUSE, _KEY_CELLS, width)


def _memory(width: int) -> Iterator[Row]:
    yield from _section("what memories are worth", _MEMORY, _KEY_CELLS, width)


def _section(title: str, pairs: Iterable[tuple[str, str]], cells: int, width: int) -> Iterator[Row]:
    """A heading, and lines with a key or text and its meaning."""
    yield from _heading(title, width)
    for number, (lead, said) in enumerate(pairs):
        spans: list[Span] = [(lead.ljust(cells - 1) + " ", "running"), (said, "text")]
        for place, line in enumerate(wrap_spans(spans, width, cells)):
            yield Row(f"{title}/{number}/{place}", line, selectable=not place)


def _bead_signs(width: int) -> list[Row]:
    # two states may look alike and have one word
    signs = (*(row.sign for row in STATES.values()), *RUN_SIGNS.values())
    rows = dict.fromkeys((sign.glyph, sign.ink, sign.word) for sign in signs)
    more = (("▸", "success bold", "what DDx will pick next"), ("↳", "edge", "waits on that bead, too"))
    return _signs("signs", [*rows, *more], width)


def _attempt_signs(width: int) -> list[Row]:
    more = (("≥", "text", "some costs are not known: at least so much"), ("·", "muted", "not recorded"))
    return _signs("signs of attempts", [*((look.glyph, look.ink, look.word) for look in LOOKS.values()), *more], width)


def _signs(title: str, signs: Iterable[tuple[str, str, str]], width: int) -> list[Row]:
    """A heading, and each sign with its word."""
    rows = _heading(title, width)
    return rows + [
        Row(f"{title}:{word}", ((glyph.ljust(_KEY_CELLS), ink), (word, "text"))) for glyph, ink, word in signs
    ]


def _heading(title: str, width: int) -> list[Row]:
    named = Row(f"group:{title}", tuple(heading(title, width)), selectable=False)
    return [Row(f"above:{title}", (), selectable=False), named]


class Step(Struct, frozen=True):
    """One step. ``{id}`` in the text stands for the key with that id."""

    title: str
    text: str
    keys: tuple[str, ...] = ()
    """Ids of the keys that complete it."""


OFFER = Step(
    "new here?",
    "A two-minute tour shows this console on a throw-away project, where you can break nothing: {tour.next} starts"
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
        "{go.view} switches between graph, tree, lanes and pick order; {list.sort} sorts, {list.views} has saved views,"
        " {list.columns} chooses columns, {pane.zoom} zooms. Press {go.view}.",
        ("go.view", "go.view-back"),
    ),
    Step(
        "finding",
        "{find.filter} filters as you type: ready:yes, p<=1, label:area:*, order:unblocks. Press {find.filter}, type"
        " ready:yes and enter; then {go.back}, which shows all again.",
        ("go.back",),
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
        """Show another step."""
        self._said = title, right, text
        self.styles.height = len(self._lines(self.app.size.width))
        self.refresh()

    def _lines(self, width: int) -> list[Line]:
        title, right, text = self._said
        return [
            [(" ", "text"), *heading(title, width - 2, right)],
            *wrap_spans([(" ", "text"), (text, "running")], width - 1, 1),
        ]

    def on_resize(self) -> None:
        """Wrap the text for the new width."""
        self.styles.height = len(self._lines(self.app.size.width))

    def render_line(self, y: int) -> Strip:
        """One of them."""
        width = self.size.width
        lines = self._lines(width)
        return to_strip(lines[y] if y < len(lines) else (), width, palette_of(self), plain=ascii_only(self))


class TourHost(Protocol):
    """What the tour needs from the app."""

    keymap: dict[str, str]

    @property
    def screen_stack(self) -> Any: ...

    @property
    def size(self) -> Size: ...

    def end_tour(self) -> None: ...


class Tour:
    """The present step; -1 while the tour is only offered."""

    def __init__(self, host: TourHost, *, offer: bool) -> None:
        self._host = host
        self.place = -1 if offer else 0

    @property
    def offered(self) -> bool:
        """It has not been started yet."""
        return self.place < 0

    def show_on(self, screen: object) -> None:
        """Show or update the card on a screen; sheets and narrow screens have none."""
        if not isinstance(screen, HelixScreen) or isinstance(screen, Sheet) or not screen.footer.is_attached:
            return
        card = next(iter(screen.query_children(TourCard)), None)
        if self._host.size.width < MIN_CARD_SIZE.width or self._host.size.height < MIN_CARD_SIZE.height:
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
        """Complete the step if the pressed key is the right one."""
        if not self.offered and any(
            name in names(self._host.keymap.get(key_id, BY_ID[key_id].keys)) for key_id in STEPS[self.place].keys
        ):
            self.go_on()

    def go_on(self) -> None:
        """Go to the next step; after the last one the tour ends."""
        if self.place + 1 >= len(STEPS):
            self._host.end_tour()
            return
        self.place += 1
        for screen in self._host.screen_stack:
            self.show_on(screen)

    def leave(self, screens: Any) -> None:
        """Remove the card from every screen."""
        for screen in screens:
            for card in screen.query(TourCard):
                card.remove()


def with_keys(text: str, keymap: Mapping[str, str]) -> str:
    """A text with its key ids replaced by keys."""
    return re.sub(r"\{([a-z.-]+)\}", lambda found: shown(BY_ID[found[1]], keymap), text)
