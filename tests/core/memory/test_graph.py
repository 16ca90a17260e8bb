"""Edges under both seeds' names, and what upkeep does to memories and edges."""

from __future__ import annotations

import sqlite3
import time
from itertools import pairwise

import pytest

from helix_tui.core.ground.time import parse_now
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.write import upkeep
from tests.core.memory.conftest import Clock, Plane, name_of


@pytest.fixture
def chain(memory: MemoryStore) -> list[str]:
    """Four memories, each leading to the next."""
    names = [name_of(memory, f"The link number {number} of a chain") for number in range(4)]
    for one, other in pairwise(names):
        memory.relate(one, other, "causes")
    return names


def test_relating_again_strengthens_and_tells_the_whole_weight(memory: MemoryStore, chain: list[str]) -> None:
    related = memory.edge(chain[0], chain[1], "causes", 0.5)
    assert related.status == "strengthened"
    assert related.edge is not None
    assert related.edge.weight == 1.5
    assert related.document()["from"] == chain[0]


@pytest.mark.parametrize(
    ("ends", "kind", "weight", "reason"),
    [
        ((0, "nobody"), "solves", 1.0, "memory not found: nobody"),
        (("nobody", 0), "solves", 1.0, "memory not found: nobody"),
        ((0, 0), "solves", 1.0, "not related to itself"),
        ((0, 1), "likes", 1.0, "type must be one of"),
        ((0, 1), "solves", 0.0, "weight must be above 0"),
        ((0, 1), "solves", float("nan"), "weight must be above 0"),
    ],
)
def test_what_is_no_edge(
    memory: MemoryStore,
    chain: list[str],
    ends: tuple[int | str, int | str],
    kind: str,
    weight: float,
    reason: str,
) -> None:
    one, other = (chain[end] if isinstance(end, int) else end for end in ends)
    related = memory.relate(one, other, kind, weight)
    assert related.status == "rejected"
    assert reason in related.reason
    assert len(memory.edges()) == 3


def test_ids_address_ends_too(memory: MemoryStore, chain: list[str]) -> None:
    found = memory.get(chain[3])
    assert found is not None
    related = memory.relate(str(found.id), chain[0], "co_occurs")
    assert related.edge is not None
    assert (related.edge.from_name, related.edge.to_name) == (chain[3], chain[0])


def test_edges_of_one_of_a_kind_or_all(memory: MemoryStore, chain: list[str]) -> None:
    memory.relate(chain[3], chain[0], "similar")
    assert len(memory.edges()) == 4
    assert len(memory.edges(chain[0])) == 2
    assert [edge.from_name for edge in memory.edges(chain[0], "similar")] == [chain[3]]
    assert memory.edges("nobody") == []


def test_connected_goes_both_ways_as_far_as_asked(memory: MemoryStore, chain: list[str]) -> None:
    assert [(each.memory.name, each.hop) for each in memory.connected(chain[1])] == [
        (chain[0], 1),
        (chain[2], 1),
        (chain[3], 2),
    ]
    assert [each.memory.name for each in memory.connected(chain[0], max_hops=1)] == [chain[1]]
    assert memory.connected(chain[0], max_hops=0) == []
    assert memory.connected("nobody") == []


def test_weak_edges_are_not_followed(memory: MemoryStore, chain: list[str]) -> None:
    far = name_of(memory, "Hardly related to any of them")
    memory.relate(chain[0], far, "similar", 0.4)
    assert far not in [each.memory.name for each in memory.connected(chain[0])]


def test_a_circle_and_an_edge_to_itself_do_no_harm(memory: MemoryStore, chain: list[str]) -> None:
    memory.relate(chain[3], chain[0], "causes")
    with memory.write() as database:
        database.execute(
            "INSERT INTO memory_edge (from_name, to_name, rel_type, created_at) VALUES (?, ?, 'similar', 'x')",
            [chain[0], chain[0]],
        )
    assert len(memory.connected(chain[0], max_hops=9)) == 3
    assert memory.recall("The link", expand=True).found


