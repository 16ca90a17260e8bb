"""Views: what shows, what folds, in which order; and the filter language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.query import FIELDS, complete, parse_query
from helix_tui.core.beads.readiness import Claims, Queue, classify
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.beads.views import FOLD_DONE, FOLD_LOOSE, FOLD_REST, VIEWS, Folding, ViewKind, build_view
from helix_tui.core.ground.time import parse_now
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")


def queue_of(*rows: dict[str, Any], running: str = "") -> Queue:
    data = "\n".join(json.dumps({"title": "t", "schema_version": 1, **row}) for row in rows).encode()
    return classify(parse_rows(data).beads, now=NOW, claims=Claims(running=frozenset(running.split())))


def waits(*targets: str) -> list[dict[str, str]]:
    return [{"depends_on_id": target} for target in targets]


def keys(queue: Queue, kind: ViewKind, query: str = "", **options: Any) -> list[str]:
    return [row.key for row in build_view(queue, kind, query, Folding(**options)).rows]


MIXED = (
    {"id": "run", "priority": 3},
    {"id": "b", "dependencies": waits("a")},
    {"id": "a", "priority": 1},
    {"id": "first", "priority": 0},
    {"id": "done", "status": "closed"},
    {"id": "off", "execution-eligible": False},
    {"id": "ask", "status": "proposed"},
    {"id": "dropped", "status": "cancelled"},
    {"id": "starved", "dependencies": waits("gone", "dropped")},
)


def test_dag_puts_prerequisites_above_and_folds_what_is_done_or_loose() -> None:
    queue = queue_of(*MIXED, running="run")
    assert keys(queue, "dag") == [
        "run",
        "first",
        "a",
        "b",
        "ask",
        "missing:gone",
        "dropped",
        "starved",
        FOLD_DONE,
        FOLD_LOOSE,
    ]
    fold = build_view(queue, "dag").rows[-2]
    assert (fold.text, fold.count, fold.open) == ("1 closed", 1, False)
    assert keys(queue, "dag", unfolded=frozenset({FOLD_LOOSE}))[-2:] == [FOLD_LOOSE, "off"]


def test_a_filter_that_asks_for_closed_beads_shows_them() -> None:
    assert keys(queue_of(*MIXED), "dag", "status:closed") == ["done"]


def test_order_is_exactly_the_pick_order() -> None:
    queue = queue_of(*MIXED)
    rows = build_view(queue, "order").rows
    assert [(row.bead_id, row.position) for row in rows[:-2]] == [("first", 1), ("a", 2), ("run", 3)]
    assert [row.key for row in rows[-2:]] == [FOLD_REST, FOLD_DONE]
    assert rows[-1].text == "1 closed, 1 cancelled"


@pytest.mark.parametrize("kind", VIEWS)
def test_the_bead_that_is_looked_at_stays_when_it_closes(kind: ViewKind) -> None:
    queue = queue_of(*MIXED)
    assert "done" not in keys(queue, kind)
    assert keys(queue, kind, keep=frozenset({"done"})).count("done") == 1
    everything = frozenset({FOLD_DONE, FOLD_LOOSE, FOLD_REST})
    assert keys(queue, kind, keep=frozenset({"done"}), unfolded=everything).count("done") == 1


TREE = (
    {"id": "epic", "issue_type": "epic", "priority": 2},
    {"id": "k1", "parent": "epic", "priority": 2},
    {"id": "k2", "parent": "epic", "status": "closed"},
    {"id": "k3", "parent": "k1", "priority": 0},
    {"id": "alone", "priority": 1},
    {"id": "loop1", "parent": "loop2"},
    {"id": "loop2", "parent": "loop1"},
)


def test_tree_nests_children_and_an_epic_stands_where_its_next_work_stands() -> None:
    queue = queue_of(*TREE)
    rows = [(row.key, row.depth) for row in build_view(queue, "tree").rows]
    assert rows == [
        ("epic", 0),
        ("k1", 1),
        ("k3", 2),
        ("done:epic", 1),
        ("loop1", 0),
        ("loop2", 1),
        ("alone", 0),
    ]
    assert keys(queue, "tree", collapsed=frozenset({"epic"})) == ["epic", "loop1", "loop2", "alone"]


def test_tree_keeps_the_way_to_a_match() -> None:
    rows = build_view(queue_of(*TREE), "tree", "id:k3").rows
    assert [(row.key, row.context) for row in rows] == [("epic", True), ("k1", True), ("k3", False)]


def test_lanes_gather_states_and_close() -> None:
    queue = queue_of(*MIXED, running="run")
    rows = build_view(queue, "lanes").rows
    headings = {row.text: row.count for row in rows if row.kind == "heading"}
    assert headings == {
        "running": 1,
        "ready": 2,
        "parked": 1,
        "waiting": 2,
        "set aside": 1,
        "done": 2,
    }
    assert "first" not in keys(queue, "lanes", collapsed=frozenset({"ready"}))


@pytest.mark.parametrize("kind", VIEWS)
def test_every_bead_can_be_reached_in_every_view(shared: Path, kind: ViewKind) -> None:
    for name in ("beads-head.jsonl", "beads-2026-04.jsonl"):
        queue = classify(read_tracker(shared / "data/ddx" / name).beads, now=NOW)
        folds = frozenset(row.key for row in build_view(queue, kind).rows if row.kind in ("fold", "heading"))
        for _ in range(20):
            rows = build_view(queue, kind, folding=Folding(folds)).rows
            more = folds | {row.key for row in rows if row.kind in ("fold", "heading")}
            if more == folds:
                break
            folds = more
        shown = [row.bead_id for row in rows if row.kind == "bead"]
        assert sorted(shown) == sorted(queue.beads)
        assert len({row.key for row in rows}) == len(rows)


def matching(query: str, queue: Queue) -> set[str]:
    parsed = parse_query(query)
    return {bead_id for bead_id, bead in queue.beads.items() if parsed.matches(bead, queue)}


FILTERED = (
    {"id": "ui-1", "title": "Draw the Gutter", "labels": ["area:ui", "kind:bug"], "priority": 0},
    {"id": "ui-2", "title": "draw lanes", "labels": ["area:ui-kit"], "priority": 2, "issue_type": "bug"},
    {
        "id": "db-1",
        "title": "migrate",
        "labels": ["area:db"],
        "priority": 1,
        "parent": "ui-1",
        "owner": "Ann",
    },
    {"id": "db-2", "title": "x", "dependencies": waits("db-1", "gone"), "created_at": "2026-08-20T22:00:28Z"},
    {"id": "old", "title": "y", "status": "closed", "description": "speaks of zebras"},
)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("", "ui-1 ui-2 db-1 db-2 old"),
        ("draw", "ui-1 ui-2"),
        ('"the gutter"', "ui-1"),
        ("DRAW -lanes", "ui-1"),
        ("label:area:ui", "ui-1"),
        ("label:area:*", "ui-1 ui-2 db-1"),
        ("label:area:ui,area:db", "ui-1 db-1"),
        ("-label:area:*", "db-2 old"),
        ("p<=1 ready:yes", "ui-1 db-1"),
        ("p:p2", "ui-2"),
        ("p>1", "ui-2"),
        ("status:closed,blocked", "old"),
        ("-status:closed type:bug", "ui-2"),
        ("state:waiting_dependencies", "db-2"),
        ("ready:no", "db-2 old"),
        ("missing:yes", "db-2"),
        ("waits:db-1", "db-2"),
        ("parent:ui-1", "db-1"),
        ("owner:ann", "db-1"),
        ("unblocks>=1", ""),
        ("body:zebras", "old"),
        ("age<2d", "db-2"),
        ("age>2d", ""),
        ("label:", "ui-1 ui-2 db-1 db-2 old"),
        ("db-1 -", "db-1"),
    ],
)
def test_filters(query: str, want: str) -> None:
    assert matching(query, queue_of(*FILTERED)) == set(want.split())
    assert parse_query(query).problem == ""


@pytest.mark.parametrize("query", ["colour:red", "p<=high", "ready:maybe", "status<=open", "age<soon"])
def test_what_is_not_understood_is_said_and_searched_for(query: str) -> None:
    parsed = parse_query(query)
    assert parsed.problem
    assert matching(query, queue_of({"id": "a", "title": f"about {query}"}, {"id": "b"})) == {"a"}


def test_completion_offers_fields_then_values() -> None:
    queue = queue_of(*FILTERED)
    assert [c.text for c in complete("la", 2, queue)] == ["label:"]
    assert [c.text for c in complete("draw -label:area:u", 18, queue)] == ["area:ui", "area:ui-kit"]
    found = complete("status:closed,pro", 17, queue)
    assert [(c.text, c.replace_from) for c in found] == [("proposed", 14)]
    assert complete("nofield:x", 9, queue) == []
    assert complete("label:-area", 11, queue) == []
    assert parse_query("p:1.5").problem


@given(st.text(max_size=40))
def test_no_text_breaks_the_filter(text: str) -> None:
    queue = queue_of(*FILTERED)
    parse_query(text).matches(next(iter(queue.beads.values())), queue)
    complete(text, len(text), queue)


def test_every_field_has_an_example_that_the_language_understands() -> None:
    for name, field in FIELDS.items():
        query = parse_query(field.example)
        assert query or query.order, name
        assert not query.problem, field.example
        assert name in field.example
