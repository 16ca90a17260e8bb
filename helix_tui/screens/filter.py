"""A screen whose list narrows as one types: the prompt, its message, and how typing ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from helix_tui.screens.panes import PanedScreen
from helix_tui.widgets.base.line import Line

if TYPE_CHECKING:
    from helix_tui.core.beads.query import Completion
    from helix_tui.widgets.chrome.prompt import Prompt


class FilteringScreen(PanedScreen):
    """A screen with ``/``. Subclasses say what a text means, and show what passes it.

    A text that is not understood changes nothing: the list stays as the last valid text left it,
    and the line says what is wrong. If cancelled, the previous filter and row come back.
    """

    FILTER_LEAD: ClassVar[str] = "/"

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

    async def action_filter(self) -> None:
        """Type a filter; the list follows every key."""
        if self.prompt is None:
            from helix_tui.widgets.chrome.prompt import Prompt

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
        # if it was cancelled, this is the previous text
        self.filter_with(event.text)
        if event.kept:
            self.list.settle()

    def say_count(self, problem: str = "") -> None:
        """Show at the end of the line how many match, or what is wrong."""
        if self.prompt is not None:
            said: Line = [(problem, "error")] if problem else [(self.filter_count(), "muted")]
            self.prompt.say(said)
