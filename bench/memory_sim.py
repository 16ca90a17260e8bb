"""Does a ranker learn which memories help? A world with planted answers: ``python -m bench.memory_sim``.

Eight topics hold three helpful, four neutral and three harmful memories each (±0.8 logit), and are
themselves easier or harder (±1.5 logit). A task belongs to a topic; five memories are injected by the
ranker's score; the task succeeds with the probability that topic and memories give it; verification errs in
15 % of cases; the agent reports which memories it used, either with some truth in it (``informative``:
70/35/50 % for helpful, neutral and harmful) or with none (``uninformative``: 60 % of whatever it was
shown). The setting and the figures to reach are those of docs/formats/memory.md §8; what ranks and credits
is the product's own code. Constants of `lift` were chosen on seeds 0-15 and 2000-2015, how outcomes are
attributed and `LIFT_SHRINKAGE` on 5000-5031 and 6000-6047; the seeds that run by default were not among them.
With ``--kinds one`` nobody knows which topic a task is of.

Regret is the success probability that the best choice would have had less that of the choice made, a mean
over all tasks. AUC is the chance that at the end, inside a topic, a helpful memory stands above another
one, relevance left out. Success is that of a greedy recall on fresh tasks after learning.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from helix_tui.core.memory.credit import Tally, attribute, base_rate, exposure
from helix_tui.core.memory.feedback import change
from helix_tui.core.memory.ranking import RANKERS, Array, Ranked, Ranker, RankingEvidence, mean_use

Reports = Literal["informative", "uninformative"]
Worth = Literal["helpful", "neutral", "harmful"]

EFFECT: dict[Worth, float] = {"helpful": 0.8, "neutral": 0.0, "harmful": -0.8}
PLANTED: dict[Worth, int] = {"helpful": 3, "neutral": 4, "harmful": 3}
CLAIMS: dict[Reports, dict[Worth, float]] = {
    "informative": {"helpful": 0.70, "neutral": 0.35, "harmful": 0.50},
    "uninformative": {"helpful": 0.60, "neutral": 0.60, "harmful": 0.60},
}
TOPICS = 8
SPREAD = 1.5
INJECTED = 5
FLIPPED = 0.15
ON_TOPIC = (0.65, 0.10)
OFF_TOPIC = (0.38, 0.08)
TASKS_A_DAY = 20
FRESH = 400


@dataclass(frozen=True, slots=True)
class World:
    """Planted memories and topics; memory ``m`` belongs to topic ``topic[m]``."""

    topic: tuple[int, ...]
    worth: tuple[Worth, ...]
    ease: tuple[float, ...]
    """A topic's own logit of success."""

    @classmethod
    def planted(cls, rng: random.Random) -> World:
        """A world with memories in an order that tells nothing."""
        memories = [(topic, worth) for topic in range(TOPICS) for worth, count in PLANTED.items() for _ in range(count)]
        rng.shuffle(memories)
        return cls(
            tuple(topic for topic, _ in memories),
            tuple(worth for _, worth in memories),
            tuple(rng.uniform(-SPREAD, SPREAD) for _ in range(TOPICS)),
        )

    def chance(self, topic: int, chosen: Iterable[int]) -> float:
        """The probability that a task of a topic succeeds with these memories; foreign ones do nothing."""
        logit = self.ease[topic] + sum(EFFECT[self.worth[m]] for m in chosen if self.topic[m] == topic)
        return 1 / (1 + math.exp(-logit))

    def best(self, topic: int) -> float:
        """The probability with the helpful ones and nothing harmful."""
        logit = self.ease[topic] + EFFECT["helpful"] * PLANTED["helpful"]
        return 1 / (1 + math.exp(-logit))

    def relevances(self, topic: int, rng: random.Random) -> Array:
        """How near each memory seems to a task of a topic: right on the whole, noisy one by one."""
        return np.array([rng.gauss(*(ON_TOPIC if own == topic else OFF_TOPIC)) for own in self.topic])


@dataclass(frozen=True, slots=True)
class Result:
    """What one run came to."""

    regret: float
    auc: float
    success: float


class Learner:
    """Memories with what is known of each, ranked and credited by the product's own functions.

    What the store does with rows is done here with arrays; everything that decides is `ranking` and
    `crediting`.
    """

    def __init__(self, ranker: Ranker, memories: int) -> None:
        self._ranker = ranker
        self.helped, self.failed = np.zeros(memories), np.zeros(memories)
        self.last_used = np.zeros(memories)
        self.trials, self.residual = np.zeros(memories), np.zeros(memories)
        self.injected, self.used = np.zeros(memories), np.zeros(memories)
        self.passed = np.zeros(memories)
        self.kinds: dict[int, tuple[float, float]] = {}

    def rank(self, relevance: Array, day: float) -> Ranked:
        """Scores for a task of a day."""
        return self._ranker(
            RankingEvidence(
                relevance,
                self.helped,
                self.failed,
                day - self.last_used,
                self.trials,
                self.residual,
                self.injected,
                self.used,
                mean_use(float(self.injected.sum()), float(self.used.sum())),
            )
        )

    def choose(self, relevance: Array, day: float) -> list[int]:
        """The memories to inject."""
        order: list[int] = np.argsort(-self.rank(relevance, day).score, kind="stable")[:INJECTED].tolist()
        return order

    def learn(self, kind: int, shown: Sequence[int], used: Sequence[int], passed: bool, day: float) -> None:
        """Take in the verified outcome of one task of a kind."""
        tried, passes = self.kinds.get(kind, (0.0, 0.0))
        rate = base_rate(tried, passes)
        known = zip(self.trials, self.residual, self.injected, self.passed, strict=True)
        tallies = [Tally(*map(float, row)) for row in known]
        gains, bare = attribute(rate, float(passed), {memory: tallies[memory] for memory in shown})
        self.kinds[kind] = (tried + 1, passes + passed)
        for memory in shown:
            claimed = memory in used
            helped, failed = change("passed" if passed else "failed", claimed)
            self.helped[memory] += helped
            self.failed[memory] += failed
            if helped:
                self.last_used[memory] = day
            self.trials[memory] += exposure(claimed)
            self.residual[memory] += exposure(claimed) * gains[memory]
            self.injected[memory] += 1
            self.passed[memory] += bare
            self.used[memory] += claimed


