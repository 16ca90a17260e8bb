"""Saved views: slices of the queue and filters of *Needs me*, written by hand, saved from the console, built in."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from helix_tui.core.beads.states import states_where
from helix_tui.core.ground.text import clean_line
from helix_tui.settings.toml import read_fields, read_toml, replace_file

OF_NEEDS = "needs"
"""In place of a way to look at the queue: the view is one of *Needs me*."""

_HEAD = "Views saved from the console (V). Edit them, or write such tables in settings.toml."


class SavedView(Struct, frozen=True, forbid_unknown_fields=True):
    """A slice of the queue: which beads, in which order, how and with which columns they are shown; or a filter of
    *Needs me*."""

    name: Annotated[str, Meta(pattern=r"\S", description="a name in quotes")]
    filter: Annotated[str, Meta(description="a filter with its order, in quotes")] = ""
    view: Annotated[str, Meta(description="dag, tree, lanes, order or needs, in quotes")] = ""
    """Empty keeps the present one; ``needs`` is a filter of *Needs me*."""
    columns: Annotated[tuple[str, ...] | None, Meta(description="a list of names")] = None
    """None lets the width decide."""
    key: Annotated[str, Meta(description="a key in quotes")] = ""
    """In Textual's spelling, as ``f6``; empty if it has no key."""


OWN_VIEWS = (
    SavedView(
        "ready, what unblocks most", "ready:yes order:unblocks,-age", columns=("unblocks", "holds", "priority", "age")
    ),
    SavedView("critical path", "path:yes order:path", columns=("holds", "priority", "age", "epic")),
    SavedView("held up longest", "state:waiting_dependencies,retry_cooldown order:-age", columns=("age", "epic")),
    SavedView("changed today", "updated<1d order:updated", columns=("updated", "priority", "labels")),
    SavedView("parked", f"state:{','.join(states_where(lane='parked'))} order:-age"),
)
"""The built-in views."""


def read_views(tables: object) -> tuple[tuple[SavedView, ...], list[str]]:
    """The views of the tables ``[[view]]``, and one message for each line that could not be read.

    A line that is wrong costs itself; without a name, its table.
    """
    views: list[SavedView] = []
    problems: list[str] = []
    for place, table in enumerate(tables if isinstance(tables, list) else [tables], 1):
        parts, wrong = read_fields(table if isinstance(table, dict) else {}, SavedView, _CHECKS)
        problems += [f"view {place}: {problem}" for problem in wrong]
        if "name" in parts:
            views.append(SavedView(**parts))
        elif not wrong:
            problems.append(f"view {place}: write a table with a name and a filter, both texts")
    return tuple(views), problems


def _line(text: str) -> str:
    return clean_line(text, 200).strip()


_CHECKS = dict.fromkeys(("name", "filter", "view", "key"), _line)


class ViewBook:
    """All views: those written by hand, those saved from the console, the built-in ones.

    The console saves its own in ``views.toml`` beside the settings, in the same format; for one name the first
    counts. `write` is for a thread.
    """

    def __init__(self, by_hand: Sequence[SavedView] = (), path: Path | None = None) -> None:
        """Read the saved ones; without a file they last as long as the process."""
        self.path = path
        self.problems: tuple[str, ...] = ()
        self.saved: tuple[SavedView, ...] = ()
        """Those saved from the console."""
        self._by_hand = tuple(by_hand)
        self._lock = threading.Lock()
        if path is not None:
            self._read(path)

    @property
    def views(self) -> tuple[SavedView, ...]:
        """All of them, each name once."""
        by_name: dict[str, SavedView] = {}
        # the first of a name counts: hand-written views, then saved ones
        for view in (*self._by_hand, *self.saved, *OWN_VIEWS):
            by_name.setdefault(view.name, view)
        return tuple(by_name.values())

    def named(self, name: str) -> SavedView | None:
        """The view of a name."""
        return next((view for view in self.views if view.name == name), None)

    def keep(self, view: SavedView) -> None:
        """Save a view, replacing one of the same name."""
        self.saved = (*(other for other in self.saved if other.name != view.name), view)

    def drop(self, name: str) -> None:
        """Remove a saved view."""
        self.saved = tuple(view for view in self.saved if view.name != name)

    def write(self) -> None:
        """Write the saved ones.

        Raises:
            OSError: the folder cannot be created, or the file cannot be written.
        """
        if self.path is not None:
            # each change is written in a separate thread, and all use one temporary name
            with self._lock:
                replace_file(self.path, as_toml(self.saved))

    def _read(self, path: Path) -> None:
        try:
            document = read_toml(path)
        except ValueError as error:
            self.problems = (str(error),)
            self.path = None  # a file broken by hand is not overwritten
            return
        self.saved, problems = read_views(document.get("view", []))
        self.problems = tuple(f"{path.name}: {problem}" for problem in problems)


def as_toml(views: Sequence[SavedView]) -> str:
    """The text of ``views.toml``."""
    import tomlkit  # slow to load, and only who saves a view needs it

    document, tables = tomlkit.document(), tomlkit.aot()
    document.add(tomlkit.comment(_HEAD))
    for view in views:
        # what is empty has its default; an empty list of columns shows none
        parts = {name: value for name, value in msgspec.to_builtins(view).items() if value not in ("", None)}
        tables.append(tomlkit.item(parts))
    document.append("view", tables)
    return tomlkit.dumps(document)