def test_edges_are_suggested_by_type_and_direction(memory: MemoryStore, plane: Plane) -> None:
    text = "Circular import in the auth models do it otherwise"
    failure = name_of(memory, "Circular import in the auth models")
    plane.put("Split the auth models apart do it otherwise", text, 0.7)
    plane.put("Auth models that import models do it otherwise", text, 0.8)
    plane.put("The tide table is wrong do it otherwise", text, 0.5)
    pattern = name_of(memory, "Split the auth models apart", type="pattern")
    other = name_of(memory, "Auth models that import models")
    name_of(memory, "The tide table is wrong")
    found = memory.suggest_edges(failure)
    assert [(each.from_name, each.to_name, each.rel_type) for each in found] == [
        (failure, other, "similar"),
        (pattern, failure, "solves"),
    ]
    assert found[0].confidence == pytest.approx(0.8, abs=1e-3)
    memory.relate(other, failure, "similar")
    assert [edge.rel_type for edge in memory.suggest_edges(failure)] == ["solves"]
    assert memory.suggest_edges("nobody") == []


# Upkeep


def _used(memory: MemoryStore, name: str, helped: int, failed: int) -> None:
    for _ in range(helped):
        memory.feedback([name], [name], "passed")
    for _ in range(failed):
        memory.feedback([name], [name], "failed")


def test_prune_takes_what_was_used_enough_and_helped_too_rarely(memory: MemoryStore) -> None:
    names = [name_of(memory, f"Memory number {number} to be judged") for number in range(4)]
    for name, (helped, failed) in zip(names, [(0, 3), (1, 3), (0, 2), (1, 4)], strict=True):
        _used(memory, name, helped, failed)
    memory.relate(names[0], names[1], "similar")
    looked = memory.prune(apply=False)
    assert {memory.name for memory in looked.removed} == {names[0], names[3]}
    assert len(memory.list()) == 4
    pruned = memory.prune()
    assert (len(pruned.removed), pruned.remaining) == (2, 2)
    assert memory.edges() == []
    assert memory.health().relationships == 0


def test_what_was_removed_comes_back_whole(memory: MemoryStore, chain: list[str]) -> None:
    _used(memory, chain[1], 2, 1)
    memory.store("the link, number 1 of a chain", "do it otherwise")
    memory.store("The link number 1 of a chain", "but not in that way")
    _used(memory, chain[1], 1, 0)
    before, edges = memory.get(chain[1]), list(memory.edges())
    gone = memory.remove([chain[1], "nobody"])
    assert memory.get(chain[1]) is None
    assert len(memory.edges()) == 1
    assert memory.put_back(gone) == 1
    assert memory.get(chain[1]) == before
    assert sorted(memory.edges(), key=lambda edge: edge.id) == edges
    assert len(memory.variants(chain[1])) == 1
    assert [revision.memory.helped for revision in memory.revisions(chain[1])] == [2]
    hit = memory.recall("The link number 1 of a chain but not in that way", limit=1).found[0]
    assert (hit.memory.name, round(hit.similarity or 0, 3)) == (chain[1], 1.0)
    assert memory.put_back(gone) == 0


def test_decay_lists_the_dormant_and_leaves_the_new_alone(memory: MemoryStore, clock: Clock) -> None:
    dormant = name_of(memory, "Nobody has used this in a month")
    used = name_of(memory, "Somebody has used this twice")
    _used(memory, used, 2, 0)
    clock.forward(31)
    fresh = name_of(memory, "This was made a minute ago")
    decayed = memory.decay()
    assert [memory.name for memory in decayed.candidates] == [dormant]
    assert decayed.document()["candidates_for_decay"] == [dormant]
    assert fresh not in decayed.document()["candidates_for_decay"]


def test_decay_applied_fades_help_and_not_harm(memory: MemoryStore, clock: Clock) -> None:
    good = name_of(memory, "This one has helped, once")
    bad = name_of(memory, "That one has harmed, once")
    _used(memory, good, 1, 0)
    _used(memory, bad, 0, 1)
    clock.forward(40)
    assert memory.decay().applied is False
    memory.decay(apply=True)
    faded, kept = memory.get(good), memory.get(bad)
    assert faded is not None
    assert kept is not None
    assert (faded.helped, faded.failed) == (0.75, 0.25)
    assert (kept.helped, kept.failed) == (0, 1)


