"""Where ``:`` can go: beads by id or title, screens, and commands. The palette offers the same commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helix_tui.core.beads.query import Completion
from helix_tui.core.text import clean_line
from helix_tui.screens import SCREENS
from helix_tui.themes import THEMES

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

_MOST = 8


@dataclass(frozen=True, slots=True)
class Command:
    """Something that can be done by name."""

    name: str
    help: str
    action: str
    """As Textual writes it, on the app."""


def commands() -> list[Command]:
    """Every command there is, in the order in which they are offered."""
    found = [
        Command(entry.name, f"screen {entry.key}", f"show_screen('{entry.name}')")
        for entry in SCREENS.values()
    ]
    found += [
        Command("needs me", "what waits on a person, ranked", "needs_me"),
        Command("unread lines", "lines of the tracker that could not be read", "unread"),
        Command("keys", "every key", "help"),
    ]
    found += [Command(f"theme {theme.name}", "colours", f"use_theme('{theme.name}')") for theme in THEMES]
    return [*found, Command("quit", "leave; the loop goes on", "quit")]


def ways_to(text: str, queue: Queue) -> list[Completion]:
    """Commands and beads that a text may mean: by the start of a name or id, then by any part of a title."""
    wanted = text.strip().lower()
    ways = [Completion(way.name, 0, way.help) for way in commands() if wanted in way.name]
    if not wanted:
        return ways[:_MOST]
    return [*ways, *_beads(wanted, queue)][:_MOST]


def _beads(wanted: str, queue: Queue) -> Iterator[Completion]:
    by_title: list[Completion] = []
    for bead in queue.beads.values():
        if wanted in bead.id.lower():
            yield Completion(bead.id, 0, clean_line(bead.title, 200))
        elif len(by_title) < _MOST and wanted in bead.title.lower():
            by_title.append(Completion(bead.id, 0, clean_line(bead.title, 200)))
    yield from by_title


def command_named(text: str) -> Command | None:
    """The command of exactly that name."""
    return next((command for command in commands() if command.name == text.strip().lower()), None)
