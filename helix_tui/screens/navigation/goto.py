"""Where ``:`` can go: beads by id or title, screens, and commands. The palette offers the same commands."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helix_tui.core.beads.query import Completion
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import clean_line
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
    action: str | Callable[[], object]
    """On the app, as Textual writes it; or a call."""
    also: str = ""
    """A short name that fingers know."""


def commands() -> list[Command]:
    """Every command there is, in the order in which they are offered."""
    found = [Command(entry.name, f"screen {entry.key}", f"show_screen('{entry.name}')") for entry in SCREENS.values()]
    found += [
        Command("needs me", "what waits on a person, ranked", "needs_me"),
        Command("next action", "NEXT_ACTION with its reasons", "next_action"),
        Command("helix run", "the loop: start, pause, stop, its log", "loop", also="helix start"),
        Command("notices, unread lines", "what to know of this queue, and lines not read", "unread"),
        Command("keys", "every key", "help"),
        Command("screenshot", "this screen as an SVG picture, among your downloads", "screenshot"),
    ]
    found += [Command(f"theme {theme.name}", "colours", f"use_theme('{theme.name}')") for theme in THEMES]
    return [*found, Command("quit", "leave; the loop keeps running", "quit", also="q")]


def ways_to(text: str, queue: Queue, among: Sequence[Command], archive: Iterable[Bead] = ()) -> list[Completion]:
    """Commands and beads that a text may mean, the likeliest first.

    In this order: what is called exactly so, commands that begin so, ids that begin so, ids whose part after
    the prefix begins so, words of a title or command that begin so, any other place in an id, title or name.
    Among equals, what is unfinished stands before what is closed, and that before what is archived.
    """
    wanted = text.strip().lower()
    found: list[tuple[int, int, Completion]] = []
    for command in among:
        rank = 0 if wanted and wanted == command.also else _rank_of_command(command.name, wanted)
        if rank is not None:
            found.append((rank, 0, Completion(command.name, 0, command.help)))
    for bead in queue.beads.values() if wanted else ():
        rank = _rank_of_bead(bead, wanted)
        if rank is not None:
            found.append((rank, 1 + (bead.status in TERMINAL), Completion(bead.id, 0, bead.title)))
    for bead in archive if wanted else ():
        rank = _rank_of_bead(bead, wanted)
        if rank is not None:
            found.append((rank, 3, Completion(bead.id, 0, f"archived · {bead.title}")))
    best = heapq.nsmallest(_MOST, found, key=lambda each: each[:2])
    return [Completion(way.text, 0, clean_line(way.help, 200)) for _, _, way in best]


def _rank_of_command(name: str, wanted: str) -> int | None:
    if name == wanted:
        return 0
    if name.startswith(wanted):
        return 1
    return _place_in(name, wanted)


def _rank_of_bead(bead: Bead, wanted: str) -> int | None:
    bead_id = bead.id.lower()
    if wanted in bead_id:
        if bead_id == wanted:
            return 0
        if bead_id.startswith(wanted):
            return 2
        if bead_id.rpartition("-")[2].startswith(wanted):
            return 3
    place = _place_in(bead.title.lower(), wanted)
    return 5 if place is None and wanted in bead_id else place


def _place_in(text: str, wanted: str) -> int | None:
    """4 where a word begins so, 5 where it stands anywhere else."""
    at = text.find(wanted)
    if at < 0:
        return None
    while at > 0 and text[at - 1].isalnum():
        at = text.find(wanted, at + 1)
    return 5 if at < 0 else 4
