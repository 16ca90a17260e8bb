"""Each wish of curation against a twin project in which the same wish is typed to ddx by hand.

What must hold: a wish that is foretold as done leaves the rows that ddx makes of the typed one, the ready
list that was foretold, and comes back as it was; a wish that is refused is refused before anything ran.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.real.states import STATES, Queue, Rows, masked
from tests.real.stranger import Ran, Stranger
from tests.real.wishes import KINDS, Kind, Words

SEED, PER_RELEASE = 14, 200


def _chosen() -> list[tuple[Kind, str, str]]:
    """A seeded choice of wishes, beads and other beads: each kind at least twice."""
    chance = random.Random(SEED)
    every = [(kind, state) for kind in KINDS for state in STATES]
    chance.shuffle(every)
    first = [pair for kind in KINDS for pair in [pair for pair in every if pair[0] is kind][:2]]
    fitting = {"dep remove": "waiting", "reopen": "closed", "unclaim": "claimed", "unset colour": "custom"}
    fitting |= {"label remove": "labelled", "eligible on": "off", "close": "awaited", "label swap": "labelled"}
    fitting |= {"unset three": "custom", "unset eligible": "off", "parent none": "child", "reopen bare": "closed"}
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
    record_property("outcome", wish_against_twin(queue, kind, state, other))


def wish_against_twin(queue: Queue, kind: Kind, state: str, other: str) -> str:
    """Type one wish to ddx and the same to us, each on the same project; what came of it in a word."""
    bead, second = queue.ids[state], queue.ids[other]
    before, _ = queue.fresh()
    for typed in kind.typed(bead, second, before[bead]):
        queue.place.ddx(*typed)
    twin = masked(queue.place), queue.place.ready()
    rows, ready = queue.fresh()
    assert rows == before
    return _compare(queue.place, rows, ready, twin, kind.ours(bead, second))


def _unstamped(rows: Rows) -> Rows:
    return {
        bead: {name: value for name, value in row.items() if name != "schema_version"} for bead, row in rows.items()
    }


def _made(rows: Rows, now: Rows) -> list[str]:
    """The ids that were not there before."""
    return sorted(set(now) - set(rows))


def _renamed(said: Any, pairs: Iterable[tuple[str, str]]) -> Any:
    """What was said, with other ids for beads that had none yet or were made in the twin."""
    text = json.dumps(said)
    for there, here in pairs:
        text = text.replace(json.dumps(there), json.dumps(here))
    return json.loads(text)


def _compare(place: Stranger, rows: Rows, ready: list[str], twin: tuple[Rows, list[str]], words: Words) -> str:
    """Foretell, wish, compare, undo; what came of it in a word."""
    foretold = _said(place.tui(*words, "--dry-run", "--json"))
    assert masked(place) == rows, "a preview changed something"
    done = place.tui(*words, "--json")
    said = _said(done)
    if foretold["refused"]:
        assert done.returncode != 0
        assert said["refused"] == foretold["refused"]
        if foretold["commands"]:
            _rest_was_done({each["id"] for each in said["refused"]}, masked(place), rows, twin[0])
            return "some refused by us"
        assert masked(place) == rows, "refused, and changed"
        return "refused by both" if twin[0] == rows else f"refused by us: {foretold['refused'][0]['why']}"
    mine = masked(place)
    assert len(_made(rows, mine)) == len(_made(rows, twin[0])), (foretold["commands"], done.stderr)
    foretold = _renamed(foretold, [("(new)", each) for each in _made(rows, mine)])
    twin = _renamed(twin, zip(_made(rows, twin[0]), _made(rows, mine), strict=True))
    if foretold["commands"]:
        assert mine == twin[0], (foretold["commands"], done.stderr)
    else:
        # what is typed is written even if nothing changes, and a write stamps old rows; we write nothing
        assert mine == rows
        assert _unstamped(mine) == _unstamped(twin[0]), done.stderr
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


def _rest_was_done(refused: set[str], mine: Rows, rows: Rows, twin: Rows) -> None:
    """Of several beads those that are refused stand as they did, and the others as ddx leaves them."""
    assert {bead: mine[bead] for bead in refused} == {bead: rows[bead] for bead in refused}
    assert {bead: row for bead, row in mine.items() if bead not in refused} == {
        bead: row for bead, row in twin.items() if bead not in refused
    }


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
    told = {(each["field"], bead) for each in said["rewrites"] for bead in each["beads"]}
    assert not told or "ddx adds it at any change" in " ".join(said["traces"])
    for bead, row in rows.items():
        kept_here = kept | {name for name, told_bead in told if told_bead == bead}
        changed = {key for key in row.keys() | left[bead].keys() if row.get(key) != left[bead].get(key)}
        assert changed <= kept_here, (bead, changed, said["traces"])
    free = {bead for bead in rows if any(f"the lease of {bead} " in each for each in said["traces"])}
    free |= {bead for bead, row in rows.items() if row["status"] == "in_progress"}  # a claim ages meanwhile
    assert [bead for bead in place.ready() if bead not in free] == [bead for bead in ready if bead not in free]
    return "taken back"
