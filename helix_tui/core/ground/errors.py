"""The base class of every error raised on purpose, so that each interface catches one class."""

from __future__ import annotations

import re

FAILED = 1
"""Exit code of a command that failed for a reason its message states."""

DEFECT = 70
"""Exit code of an unexpected exception; its trace is in the log."""

READER_GONE = 141
"""Exit code when the reader of the output has closed the pipe, as shells report it (128 + SIGPIPE)."""

UNROUTED = r"no viable routing candidate|routing under-specified|under-specified routing"
"""Messages of ddx's router when it finds no harness or model."""

WHO = "name an agent: --agent and --model, HELIX_AGENT and HELIX_MODEL, or `agent` and `model` in the settings"
"""Advice for those messages."""


def with_who(problem: str, said: str = "") -> str:
    """The problem, followed by the setting that helps where ddx's router refused."""
    return f"{problem}; {WHO}" if re.search(UNROUTED, f"{problem}\n{said}") else problem


class ReaderGone(SystemExit):
    """Exit silently because the reader of the output has gone. Not an OSError: nothing has failed."""

    def __init__(self) -> None:
        super().__init__(READER_GONE)


class HelixError(Exception):
    """Something could not be done: what, because of what, and what to do next.

    A subclass may set ``advice`` and ``exit_code`` for all its instances.
    """

    message: str
    """What could not be done, and because of what."""
    advice: str = ""
    """What to do next, in one sentence; empty if the message suffices."""
    exit_code: int = FAILED
    """Exit code of the command line, from docs/cli.md."""

    def __init__(self, message: str = "", advice: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if advice:
            self.advice = advice
        if exit_code is not None:
            self.exit_code = exit_code
