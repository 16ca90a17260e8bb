"""The command palette: Textual's own, with the key beside each command, closed once like every screen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

from textual import events, on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits
from textual.content import Content
from textual.system_commands import SystemCommandsProvider
from textual.widgets import Input, OptionList

from helix_tui.screens.base import Dismissal

KEY_AT = 30
"""Cells before the key of a command, in the palette."""


class Commands(SystemCommandsProvider):
    """The palette's commands; brackets in a name are not markup."""

    async def discover(self) -> Hits:
        """All commands, shown before anything is typed."""
        keys = self._keys()
        async for hit in super().discover():
            name = hit.text or ""
            yield replace(cast(DiscoveryHit, hit), display=_with_key(Content(name), keys.get(name, "")))

    def _keys(self) -> dict[str, str]:
        """Command -> the key that does the same."""
        found: dict[str, str] = getattr(self.app, "command_keys", lambda screen: {})(self.screen)
        return found

    async def search(self, query: str) -> Hits:
        """Commands that match the typed text, with the matching letters; then those whose description has it."""
        matcher, keys = self.matcher(query), self._keys()
        word = re.compile(rf"\b{re.escape(query.strip())}", re.IGNORECASE)
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            score, offsets = matcher.fuzzy_search.match(query, name)
            # a name with the letters somewhere in it says less than a description with the word
            if query.strip() and not word.search(name) and word.search(help_text):
                score = max(score, matcher.fuzzy_search.match(query, query)[0] / 2)
            if score:
                shown = Content(name)
                for offset in offsets:
                    shown = shown.stylize(matcher.match_style, offset, offset + 1)
                yield Hit(score, _with_key(shown, keys.get(name, "")), callback, text=name, help=help_text)


def _with_key(name: Content, key: str) -> Content:
    """A command, followed by its key."""
    blank = " " * max(2, KEY_AT - name.cell_length)
    return name + Content(blank) + Content.styled(key, "bold") if key else name


class _Offers(CommandList):
    """Textual's list of commands; a click on one that has disappeared since it was drawn chooses nothing."""

    async def _on_click(self, event: events.Click) -> None:
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class HelixPalette(CommandPalette, Dismissal):
    """Textual's command palette, closed only once; nothing looks for its widgets after that."""

    def compose(self) -> ComposeResult:
        """Textual's own widgets, with this list instead of its own."""
        for widget in super().compose():
            yield _Offers() if isinstance(widget, CommandList) else widget

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, and stop gathering commands and the timer for "no matches"."""
        self._cancel_gather_commands()
        self._stop_no_matches_countdown()
        return super().dismiss(result)

    @on(Input.Changed)
    def ignore_when_left(self, event: Input.Changed) -> None:
        """Gather nothing for text that was typed before it closed but delivered after."""
        if self.has_left:
            event.prevent_default()

    def on_mount(self, event: events.Mount) -> None:
        """Closed before it was mounted: gather nothing."""
        if self.has_left:
            event.prevent_default()

    def _action_command_list(self, action: str) -> None:
        """Move in the list once it is laid out: Textual 8.2.8 pages through lines not made yet."""
        if self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)
