"""The options that every command takes, before or after its name (docs/cli.md)."""

from __future__ import annotations

import argparse
from pathlib import Path


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
        group.add_argument("--read-only", action="store_true", help="change nothing, whatever is asked"),
        group.add_argument("--ddx", metavar="PATH", help="the ddx to use (default: DDX_BIN, else the one on PATH)"),
        group.add_argument("--no-color", action="store_true", help="plain text"),
        group.add_argument("--json", action="store_true", help="one JSON document on stdout"),
        group.add_argument("--debug", action="store_true", help="log everything; show the trace of a defect"),
    ]
    if below:
        for option in names:
            option.default = argparse.SUPPRESS
