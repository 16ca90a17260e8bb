"""``helix-ddx``: the rehearsal, the player and the embedded tracker behind one command line.

Each verb lives in a module of its own that is imported when it is asked for. ``HELIX_DDX_ERA=april|head``
picks the release whose words and messages are spoken.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

_VERBS: dict[str, tuple[str, str]] = {
    "play": ("playing", "write a recorded run into a folder"),
    "demo-workspace": ("demoing", "make a throw-away project with a queue"),
}
"""Verb -> (module with ``add_arguments`` and ``run``, one line of help)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="helix-ddx", description="A stand-in for ddx, for demos and tests.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, about) in _VERBS.items():
        sub = verbs.add_parser(verb, help=about)
        if verb in words:
            importlib.import_module(f"helix_tui.core.tracker.{module}").add_arguments(sub)
    args = parser.parse_args(words)
    try:
        return int(importlib.import_module(f"helix_tui.core.tracker.{_VERBS[args.verb][0]}").run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read our output has gone; say nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
