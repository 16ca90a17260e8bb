"""The root of every error that this product raises on purpose, so that each face catches one class."""

from __future__ import annotations

import re

FAILED = 1
"""Exit code of what could not be done, the message saying why."""

DEFECT = 70
"""Exit code of an exception that nobody expected; its trace is in the log."""

READER_GONE = 141
"""Exit code where whoever read the output has gone: what a shell says of a program that a closed pipe ended."""

UNROUTED = r"no viable routing candidate|routing under-specified|under-specified routing"
"""How ddx's router says that it found nobody to ask."""

WHO = "name one: --agent and --model, HELIX_AGENT and HELIX_MODEL, or `agent` and `model` in the settings"
"""What helps then."""


def with_who(problem: str, said: str = "") -> str:
    """Why nobody answered; where ddx's router refused, with the setting that helps."""
    return f"{problem}; {WHO}" if re.search(UNROUTED, f"{problem}\n{said}") else problem


class ReaderGone(SystemExit):
    """Whoever read what this process prints has gone: it ends without a word. No OSError: nothing has failed."""

    def __init__(self) -> None:
        super().__init__(READER_GONE)


class HelixError(Exception):
    """Something could not be done: what, because of what, and what to do next.

    A subclass may set ``advice`` and ``exit_code`` for all of its kind.
    """

    message: str
    """What could not be done, and because of what."""
    advice: str = ""
    """What to do next, one sentence; empty where the message says all."""
    exit_code: int = FAILED
    """Exit code of the command line, from docs/cli.md."""

    def __init__(self, message: str = "", advice: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if advice:
            self.advice = advice
        if exit_code is not None:
            self.exit_code = exit_code
