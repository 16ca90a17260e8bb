"""The code base of the demo: a small timetable library for ferries, commit by commit."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Commit:
    """One commit of the demo's past: what it says, who made it how many days ago, and the files it writes."""

    message: str
    days_ago: float
    files: dict[str, str] = field(default_factory=dict)
    author: str = "maren"


README = """\
# ferry

Reads the timetables that small ferry lines publish. Its one question: *when does the next boat leave?*

    $ python -m ferry next Hvar
    10:40  Hvar -> Vis   (in 23 min)

See `docs/format.md` for the text format and `docs/decisions.md` for why it is a text format at all.
"""

TIMETABLE = '''\
"""Sailings of one day, and the next one after a given time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sailing:
    departs: str
    origin: str
    target: str


def next_sailing(sailings: list[Sailing], origin: str, clock: str) -> Sailing | None:
    """The first sailing from a stop at or after a time of the day."""
    later = [sailing for sailing in sailings if sailing.origin == origin and sailing.departs >= clock]
    return min(later, key=lambda sailing: sailing.departs, default=None)


def stops(sailings: list[Sailing]) -> list[str]:
    """Every stop, in the order of the alphabet."""
    return sorted({sailing.origin for sailing in sailings} | {sailing.target for sailing in sailings})
'''

PARSE = '''\
"""Timetables as text: one sailing a line, `10:40 Hvar - Vis`."""

from __future__ import annotations

from ferry.timetable import Sailing


def parse(text: str) -> list[Sailing]:
    """Every sailing of a timetable; lines that say nothing are skipped."""
    sailings = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        departs, _, route = line.partition(" ")
        origin, _, target = route.partition(" - ")
        sailings.append(Sailing(departs, origin.strip(), target.strip()))
    return sailings
'''

CLI = '''\
"""The command line: `python -m ferry next STOP`."""

from __future__ import annotations

import sys
from pathlib import Path

from ferry.parse import parse
from ferry.timetable import next_sailing


def main(words: list[str]) -> int:
    """Print the next sailing from a stop."""
    stop, clock, source = words
    found = next_sailing(parse(Path(source).read_text()), stop, clock)
    print(f"{found.departs}  {found.origin} -> {found.target}" if found else f"no more boats from {stop}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

NAMES = '''\
"""Stop names as people type them."""

from __future__ import annotations


def same_stop(typed: str, known: str) -> bool:
    """Whether a typed name means a known stop."""
    return typed == known
'''

TESTS = '''\
from ferry.parse import parse
from ferry.timetable import next_sailing, stops

DAY = """
# winter
06:15 Hvar - Vis
10:40 Hvar - Vis
18:05 Vis - Hvar
"""


def test_the_next_sailing_is_the_first_one_later():
    found = next_sailing(parse(DAY), "Hvar", "07:00")
    assert found is not None
    assert found.departs == "10:40"


def test_stops_are_listed_once():
    assert stops(parse(DAY)) == ["Hvar", "Vis"]
'''

FORMAT = """\
# The timetable format

One sailing a line: time, stop of departure, ` - `, stop of arrival. A line that starts with `#` is a remark.

    06:15 Hvar - Vis

Times are local and have two digits each. There are no days of the week yet.
"""

DECISIONS = """\
# Decisions

1. Timetables are text files: harbour offices send them by mail, and a person must be able to mend one.
2. No time zones: a ferry line has one clock.
3. Names are compared as typed. (To be changed: people do not type accents.)
"""

WORDS = """\
# Words

## Northern line

The northern line is the boat between Hvar and Vis. Its office mails a timetable every season.

## Southern line

The southern line is the boat between Split and Lastovo. Nobody imports its timetable yet.

## Sailing

A sailing is one departure of one boat: `Sailing` holds its time, its origin and its target.
"""

QUESTIONS = (
    "Why are timetables text files?",
    "What is a sailing?",
    "Where is the next sailing found?",
    "Who calls `parse`?",
    "How are stop names compared?",
    "What is a line?",
    "Does the format know time zones?",
)
"""Questions whose answers can be checked by eye; the last but one has two senses."""

HISTORY = (
    Commit(
        "ferry: read a timetable and find the next sailing",
        41,
        {
            "README.md": README,
            "ferry/__init__.py": "",
            "ferry/timetable.py": TIMETABLE,
            "ferry/parse.py": PARSE,
        },
    ),
    Commit(
        "tests: the next sailing, the list of stops", 40.6, {"tests/test_timetable.py": TESTS}, author="jonas"
    ),
    Commit("docs: say what a timetable looks like", 33, {"docs/format.md": FORMAT}, author="jonas"),
    Commit("ferry: a command line", 26, {"ferry/__main__.py": CLI}),
    Commit(
        "docs: write down what was decided", 19.5, {"docs/decisions.md": DECISIONS, "docs/words.md": WORDS}
    ),
    Commit("names: one place that compares stop names", 12, {"ferry/names.py": NAMES}, author="jonas"),
    Commit(
        "data: the winter timetable of the northern line",
        8.2,
        {"data/north.txt": "# winter\n06:15 Hvar - Vis\n10:40 Hvar - Vis\n18:05 Vis - Hvar\n"},
    ),
)
"""The demo's commits, oldest first."""
