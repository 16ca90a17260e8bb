"""Orders of the filter language; what a bead holds up; the longest chain."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.query import ORDERS, complete, parse_query, with_order
from helix_tui.core.beads.views import FOLD_DONE, build_view
from tests.core.beads.test_views import keys, queue_of, waits

CHAIN = (
    {"id": "a", "title": "start", "priority": 2, "created_at": "2026-08-01T00:00:00Z"},
    {"id": "b", "title": "Middle", "dependencies": waits("a"), "created_at": "2026-08-03T00:00:00Z"},
    {"id": "c", "title": "end", "dependencies": waits("b"), "created_at": "2026-08-02T00:00:00Z"},
    {"id": "d", "title": "beside", "dependencies": waits("a"), "created_at": "2026-08-04T00:00:00Z"},
    {"id": "e", "title": "alone", "priority": 0, "created_at": "2026-08-05T00:00:00Z"},
    {"id": "z", "title": "over", "status": "closed", "created_at": "2026-08-06T00:00:00Z"},
)


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("unblocks,-age", "a"),
        ("holds", "a"),
        ("path", "a"),
        ("p", "e"),
        ("-p", "a"),
        ("age", "e"),
        ("-age", "a"),
        ("title", "e"),
        ("-title", "a"),
        ("pick", "e"),
        ("-id", "e"),
    ],
)
def test_an_order_lists_beads_flat_and_folds_what_is_closed(order: str, first: str) -> None:
    found = keys(queue_of(*CHAIN), "dag", f"order:{order}")
    assert found[0] == first
    assert sorted(found) == ["a", "b", "c", "d", "e", FOLD_DONE]


def test_among_equals_the_second_order_decides() -> None:
    found = keys(queue_of(*CHAIN), "order", "order:unblocks,-age")
    assert found[:5] == ["a", "b", "c", "d", "e"]
    assert keys(queue_of(*CHAIN), "order", "order:unblocks,age")[:5] == ["a", "b", "e", "d", "c"]


def test_an_order_sorts_tree_and_lanes_in_their_place() -> None:
    queue = queue_of(*CHAIN)
    lanes = keys(queue, "lanes", "order:-age")
    assert lanes[lanes.index("lane:ready") + 1] == "a"
    assert keys(queue, "lanes", "order:age")[lanes.index("lane:ready") + 1] == "e"
    assert [key for key in keys(queue, "tree", "order:title") if len(key) == 1] == ["e", "d", "c", "b", "a"]


def test_a_filter_with_an_order_shows_what_matches_and_is_one_term_of_the_line() -> None:
    queue = queue_of(*CHAIN)
    assert keys(queue, "dag", "status:closed order:age") == ["z"]
    query = parse_query("order:holds p<=2")
    assert (query.order, bool(query.tests), query.problem) == (("holds",), True, "")
    assert not parse_query("order:holds").tests
    assert with_order("p<=1 order:age two", "-holds") == "p<=1 two order:-holds"
    assert with_order("order:age", "") == ""


def test_an_unknown_order_is_said_and_an_unfinished_one_is_not() -> None:
    assert "no order “size”" in parse_query("order:size").problem
    assert parse_query("order:unb").problem == ""
    assert parse_query("order:holds,").order == ("holds",)
    offered = {each.text for each in complete("order:age,-h", 12, queue_of(*CHAIN))}
    assert offered == {"holds"}
    assert {each.text for each in complete("order:", 6, queue_of(*CHAIN))} == set(ORDERS)


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_sorts_and_turned_round_it_sorts_the_other_way(name: str) -> None:
    def value(order: str) -> list[object]:
        queue = queue_of(*CHAIN)
        rows = build_view(queue, "list", f"order:{order}").rows
        return [ORDERS[name].read(queue.beads[row.bead_id], queue) for row in rows if row.kind == "bead"]

    up, down = value(name), value(f"-{name}")
    assert all(not later < sooner for sooner, later in pairwise(up))  # type: ignore[operator]
    assert all(not sooner < later for sooner, later in pairwise(down))  # type: ignore[operator]


def test_what_a_bead_holds_up_and_the_critical_path() -> None:
    chains = queue_of(*CHAIN).graph.chains
    assert dict(chains.holds_up) == {"a": 3, "b": 1}
    assert chains.path == ("a", "b", "c")
    assert chains.chain_through("b") == (2, 3)
    assert chains.chain_through("d") == (2, 2)
    assert [bead_id for bead_id in "abcde" if chains.on_critical_path(bead_id)] == ["a", "b", "c"]
    assert keys(queue_of(*CHAIN), "list", "path:yes order:path") == ["a", "b", "c"]
    assert keys(queue_of(*CHAIN), "list", "holds>=2") == ["a"]


def test_a_closed_prerequisite_holds_nothing_up_and_a_missing_or_cancelled_one_does() -> None:
    chains = queue_of(
        {"id": "done", "status": "closed"},
        {"id": "off", "status": "cancelled"},
        {"id": "x", "dependencies": waits("done", "off", "gone")},
        {"id": "y", "dependencies": waits("x")},
    ).graph.chains
    assert dict(chains.holds_up) == {"off": 2, "gone": 2, "x": 1}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25), st.sets(st.integers(0, 9)))
def test_holds_up_counts_every_bead_that_can_be_reached_circles_too(
    edges: list[tuple[int, int]], closed: set[int]
) -> None:
    rows = [
        {
            "id": f"n{node}",
            "status": "closed" if node in closed else "open",
            "dependencies": waits(*(f"n{target}" for waiter, target in edges if waiter == node)),
        }
        for node in range(10)
    ]
    queue = queue_of(*rows)
    for node in range(10):
        expected = _reached(node, edges, closed)
        assert queue.graph.chains.holds_up.get(f"n{node}", 0) == len(expected), json.dumps(rows)


def _reached(node: int, edges: list[tuple[int, int]], closed: set[int]) -> set[int]:
    """Open beads that wait on a node through open beads, itself left out; nobody waits on a closed one."""
    found: set[int] = set()
    stack = [] if node in closed else [node]
    while stack:
        here = stack.pop()
        for waiter, target in edges:
            if target == here and waiter not in closed and waiter not in found:
                found.add(waiter)
                stack.append(waiter)
    return found - {node}
