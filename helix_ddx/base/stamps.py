"""Times and ids in the forms that DDx writes."""

from __future__ import annotations

from datetime import UTC, datetime

from helix_tui.core.ground.time import NS, format_instant


def stamp(at: int) -> str:
    """RFC 3339 with up to nine digits, trailing zeros cut, as Go's RFC3339Nano."""
    fraction = f"{at % NS:09d}".rstrip("0")
    whole = format_instant(at)
    return f"{whole[:-1]}.{fraction}Z" if fraction else whole


def second(at: int) -> str:
    """RFC 3339 in whole seconds."""
    return format_instant(at)


def attempt_id(at: int, tail: str) -> str:
    """``YYYYMMDDTHHMMSS-<8 hex>``: sorts by time."""
    return f"{datetime.fromtimestamp(at // NS, UTC):%Y%m%dT%H%M%S}-{tail[:8]}"
