"""Slices of the queue: how its rows are sorted, and views that were saved under a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import cast, get_args

from helix_tui.core.beads.query import ORDERS, Query, parse_query, with_order
from helix_tui.core.beads.views import VIEWS, ViewKind
from helix_tui.core.ground.text import clean_line
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.layout import keep
from helix_tui.settings import SavedView

SORT_KEYS = "123456789abcdefghijklmn"
"""The key of each order in the sheet of orders."""

MAX_NAME = 60
"""Characters of a view's name."""


class SliceKeys(FilteringScreen):
    """The keys of a screen whose list can be sorted and kept as a view."""

    kind: ViewKind
    filter: Query

    def __init__(self) -> None:
        super().__init__()
        self.saved: SavedView | None = None
        """The view in force: its columns hold until another filter or view does."""

    def show_view(self, kind: ViewKind) -> None:
        """Look at the queue another way."""
        raise NotImplementedError

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        """Those of the view in force, where it names any; else those that somebody chose."""
        saved = self.saved
        return saved.columns if saved is not None and saved.columns is not None else super().chosen_columns

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Columns that are chosen by hand hold from then on."""
        self.saved = None
        super().choose_columns(names)

    def action_sort(self) -> None:
        """Choose how the rows are sorted: a term of the filter, so that it can be typed and saved too."""
        now = self.filter.order
        choices = [Choice("o", "o", "as it comes", "no order set", partial(self._sort_by, ""))]
        for place, (name, order) in enumerate(ORDERS.items()):
            turned = f"-{name}" if now == (name,) else name
            said = f"{order.help}; now reversed" if now == (f"-{name}",) else order.help
            key = SORT_KEYS[place]
            choices.append(Choice(key, key, turned, said, partial(self._sort_by, turned)))
        self.app.push_screen(ChoiceSheet("sort by", choices))

    def _sort_by(self, order: str) -> None:
        self.filter_with(with_order(self.filter.text, order))

    # --- saved views --------------------------------------------------------------------------------------

    def show_saved(self, name: str) -> None:
        """Show the queue as a saved view has it."""
        view = self.console.view_book.named(name)
        if view is None:
            self.console.say(f"no view is called {clean_line(name, 60)}", "warning")
            return
        problem = parse_query(view.filter).problem
        if problem:
            self.console.say(f"{clean_line(view.name, 60)}: {problem}", "warning")
        # first: `filter_with` drops the view in force where its filter is another one
        self.saved = view
        self.filter_with(view.filter)
        self.show_view(cast(ViewKind, view.view) if view.view in get_args(ViewKind) else self.kind)

    def action_views(self) -> None:
        """Every saved view, and what can be done with the present one."""
        views = self.console.view_book.views
        choices = []
        for place, view in enumerate(views):
            digit = str(place + 1) if place < 9 else ""
            on_key = f"{view.key}  " if view.key else ""
            said = f"{on_key}{view.filter or 'every bead'}{f' · {view.view}' if view.view else ''}"
            choices.append(Choice(digit, digit, view.name, said, partial(self.show_saved, view.name)))
        choices.append(Choice("S", "S", "save this view", self._described(), self._ask_name))
        kept = [view for view in views if view.saved]
        off = "" if kept else "no view was saved here"
        choices.append(Choice("D", "D", "remove a view", "a view saved here", partial(self._remove, kept), off))
        self.app.push_screen(ChoiceSheet("views of the queue", choices))

    def _described(self) -> str:
        columns = self.chosen_columns
        shown = f" · {', '.join(columns)}" if columns is not None else ""
        return f"{self.filter.text or 'every bead'} · {self.kind}{shown}"

    def _ask_name(self) -> None:
        sheet = LineSheet("save this view as", "name", self._save, about=self._described())
        self.app.push_screen(sheet)

    def _save(self, name: str) -> None:
        name = clean_line(name, MAX_NAME).strip()
        if not name:
            self.console.say("not saved: a view needs a name", "warning")
            return
        book = self.console.view_book
        # a hand-written view of that name would hide it, and it would hide one that is built in
        if any(view.name == name and not view.saved for view in book.views):
            self.console.say(f"not saved: {name} is defined by hand or built in", "warning")
            return
        view = SavedView(name, self.filter.text, self.kind if self.kind in VIEWS else "", self.chosen_columns)
        book.keep(view)
        keep(self, book.write)
        self.console.say(f"saved: {name}; V shows it")

    def _remove(self, kept: Iterable[SavedView]) -> None:
        def drop(name: str) -> None:
            self.console.view_book.drop(name)
            keep(self, self.console.view_book.write)
            self.console.say(f"removed: {name}")

        choices = [
            Choice(str(place), str(place), view.name, view.filter, partial(drop, view.name))
            for place, view in enumerate(kept, 1)
        ]
        self.app.push_screen(ChoiceSheet("remove which view?", choices))

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """Saved views by name."""
        for view in self.console.view_book.views:
            yield f"view: {view.name}", view.filter or "every bead", partial(self.show_saved, view.name)
        yield from super().commands()