def simulate(ranker: Ranker, reports: Reports, seed: int, tasks: int, *, one_kind: bool = False) -> Result:
    """Let a ranker live through ``tasks`` tasks of the world of a seed.

    With ``one_kind`` nobody knows which topic a task is of: in a tracker most beads are of one type.
    """
    rng = random.Random(seed)
    world = World.planted(rng)
    learner = Learner(ranker, len(world.worth))
    regrets = []
    for number in range(tasks):
        day = number / TASKS_A_DAY
        topic = rng.randrange(TOPICS)
        shown = learner.choose(world.relevances(topic, rng), day)
        chance = world.chance(topic, shown)
        regrets.append(world.best(topic) - chance)
        passed = (rng.random() < chance) != (rng.random() < FLIPPED)
        used = [m for m in shown if rng.random() < CLAIMS[reports][world.worth[m]]]
        learner.learn(0 if one_kind else topic, shown, used, passed, day)
    end = tasks / TASKS_A_DAY
    chances = [
        world.chance(number % TOPICS, learner.choose(world.relevances(number % TOPICS, rng), end))
        for number in range(FRESH)
    ]
    auc = _auc(learner.rank(np.zeros(len(world.worth)), end), world)
    return Result(statistics.fmean(regrets), auc, statistics.fmean(chances))


def _auc(ranked: Ranked, world: World) -> float:
    """How often a helpful memory stands above another of its topic; a tie counts half."""
    learned = ranked.terms.get("worth", ranked.effectiveness)
    wins = pairs = 0.0
    for one, worth in enumerate(world.worth):
        if worth != "helpful":
            continue
        for other, its_worth in enumerate(world.worth):
            if its_worth == "helpful" or world.topic[other] != world.topic[one]:
                continue
            mine, theirs = float(learned[one]), float(learned[other])
            wins += 1.0 if mine > theirs else 0.5 if mine == theirs else 0.0
            pairs += 1
    return wins / pairs


def rank_by_relevance(evidence: RankingEvidence) -> Ranked:
    """No learning, to compare with."""
    nothing = np.full(evidence.relevance.shape, 0.5)
    return Ranked(evidence.relevance, nothing, nothing)


CANDIDATES: dict[str, Ranker] = {"none": rank_by_relevance, **RANKERS}

TARGETS = {("lift", "informative"): 0.21, ("lift", "uninformative"): 0.26}
"""Regret that our ranker must stay at or below. The seeds' formula is printed for comparison, held against
nothing: it is 0.25 and 0.33 in the reference, and is not ours to improve."""


def main() -> int:
    """Run every ranker in both worlds and print the table; 1 when our ranker misses its bound."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--seeds", type=int, default=12)
    arguments.add_argument("--seed0", type=int, default=1000)
    arguments.add_argument("--tasks", type=int, default=1000)
    arguments.add_argument("--kinds", choices=("one", "topic"), default="topic", help="what is known of a task's topic")
    options = arguments.parse_args()
    missed = False
    print(f"{'ranker':8} {'self-reports':14} {'regret':>14} {'AUC':>14} {'success':>14}  held against")
    for reports in CLAIMS:
        for name, ranker in CANDIDATES.items():
            results = [
                simulate(ranker, reports, seed, options.tasks, one_kind=options.kinds == "one")
                for seed in range(options.seed0, options.seed0 + options.seeds)
            ]
            bound = TARGETS.get((name, reports))
            regret = statistics.fmean(result.regret for result in results)
            missed = missed or (bound is not None and regret > bound)
            verdict = "for comparison" if bound is None else f"{bound:.2f} {'ok' if regret <= bound else 'NO'}"
            print(
                f"{name:8} {reports:14} {_mean(r.regret for r in results)} {_mean(r.auc for r in results)} "
                f"{_mean(r.success for r in results)}  {verdict}"
            )
    return int(missed)


def _mean(values: Iterable[float]) -> str:
    """Mean ± one standard error."""
    all_values = list(values)
    error = statistics.stdev(all_values) / math.sqrt(len(all_values)) if len(all_values) > 1 else 0.0
    return f"{statistics.fmean(all_values):8.3f} ±{error:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
