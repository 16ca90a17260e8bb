"""What colours mean. Code names roles, every theme fills all of them; nothing else names a colour.

Contrast of every role is at least 4.5:1 on the ground and on the selection (tests/themes), so a row reads the
same wherever the cursor stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

PREFIX = "helix-"
"""Theme variables of ours begin with this; stylesheets say ``$helix-muted``."""


@dataclass(frozen=True, slots=True)
class Roles:
    """One theme's colours: ``#rrggbb``, or an ``ansi_…`` name in a theme for 16 colours."""

    ground: str
    """Behind everything."""
    text: str
    muted: str
    """Second-rank text and captions: legible, calm."""
    success: str
    running: str
    """What runs now; also the accent: the selection's bar, what has the focus."""
    waiting: str
    """Waits on the clock or on something slow: a cooldown, an old snapshot."""
    attention: str
    """Needs a person. The one loud thing."""
    error: str
    edge: str
    """Lines of the graph."""
    rule: str
    """The thin rules between panes: decoration, may be faint."""
    selection: str
    """Behind the selected row."""
    tint: str
    """Behind a row that has just changed."""
    match: str
    """Behind the part of a row that matches."""
    selected_text: str = ""
    """Drawn instead of every role on the selection, where 16 colours cannot keep them apart there."""


INKS = ("text", "muted", "success", "running", "waiting", "attention", "error", "edge")
"""Roles that text is drawn in."""


class Palette:
    """Rich styles by ink: a role, then any of ``bold dim italic strike underline reverse``."""

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
        colour = self._colours[PREFIX + role]
        if ground == "selection":
            colour = self._colours[PREFIX + "selected_text"] or colour
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


_ANSI_VARIABLES = {
    "ansi-background": "ansi_black",
    "ansi-foreground": "ansi_white",
    "input-cursor-background": "ansi_white",
    "input-cursor-foreground": "ansi_black",
    # Textual turns these two round on fields that name them outright: a block that nobody sees
    "input-cursor-text-style": "none",
    "input-selection-foreground": "ansi_black",
    "screen-selection-background": "ansi_white",
    "screen-selection-foreground": "ansi_black",
}
"""What Textual's own stylesheets ask of a theme that leaves colours to the terminal."""


def make_theme(name: str, roles: Roles, *, dark: bool, ansi: bool = False) -> Theme:
    """A Textual theme whose own widgets (input, palette, toast) wear the same roles."""
    variables = {PREFIX + field.name: getattr(roles, field.name) for field in fields(roles)}
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
