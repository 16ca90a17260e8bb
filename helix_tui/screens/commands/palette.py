"""The palette: every command with its key, those of the present screen first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from textual.fuzzy import Matcher

from helix_tui.screens import SCREENS
from helix_tui.screens.commands.commands import Command
from helix_tui.screens.editing.choices import Pick, PickSheet
from helix_tui.widgets.base.line import Span

KEY_CELLS, NAME_CELLS = 9, 26


class CommandsSheet(PickSheet):
    """Typing narrows the commands, enter does one."""

    def __init__(self, commands: Sequence[Command], keys: Mapping[str, str], do: Callable[[Command], object]) -> None:
        """Make the palette.

        Args:
            commands: what is offered, in order.
            keys: command -> its key, as shown to people.
            do: does a command once the palette has closed.
        """
        self._commands = {command.name: command for command in commands}
        self._keys, self._do = keys, do
        super().__init__("commands", self._offers, self._chosen, lead=":")

    def _offers(self, text: str) -> Iterable[Pick]:
        for command in matching(self._commands.values(), text):
            key = self._keys.get(command.name, "")
            spans: tuple[Span, ...] = (
                (f"{key:<{KEY_CELLS}} ", "running"),
                (f"{command.name:<{NAME_CELLS}} ", "text"),
                (command.help, "muted"),
            )
            yield Pick(command.name, spans)

    def _chosen(self, names: tuple[str, ...]) -> None:
        self.app.call_later(self._do, self._commands[names[0]])


def matching(commands: Iterable[Command], text: str) -> list[Command]:
    """The commands whose name or description a text may mean, the likeliest first; all of them without one."""
    text = text.strip()
    if not text:
        return list(commands)
    matcher, word = Matcher(text), re.compile(rf"\b{re.escape(text)}", re.IGNORECASE)
    scored: list[tuple[float, Command]] = []
    for command in commands:
        score = matcher.match(command.name)
        # a name with the letters somewhere in it says less than a description with the word
        if not word.search(command.name) and word.search(command.help):
            score = max(score, matcher.match(text) / 2)
        if score:
            scored.append((score, command))
    # a screen by what it shows, before the actions that speak of the same
    scored.sort(key=lambda pair: (-pair[0], pair[1].name not in SCREENS))
    return [command for _, command in scored]
