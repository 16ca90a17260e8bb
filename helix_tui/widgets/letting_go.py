"""What Textual 8.2.8 keeps of widgets that are gone, let go.

Its cache of grounds is one for all widgets and has each widget's painted lines as a key, up to 1,024 of them, and
a text field is held by the screen that it was mounted on: a console that opened lists, panes and prompts grew by
half a megabyte with each round through its screens.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.signal import Signal
from textual.style import Style

_MOST_GROUNDS = 1_024
"""Pairs of colours that are kept, as many as in Textual."""


@lru_cache(_MOST_GROUNDS)
def _grounds(behind: Color, own: Color) -> tuple[Style, Style]:
    return Style(background=behind + own), Style(background=behind)


def inner_and_outer(_: StylesCache, behind: Color, own: Color) -> tuple[Style, Style]:
    """Grounds inside and outside a border, whichever widget asks."""
    return _grounds(behind, own)


class UnusedSignal(Signal[Any]):
    """Nobody is kept for it: no text is selected by the mouse here, and what subscribes holds the subscriber."""

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Forget it."""


def install() -> None:
    """Let them go from now on."""
    StylesCache.get_inner_outer = inner_and_outer  # type: ignore[method-assign, assignment]
