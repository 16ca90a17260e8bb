"""Colours, glyphs and stylesheets, nothing else.

Only themes name colours. Contrast of every role is at least 4.5:1 on the ground and on the selection
(tests/themes), so a row is as readable with the cursor on it.

A state has a glyph of one cell and an ASCII glyph in its place; colour is never the only carrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import asdict
from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from helix_tui.core.beads.states import STATES, Sign

PREFIX = "helix-"
"""The prefix of helix-tui's theme variables; stylesheets say ``$helix-muted``."""

INKS = ("text", "muted", "success", "running", "waiting", "attention", "error", "edge")
"""Roles that text is drawn in."""

_ANSI_VARIABLES = {
    "ansi-background": "ansi_black",
    "ansi-foreground": "ansi_white",
    "input-cursor-background": "ansi_white",
    "input-cursor-foreground": "ansi_black",
    # Textual swaps these two on fields that name them directly: the block would be invisible
    "input-cursor-text-style": "none",
    "input-selection-foreground": "ansi_black",
    "screen-selection-background": "ansi_white",
    "screen-selection-foreground": "ansi_black",
}
"""What Textual's own stylesheets need from a theme that leaves colours to the terminal."""

RUN_SIGNS = {
    "alive": STATES["running"].sign,
    "silent": Sign("!", "!", "error bold", "silent"),
    "dead": Sign("!", "!", "error bold", "dead"),
}
"""By what is known of a run's worker."""

_ASCII = {
    "▸": ">", "◂": "<", "⏎": "/", "▾": "v", "▹": ">", "•": "*", "↻": "@",
    "⠼": "-", "⠴": "\\", "⠦": "|", "⠧": "/", "⠇": "-", "⠏": "\\",
    "▌": "|", "▐": "|", "◆": "*", "◉": "@", "○": "o", "◌": ".", "✓": "x", "✗": "X",
    "◷": "~", "⊝": "-", "⊘": "#", "▣": "+", "…": "~", "─": "-", "│": "|", "├": "+", "└": "`", "╰": "`",
    "╯": "'", "╭": ",", "╮": ".", "┬": "+", "┴": "+", "┼": "+", "┤": "+", "┌": ",", "┐": ".", "┘": "'",
    "↳": ">", "⎇": ":", "·": "-", "↑": "^", "↓": "v", "→": ">", "←": "<", "⋮": ":", "═": "=", "║": "|",
    "╌": "-", "┄": "-", "┆": ":", "╎": ":", "“": '"', "”": '"', "–": "-", "—": "-", "≥": ">", "−": "-",
    "■": "*", "█": "#", "▓": "=", "░": ":", "▏": "|", "●": "*", "⠋": "|", "⠙": "/", "⠹": "-", "⠸": "\\",
}  # fmt: skip

_TO_ASCII = str.maketrans(_ASCII)
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_SPINNER = "|/-\\"

PLAIN_THEME = "helix-16"
"""For terminals with 16 colours or none."""


class Roles(Struct, frozen=True):
    """One theme's colours: ``#rrggbb``, or an ``ansi_…`` name in a theme for 16 colours."""

    ground: str
    """The background of everything."""
    text: str
    muted: str
    """Second-rank text and captions: legible, calm."""
    success: str
    running: str
    """What runs now; also the accent: the selection's bar, what has the focus."""
    waiting: str
    """Waiting for time or for something slow: a cooldown, an old snapshot."""
    attention: str
    """Needs a person. The only loud colour."""
    error: str
    edge: str
    """Lines of the graph."""
    rule: str
    """The thin rules between panes: decoration, may be faint."""
    selection: str
    """The background of the selected row."""
    tint: str
    """The background of a row that has just changed."""
    match: str
    """The background of the matching part of a row."""
    added: str
    """The background of an added line of a diff."""
    removed: str
    added_word: str
    """The background of its words that differ from the line that it replaces."""
    removed_word: str
    selected_text: str = ""
    """Used instead of every role on the selection, where 16 colours cannot distinguish them."""


class Palette:
    """Rich styles by ink: a role, then any of ``bold dim italic strike underline reverse``.

    ``on:added``, ``on:removed`` and these with ``_word`` put it on a ground of a diff.
    """

    def __init__(self, colours: Mapping[str, str], *, no_colour: bool = False) -> None:
        """Read the roles of a theme; without colour the selection is drawn in reverse."""
        self._colours = colours
        self._no_colour = no_colour
        self._styles: dict[tuple[str, str], Style] = {}

    def style(self, ink: str, ground: str = "") -> Style:
        """The style of an ink on a ground: ``""``, ``selection``, ``tint`` or ``match``."""
        found = self._styles.get((ink, ground))
        if found is None:
            found = self._styles[ink, ground] = self._make(ink, ground)
        return found

    def _make(self, ink: str, ground: str) -> Style:
        role, *attributes = ink.split()
        behind = next((word[3:] for word in attributes if word.startswith("on:")), "")
        if behind:
            attributes = [word for word in attributes if not word.startswith("on:")]
            # without a background, an added line is marked by its ink, a changed word by underlining
            if self._no_colour or self._colours[PREFIX + behind] == "ansi_default":  # no background can show it
                role = "success" if behind.startswith("added") else "error"
                attributes += ["underline"] if behind.endswith("_word") else []
            else:
                ground = ground or behind
        colour = self._colours[PREFIX + role]
        if ground == "selection":
            # empty in all themes except the one with 16 colours
            colour = self._colours[PREFIX + "selected_text"] or colour
        # without a background colour, only reverse can show the cursor
        if ground == "selection" and self._no_colour:
            attributes.append("reverse")
        return Style(
            color=_rich_colour(colour),
            bgcolor=_rich_colour(self._colours[PREFIX + (ground or "ground")]),
            **dict.fromkeys(attributes, True),  # type: ignore[arg-type]
        )


