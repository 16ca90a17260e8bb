"""``--since``: attempts that began at or after an instant."""

from __future__ import annotations

import argparse
import re

from helix_tui.cli.call import Call, CliError
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_now

_SPAN = re.compile(r"(\d+)([smhdw])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def add_since(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument("--since", metavar="D", help="started since then: 90m, 12h, 3d, or an ISO 8601 time")


def since_of(call: Call) -> int | None:
    """The instant that was asked for, or None.

    Raises:
        CliError: neither a span nor a time.
    """
    text = call.options.since
    if not text:
        return None
    span = _SPAN.match(text)
    if span:
        return call.now - int(span.group(1)) * _SECONDS[span.group(2)] * NS
    try:
        return parse_now(text)
    except ValueError:
        raise CliError(
            f"--since {clean_line(text, 40)!r} is neither a duration nor a time",
            "Write 90m, 12h, 3d or 2026-08-21.",
            2,
        ) from None


def began_since(attempt: Attempt, since: int | None) -> bool:
    """Whether an attempt began at or after ``since``; one of which no time is known counts as old."""
    return since is None or (attempt.started_at or attempt.finished_at or 0) >= since
