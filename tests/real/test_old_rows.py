"""A tracker whose rows an older release wrote: what this ddx adds to all of them at any change is said."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.real.states import Queue, made_queue
from tests.real.stranger import Release, Stranger
from tests.real.test_wishes import wish_against_twin
from tests.real.wishes import KINDS, Kind


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
