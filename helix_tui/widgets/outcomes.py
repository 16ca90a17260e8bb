"""How an attempt's outcome looks, wherever one is shown: one glyph, one ink and one word for each.

Widgets also get here what they draw with: the palette of the theme in force, and whether ``--ascii`` is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace
from textual.app import App
from textual.widget import Widget

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ground.text import clean_line
from helix_tui.themes import NIGHT, PREFIX, Palette, make_theme


class Look(Struct, frozen=True):
    """How an outcome looks: glyph, ink and word."""

    glyph: str
    ink: str
    word: str


_SIGNS: Mapping[Outcome, tuple[str, str]] = {
    "landed": ("✓", "success"),
    "kept_aside": ("◆", "attention"),
    "refused": ("◆", "attention bold"),
    "no_change": ("○", "muted"),
    # looks.md: `✓` is for what landed, `○` for an attempt that had nothing to do
    "satisfied": ("○", "muted"),
    "failed": ("✗", "error"),
    "interrupted": ("✗", "muted"),
    "unknown": ("?", "attention bold"),
    "unfinished": ("…", "waiting"),
}

LOOKS: Mapping[Outcome, Look] = {outcome: Look(*sign, OUTCOME_WORDS[outcome]) for outcome, sign in _SIGNS.items()}
"""One look an outcome; the order is that of summaries."""


def look_of(attempt: Attempt) -> Look:
    """The look of an attempt's outcome. A status that nobody knows is shown as it is."""
    look = LOOKS[attempt.verdict.outcome]
    word = attempt.word
    if word == "unknown":
        word = clean_line(attempt.status, 40)
    return look if word == look.word else replace(look, word=word)


_palettes: dict[tuple[str, bool], Palette] = {}
"""By theme, with colours or without: as many as there are themes."""


def palette_of(widget: Widget) -> Palette:
    """The palette of the theme in force; the default one's under a theme without our roles."""
    app = widget.app
    wanted = app.theme, app.no_color
    found = _palettes.get(wanted)
    if found is None:
        found = _palettes[wanted] = Palette(_colours(app), no_colour=app.no_color)
    return found


def _colours(app: App[object]) -> Mapping[str, str]:
    own = app.current_theme.variables
    # the settings may name one of Textual's own themes, which know no roles of ours
    return own if PREFIX + "ground" in own else make_theme("", NIGHT, dark=True).variables


def ascii_only(widget: Widget) -> bool:
    """Whether the user asked for the ASCII column of the alphabet."""
    return bool(getattr(widget.app, "ascii_only", False))
