"""Parse instants as DDx writes them, and format them for people.

DDx writes RFC 3339 in UTC with 0 to 9 fraction digits, trailing zeros cut (docs/formats/ddx.md §1). An
instant here is an ``int``: nanoseconds since the Unix epoch, so that two records that differ only in
the ninth digit keep DDx's order.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import lru_cache

NS = 1_000_000_000
"""Nanoseconds in a second."""

NEVER = -62_135_596_800 * NS
"""Go's zero time, 0001-01-01T00:00:00Z: what DDx uses for a missing or unreadable time."""

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999: the last that ``datetime`` can hold."""

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AT_INSTANT = re.compile(r"(?:\bat )?\b(\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d))", re.ASCII)


def parse_instant(text: object) -> int | None:
    """Nanoseconds since the epoch for an RFC 3339 text, or None for anything else.

    As strict as Go's ``time.Parse(time.RFC3339, …)``: a zone is required, a date alone is not a time.
    """
    if not isinstance(text, str):
        return None
    match = _RFC3339.match(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        return None
    seconds = (whole - _EPOCH).total_seconds()
    nanoseconds = int((fraction or "0")[:9].ljust(9, "0"))
    return int(seconds) * NS + nanoseconds


@lru_cache(maxsize=1 << 14)
def bead_instant(text: str) -> int | None:
    """Like `parse_instant`, but cached: a tracker is classified at every change, and most of its times stay the same.

    Not for times that are read once, as in a log: 16,384 cached times take 4 MB.
    """
    return parse_instant(text)


def parse_now(text: str) -> int:
    """The instant of a ``--now`` argument; a missing zone means UTC, a date alone its midnight.

    Raises:
        ValueError: the text is not an ISO 8601 date or time.
    """
    exact = parse_instant(text)
    if exact is not None:
        return exact
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not an ISO 8601 time: {text!r} (write it like 2026-08-21T22:00:28Z)") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int((moment - _EPOCH).total_seconds() * 1_000_000) * 1000


def now_ns() -> int:
    """The current instant."""
    return time.time_ns()


def local_moment(instant: int | None) -> datetime | None:
    """An instant as a local ``datetime``; None for None or an instant out of range."""
    if instant is None:
        return None
    try:
        return datetime.fromtimestamp(instant // NS).astimezone()
    except (OverflowError, OSError, ValueError):
        return None


def clock_time(instant: int | None) -> str:
    """The local time of day with seconds; blanks of the same width for None."""
    moment = local_moment(instant)
    return " " * 8 if moment is None else moment.strftime("%H:%M:%S")


def midnight(now: int) -> int:
    """The instant at which the local day of ``now`` began."""
    moment = local_moment(now)
    if moment is None:
        return now
    return int(moment.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()) * NS


def format_day(instant: int | None) -> str:
    """The local day of an instant: ``2026-08-21``; empty for None."""
    moment = local_moment(instant)
    return "" if moment is None else moment.date().isoformat()


def format_instant(instant: int) -> str:
    """An instant as RFC 3339 in UTC, whole seconds: ``2026-08-21T22:00:28Z``."""
    if instant <= NEVER:
        return "0001-01-01T00:00:00Z"
    return datetime.fromtimestamp(min(instant // NS, _LAST_SECOND), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_age(seconds: float) -> str:
    """A time span in at most four characters, for a list: ``12s 5m 3h 9d 14w 2y``."""
    seconds = max(0, int(seconds))
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h"), (14 * 86_400, 86_400, "d")):
        if seconds < limit:
            return f"{seconds // unit}{name}"
    weeks = seconds // (7 * 86_400)
    return f"{weeks}w" if weeks < 104 else f"{seconds // (365 * 86_400)}y"


def with_relative_times(text: str, now: int) -> str:
    """A sentence with its instants shown relative to ``now``: ``in 5h 12m``, ``3d ago``."""

    def relative(found: re.Match[str]) -> str:
        instant = parse_instant(found[1])
        if instant is None:
            return found[0]
        left = (instant - now) / NS
        return f"in {format_span(left)}" if left > 0 else f"{format_age(-left)} ago"

    return _AT_INSTANT.sub(relative, text)


def format_span(seconds: float) -> str:
    """A time span with two units, for something that runs or waits: ``4m 12s``, ``5h 12m``, ``3d 2h``."""
    seconds = max(0, int(seconds))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"
    return f"{seconds // 86_400}d {seconds % 86_400 // 3600}h"
