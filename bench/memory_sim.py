"""Does a ranker learn which memories help? A world with planted answers: ``python -m bench.memory_sim``.

Eight topics hold three helpful, four neutral and three harmful memories each (±0.8 logit), and are
themselves easier or harder (±1.5 logit). A task belongs to a topic; five memories are injected by the
ranker's score; the task succeeds with the probability that topic and memories give it; verification errs in
15 % of cases; the agent reports which memories it used, either with some truth in it (``informative``:
70/35/50 % for helpful, neutral and harmful) or with none (``uninformative``: 60 % of whatever it was
shown). The setting and the figures to reach are those of reference/engines.md §2.4.

Regret is the success probability that the best choice would have had less that of the choice made, a mean
over all tasks. AUC is the chance that at the end, inside a topic, a helpful memory stands above another
one, relevance left out. Success is that of a greedy recall on fresh tasks after learning.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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


class Ranker(Protocol):
    """What is simulated: how memories are ordered, and what one verified task teaches."""

    def score(self, memory: int, relevance: float, day: float) -> float:
        """Where a memory stands for a task; higher is injected first."""
        ...

    def usefulness(self, memory: int) -> float:
        """What was learned about a memory, relevance and recency left out."""
        ...

    def learn(
        self, kind: str, injected: Sequence[int], used: Sequence[int], passed: bool, day: float
    ) -> None:
        """Take in the verified outcome of one task."""
        ...


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
        memories = [
            (topic, worth)
            for topic in range(TOPICS)
            for worth, count in PLANTED.items()
            for _ in range(count)
        ]
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

    def relevances(self, topic: int, rng: random.Random) -> list[float]:
        """How near each memory seems to a task of a topic: right on the whole, noisy one by one."""
        return [rng.gauss(*(ON_TOPIC if own == topic else OFF_TOPIC)) for own in self.topic]


@dataclass(frozen=True, slots=True)
class Result:
    """What one run came to."""

    regret: float
    auc: float
    success: float


def simulate(ranker: Ranker, reports: Reports, seed: int, tasks: int) -> Result:
    """Let a ranker live through ``tasks`` tasks of the world of a seed."""
    rng = random.Random(seed)
    world = World.planted(rng)
    regrets = []
    for number in range(tasks):
        day = number / TASKS_A_DAY
        topic = rng.randrange(TOPICS)
        injected = _choose(ranker, world, topic, day, rng)
        chance = world.chance(topic, injected)
        regrets.append(world.best(topic) - chance)
        passed = (rng.random() < chance) != (rng.random() < FLIPPED)
        used = [m for m in injected if rng.random() < CLAIMS[reports][world.worth[m]]]
        ranker.learn(f"topic-{topic}", injected, used, passed, day)
    end = tasks / TASKS_A_DAY
    chances = []
    for number in range(FRESH):
        topic = number % TOPICS
        chances.append(world.chance(topic, _choose(ranker, world, topic, end, rng)))
    return Result(statistics.fmean(regrets), _auc(ranker, world), statistics.fmean(chances))


def _choose(ranker: Ranker, world: World, topic: int, day: float, rng: random.Random) -> list[int]:
    relevances = world.relevances(topic, rng)
    scores = [ranker.score(m, relevance, day) for m, relevance in enumerate(relevances)]
    return sorted(range(len(scores)), key=lambda m: (-scores[m], m))[:INJECTED]


def _auc(ranker: Ranker, world: World) -> float:
    """How often a helpful memory stands above another of its topic; a tie counts half."""
    wins = pairs = 0.0
    for one, worth in enumerate(world.worth):
        if worth != "helpful":
            continue
        mine = ranker.usefulness(one)
        for other, its_worth in enumerate(world.worth):
            if its_worth == "helpful" or world.topic[other] != world.topic[one]:
                continue
            theirs = ranker.usefulness(other)
            wins += 1.0 if mine > theirs else 0.5 if mine == theirs else 0.0
            pairs += 1
    return wins / pairs


class Unlearned:
    """No learning: relevance alone decides."""

    def score(self, memory: int, relevance: float, day: float) -> float:
        """See `Ranker`."""
        return relevance

    def usefulness(self, memory: int) -> float:
        """See `Ranker`."""
        return 0.5

    def learn(
        self, kind: str, injected: Sequence[int], used: Sequence[int], passed: bool, day: float
    ) -> None:
        """See `Ranker`."""


class SeedFormula:
    """0.5·relevance + 0.3·effectiveness + 0.2·recency, fed by the truth table of ruling 18."""

    def __init__(self) -> None:
        self.helped: dict[int, float] = {}
        self.failed: dict[int, float] = {}
        self.last: dict[int, float] = {}

    def usefulness(self, memory: int) -> float:
        """helped / (helped + failed), 0.5 without evidence."""
        helped, failed = self.helped.get(memory, 0.0), self.failed.get(memory, 0.0)
        return helped / (helped + failed) if helped + failed else 0.5

    def score(self, memory: int, relevance: float, day: float) -> float:
        """See `Ranker`."""
        recency = 2 ** -((day - self.last.get(memory, 0.0)) / 7)
        return 0.5 * relevance + 0.3 * self.usefulness(memory) + 0.2 * recency

    def learn(
        self, kind: str, injected: Sequence[int], used: Sequence[int], passed: bool, day: float
    ) -> None:
        """See `Ranker`."""
        for memory in injected:
            claimed = memory in used
            if passed and claimed:
                self.helped[memory] = self.helped.get(memory, 0.0) + 1
                self.last[memory] = day
            elif passed or claimed:
                self.failed[memory] = self.failed.get(memory, 0.0) + 1


class Lift:
    """Verified outcome against the base rate of the task's kind (reference/engines.md §2.5).

    Weight of an unreported memory, prior and slope (0.8, 6, 2 instead of 0.35, 4, 1.5) were chosen on seeds
    0-15 and 2000-2015 of this simulation; the seeds that `main` runs by default were not among them.
    """

    def __init__(self) -> None:
        self.n: dict[int, float] = {}
        self.res: dict[int, float] = {}
        self.inj: dict[int, int] = {}
        self.used: dict[int, int] = {}
        self.kinds: dict[str, list[int]] = {}

    def usefulness(self, memory: int) -> float:
        """See `Ranker`."""
        mean = (sum(self.used.values()) + 2) / (sum(self.inj.values()) + 4)
        lift = self.res.get(memory, 0.0) / (self.n.get(memory, 0.0) + 6)
        use = (self.used.get(memory, 0) + 4 * mean) / (self.inj.get(memory, 0) + 4) - mean
        return min(1.0, max(0.0, 0.5 + 2 * lift + 0.5 * use))

    def score(self, memory: int, relevance: float, day: float) -> float:
        """See `Ranker`."""
        return 0.6 * relevance + 0.4 * self.usefulness(memory)

    def learn(
        self, kind: str, injected: Sequence[int], used: Sequence[int], passed: bool, day: float
    ) -> None:
        """See `Ranker`."""
        tally = self.kinds.setdefault(kind, [0, 0])
        surprise = passed - (tally[1] + 1) / (tally[0] + 2)
        for memory in injected:
            claimed = memory in used
            weight = 1.0 if claimed else 0.8
            self.res[memory] = self.res.get(memory, 0.0) + weight * surprise
            self.n[memory] = self.n.get(memory, 0.0) + weight
            self.inj[memory] = self.inj.get(memory, 0) + 1
            self.used[memory] = self.used.get(memory, 0) + claimed
        tally[0] += 1
        tally[1] += passed


RANKERS: dict[str, Callable[[], Ranker]] = {"none": Unlearned, "seeds": SeedFormula, "lift": Lift}

TARGETS = {
    ("lift", "informative"): 0.21,
    ("lift", "uninformative"): 0.26,
    ("seeds", "informative"): 0.26,
    ("seeds", "uninformative"): 0.34,
}
"""Regret to stay at or below; the seeds' formula lies at 0.25 and 0.33 in the reference."""


def main() -> int:
    """Run every ranker in both worlds and print the table; 1 when a figure is missed."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--seeds", type=int, default=12)
    arguments.add_argument("--seed0", type=int, default=1000)
    arguments.add_argument("--tasks", type=int, default=1000)
    options = arguments.parse_args()
    missed = False
    print(f"{'ranker':8} {'self-reports':14} {'regret':>14} {'AUC':>14} {'success':>14}  held against")
    for reports in CLAIMS:
        for name, make in RANKERS.items():
            results = [
                simulate(make(), reports, seed, options.tasks)
                for seed in range(options.seed0, options.seed0 + options.seeds)
            ]
            bound = TARGETS.get((name, reports))
            regret = statistics.fmean(result.regret for result in results)
            missed = missed or (bound is not None and regret > bound)
            verdict = "" if bound is None else f"{bound:.2f} {'ok' if regret <= bound else 'NO'}"
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
