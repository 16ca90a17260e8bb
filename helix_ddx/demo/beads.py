"""The queue of the demo: every state a bead can be in, and an act for each one that will be rehearsed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SMALL, MEDIUM, LARGE = "rehearsal-small", "rehearsal-medium", "rehearsal-large"


@dataclass(frozen=True)
class Past:
    """An attempt that lies behind us: how it ended, when, how long, with what, for how much."""

    status: str
    hours_ago: float
    minutes: float
    model: str = MEDIUM
    tokens: int = 38_000
    cost: float | None = None


@dataclass(frozen=True)
class Seed:
    """One bead of the demo, by a key from which its id is made."""

    key: str
    title: str
    priority: int
    area: str
    description: str = ""
    acceptance: tuple[str, ...] = ()
    waits_on: tuple[str, ...] = ()
    status: str = "open"
    issue_type: str = "task"
    parent: str = ""
    labels: tuple[str, ...] = ()
    days_ago: float = 6.0
    fields: dict[str, Any] = field(default_factory=dict)
    act: dict[str, Any] | str | None = None
    past: tuple[Past, ...] = ()


SUITE = "`python -m pytest -q` passes"

ACCENTS = Seed(
    "accents",
    "Find a stop when its name is typed without accents",
    0,
    "names",
    "## Problem\nWho types `Vis` finds the stop, who types `Starigrad` for `Stari Grad` does not.\n"
    "## Proposed fix\nCompare names without accents, case and blanks.\n## Files\n- ferry/names.py\n",
    ('`same_stop("stari grad", "Stari Grad")` is true', SUITE),
    days_ago=9.5,
    fields={"spec-id": "FEAT-names", "queue-rank": 10},
    act={
        "edits": [
            {
                "path": "ferry/names.py",
                "old": "    return typed == known\n",
                "new": "    return _plain(typed) == _plain(known)\n\n\ndef _plain(name: str) -> str:\n"
                '    return "".join(name.casefold().split())\n',
            }
        ],
        "model": MEDIUM,
        "input_tokens": 41_200,
        "output_tokens": 1_930,
        "cost_usd": 0.31,
        "opening": "I look at how names are compared now.",
        "closing": "DELIVERED: names are compared without accents, case and blanks\n"
        'UTILIZED: ["comparing-stop-names-as-typed-misses-accents"]',
    },
    past=(Past("execution_failed", 30.5, 12.0, SMALL, 61_000, 0.04),),
)

QUEUE: tuple[Seed, ...] = (
    ACCENTS,
    Seed(
        "clock",
        "Sort sailings by the clock, not by text",
        1,
        "timetable",
        "## Problem\n`9:05` sorts behind `18:05`.\n## Files\n- ferry/timetable.py\n",
        ("a sailing at 9:05 comes before one at 10:40", SUITE),
        waits_on=("accents",),
        days_ago=9.0,
        act={
            "edits": [
                {
                    "path": "ferry/timetable.py",
                    "old": "    return min(later, key=lambda sailing: sailing.departs, default=None)\n",
                    "new": "    return min(later, key=lambda found: found.departs.zfill(5), default=None)\n",
                }
            ],
            "closing": "DELIVERED: sailings are sorted by the clock\n"
            'UTILIZED: ["sorting-times-as-text-puts-10-05-before-9-40"]',
            "input_tokens": 22_800,
            "output_tokens": 1_120,
            "cost_usd": 0.18,
        },
    ),
    Seed(
        "which-line",
        "Say which line of a timetable is wrong",
        1,
        "parse",
        "## Problem\nA line without ` - ` becomes a sailing to nowhere.\n## Files\n- ferry/parse.py\n",
        ("`parse` raises `ValueError` that names the line", SUITE),
        waits_on=("accents",),
        days_ago=8.7,
        act={
            "outcome": "review_block",
            "edits": [
                {
                    "path": "ferry/parse.py",
                    "old": '        origin, _, target = route.partition(" - ")\n',
                    "new": '        origin, dash, target = route.partition(" - ")\n        if not dash:\n'
                    '            raise ValueError(f"no route in {line!r}")\n',
                }
            ],
            "model": LARGE,
            "closing": "DELIVERED: the text of the line is in the message\n"
            'UTILIZED: ["reporting-a-wrong-line-of-a-timetable"]',
            "input_tokens": 48_100,
            "output_tokens": 3_400,
            "cost_usd": 1.12,
            "rationale": "The message names the text of the line, not its number, as was asked.",
        },
    ),
    Seed(
        "next-many",
        "Print the next three sailings, not only one",
        2,
        "cli",
        "Needs both the order by the clock and readable errors.\n## Files\n- ferry/__main__.py\n",
        ("`python -m ferry next Hvar` prints at most three lines", SUITE),
        waits_on=("clock", "which-line"),
        days_ago=8.5,
    ),
    Seed(
        "import",
        "Import the timetables of all northern lines",
        1,
        "data",
        "Seven offices publish seven formats. One importer each, then a check that nothing is lost.\n",
        issue_type="epic",
        days_ago=16.0,
    ),
    Seed(
        "import-mail",
        "Take timetables out of mails",
        1,
        "data",
        "## Files\n- ferry/parse.py\n",
        ("a mail with one timetable gives its sailings",),
        status="closed",
        parent="import",
        days_ago=15.5,
        past=(
            Past("no_changes", 190.0, 3.1, SMALL, 41_000),
            Past("success", 166.0, 11.5, LARGE, 220_000, 1.94),
        ),
    ),
    Seed(
        "import-tabs",
        "Accept tabs between time and route",
        1,
        "parse",
        "## Files\n- ferry/parse.py\n",
        ("`10:40\\tHvar - Vis` is one sailing",),
        status="closed",
        parent="import",
        days_ago=15.4,
        past=(Past("success", 142.0, 4.2, MEDIUM, 38_000, 0.42),),
    ),
    Seed(
        "import-remarks",
        "Keep the remarks of the harbour office",
        2,
        "parse",
        "## Files\n- ferry/parse.py\n",
        ("a remark stands with the sailing that follows it",),
        status="closed",
        parent="import",
        days_ago=15.3,
        past=(
            Past("land_conflict", 99.0, 14.0, MEDIUM, 120_000, 0.8),
            Past("success", 93.0, 9.0, LARGE, 180_000, 1.1),
        ),
    ),
    Seed(
        "import-days",
        "Read the days of the week",
        0,
        "data",
        "## Problem\nNothing in the format says on which days a boat runs.\n## Files\n- docs/format.md\n",
        ("the format names the days",),
        parent="import",
        days_ago=15.2,
        fields={"queue-rank": 20},
        act={
            "outcome": "no_changes",
            "opening": "I look for a day of the week in the data.",
            "rationale": "No timetable in data/ has days of the week; a person has to choose a notation.",
            "model": SMALL,
            "input_tokens": 12_600,
            "output_tokens": 410,
            "cost_usd": 0.02,
        },
    ),
    Seed(
        "import-holidays",
        "Leave out sailings on holidays",
        2,
        "data",
        "Needs the days of the week.\n",
        ("a holiday has the sailings of a Sunday",),
        waits_on=("import-days",),
        parent="import",
        days_ago=15.1,
    ),
    Seed(
        "import-push",
        "Try the import again after a broken download",
        1,
        "data",
        "## Files\n- ferry/parse.py\n",
        ("a download that breaks off is tried once more",),
        parent="import",
        days_ago=15.0,
        fields={
            "cooldown_hours": 5.2,
            "last_status": "execution_failed",
            "last_detail": "turn timeout exceeded",
        },
        past=(
            Past("execution_failed", 26.0, 30.0, MEDIUM, 310_000),
            Past("execution_failed", 0.8, 30.0, LARGE, 280_000, 2.05),
        ),
    ),
    Seed(
        "import-split",
        "Split the importer by harbour office",
        2,
        "data",
        "Two of the seven offices need a parser of their own; is it one bead or two?\n",
        status="proposed",
        parent="import",
        days_ago=14.9,
        fields={
            "needs-human-reason": "two children proposed; neither has acceptance that can be measured",
            "needs-human-source": "ddx work",
            "needs-human-suggested-action": "review and accept, split, block, or cancel this proposed work",
        },
        past=(Past("declined_needs_decomposition", 51.0, 1.2, SMALL, 9_000, 0.01),),
    ),
    Seed(
        "winter",
        "Correct the first boat of the winter timetable",
        1,
        "data",
        "## Problem\nThe first boat leaves at 06:20 since last week.\n## Files\n- data/north.txt\n",
        ("`grep -q 06:20 data/north.txt` passes",),
        days_ago=4.2,
        act={
            "outcome": "land_conflict",
            "recovers": False,
            "edits": [{"path": "data/north.txt", "old": "06:15 Hvar - Vis\n", "new": "06:20 Hvar - Vis\n"}],
            "person": {"path": "data/north.txt", "old": "06:15 Hvar - Vis\n", "new": "06:25 Hvar - Vis\n"},
            "input_tokens": 9_900,
            "output_tokens": 350,
            "cost_usd": 0.07,
        },
    ),
    Seed(
        "exit-code",
        "Leave with exit code 2 when the arguments are wrong",
        1,
        "cli",
        "## Problem\nThree arguments are unpacked without looking.\n## Files\n- ferry/__main__.py\n",
        ("`python -m ferry` exits with 2 and says how it is used", SUITE),
        days_ago=4.0,
        act={
            "outcome": "post_run_check_failed",
            "edits": [
                {
                    "path": "ferry/__main__.py",
                    "old": "    stop, clock, source = words\n",
                    "new": "    if len(words) != 3:\n        return 2\n    stop, clock, source = words\n",
                }
            ],
            "detail": "pre-merge checks blocked: usage-text",
            "rationale": "The exit code is right, but nothing says how the command is used.",
            "input_tokens": 18_300,
            "output_tokens": 900,
            "cost_usd": 0.15,
        },
    ),
    Seed(
        "usage",
        "Show the usage when there is no stop of that name",
        2,
        "cli",
        "## Files\n- ferry/__main__.py\n",
        ("an unknown stop prints the stops that exist", SUITE),
        days_ago=3.9,
        act={
            "outcome": "execution_failed",
            "detail": "provider overloaded, gave up after 3 tries",
            "input_tokens": 5_100,
            "output_tokens": 0,
            "cost_usd": None,
        },
    ),
    Seed(
        "typed-arrival",
        "Ask for an arrival as well as a departure",
        2,
        "timetable",
        "The acceptance names a function that does not exist.\n",
        ("`arrivals()` works",),
        days_ago=3.7,
        act={
            "outcome": "structural_validation_failed",
            "detail": "acceptance 1 names `arrivals`, which no file defines",
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_usd": None,
        },
    ),
    Seed(
        "decided",
        "Write down that names are compared without accents",
        2,
        "docs",
        "## Files\n- docs/decisions.md\n",
        ("`grep -q accents docs/decisions.md` passes",),
        days_ago=3.5,
        act={
            "outcome": "already_satisfied",
            "rationale": "docs/decisions.md, decision 3, says it already.",
            "model": SMALL,
            "input_tokens": 6_200,
            "output_tokens": 220,
            "cost_usd": 0.01,
        },
    ),
    Seed(
        "slow-suite",
        "Find out why the suite takes eight minutes",
        3,
        "tests",
        "## Files\n- tests/test_timetable.py\n",
        (SUITE,),
        days_ago=3.1,
        act={
            "outcome": "stall",
            "silence_beats": 42,
            "calls": [
                {"tool": "Bash", "input": {"command": "python -m pytest -q --durations=5"}, "output": "…"}
            ],
            "detail": "turn timeout exceeded",
            "model": LARGE,
            "input_tokens": 90_400,
            "output_tokens": 2_100,
            "cost_usd": None,
        },
    ),
    Seed(
        "readme",
        "Show a whole day in the README",
        3,
        "docs",
        "## Files\n- README.md\n",
        ("`grep -q 18:05 README.md` passes",),
        days_ago=2.8,
        act={
            "edits": [
                {
                    "path": "README.md",
                    "old": "See `docs/format.md`",
                    "new": "    $ python -m ferry day Vis\n    18:05  Vis -> Hvar\n\nSee `docs/format.md`",
                }
            ],
            "model": SMALL,
            "closing": "DELIVERED: a whole day stands in the README\n"
            'UTILIZED: ["showing-a-whole-day-in-the-readme"]',
            "input_tokens": 7_700,
            "output_tokens": 260,
            "cost_usd": 0.02,
        },
    ),
    Seed(
        "colours",
        "Colour the boats that leave within ten minutes",
        3,
        "cli",
        "Only when stdout is a terminal.\n",
        ("no escape sequence in a pipe",),
        labels=("manual-hold",),
        days_ago=2.5,
        fields={"execution-eligible": False, "execution-skip-reason": "waits for the choice of a palette"},
    ),
    Seed(
        "lower-case",
        "Compare stop names in lower case",
        3,
        "names",
        "A first idea, before accents were looked at.\n",
        days_ago=11.0,
        fields={"superseded-by": "accents"},
    ),
    Seed(
        "harbour-api",
        "Read departures from the harbour's own service",
        2,
        "data",
        "The harbour office promised a service with live departures.\n",
        status="blocked",
        days_ago=10.0,
        fields={
            "lifecycle-external-blocker-reason": "the harbour office has not opened its service yet",
            "last_status": "no_changes_blocked",
            "last_detail": "the service answers 503 since Monday",
        },
        past=(Past("no_changes", 75.0, 2.4, SMALL, 14_000, 0.01),),
    ),
    Seed(
        "tides",
        "Leave out boats that cannot land at low tide",
        4,
        "timetable",
        "Needs the tide tables, which were in an earlier bead.\n",
        ("a boat at low tide is marked",),
        waits_on=("tide-tables",),
        days_ago=7.5,
    ),
    Seed(
        "windows",
        "Make it work on Windows paths",
        4,
        "cli",
        "Nobody asked for it.\n",
        status="cancelled",
        days_ago=13.0,
    ),
    Seed(
        "parked",
        "Draw the route on a map",
        4,
        "cli",
        "Somebody gave this bead a status that nothing knows.\n",
        status="parked",
        days_ago=12.0,
    ),
    Seed(
        "hostile",
        "Print \x1b[31mred\x1b[0m and [bold red]markup[/] and \u202egnol yrev\u202c names 🚢 as they are, "
        "never as orders to the terminal; a title may also be far longer than any screen is wide, "
        + "long "
        * 40,
        4,
        "cli",
        "\x1b]0;owned\x07The title of this bead is hostile on purpose.\n## Files\n- docs/notes/hostile.md\n",
        days_ago=1.2,
        act={"cost_usd": None},
    ),
    Seed(
        "layout",
        "Move the library into a package",
        1,
        "timetable",
        status="closed",
        days_ago=40.0,
        past=(Past("success", 700.0, 8.0, MEDIUM, 52_000, 0.61),),
    ),
    Seed(
        "first-tests",
        "Test the next sailing",
        1,
        "tests",
        status="closed",
        days_ago=39.0,
        past=(Past("already_satisfied", 20.0, 2.0, SMALL, 11_000, 0.01),),
    ),
    Seed(
        "format-doc",
        "Say what a timetable looks like",
        2,
        "docs",
        status="closed",
        days_ago=34.0,
        past=(Past("success", 44.0, 3.4, SMALL, 19_000),),
    ),
)

ARCHIVED = Seed(
    "tide-tables", "Read the tide tables of the harbour", 2, "data", status="closed", days_ago=60.0
)
"""Closed so long ago that it is no longer in the tracker, but something still waits on it."""

MALFORMED = '{"id":"ferry-torn","title":"A line that a crash cut off'
"""One line that is no record."""
