"""Narrow a list: a prompt that filters while one types, and saved views on a key.

Saved views of the queue and of *Needs me* are one list, each shown where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from helix_tui.screens.panes import PanedScreen
from helix_tui.widgets.base.line import Line

if TYPE_CHECKING:
    from helix_tui.core.beads.filter_language import Completion
    from helix_tui.widgets.chrome.bottom import Prompt
from collections.abc import Callable, Iterable
from functools import partial

from helix_tui.core.ground.text import clean_line
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.panes import keep
from helix_tui.settings.views import OF_NEEDS, SavedView

MAX_NAME = 60
"""The longest name of a view."""


class FilteringScreen(PanedScreen):
    """A screen with ``/``. Subclasses say what a text means, and show what passes it.

    A text that is not understood changes nothing: the list stays as the last valid text left it,
    and the line says what is wrong. If cancelled, the previous filter and row come back.
    """

    FILTER_LEAD: ClassVar[str] = "/"
    _row_before: str | None = None
    """The row that was selected when the prompt opened."""

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        raise NotImplementedError

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Completions."""
        return ()

    def filter_problem(self, text: str) -> str:
        """The part of a text that is not understood, in one sentence; empty if all is."""
        return ""

    def filter_with(self, text: str) -> None:
        """Show what passes a text that is understood."""
        raise NotImplementedError

    def has_matches(self) -> bool:
        """Whether anything passes the filter in force."""
        return bool(len(self.list.source))

    def filter_count(self) -> str:
        """How many rows pass, of how many."""
        raise NotImplementedError

    def return_to(self, text: str, row: str | None) -> None:
        """Show what a previous text lets pass: the way back asks nothing new, so the cursor stays on its row.

        Args:
            text: the previous filter.
            row: the row; None for the one that was selected when the prompt opened.
        """
        row = row or self._row_before
        self.filter_with(text)
        if row is not None:
            self.list.select(row)

    async def action_filter(self) -> None:
        """Type a filter; the list follows every key."""
        if self.prompt is None:
            from helix_tui.widgets.chrome.bottom import Prompt

            self._row_before = self.list.held_key
            self.prompt = Prompt(self.FILTER_LEAD, self.ways_on, text=self.filter_text)
            await self.mount(self.prompt)
            self.say_count()

    def on_prompt_changed(self, event: Prompt.Changed) -> None:
        """Show live what matches so far. A word that is incomplete or not understood does not empty the list."""
        if event.prompt is not self.prompt:
            return
        problem, before = self.filter_problem(event.text), event.text.rpartition(" ")[0]
        if not problem:
            self.filter_with(event.text)
            if event.unfinished and not self.has_matches():
                self.filter_with(before)
        elif not self.filter_problem(before):
            self.filter_with(before)
        self.say_count(problem)

    async def on_prompt_done(self, event: Prompt.Done) -> None:
        """Keep the filter, or restore the previous one; if it is not understood, typing continues."""
        if event.prompt is not self.prompt:
            return
        event.stop()
        if event.kept and self.filter_problem(event.text):
            return
        self.prompt = None
        self.list.focus(scroll_visible=False)
        await event.prompt.remove()
        if event.kept:
            self.filter_with(event.text)
        else:
            self.return_to(event.text, None)

    def say_count(self, problem: str = "") -> None:
        """Show at the end of the line how many match, or what is wrong."""
        if self.prompt is not None:
            line: Line = [(problem, "error")] if problem else [(self.filter_count(), "muted")]
            self.prompt.say(line)


class ViewKeys(FilteringScreen):
    """``V`` on a screen whose slices can be saved by name."""

    def present_view(self, name: str) -> SavedView:
        """What is shown now, as a view of that name."""
        raise NotImplementedError

    def action_views(self) -> None:
        """Show all saved views, and the actions on the present one."""
        views = self.console.view_book.views
        choices = []
        for place, view in enumerate(views):
            digit = str(place + 1) if place < 9 else ""
            on_key = f"{view.key}  " if view.key else ""
            choices.append(Choice(digit, digit, view.name, f"{on_key}{described(view)}", self._shower(view)))
        now = self.present_view("")
        columns = f" · {', '.join(now.columns)}" if now.columns is not None else ""
        about = f"{described(now)}{columns}"
        ask = LineSheet("save this view as", "name", self._save, about=about)
        choices.append(Choice("S", "S", "save this view", about, partial(self.app.push_screen, ask)))
        kept = self.console.view_book.saved
        off = "" if kept else "no view was saved here"
        choices.append(Choice("D", "D", "remove a view", "a view saved here", partial(self._remove, kept), off))
        self.app.push_screen(ChoiceSheet("views", choices))

    def _shower(self, view: SavedView) -> Callable[[], object]:
        # later: the sheet has to be closed before another screen is opened
        return partial(self.app.call_later, self.app.run_action, f"saved_view({view.name!r})")

    def _save(self, name: str) -> None:
        name = clean_line(name, MAX_NAME).strip()
        if not name:
            self.console.say("not saved: a view needs a name", "warning")
            return
        book = self.console.view_book
        # a hand-written view of that name would hide it, and it would hide a built-in one
        if any(view.name == name and view not in book.saved for view in book.views):
            self.console.say(f"not saved: {name} is defined by hand or built in", "warning")
            return
        before = any(view.name == name for view in book.views)
        book.keep(self.present_view(name))
        keep(self, book.write)
        self.console.say(f"{'replaced' if before else 'saved'}: {name}; V shows it")

    def _remove(self, kept: Iterable[SavedView]) -> None:
        def drop(name: str) -> None:
            self.console.view_book.drop(name)
            keep(self, self.console.view_book.write)
            self.console.say(f"removed: {name}")

        choices = [
            Choice(str(place), str(place), view.name, described(view), partial(drop, view.name))
            for place, view in enumerate(kept, 1)
        ]
        self.app.push_screen(ChoiceSheet("remove which view?", choices))

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """Saved views by name."""
        for view in self.console.view_book.views:
            yield f"view: {view.name}", described(view), self._shower(view)
        yield from super().commands()


class NeedViewKeys(ViewKeys):
    """``V`` on *Needs me*."""

    def present_view(self, name: str) -> SavedView:
        """The filter in force."""
        return SavedView(name, self.filter_text, OF_NEEDS)

    def show_saved(self, name: str) -> None:
        """Show what a saved view lets pass."""
        view = self.console.view_book.named(name)
        if view is None:  # removed meanwhile
            return
        if problem := self.filter_problem(view.filter):
            self.console.say(f"{clean_line(view.name, 60)}: {problem}", "warning")
        self.filter_with(view.filter)


def described(view: SavedView) -> str:
    """A view's filter, and what it is a view of."""
    if view.view == OF_NEEDS:
        return f"{view.filter or 'everything'} · Needs me"
    return f"{view.filter or 'every bead'}{f' · {view.view}' if view.view else ''}"
