"""The simulation by which rankers are judged: its world is as planted, and learning shows in it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.memory_sim import CANDIDATES, EFFECT, PLANTED, TOPICS, World, simulate


def test_world_holds_what_is_planted() -> None:
    world = World.planted(random.Random(3))
    assert Counter(world.worth) == {worth: count * TOPICS for worth, count in PLANTED.items()}
    assert set(Counter(world.topic).values()) == {sum(PLANTED.values())}


def test_chance_moves_with_own_memories_only() -> None:
    world = World.planted(random.Random(3))
    helpful = next(m for m, worth in enumerate(world.worth) if worth == "helpful")
    topic = world.topic[helpful]
    assert EFFECT["helpful"] > 0
    assert world.chance(topic, [helpful]) > world.chance(topic, [])
    other = (topic + 1) % TOPICS
    assert world.chance(other, [helpful]) == world.chance(other, [])
    assert world.best(topic) >= world.chance(topic, [helpful])


def test_a_seed_gives_one_result() -> None:
    assert simulate(CANDIDATES["lift"], "informative", 7, 60) == simulate(CANDIDATES["lift"], "informative", 7, 60)


@pytest.mark.long
def test_learning_beats_not_learning_and_lift_beats_the_seeds_formula() -> None:
    regret = {
        name: sum(simulate(ranker, "informative", seed, 400).regret for seed in (1, 2)) / 2
        for name, ranker in CANDIDATES.items()
    }
    assert regret["lift"] < regret["seed"] < regret["none"]


def test_lift_learns_though_all_tasks_are_of_one_kind() -> None:
    lift = simulate(CANDIDATES["lift"], "uninformative", 1, 400, one_kind=True)
    none = simulate(CANDIDATES["none"], "uninformative", 1, 400)
    assert lift.regret < none.regret


def test_lift_learns_from_outcomes_when_reports_say_nothing() -> None:
    lift = simulate(CANDIDATES["lift"], "uninformative", 1, 400)
    none = simulate(CANDIDATES["none"], "uninformative", 1, 400)
    assert lift.regret < none.regret
    assert lift.auc > 0.6
