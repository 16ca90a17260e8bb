"""A tracker whose rows another program wrote: what this ddx does to all of them at any change is foretold.

Each row is odd in its own way; ddx gets one change of another bead.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.trial import examine
from helix_tui.core.editing.execute.reconciliation import rewritten
from helix_tui.core.ground.time import parse_instant
from tests.real.states import Queue, made_queue
from tests.real.stranger import Release, Stranger
from tests.real.test_wishes import wish_against_twin
from tests.real.wishes import KINDS, Kind

THEN = "2026-04-01T10:00:00Z"
NAMES = (
    *("title", "status", "issue_type", "priority", "schema_version", "owner", "created_by", "parent", "notes"),
    *("description", "acceptance", "labels", "dependencies", "created_at", "updated_at", "events", "colour"),
    *("queue-rank", "execution-eligible", "Title"),
)
ODD: tuple[Any, ...] = (
    *(None, "", [], {}, 0, 1, -3, 1.0, 1.5, 2**53 + 1, 12345678901234567890, 10**25, 0.1, -0.0, True, False),
    *("x", "2", "ü\u2028", "\U0001f600", "\ud800x", ["a"], ["a", 5, None], [5], {"a": [1, 2**60 + 1, {"b": None}]}),
    [{"issue_id": "a", "depends_on_id": "b", "type": "blocks", "more": 1}],
    [{"depends_on_id": "z"}],
    *(THEN, "2026-04-01T10:00:00.500Z", "2026-04-01 10:00:00", "2026-04-01T10:00:00+02:00", "2026-13-01T00:00:00Z"),
    *("2026-02-30T00:00:00Z", "2026-04-01t10:00:00z"),
)


def _odd_rows() -> Iterator[dict[str, Any]]:
    chance = random.Random(14)
    for number in range(400):
        names = chance.sample(NAMES, chance.randint(0, 8))
        yield {"id": f"r-{number:03}"} | {name: chance.choice(ODD) for name in names}


def _like(name: str, one: Any, other: Any) -> bool:
    """Whether two values are alike in the file: numbers by their value, instants by theirs."""
    if name in ("created_at", "updated_at") and isinstance(one, str) and isinstance(other, str):
        return parse_instant(one) == parse_instant(other)
    return bool(one == other) or (other is None and one in ("", []))


def test_what_any_change_does_to_a_row_that_nobody_named(stranger: Stranger, release: Release) -> None:
    bead = stranger.bead("changed")
    path = stranger.project / ".ddx" / "beads.jsonl"
    own = path.read_text()
    path.write_text(own + "".join(json.dumps(row) + "\n" for row in _odd_rows()))
    before = {bead_id: each.document() for bead_id, each in read_tracker(path).beads.items()}
    fills = examine(release.path, stranger.project, stranger.env, "head").fills
    assert fills is not None
    stranger.ddx("bead", "update", bead, "--set", "colour=red", check=True)
    after = {bead_id: each.document() for bead_id, each in read_tracker(path).beads.items()}
    for bead_id, row in before.items():
        if bead_id != bead:
            told = row | rewritten(row, fills)
            wrong = {
                name for name in {*told, *after[bead_id]} if not _like(name, told.get(name), after[bead_id].get(name))
            }
            assert not wrong, (row, after[bead_id])


@pytest.fixture(scope="module")
def old_queue(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A bead of each state, the rows as releases before the end of May wrote them."""
    place = Stranger(tmp_path_factory.mktemp(f"old-{release.name}"), release).make()
    try:
        yield replace(made_queue(place), old=True)
    finally:
        place.clean_up()


def _picked() -> list[tuple[Kind, str, str]]:
    chance = random.Random(14)
    kinds = chance.sample(KINDS, 25)
    states = ("plain", "labelled", "waiting", "child", "closed", "off", "custom")
    pairs = [chance.sample(states, 2) for _ in kinds]
    return [(kind, state, other) for kind, (state, other) in zip(kinds, pairs, strict=True)]


@pytest.mark.parametrize(
    ("kind", "state", "other"),
    _picked(),
    ids=lambda each: each.name.replace(" ", "-") if isinstance(each, Kind) else each,
)
def test_wish_on_old_rows(
    old_queue: Queue, kind: Kind, state: str, other: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("outcome", wish_against_twin(old_queue, kind, state, other))
