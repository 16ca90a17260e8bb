"""``helix-tui`` without a subcommand: the console."""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--pane", action="store_true", help="side-pane posture, for 40 to 60 columns")
    parser.add_argument("--screen", metavar="NAME", default="queue", help="the screen to open on")


def run(call: Call) -> int:
    """Open the console."""
    raise NotImplementedError
