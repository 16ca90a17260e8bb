"""What ``:`` and the palette offer: commands by name, and the beads and commands that a text may mean."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.binding import Binding

from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import BY_ID, KEYS, Key
from helix_tui.screens import SCREENS
from helix_tui.screens.base import HelixScreen
from helix_tui.themes import THEMES

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

_MAX_MATCHES = 8


class Command(Struct, frozen=True):
    """A command that can be called by name."""

    name: str
    help: str
    action: str | Callable[[], object]
    """On the app, as Textual writes it; or a call."""
    also: str = ""
    """A short alias."""
    key: str = ""
    """The id of its key, if it has one."""


def commands(*, demo: bool = False) -> list[Command]:
    """All commands, in the order in which they are offered."""
    found = [
        Command(entry.name, BY_ID[f"go.{entry.name}"].help, f"show_screen('{entry.name}')", key=f"go.{entry.name}")
        for entry in SCREENS.values()
    ]
    found += [
        Command("needs me", "what waits for a person, ranked", "needs_me", key="go.needs-me"),
        Command("next action", "what comes next, why nothing has landed", "next_action", key="go.next-action"),
        Command("helix run", "start, pause, stop; budget, log", "loop", also="helix start", key="go.steer"),
        Command("notices, unread lines", "notices on this queue, and lines that cannot be read", "unread"),
        Command("keys", "every key", "help", key="app.help"),
        Command("tour", "a two-minute tour on a throw-away project", "tour"),
        Command("screenshot", "save this screen as an SVG picture in your downloads folder", "screenshot"),
    ]
    from helix_tui.widgets.rows.cost_tables import TABLES  # only where somebody asks what there is

    found += [Command(f"insights: {name}", "a table of Insights", f"show_table('{name}')") for name in TABLES]
    found += [Command(f"theme {theme.name}", "colours", f"use_theme('{theme.name}')") for theme in THEMES]
    return [
        *found,
        Command("quit", f"quit; the loop {'ends too' if demo else 'keeps running'}", "quit", also="q", key="app.quit"),
    ]


def keys_bound_on(screen: HelixScreen) -> list[Key]:
    """The keys that a screen itself has, in the order of the registry."""
    listed = [binding for owner in type(screen).__mro__ for binding in vars(owner).get("BINDINGS", ())]
    bound = {binding.id for binding in listed if isinstance(binding, Binding)}
    return [key for key in KEYS if key.id in bound]


def ways_to(text: str, queue: Queue, among: Sequence[Command], archive: Iterable[Bead] = ()) -> list[Completion]:
    """Commands and beads that a text may mean, the likeliest first.

    In this order: exact names, commands that begin with the text, ids that begin with it, ids whose part after
    the prefix begins with it, words of a title or command that begin with it, any other match.
    Among equals, unfinished beads come before closed ones, and those before archived ones. The word "archived" and its
    beginning mean every archived bead.
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
    lists_archive = len(wanted) > 2 and "archived".startswith(wanted)
    for bead in archive if wanted else ():
        rank = 5 if lists_archive else _rank_of_bead(bead, wanted)
        if rank is not None:
            found.append((rank, 3, Completion(bead.id, 0, f"archived · {bead.title}")))
    # without the third item, which cannot be compared; equal ones stay in the order found
    best = heapq.nsmallest(_MAX_MATCHES, found, key=lambda each: each[:2])
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
    """4 if a word begins with it, 5 if it occurs anywhere else."""
    at = text.find(wanted)
    if at < 0:
        return None
    while at > 0 and text[at - 1].isalnum():
        at = text.find(wanted, at + 1)
    return 5 if at < 0 else 4
