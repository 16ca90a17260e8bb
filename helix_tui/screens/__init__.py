"""One file per screen: it arranges widgets and turns keys into calls to core; it holds no domain rules.

A new screen is one file and one line here; its module is imported on the first visit, or earlier in a
second in which nobody presses a key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct
from textual.screen import Screen

HOME = "home"
"""The mode of a console that opens on Needs me: here it is a base screen, elsewhere it covers another."""

SHEETS: Mapping[str, str] = {
    "needs": "needs_me",
    "next": "next_action",
    "controls": "loop",
    "unread": "unread",
    "help": "help",
}
"""The sheets that an app key opens over a screen, by name, with the action."""

AHEAD = (
    *(
        "helix_tui.screens.queue.queue_screen",
        "helix_tui.screens.needs.needs_screen",
        "helix_tui.screens.loop.loop_screen",
    ),
    *("helix_tui.screens.insights", "helix_tui.screens.journal", "helix_tui.screens.help"),
    *("helix_tui.screens.loop.sheets", "helix_tui.screens.editing.choices"),
)
"""What is imported ahead of its first use: 5 MB together."""

NUMERIC = ("helix_tui.screens.memory.memory_screen", "helix_tui.screens.ask.ask_screen")
"""Modules that load numpy, 20 MB: imported ahead only after a screen change, or if it is loaded anyway."""


class ScreenEntry(Struct, frozen=True):
    """A screen that a number key leads to."""

    key: str
    name: str
    title: str
    module: str
    class_name: str

    def make(self) -> Screen[Any]:
        """Import the screen and make it."""
        screen: Screen[Any] = getattr(import_module(self.module), self.class_name)()
        return screen


SCREENS: Mapping[str, ScreenEntry] = {
    entry.name: entry
    for entry in (
        ScreenEntry("1", "queue", "Queue", "helix_tui.screens.queue.queue_screen", "QueueScreen"),
        ScreenEntry("2", "loop", "Loop", "helix_tui.screens.loop.loop_screen", "LoopScreen"),
        ScreenEntry("3", "memory", "Memory", "helix_tui.screens.memory.memory_screen", "MemoryScreen"),
        ScreenEntry("4", "ask", "Ask", "helix_tui.screens.ask.ask_screen", "AskScreen"),
        ScreenEntry("5", "insights", "Insights", "helix_tui.screens.insights", "InsightsScreen"),
        ScreenEntry("6", "journal", "Journal", "helix_tui.screens.journal", "JournalScreen"),
    )
}


MODES: Mapping[str, Callable[[], Screen[Any]]] = {
    **{name: entry.make for name, entry in SCREENS.items()},
    HOME: ScreenEntry("", HOME, "Needs me", "helix_tui.screens.needs.needs_screen", "NeedsScreen").make,
}
"""The base screens of a console, as Textual's modes."""


TABS = tuple((entry.key, entry.name, entry.title) for entry in SCREENS.values())


def to_import_ahead(*, travelled: bool) -> tuple[str, ...]:
    """The screens still to be imported ahead, in order."""
    wanted = (*AHEAD, *NUMERIC) if travelled or "numpy" in sys.modules else AHEAD
    return tuple(name for name in wanted if name not in sys.modules)
