"""Every key, screen by screen, from the registry; the filter language; the mouse; the signs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from helix_tui.core.beads.query import fields
from helix_tui.keymap import keys_of, shown_all
from helix_tui.screens import SCREENS
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.themes.roles import SIGNS
from helix_tui.widgets.base.line import Span, rule, wrap_spans
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.rows.attempt_filter import AttemptFilter

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Change, Snapshot

_KEY_CELLS = 16
_EXAMPLE_CELLS = 26

_ALSO = {"queue": ("beads",)}
"""Scopes that hold on a screen beside its own."""

_ELSEWHERE = (
    ("everywhere", ("app", "screen")),
    ("in every list", ("list",)),
    ("needs me", ("needs",)),
    ("in forms and choices", ("form", "sheet", "half-way")),
)

_LANGUAGE = (
    ("two words", "both words in id or title; “two words” in quotes: as they are"),
    ("-label:docs", "- excludes"),
    ("status:open,blocked", "a comma is “or”; terms are joined by “and”"),
)

_MEMORY = (
    ("█", "sure: up to the lower end of the 95 % interval of what helped"),
    ("▓", "up to the share that helped, from 5 outcomes on"),
    ("░", "may be: up to the upper end of the interval"),
    ("n 3", "only 3 outcomes: too few for a percentage"),
    ("unproven", "no outcome has come back yet"),
    ("proven", "5 or more verified outcomes, and the lower end is above 50 %"),
    ("F P S", "failure, pattern, systemic, where there is no room for the word"),
)
_MOUSE = (
    ("click", "selects a row; a second click opens it"),
    ("wheel", "moves the list under it, not the cursor"),
    ("drag", "the scrollbar at the right edge of a list"),
    ("top line", "a click on a count, on memory, cost or the next action leads there"),
    ("tabs, last line", "a click on a tab or a key does what the key does"),
    ("shift+drag", "marks text, in most terminals"),
)


def places(here: str) -> list[tuple[str, tuple[str, ...]]]:
    """Headings with the scopes under them: the screen ``here`` first, then everywhere, then other screens."""
    screens = [(f"on {entry.title}", (entry.name, *_ALSO.get(entry.name, ()))) for entry in SCREENS.values()]
    every = [*_ELSEWHERE, *screens]
    first = [place for place in every if place[1][0] == here]
    return [*first, *(place for place in every if place not in first)]


class HelpScreen(OverlayScreen):
    """``?``"""

    TITLE_TEXT = "keys, filter language, mouse, signs"
    FOOTER = ("go.back", "move.down", "move.up", "app.quit")

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Nothing in here depends on the queue."""
        self.on_resize()

    def on_resize(self) -> None:
        """Other widths break sentences elsewhere."""
        width = max(20, self.size.width - 3)
        below = [screen for screen in self.app.screen_stack if isinstance(screen, HelixScreen)]
        here = next((name for screen in reversed(below) if (name := screen.NAME or screen.SCOPE)), "")
        keymap = dict(self.console.keymap)
        self.list.show(
            Rows(
                [
                    *_keys(width, here, keymap),
                    *_language(width),
                    *_mouse(width),
                    *_memory(width),
                    *_signs(width),
                ]
            )
        )


def _keys(width: int, here: str, keymap: dict[str, str]) -> Iterator[Row]:
    for title, scopes in places(here):
        pairs = [(shown_all(key, keymap), key.help) for key in keys_of(scopes)]
        yield from _section(title, pairs, _KEY_CELLS, width)


def _language(width: int) -> Iterator[Row]:
    pairs = [*_LANGUAGE, *((field.example, field.help) for field in fields())]
    yield from _section("filter language of the queue", pairs, _EXAMPLE_CELLS, width)
    words = [(f"{name}:…", f"part of an attempt's {name}") for name in AttemptFilter.FIELDS]
    yield from _section("filter of the loop", words, _EXAMPLE_CELLS, width)


def _mouse(width: int) -> Iterator[Row]:
    yield from _section("mouse", _MOUSE, _KEY_CELLS, width)


def _memory(width: int) -> Iterator[Row]:
    yield from _section("what memories are worth", _MEMORY, _KEY_CELLS, width)


def _section(title: str, pairs: Iterable[tuple[str, str]], cells: int, width: int) -> Iterator[Row]:
    """A heading, and lines of what to type or press with what it does."""
    yield Row(f"group:{title}", tuple(rule(title, width)), selectable=False)
    for number, (lead, said) in enumerate(pairs):
        spans: list[Span] = [(lead.ljust(cells - 1) + " ", "running"), (said, "text")]
        for place, line in enumerate(wrap_spans(spans, width, cells)):
            yield Row(f"{title}/{number}/{place}", line, selectable=not place)


def _signs(width: int) -> list[Row]:
    rows = [Row("group:signs", tuple(rule("signs", width)), selectable=False)]
    for state, sign in SIGNS.items():
        rows.append(Row(f"sign:{state}", ((sign.glyph.ljust(_KEY_CELLS), sign.ink), (sign.word, "text"))))
    rows.append(Row("sign:next", (("▸".ljust(_KEY_CELLS), "success bold"), ("what DDx will pick next", "text"))))
    return rows
