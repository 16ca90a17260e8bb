"""A share of n with its 95 % interval, by Wilson's score interval (Wilson 1927): accurate for small n."""

from __future__ import annotations

import math

from msgspec import Struct

Z95 = 1.959964


class Share(Struct, frozen=True):
    """A share of n with its 95 % interval, all between 0 and 1."""

    count: int
    n: int
    rate: float | None
    low: float
    high: float

    def overlaps(self, other: Share) -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= other.high and other.low <= self.high


def share(count: int, n: int) -> Share:
    """Wilson's interval for ``count`` of ``n``; for n = 0 the interval is [0, 1]."""
    if n <= 0:
        return Share(0, 0, None, 0.0, 1.0)
    rate, z2 = count / n, Z95 * Z95
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return Share(count, n, rate, max(0.0, middle - half), min(1.0, middle + half))
