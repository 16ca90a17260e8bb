"""How a widget comes by colours and glyphs: from the theme in force and the app's ``--ascii``."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import App
from textual.widget import Widget

from helix_tui.themes import NIGHT, PREFIX, Palette, make_theme

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
    return own if PREFIX + "ground" in own else make_theme("", NIGHT, dark=True).variables


def ascii_only(widget: Widget) -> bool:
    """Whether the user asked for the ASCII column of the alphabet."""
    return bool(getattr(widget.app, "ascii_only", False))
