"""Each wish of curation against a twin project in which the same wish is typed to ddx by hand.

What must hold: a wish that is foretold as done leaves the rows that ddx makes of the typed one, the ready
list that was foretold, and comes back as it was; a wish that is refused is refused before anything ran.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.real.states import STATES, Queue, Rows, masked
from tests.real.stranger import Ran, Stranger

Words = tuple[str, ...]

SEED, PER_RELEASE = 14, 66

REASON = "lifecycle-external-blocker-reason"
"""Why a bead is blocked, as rows name it: ddx of August has a flag for it besides."""


@dataclass(frozen=True)
class Kind:
    """One wish: in our words, and as a person types it to ddx."""

    name: str
    ours: Callable[[str, str], Words]
    typed: Callable[[str, str, dict[str, Any]], list[Words]]


def _update(*words: str) -> Callable[[str, str, dict[str, Any]], list[Words]]:
    return lambda bead, other, row: [("bead", "update", bead, *words)]


def _set(name: str, text: str, flag: str = "") -> Kind:
    typed = _update(flag, text) if flag else _update("--set", f"{name}={text}")
    return Kind(f"set {name} {text!r:.20}", lambda bead, other: ("set", bead, f"{name}={text}"), typed)


def _labels(bead: str, row: dict[str, Any], *, add: str = "", remove: str = "") -> list[Words]:
    left = [label for label in row.get("labels") or [] if label != remove]
    left += [add] if add and add not in left else []
    return [("bead", "update", bead, "--labels", ",".join(left))]


KINDS = (
    _set("priority", "0", "--priority"),
    _set("priority", "4", "--priority"),
    _set("title", "Größer, “quoted” & $HOME", "--title"),
    _set("description", "two\n\nlines -- and a tab\t.", "--description"),
    _set("acceptance", "true exits 0", "--acceptance"),
    _set("notes", "-n is no flag", "--notes"),
    _set("spec-id", "FEAT-001"),
    _set("colour", "blue"),
    _set("size", "3"),
    _set("ratio", "0.50"),
    _set("flag", "true"),
    _set("list", '["a", "b"]'),
    Kind(
        "unset colour",
        lambda bead, other: ("unset", bead, "colour"),
        _update("--unset", "colour"),
    ),
    Kind(
        "label add",
        lambda bead, other: ("label", bead, "--add", "area:core"),
        lambda bead, other, row: _labels(bead, row, add="area:core"),
    ),
    Kind(
        "label remove",
        lambda bead, other: ("label", bead, "--remove", "one"),
        lambda bead, other, row: _labels(bead, row, remove="one"),
    ),
    Kind(
        "dep add",
        lambda bead, other: ("dep", "add", bead, other),
        lambda bead, other, row: [("bead", "dep", "add", bead, other)],
    ),
    Kind(
        "dep remove",
        lambda bead, other: ("dep", "remove", bead, other),
        lambda bead, other, row: [("bead", "dep", "remove", bead, other)],
    ),
    Kind(
        "parent",
        lambda bead, other: ("set", bead, f"parent={other}"),
        lambda bead, other, row: [("bead", "update", bead, "--parent", other)],
    ),
    Kind(
        "supersede",
        lambda bead, other: ("supersede", bead, other),
        lambda bead, other, row: [("bead", "update", bead, "--set", f"superseded-by={other}")],
    ),
    Kind(
        "eligible off",
        lambda bead, other: ("eligible", bead, "off"),
        _update("--set", "execution-eligible=false"),
    ),
    Kind(
        "eligible on",
        lambda bead, other: ("eligible", bead, "on"),
        lambda bead, other, row: [
            ("bead", "update", bead, "--set", "execution-eligible=true") for _ in range("execution-eligible" in row)
        ],
    ),
    Kind(
        "claim",
        lambda bead, other: ("claim", bead, "--assignee", "Ada"),
        _update("--claim", "--assignee", "Ada"),
    ),
    Kind("unclaim", lambda bead, other: ("unclaim", bead), _update("--unclaim")),
    Kind("close", lambda bead, other: ("close", bead), lambda bead, other, row: [("bead", "close", bead)]),
    Kind(
        "reopen",
        lambda bead, other: ("reopen", bead, "--reason", "not done", "--append-notes", "again"),
        lambda bead, other, row: [("bead", "reopen", bead, "--reason", "not done", "--append-notes", "again")],
    ),
    Kind(
        "cancel",
        lambda bead, other: ("cancel", bead),
        lambda bead, other, row: [
            *[("bead", "update", bead, "--unclaim")] * (row["status"] == "in_progress"),
            ("bead", "update", bead, "--status", "cancelled"),
        ],
    ),
    Kind(
        "block",
        lambda bead, other: (
            "set",
            bead,
            "status=blocked",
            f"{REASON}=no licence",
        ),
        lambda bead, other, row: [
            ("bead", "update", bead, "--status", "blocked", "--external-blocker-reason", "no licence"),
            ("bead", "update", bead, "--status", "blocked", "--set", f"{REASON}=no licence"),
        ],
    ),
    Kind(
        "rank top",
        lambda bead, other: ("rank", bead, "--top"),
        lambda bead, other, row: [("bead", "queue", "top", bead)],
    ),
    Kind(
        "rank after",
        lambda bead, other: ("rank", bead, "--after", other),
        lambda bead, other, row: [("bead", "queue", "move", bead, "--after", other)],
    ),
)


def _chosen() -> list[tuple[Kind, str, str]]:
    """A seeded choice of wishes, beads and other beads: each kind at least twice."""
    chance = random.Random(SEED)
    every = [(kind, state) for kind in KINDS for state in STATES]
    chance.shuffle(every)
    first = [pair for kind in KINDS for pair in [pair for pair in every if pair[0] is kind][:2]]
    fitting = {"dep remove": "waiting", "reopen": "closed", "unclaim": "claimed", "unset colour": "custom"}
    fitting |= {"label remove": "labelled", "eligible on": "off", "close": "awaited"}
    first += [(kind, fitting[kind.name]) for kind in KINDS if kind.name in fitting]
    rest = [pair for pair in every if pair not in first]
    pairs = list(dict.fromkeys([*first, *rest]))[:PER_RELEASE]
    others = {"dep remove": ["awaited"], "rank after": ["awaited", "labelled"]}
    return [
        (
            kind,
            state,
            chance.choice([name for name in others.get(kind.name, STATES) if name != state] or ["plain"]),
        )
        for kind, state in pairs
    ]


def _said(done: Ran) -> dict[str, Any]:
    assert done.stdout.startswith("{"), (done.returncode, done.stdout, done.stderr)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize(
    ("kind", "state", "other"),
    _chosen(),
    ids=lambda each: each.name.replace(" ", "-") if isinstance(each, Kind) else each,
)
def test_wish(queue: Queue, kind: Kind, state: str, other: str, record_property: Callable[[str, object], None]) -> None:
    bead, second = queue.ids[state], queue.ids[other]
    before, _ = queue.fresh()
    for typed in kind.typed(bead, second, before[bead]):
        queue.place.ddx(*typed)
    twin = masked(queue.place), queue.place.ready()
    rows, ready = queue.fresh()
    assert rows == before
    outcome = _compare(queue.place, rows, ready, twin, kind.ours(bead, second))
    record_property("outcome", outcome)


def _compare(place: Stranger, rows: Rows, ready: list[str], twin: tuple[Rows, list[str]], words: Words) -> str:
    """Foretell, wish, compare, undo; what came of it in a word."""
    foretold = _said(place.tui(*words, "--dry-run", "--json"))
    assert masked(place) == rows, "a preview changed something"
    done = place.tui(*words, "--json")
    said = _said(done)
    if foretold["refused"]:
        assert done.returncode != 0
        assert said["refused"]
        assert masked(place) == rows, "refused, and changed"
        return "refused by both" if twin[0] == rows else f"refused by us: {foretold['refused'][0]['why']}"
    assert masked(place) == twin[0], (foretold["commands"], done.stderr)
    assert done.returncode == 0, done.stderr
    told = (set(ready) | set(foretold["newly_ready"])) - set(foretold["newly_blocked"])
    told -= {each["bead_id"] for each in foretold["places"] if each["will"] is None}
    assert set(twin[1]) == told, foretold["commands"]
    assert place.ready() == twin[1]
    if not foretold["commands"]:
        assert said["journal_id"] is None
        return "nothing to do"
    assert foretold["next"] == twin[1][: len(foretold["next"])]
    return _taken_back(place, rows, ready, said)


def _taken_back(place: Stranger, rows: Rows, ready: list[str], said: dict[str, Any]) -> str:
    """Undo: equal to what stood, or refused with nothing changed, as was said when it was done."""
    stood = masked(place)
    undone = place.tui("undo", "--json")
    if not said["undoable"]:
        assert undone.returncode != 0
        assert said["why_not"]
        assert masked(place) == stood
        return "no way back"
    assert undone.returncode == 0, undone.stderr
    left = masked(place)
    kept = {"events", "events_attachment"} if any("history" in each for each in said["traces"]) else set()
    for bead, row in rows.items():
        changed = {key for key in row.keys() | left[bead].keys() if row.get(key) != left[bead].get(key)}
        assert changed <= kept, (bead, changed, said["traces"])
    free = {bead for bead in rows if any(f"the lease of {bead} " in each for each in said["traces"])}
    free |= {bead for bead, row in rows.items() if row["status"] == "in_progress"}  # a claim ages meanwhile
    assert [bead for bead in place.ready() if bead not in free] == [bead for bead in ready if bead not in free]
    return "taken back"
