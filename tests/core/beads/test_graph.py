"""The graph and its gutter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.graph import Dangling, Graph, reached
from helix_tui.core.beads.record import Bead, Dependency
from helix_tui.core.beads.views import MAX_LANES, draw, order_rows

Edges = dict[str, list[str]]


def graph_of(edges: Edges, **statuses: str) -> Graph:
    return Graph(
        {
            bead_id: Bead(
                id=bead_id,
                status=statuses.get(bead_id, "open"),
                dependencies=tuple(Dependency(target) for target in targets),
            )
            for bead_id, targets in edges.items()
        }
    )


def test_cycles_are_named_once_and_sorted() -> None:
    graph = graph_of({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": ["e"], "f": ["g"], "g": ["f"], "h": []})
    assert graph.cycles == (("a", "b", "c"), ("e",), ("f", "g"))


def test_a_circle_through_a_finished_bead_holds_nobody() -> None:
    edges = {"a": ["b"], "b": ["a"], "c": ["c"], "d": ["e"], "e": ["d"]}
    assert graph_of(edges, b="closed", c="cancelled").cycles == (("d", "e"),)


EDGES = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3, unique=True), max_size=6
)


@given(EDGES, EDGES, st.booleans())
def test_a_graph_that_follows_another_is_as_one_built_afresh(old: Edges, new: Edges, same: bool) -> None:
    before = graph_of(old)
    _ = before.cycles, before.children, before.dependents
    edges = old if same else new
    after = graph_of(edges, **dict.fromkeys(edges, "closed"))
    following = Graph(after.beads, before)
    for name in ("depends_on", "dependents", "children", "cycles", "dangling"):
        assert getattr(following, name) == getattr(after, name)
    assert list(following.dependents) == list(after.dependents)


def test_a_long_chain_needs_no_recursion() -> None:
    edges = {f"b{i}": [f"b{i + 1}"] for i in range(5000)} | {"b5000": ["b0"]}
    assert len(graph_of(edges).cycles[0]) == 5001


def test_dangling_edges_of_finished_beads_do_not_count() -> None:
    graph = graph_of({"a": ["gone"], "b": ["gone"]}, b="closed")
    assert graph.dangling == (Dangling("a", "gone"),)
    assert graph.dependents["gone"] == ("a", "b")


def test_progress_leaves_cancelled_children_out() -> None:
    beads = {
        "e": Bead(id="e"),
        "x": Bead(id="x", parent="e", status="closed"),
        "y": Bead(id="y", parent="e"),
        "z": Bead(id="z", parent="e", status="cancelled"),
    }
    assert Graph(beads).progress("e") == (1, 2)


def picture(edges: Edges) -> list[str]:
    order = order_rows(list(edges), edges, rank=lambda bead_id: bead_id)
    return [
        f"○{row.cells} {row.bead_id} {'↳' + ','.join(row.see) if row.see else ''}".rstrip()
        for row in draw(order, edges)
    ]


def test_a_diamond_keeps_all_its_edges() -> None:
    assert picture({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}) == [
        "○─╮ a",
        "○─┼╮ b",
        "○─┤│ c",
        "○─┴╯ d ↳b",
    ]


def test_a_chain_stays_in_one_lane() -> None:
    assert picture({"a": [], "b": ["a"], "c": ["b"]}) == ["○─╮ a", "○─┤ b", "○─╯ c"]


def test_an_edge_without_a_lane_is_named() -> None:
    sources: Edges = {f"s{i}": [] for i in range(MAX_LANES + 2)}
    sinks = {f"t{i}": [f"s{i}"] for i in range(MAX_LANES + 2)}
    edges: Edges = {**sources, **sinks}
    rows = {row.bead_id: row for row in draw(list(edges), edges)}
    assert rows["t0"].see == ()
    assert rows[f"t{MAX_LANES}"].see == (f"s{MAX_LANES}",)
    assert max(len(row.cells) for row in rows.values()) == MAX_LANES + 1


@st.composite
def graphs(draw_: st.DrawFn) -> Edges:
    names = [f"n{i}" for i in range(draw_(st.integers(1, 14)))]
    return {name: draw_(st.lists(st.sampled_from([*names, "elsewhere"]), max_size=4, unique=True)) for name in names}


@given(graphs())
def test_order_holds_every_bead_once_and_prerequisites_above(edges: Edges) -> None:
    order = order_rows(list(edges), edges, rank=lambda bead_id: bead_id)
    assert sorted(order) == sorted(edges)
    place = {bead_id: index for index, bead_id in enumerate(order)}
    circled = {bead_id for cycle in graph_of(edges).cycles for bead_id in cycle}
    for bead_id, targets in edges.items():
        for target in targets:
            if target in edges and not circled:
                assert place[target] < place[bead_id]


@given(graphs())
def test_every_edge_is_drawn_or_named(edges: Edges) -> None:
    order = order_rows(list(edges), edges, rank=lambda bead_id: bead_id)
    rows = draw(order, edges)
    assert [row.bead_id for row in rows] == order
    for row in rows:
        shown = [target for target in edges[row.bead_id] if target in edges]
        tied = len(shown) - len(row.see)
        assert tied in (0, 1)
        assert set(row.see) <= set(shown)
        assert len(row.cells) <= MAX_LANES + 1
        if tied:
            assert any(cell in "┤┼╯┴" for cell in row.cells)


def test_what_ids_lead_to_is_reached_once_nearest_first() -> None:
    near = {"a": ("b", "c"), "b": ("d", "a"), "c": ("d", ""), "d": ("c",)}
    assert list(reached(["a"], lambda each: near.get(each, ()))) == ["a", "b", "c", "d"]
    assert list(reached(["", "d", "d"], lambda each: near.get(each, ()))) == ["d", "c"]


def test_the_lineage_of_a_bead_ends_at_a_cycle_or_at_a_parent_that_does_not_exist() -> None:
    parents = {"a": "b", "b": "c", "c": "b", "d": "gone"}
    graph = Graph({bead_id: Bead(id=bead_id, parent=parent) for bead_id, parent in parents.items()})
    assert list(graph.lineage("a")) == ["a", "b", "c"]
    assert list(graph.lineage("d", "none", "b")) == ["d", "b", "c"]
    assert graph.descendants("b") == ("a", "c")
