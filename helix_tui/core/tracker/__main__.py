"""``helix-ddx``: the rehearsal, the player and the embedded tracker behind one command line.

Each verb lives in a module of its own that is imported when it is asked for. ``HELIX_DDX_ERA=april|head``
picks the release whose words and messages are spoken.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence

_TRACKER = {("bead",): "", ("beads",): "", ("work", "plan"): "head", ("work", "status"): "head"}
"""Verbs of the embedded tracker and the era that has them; its command line complains as DDx's does."""

_VERBS: dict[str, tuple[str, str, str]] = {
    "work": ("rehearsal.verb", "", "drain the queue, rehearsed"),
    "try": ("rehearsal.verb", "head", "carry one bead through, rehearsed"),
    "agent": ("rehearsal.verb", "april", "execute-loop and execute-bead, rehearsed"),
    "play": ("play.verb", "", "write a recorded run into a folder"),
    "demo-workspace": ("demo.verb", "", "make a throw-away project with a queue"),
    "drain": ("demo.verb", "", "work until nothing is ready that was not tried, then sum up"),
}
"""Verb -> (module with ``add_arguments`` and ``run``, the era that has it, one line of help)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    era = os.environ.get("HELIX_DDX_ERA") or "head"
    if era not in ("april", "head"):
        sys.stderr.write(f"helix-ddx: HELIX_DDX_ERA is {era!r}, not april or head\n")
        return 1
    named = tuple(word for word in words if not word.startswith("-"))
    try:
        if any(_TRACKER.get(named[:length]) in ("", era) for length in (1, 2)):
            from helix_tui.core.tracker.bead.program import main as track

            return track(words, era)
        return _rehearse(words, named[0] if named else "", era)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read our output has gone; say nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _rehearse(words: list[str], asked: str, era: str) -> int:
    known = {verb: spec for verb, spec in _VERBS.items() if spec[1] in ("", era)}
    if asked and asked not in known:
        complaint = f'Error: unknown command "{asked}" for "ddx"\n'
        sys.stderr.write(f"{complaint}Run 'ddx --help' for usage.\n{complaint}")
        return 1
    import argparse  # slow to load, and the tracker has no use for it

    parser = argparse.ArgumentParser(prog="helix-ddx", description="A stand-in for ddx, for demos and tests.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, _, about) in known.items():
        sub = verbs.add_parser(verb, help=about)
        if verb == asked:
            importlib.import_module(f"helix_tui.core.tracker.{module}").add_arguments(sub, verb)
    args = parser.parse_args(words)
    return int(importlib.import_module(f"helix_tui.core.tracker.{known[args.verb][0]}").run(args))


if __name__ == "__main__":
    sys.exit(main())
