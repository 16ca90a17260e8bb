"""Circles: the way round, what would break it, and who waits on one from outside."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.graph import Cut, circle_ahead, circle_of, circles
from helix_tui.core.beads.readiness import Queue, classify
from tests.programs import parse_rows


def queue_of(edges: dict[str, str], **status: str) -> Queue:
    rows = [
        {
            "id": bead_id,
            "title": "t",
            "schema_version": 1,
            "status": status.get(bead_id, "open"),
            "dependencies": [{"depends_on_id": target} for target in targets.split()],
        }
        for bead_id, targets in edges.items()
    ]
    return classify(parse_rows(b"\n".join(json.dumps(row).encode() for row in rows)).beads, now=0)


def test_the_circle_is_the_way_round_not_the_list_of_its_beads() -> None:
    queue = queue_of({"a": "c", "b": "a", "c": "b"})
    circle = circle_of(queue, "b")
    assert circle is not None
    assert circle.path() == "b → a → c → b"


def test_cuts_say_what_is_ready_without_the_edge() -> None:
    circle = circle_of(queue_of({"a": "b", "b": "a x", "x": ""}), "a")
    assert circle is not None
    assert circle.cuts == (Cut("a", "b", True), Cut("b", "a", False))


def test_a_bead_can_wait_on_itself() -> None:
    circle = circle_of(queue_of({"a": "a"}), "a")
    assert circle is not None
    assert (circle.path(), circle.cuts) == ("a → a", (Cut("a", "a", True),))


def test_whoever_waits_on_a_circle_learns_of_it() -> None:
    queue = queue_of({"far": "near", "near": "a", "a": "b", "b": "a", "free": ""})
    assert circle_of(queue, "far") is None
    ahead = circle_ahead(queue, "far")
    assert ahead is not None
    assert set(ahead.ids) == {"a", "b"}
    assert circle_ahead(queue, "free") is None


def test_a_circle_through_a_closed_bead_holds_nobody() -> None:
    queue = queue_of({"a": "b", "b": "a", "after": "a"}, b="closed")
    assert circle_of(queue, "a") is None
    assert circle_ahead(queue, "after") is None
    assert not list(circles(queue))


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdefg"), max_size=4), min_size=1))
def test_a_circle_goes_along_edges_and_comes_back(edges: dict[str, set[str]]) -> None:
    queue = queue_of({bead_id: " ".join(sorted(targets)) for bead_id, targets in edges.items()})
    circled = {bead_id for group in queue.graph.cycles for bead_id in group}
    for bead_id in edges:
        circle = circle_of(queue, bead_id)
        assert (circle is not None) == (bead_id in circled)
        if circle is not None:
            assert circle.ids[0] == bead_id
            for waiter, needed in zip(circle.ids, (*circle.ids[1:], bead_id), strict=True):
                assert needed in edges[waiter]
