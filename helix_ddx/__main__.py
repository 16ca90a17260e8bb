"""``helix-ddx``: the simulation and the embedded tracker behind one command line.

Each verb is in its own module, which is imported when it is called.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence

_DDX = ("bead", "beads", "work", "version", "try")
"""DDx's own verbs; their command line parses and fails as DDx's does."""

_VERBS: dict[str, tuple[str, str]] = {
    "demo-workspace": ("demo.workspace", "make a throw-away project with a queue"),
    "drain": (
        "demo.workspace",
        "try every ready bead of such a project once with simulated agents, then print a summary",
    ),
}
"""Verb -> (module with ``add_arguments`` and ``run``, one line of help)."""

_EPILOG = """DDx's own words, each with its --help: bead (the embedded tracker), version; work
and try (simulated)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    asked = _asked(words)
    try:
        if asked in _DDX:
            from helix_ddx.program import main as answer

            return answer(words)
        return _run_own(words, asked)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of the output has gone; print nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _asked(words: Sequence[str]) -> str:
    """The first word that is neither a global flag nor the value of one."""
    before = ""
    for word in words:
        if not word.startswith("-") and before not in ("--config", "--library-base-path"):
            return word
        before = word
    return ""


def _run_own(words: list[str], asked: str) -> int:
    if asked and asked not in _VERBS:
        from helix_ddx.program import complain_of_all

        return complain_of_all(f'unknown command "{asked}" for "ddx"')
    import argparse  # slow to load, and DDx's own verbs do not use it

    parser = argparse.ArgumentParser(
        prog="helix-ddx", description="A stand-in for ddx, for demos and tests.", epilog=_EPILOG
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, about) in _VERBS.items():
        sub = verbs.add_parser(verb, help=about)
        # argparse needs all verbs for its help, but only the called one loads its module
        if verb == asked:
            importlib.import_module(f"helix_ddx.{module}").add_arguments(sub, verb)
    args = parser.parse_args(words or ["--help"])
    return int(importlib.import_module(f"helix_ddx.{_VERBS[args.verb][0]}").run(args))


if __name__ == "__main__":
    sys.exit(main())