@lru_cache(maxsize=256)
def _rich_colour(name: str) -> Color:
    return Color.parse(name.removeprefix("ansi_"))


def make_theme(name: str, roles: Roles, *, dark: bool, ansi: bool = False) -> Theme:
    """A Textual theme in which Textual's own widgets (input, palette, toast) use the same roles."""
    variables = {PREFIX + name: value for name, value in asdict(roles).items()}
    variables |= {
        "footer-background": roles.ground,
        "input-selection-background": roles.selection,
        "block-cursor-background": roles.selection,
        "block-cursor-foreground": roles.selected_text or roles.text,
        "block-cursor-text-style": "bold",
        "border": roles.rule,
        "border-blurred": roles.rule,
    }
    if ansi:
        variables |= _ANSI_VARIABLES
    return Theme(
        name=name,
        primary=roles.running,
        secondary=roles.edge,
        accent=roles.running,
        warning=roles.waiting,
        error=roles.error,
        success=roles.success,
        foreground=roles.text,
        background=roles.ground,
        surface=roles.ground,
        panel=roles.tint if not ansi else roles.ground,
        boost=roles.tint if not ansi else roles.ground,
        dark=dark,
        ansi=ansi,
        variables={key: value for key, value in variables.items() if value or key.startswith(PREFIX)},
    )


def to_ascii(text: str) -> str:
    """The same line in the second column of the alphabet; letters of other scripts stay as they are."""
    return text if text.isascii() else text.translate(_TO_ASCII)


NIGHT = Roles(
    ground="#11151c",
    text="#d9dee7",
    muted="#9aa4b5",
    success="#82cf8a",
    running="#62c4ff",
    waiting="#cdb974",
    attention="#ffb03b",
    error="#ff8d93",
    edge="#8f9dba",
    rule="#2c3443",
    selection="#1e2a3e",
    tint="#1c2a26",
    match="#352d10",
    added="#14251f",
    removed="#281c24",
    added_word="#1d4a2c",
    removed_word="#562630",
)

PAPER = Roles(
    ground="#faf9f5",
    text="#22262d",
    muted="#535c69",
    success="#15692f",
    running="#0a58a6",
    waiting="#6f5600",
    attention="#963800",
    error="#ae1c28",
    edge="#4d5a73",
    rule="#d3d3ca",
    selection="#e8e8e4",
    tint="#e4f0df",
    match="#fff0bf",
    added="#e6ece4",
    removed="#f4e7e5",
    added_word="#bfe3bd",
    removed_word="#f3c6c4",
)

STARK = Roles(
    ground="#000000",
    text="#ffffff",
    muted="#c8ccd4",
    success="#7dff8a",
    running="#6fd3ff",
    waiting="#ffe38a",
    attention="#ffc14d",
    error="#ff9aa0",
    edge="#c0cbe0",
    rule="#5a6270",
    selection="#0c2a50",
    tint="#0d331a",
    match="#463900",
    added="#102011",
    removed="#281819",
    added_word="#0f5226",
    removed_word="#641a22",
)

SIXTEEN = Roles(
    ground="ansi_default",
    text="ansi_default",
    muted="ansi_bright_black",
    success="ansi_green",
    running="ansi_cyan",
    waiting="ansi_yellow",
    attention="ansi_bright_yellow",
    error="ansi_bright_red",
    edge="ansi_bright_black",
    rule="ansi_bright_black",
    selection="ansi_white",
    tint="ansi_default",
    match="ansi_default",
    added="ansi_default",
    removed="ansi_default",
    added_word="ansi_default",
    removed_word="ansi_default",
    selected_text="ansi_black",
)

THEMES = (
    make_theme("helix-night", NIGHT, dark=True),
    make_theme("helix-paper", PAPER, dark=False),
    make_theme("helix-stark", STARK, dark=True),
    make_theme("helix-16", SIXTEEN, dark=True, ansi=True),
)
"""Every theme the console ships, the default one first. ``helix-16`` leaves all colours to the terminal."""

DEFAULT_THEME = THEMES[0].name


__all__ = ["DEFAULT_THEME", "INKS", "PLAIN_THEME", "PREFIX", "THEMES", "Palette", "Roles", "make_theme"]
