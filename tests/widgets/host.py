"""The least app that a widget of ours can stand in."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widget import Widget

from helix_tui.themes import THEMES


class Host(App[None]):
    """Shows one widget, in the default theme."""

    ascii_only = False

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self._widget = widget

    def compose(self) -> ComposeResult:
        yield self._widget

    def rows(self) -> list[str]:
        """The lines on screen."""
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]
