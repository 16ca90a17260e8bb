"""The parser of a command line, and what ``--help`` says above the options.

The options that every command takes, before or after its name (docs/cli.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from helix_tui import __version__
from helix_tui.cli.commands import COMMANDS, CONSOLE, HEADINGS, MODULES, ROWS, grouped
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.commands import CommandRow


def add_shared(parser: argparse.ArgumentParser, *, below: bool = False) -> None:
    """Add the global options; ``below`` for the parser of a verb, where only what is given there counts."""
    group = parser.add_argument_group("for every command, before or after it")
    names = [
        group.add_argument(
            "-C",
            dest="directory",
            metavar="DIR",
            type=Path,
            help="project (default: the git root above here)",
        ),
        group.add_argument("--now", metavar="TIME", help="judge as of this ISO 8601 time"),
        group.add_argument("--read-only", action="store_true", help="change nothing, in any command"),
        group.add_argument("--ddx", metavar="PATH", help="the ddx to use (default: DDX_BIN, else the one on PATH)"),
        group.add_argument("--no-color", action="store_true", help="plain text"),
        group.add_argument("--json", action="store_true", help="one JSON document on stdout"),
        group.add_argument(
            "--debug", action="store_true", help="log everything; show the trace of an unexpected error"
        ),
    ]
    if below:
        for option in names:
            option.default = argparse.SUPPRESS


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
    module = import_module(CONSOLE if name is None else MODULES[name])
    parser = parser_for(name)
    module.add_arguments(parser)
    if name not in (None, "memory") and "--dry-run" not in parser._option_string_actions:
        # whatever a script puts before a command, it may put --dry-run before every one
        parser.add_argument(
            "--dry-run", action="store_true", help="change nothing; show what would be done, if anything"
        )
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
        parser = CommandParser(f"helix-tui {name}", description=sentences(COMMANDS[name]), allow_abbrev=False)
    add_shared(parser)
    parser.add_argument("--version", "-V", action="version", version=f"helix-tui {__version__}")
    return parser


def sentences(row: CommandRow) -> str:
    """What a command does, what it may change and what it uses."""
    summary = row.summary[0].upper() + row.summary[1:]
    writes = f"Writes: {row.writes}." if row.writes else "Writes nothing."
    uses = f" Uses: {', '.join(row.uses)}." if row.uses else ""
    return f"{summary}. {writes}{uses}"


def _command_list() -> str:
    width = max(map(len, COMMANDS))

    def listed(names: Iterable[str]) -> list[str]:
        return [f"  {name:<{width}}  {COMMANDS[name].summary}" for name in names]

    lines = [
        "commands (helix-tui COMMAND --help shows more):",
        *listed(name for name in COMMANDS if name not in ROWS),
    ]
    for group, names in grouped().items():
        lines += ["", f"{HEADINGS[group]}:", *listed(names)]
    return "\n".join(lines)