def test_consolidate_keeps_the_proven_one_and_every_count_and_edge(memory: MemoryStore, plane: Plane) -> None:
    text = "Circular import in the auth models do it otherwise"
    plane.put("The models of auth import each other do it otherwise", text, 0.95)
    plane.put("The models of auth import each other", "Circular import in the auth models", 0.3)
    old = name_of(memory, "Circular import in the auth models")
    proven = name_of(memory, "The models of auth import each other")
    pattern = name_of(memory, "Split the auth models apart", type="pattern")
    _used(memory, old, 1, 0)
    _used(memory, proven, 2, 1)
    for name in (old, proven):
        memory.relate(pattern, name, "solves")
    memory.relate(old, proven, "similar")
    done = memory.consolidate()
    assert done.merged == ((old, proven),)
    assert done.remaining == 2
    kept = memory.get(proven)
    assert kept is not None
    assert (kept.helped, kept.failed, kept.verified_helped) == (3, 1, 3)
    assert [(edge.from_name, edge.to_name, edge.weight) for edge in memory.edges()] == [(pattern, proven, 2.0)]
    assert len(memory.outcomes(proven)) == 4
    assert memory.consolidate().merged == ()


def test_consolidate_keeps_the_later_use_though_the_plugin_wrote_local_time(
    memory: MemoryStore, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        text = "Circular import in the auth models do it otherwise"
        plane.put("The models of auth import each other do it otherwise", text, 0.95)
        plane.put("The models of auth import each other", "Circular import in the auth models", 0.3)
        kept, gone = (
            name_of(memory, trigger)
            for trigger in ("Circular import in the auth models", "The models of auth import each other")
        )
        for name, used in ((kept, "2026-06-01T10:00:00"), (gone, "2026-06-01T12:00:00Z")):
            memory.db.conn.execute("UPDATE memory SET last_used = ? WHERE name = ?", (used, name))
            memory.db.conn.commit()
        assert memory.consolidate().merged == ((gone, kept),)
        found = memory.get(kept)
        assert found is not None
        assert found.last_used == parse_now("2026-06-01T14:00:00Z")
    time.tzset()


def test_occurrences_of_more_than_a_statement_may_bind_are_counted(memory: MemoryStore) -> None:
    name_of(memory, "Circular import in the auth models")
    memory.db.conn.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    assert len(upkeep._occurrences(memory._base, range(1, 1_200))) == 1


def test_consolidate_needs_an_encoder(words_only: MemoryStore) -> None:
    done = words_only.consolidate()
    assert done.document()["status"] == "skipped"
    assert "no weights here" in done.skipped


def test_health_says_what_is_missing(words_only: MemoryStore, memory: MemoryStore) -> None:
    assert memory.health().issues == ("No memories yet",)
    name = name_of(memory, "Circular import in the auth models")
    health = memory.health()
    assert health.issues == ("No feedback recorded - learning loop not closed",)
    assert health.document()["status"] == "NEEDS_ATTENTION"
    _used(memory, name, 1, 0)
    health = memory.health()
    assert health.document()["status"] == "HEALTHY"
    assert health.document()["by_type"] == {"failure": {"count": 1, "helped": 1, "failed": 0}}
    assert "Embeddings unavailable" in words_only.health().issues[-1]


# Metacognition


def test_the_same_approach_three_times_asks_for_another(memory: MemoryStore, plane: Plane) -> None:
    plane.put("Task: fix the auth imports Approach that worked: split the types", "fix the auth imports", 0.6)
    memory.chunk("fix the auth imports", "success", "split the types")
    advice = [memory.assess("fix the auth imports", "reorder the imports") for _ in range(5)]
    assert [each.recommendation for each in advice] == ["continue", "continue", "pivot", "pivot", "escalate"]
    assert advice[2].reason == "Same approach attempted 3 times without success"
    assert advice[2].suggested_pivot == "Approach that worked: split the types"
    assert memory.assess("another task of today", "reorder the imports").attempts == 1


def test_a_known_failure_speaks_against_an_approach(memory: MemoryStore, plane: Plane) -> None:
    plane.put("Reordering imports hides the circle split instead", "reorder the imports", 0.7)
    memory.store("Reordering imports hides the circle", "split instead")
    found = memory.assess("fix it", "reorder the imports", history=())
    assert (found.recommendation, found.suggested_pivot) == ("pivot", "split instead")
    assert memory.assess("fix it", "a thing of the day", history=()).recommendation == "continue"
