"""How often the outcome was inside the forecast's interval, for every day of two recorded trackers.

    python -m bench.forecast ../shared/data/ddx/beads-union.jsonl.xz [more trackers]

A tracker says on which day each closed bead was last changed; from each day on, with 5 to 100 beads left, the
forecast is held against the day on which as many more were closed. Days whose end is not recorded and may lie
within the interval are left out.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from helix_tui.core.insights.forecast import FORTNIGHT, SHARE, draw

LEFT = (5, 10, 20, 50, 100)


def closed_per_day(files: Sequence[Path]) -> list[int]:
    """Closed beads, day by day."""
    counted: Counter[date] = Counter()
    for file in files:
        data = file.read_bytes()
        for line in (lzma.decompress(data) if file.suffix == ".xz" else data).splitlines():
            row = json.loads(line)
            day = date.fromisoformat(str(row.get("updated_at") or "0001-01-01")[:10])
            if row.get("status") == "closed" and day.year > 2000:
                counted[day] += 1
    first, last = min(counted), max(counted)
    return [counted[date.fromordinal(day)] for day in range(first.toordinal(), last.toordinal() + 1)]


def actual(days: Sequence[int], left: int) -> tuple[float, bool]:
    """Days until ``left`` more were closed, and whether that is recorded."""
    for day, closed in enumerate(days):
        if closed >= left:
            return day + left / closed, True
        left -= closed
    return float(len(days)), False


def coverage(days: Sequence[int], left: int) -> tuple[int, int]:
    """(held, asked) over every day from the second week on."""
    held = asked = 0
    for today in range(FORTNIGHT, len(days) - 1):
        past = days[:today]
        if not sum(past[-2 * FORTNIGHT :]):
            continue
        drawn = draw(past, left)
        low, high = drawn[int(0.1 * len(drawn))], drawn[int(0.9 * len(drawn))]
        took, known = actual(days[today:], left)
        if not known and took < high:
            continue
        asked += 1
        held += known and low <= took <= high
    return held, asked


def main() -> None:
    """Print how often each interval held."""
    days = closed_per_day([Path(name) for name in sys.argv[1:]])
    print(f"{len(days)} days, {sum(days):,} beads; {SHARE:.0%} should hold")
    both = [coverage(days, left) for left in LEFT]
    for left, (held, asked) in zip(LEFT, both, strict=True):
        print(f"{left:>4} left: {held} of {asked}, {held / max(1, asked):.0%}")
    held, asked = (sum(column) for column in zip(*both, strict=True))
    print(f" all: {held} of {asked}, {held / max(1, asked):.0%}")


if __name__ == "__main__":
    main()
