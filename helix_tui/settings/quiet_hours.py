"""The hours in which nothing is notified."""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from helix_tui.core.ground.time import NS

QUIET_FORM = "hours as in 22:00-07:00"

_SPAN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)")


class QuietHours(Struct, frozen=True):
    """The quiet hours in minutes of the local day; none if both are equal."""

    start: int = 0
    end: int = 0

    def hold(self, now: int) -> bool:
        """Whether it is quiet at an instant."""
        moment = datetime.fromtimestamp(now // NS)
        minute = moment.hour * 60 + moment.minute
        # a span that starts later than it ends crosses midnight
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_quiet(text: str) -> QuietHours:
    """Parse ``22:00-07:00``; an empty text means none.

    Raises:
        ValueError: the text has another form.
    """
    if not text.strip():
        return QuietHours()
    span = _SPAN.fullmatch(text.strip())
    if span is None:
        raise ValueError(QUIET_FORM)
    hour, minute, until_hour, until_minute = map(int, span.groups())
    return QuietHours(hour * 60 + minute, until_hour * 60 + until_minute)
