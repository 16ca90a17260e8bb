"""``helix-tui memory VERB``: the operations of docs/formats/memory.md §3.

If stdout is not a terminal the answer is JSON, as in helix.
"""

from __future__ import annotations

import argparse
import sys

from msgspec.structs import replace

from helix_tui.cli.call import Call
from helix_tui.cli.memory import injecting, lessons, memories, plans, relations, upkeep
from helix_tui.cli.memory.verb import VERBS, answer
from helix_tui.cli.program import add_shared

__all__ = ["add_arguments", "adjust", "injecting", "lessons", "memories", "plans", "relations", "run", "upkeep"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one parser for each verb; the global options may follow the verb too."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, verb in sorted(VERBS.items()):
        own = verbs.add_parser(name, description=verb.summary, help=verb.summary, allow_abbrev=False)
        for add in verb.arguments:
            add(own)
        if "--dry-run" not in own._option_string_actions:
            said = "work on a copy of the memory, and show the result"
            own.add_argument("--dry-run", dest="on_copy", action="store_true", help=said)
        add_shared(own, below=True)


def adjust(call: Call) -> Call:
    """JSON is the default if stdout is not a terminal, for errors too."""
    return replace(call, json=call.json or not sys.stdout.isatty())


def run(call: Call) -> int:
    """Open the memory, run the verb, print the result."""
    return answer(call)
