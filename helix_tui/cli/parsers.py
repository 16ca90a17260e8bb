"""The parser of a command line, and what ``--help`` says above the options."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

from helix_tui import __version__
from helix_tui.cli.commands import COMMANDS, CONSOLE, HEADINGS, HELIX, grouped
from helix_tui.cli.options import add_shared
from helix_tui.core.ground.text import clean_line


class CommandParser(argparse.ArgumentParser):
    """A parser that says which option an unknown one may have meant."""

    def error(self, message: str) -> NoReturn:
        """End with 2, and say where help is."""
        from difflib import get_close_matches

        words = message.partition("unrecognized arguments: ")[2].split()
        shown = [option for option, action in self._option_string_actions.items() if action.help != argparse.SUPPRESS]
        near = [
            close
            for word in words
            if word.startswith("--")
            for close in get_close_matches(word.partition("=")[0], shown, n=1)
        ]
        hint = f"did you mean {', '.join(near)}? " if near else ""
        super().error(f"{clean_line(message, 400)} ({hint}`{self.prog} --help` lists the options)")


def load(name: str | None) -> tuple[Any, argparse.ArgumentParser]:
    """The module of a command, the console's for None, and its parser with all options."""
    module = import_module(CONSOLE if name is None else COMMANDS[name][0])
    parser = parser_for(name)
    module.add_arguments(parser)
    return module, parser


def parser_for(name: str | None) -> argparse.ArgumentParser:
    """The parser of a command, the console's for None, with the options that all commands have."""
    if name is None:
        parser = CommandParser(
            "helix-tui",
            usage="helix-tui [COMMAND] [options]",
            description="Without a command: the console on this project's queue.",
            epilog=_command_list(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    else:
        parser = CommandParser(f"helix-tui {name}", description=COMMANDS[name][1], allow_abbrev=False)
    add_shared(parser)
    parser.add_argument("--version", "-V", action="version", version=f"helix-tui {__version__}")
    return parser


def _command_list() -> str:
    width = max(map(len, COMMANDS))

    def listed(names: Iterable[str]) -> list[str]:
        return [f"  {name:<{width}}  {COMMANDS[name][1]}" for name in names]

    lines = [
        "commands (helix-tui COMMAND --help shows more):",
        *listed(name for name in COMMANDS if name not in HELIX),
    ]
    for group, names in grouped().items():
        lines += ["", f"{HEADINGS[group]}:", *listed(names)]
    return "\n".join(lines)
