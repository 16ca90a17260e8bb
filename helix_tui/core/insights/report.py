"""The report of Insights: every table of a project at one moment, with the attempts behind each row.

Metrics over time come from DDx's store and from the ratchets of attempts, each beside what is wanted. Experiments are
compared within their batch; models in pairs, on the same kind of bead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import AgentCall
from helix_tui.core.ddx.documents.builder import read_graph
from helix_tui.core.ddx.documents.graph import DocumentsUnreadable
from helix_tui.core.ddx.measures import (
    Direction,
    Observation,
    Ratchet,
    StoredExecution,
    amount,
    better,
    direction_of,
    read_observations,
    read_stored_executions,
)
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant
from helix_tui.core.insights.burn import Burn, burn, to_do
from helix_tui.core.insights.cells import UNKNOWN, Cell, table
from helix_tui.core.insights.failing import Failing, failing
from helix_tui.core.insights.forecast import Forecast, forecast

UNBATCHED = "no batch"
_PREFIX = "experiment:"

TABLES: Mapping[str, tuple[str, ...]] = {
    "models": ("model",),
    "harnesses": ("harness",),
    "kinds": ("harness", "model", "kind"),
    "epics": ("parent",),
    "areas": ("area", "kind"),
    "endings": ("status",),
    "prompts": ("prompt", "effort"),
    "contexts": ("context", "memories"),
}
"""Tables by dimension that the console shows, beside burn, failing beads, comparisons and experiments."""


class Sample(Struct, frozen=True):
    """One value at one time."""

    at: int | None
    value: float
    unit: str
    direction: Direction
    attempt: str = ""
    landed: bool = True
    """Whether it is a state that the branch has, or had."""


class Measure(Struct, frozen=True):
    """One metric: its last value, its limit, and its trend."""

    name: str
    title: str
    unit: str
    direction: Direction
    samples: tuple[Sample, ...]
    """Oldest first."""
    ratchet: float | None = None
    goal: float | None = None
    budget: float | None = None

    @property
    def value(self) -> float | None:
        """The last value."""
        return self.samples[-1].value if self.samples else None

    @property
    def baseline(self) -> float | None:
        """The last value before it that the branch has."""
        # the branch never had a value that was measured on a change that did not land
        return next((sample.value for sample in reversed(self.samples[:-1]) if sample.landed), None)

    @property
    def trend(self) -> str:
        """``better``, ``worse`` or ``same`` than the baseline; empty if there is none."""
        if self.value is None or self.baseline is None:
            return ""
        if self.value == self.baseline:
            return "same"
        return "better" if better(self.direction, self.value, self.baseline) else "worse"

    @property
    def holds(self) -> bool | None:
        """Whether the last value meets its ratchet; None without a value or ratchet."""
        if self.value is None or self.ratchet is None:
            return None
        return not better(self.direction, self.ratchet, self.value)

    def show(self, value: float | None) -> str:
        """A value in its unit; empty for none."""
        return "" if value is None else amount(value, self.unit)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        last = self.samples[-1] if self.samples else None
        return {
            "metric_id": self.name,
            "title": self.title,
            "unit": self.unit,
            "direction": self.direction,
            "value": self.value,
            "baseline": self.baseline,
            "trend": self.trend or None,
            "ratchet": self.ratchet,
            "holds": self.holds,
            "goal": self.goal,
            "budget": self.budget,
            "n": len(self.samples),
            "last_at": None if last is None or last.at is None else format_instant(last.at),
            "last_attempt_id": last.attempt or None if last is not None else None,
        }


def read_measures(project: Project, attempts: Iterable[Attempt]) -> tuple[Measure, ...]:
    """Every metric that is defined or was observed, by name. Reads documents and two files of DDx's."""
    found = {each.name: each for each in _defined(project)}
    samples: dict[str, list[Sample]] = {name: [] for name in found}
    stored = {execution.id: execution for execution in read_stored_executions(project.ddx_dir)}
    for run in read_observations(project.ddx_dir):
        if run.value is not None and run.metric:
            samples.setdefault(run.metric, []).append(
                Sample(run.at, run.value, run.unit, _direction(run, stored, found))
            )
    limits: dict[str, Ratchet] = {}
    for attempt in attempts:
        for each in attempt.ratchets:
            at = attempt.at
            sample = Sample(at, each.value, each.unit, each.direction, attempt.attempt_id, attempt.landed)
            samples.setdefault(each.name, []).append(sample)
            # attempts come newest first: the limit that holds is that of the newest
            limits.setdefault(each.name, each)
    made = []
    for name in sorted(samples):
        series = tuple(sorted(samples[name], key=lambda each: each.at or 0))
        last = series[-1] if series else None
        known = found.get(name) or Measure(name, "", "", last.direction if last else "lower-is-better", ())
        # its limit: the measuring document's, else the one an attempt was held to, else an active definition's
        ratchet = known.ratchet
        if ratchet is None and name in limits:
            ratchet = limits[name].threshold
        if ratchet is None:
            kept = (each.ratchet for each in stored.values() if each.active and name in each.artifacts)
            ratchet = next((limit for limit in kept if limit is not None), None)
        unit = known.unit or (last.unit if last else "")
        made.append(replace(known, unit=unit, samples=series, ratchet=ratchet))
    return tuple(made)


def _defined(project: Project) -> Iterable[Measure]:
    """The metrics that documents define, with the ratchets of the documents that measure them."""
    try:
        documents = read_graph(project.root).documents
    except DocumentsUnreadable:
        return
    gates = {each.execution.metric_id: each.execution for each in documents.values() if each.execution is not None}
    for name, document in documents.items():
        metric = document.metric
        if metric is None:
            continue
        gate = gates.get(name)
        yield Measure(
            name,
            clean_line(document.title, 200),
            metric.unit or (gate.unit if gate is not None else ""),
            direction_of(metric.direction),
            (),
            gate.ratchet if gate is not None else None,
            metric.goal,
            metric.budget,
        )


def _direction(run: Observation, stored: dict[str, StoredExecution], defined: dict[str, Measure]) -> Direction:
    """Which way is better: as the metric's document says, else its definition, else the run itself."""
    if run.metric in defined:
        return defined[run.metric].direction
    definition = stored.get(run.definition)
    return definition.direction if definition is not None else run.direction


class Trial(Struct, frozen=True):
    """One experiment bead with its attempts."""

    bead: Bead
    cell: Cell
    shown: Attempt | None
    """The attempt that landed, else the newest; None if not tried."""

    @property
    def outcome(self) -> str:
        """The heading its attempt stands under, or ``not run``."""
        return "not run" if self.shown is None else self.shown.kind

    @property
    def kept(self) -> bool:
        """Whether its change is on the branch."""
        return self.shown is not None and self.shown.landed

    @property
    def why(self) -> str:
        """What did not work, in the agent's or ddx's words; empty if it was kept or unknown."""
        shown = None if self.kept else self.shown
        return "" if shown is None else shown.no_changes_rationale or shown.error or shown.detail


class Batch(Struct, frozen=True):
    """Experiments that are compared with each other, those that landed first, then the cheapest."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial | None:
        """The first that landed."""
        return next((trial for trial in self.trials if trial.kept), None)


def batch_of(bead: Bead) -> str | None:
    """The batch that an experiment bead belongs to; None for any other bead."""
    named = next((label for label in bead.labels if label.startswith(_PREFIX) and label != _PREFIX), "")
    if named:
        return named.removeprefix(_PREFIX)
    if bead.issue_type == "experiment" or {"experiment", "kind:experiment"} & set(bead.labels):
        # experiments without a label of their own that share a parent are compared with each other
        return bead.parent or UNBATCHED
    return None


def batches(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[Batch, ...]:
    """Every batch, by name."""
    grouped: dict[str, list[Bead]] = {}
    for bead in beads.values():
        name = batch_of(bead)
        if name is not None:
            grouped.setdefault(name, []).append(bead)
    if not grouped:
        return ()
    tried = _by_bead(attempts)
    return tuple(Batch(name, _ranked(grouped[name], tried)) for name in sorted(grouped))


def trials(attempts: Iterable[Attempt], beads: Iterable[Bead]) -> tuple[Trial, ...]:
    """What came of some beads, those that landed first, then the cheapest."""
    return _ranked(beads, _by_bead(attempts))


def _by_bead(attempts: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    tried: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.finished:
            tried.setdefault(attempt.bead_id, []).append(attempt)
    return tried


def _ranked(beads: Iterable[Bead], tried: Mapping[str, list[Attempt]]) -> tuple[Trial, ...]:
    return tuple(sorted((_trial(bead, tried.get(bead.id, ())) for bead in beads), key=_rank))


def _trial(bead: Bead, attempts: Iterable[Attempt]) -> Trial:
    ended = tuple(attempts)
    # one that landed stands for the bead even if somebody tried again later
    shown = max(ended, key=lambda each: (each.landed, each.at or 0), default=None)
    return Trial(bead, Cell((("bead", bead.id),), ended), shown)


def _rank(trial: Trial) -> tuple[bool, bool, bool, float, int, int, str]:
    """The order of trials: a cost of which a part is unknown may be any higher one, so it follows exact ones."""
    cell, cost = trial.cell, trial.cell.cost
    known = (cost is None, cost is not None and not cell.cost_complete, cost or 0.0)
    return (not trial.kept, *known, sum(cell.tokens), sum(cell.durations), trial.bead.id)


Verdict = Literal["as good", "worse", "better", "unclear"]


class ModelComparison(Struct, frozen=True):
    """A dearer and a cheaper model on one kind of bead."""

    kind: str
    dearer: Cell
    cheaper: Cell
    rescued: int
    """Beads that the cheaper one failed and the dearer one landed later."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the cheaper one, by its share of landed attempts.

        ``as good`` where its share is above the lower half of what the dearer one's may be below its own;
        ``unclear`` where a row is too small, or the intervals overlap and say no more than that.
        """
        # with fewer than ten attempts the shares mean nothing
        one, other = self.cheaper.landed, self.dearer.landed
        if self.cheaper.small or self.dearer.small or one.rate is None or other.rate is None:
            return "unclear"
        if not one.overlaps(other):
            return "better" if one.low > other.high else "worse"
        return "as good" if one.rate >= (other.low + other.rate) / 2 else "unclear"

    @property
    def saved(self) -> float | None:
        """Dollars saved on each landed bead; below 0 where the cheaper attempts land so rarely that they
        cost more. None if nothing landed or no cost is known.
        """
        one, other = self.cheaper.cost_per_landed, self.dearer.cost_per_landed
        return None if one is None or other is None else other - one


def compare_models(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[ModelComparison, ...]:
    """Every pair of models with known costs on each kind of bead, the most promising first."""
    cells = [
        cell
        for cell in table(attempts, beads, ("kind", "model"))
        # without a cost there is no cheaper model; an unknown model cannot be chosen
        if cell.cost_per_attempt is not None and UNKNOWN not in dict(cell.key).values()
    ]
    found = []
    for one, other in combinations(cells, 2):
        # only on the same kind of bead: a model that got the easy ones would look better
        if one.key[0] == other.key[0]:
            cheaper, dearer = sorted((one, other), key=lambda cell: (cell.cost_per_attempt or 0.0, cell.key))
            found.append(ModelComparison(one.key[0][1], dearer, cheaper, _rescued(cheaper, dearer)))
    rank: dict[Verdict, int] = {"better": 0, "as good": 1, "unclear": 2, "worse": 3}
    return tuple(sorted(found, key=lambda each: (rank[each.verdict], -(each.saved or 0.0), each.kind, each.dearer.key)))


def _rescued(cheaper: Cell, dearer: Cell) -> int:
    landed: dict[str, int] = {}
    for attempt in dearer.attempts:
        if attempt.landed:
            landed[attempt.bead_id] = max(landed.get(attempt.bead_id, 0), attempt.started_at or 0)
    return len(
        {
            attempt.bead_id
            for attempt in cheaper.attempts
            if not attempt.landed and (attempt.started_at or 0) < landed.get(attempt.bead_id, 0)
        }
    )


class Report(Struct, frozen=True):
    """Everything the console shows of costs and outcomes."""

    tables: Mapping[str, tuple[Cell, ...]]
    burn: Burn
    failing: tuple[Failing, ...]
    models: tuple[ModelComparison, ...]
    batches: tuple[Batch, ...]
    forecast: Forecast
    measures: tuple[Measure, ...] = ()
    titles: Mapping[str, str] = {}
    """The titles of beads that are parents."""
    without_result: int = 0
    """Attempts that left no result, or have not ended: they are in no table."""
    _behind: dict[str, tuple[Attempt, ...]] = {}

    def attempts_behind(self, key: str) -> tuple[Attempt, ...]:
        """The attempts behind the row of a key; empty if there is no such row."""
        # made when a row is first opened: the command line never asks
        if not self._behind:
            self._behind.update(self._all_behind())
        return self._behind.get(key, ())

    def _all_behind(self) -> dict[str, tuple[Attempt, ...]]:
        found = {key_of(cell): cell.attempts for cells in self.tables.values() for cell in cells}
        found |= {key_of(cell): cell.attempts for cell in self.burn.days}
        found |= {key_of(each.cell): each.cell.attempts for each in self.failing}
        found |= {key_of(model): (*model.cheaper.attempts, *model.dearer.attempts) for model in self.models}
        by_id: dict[str, Attempt] = {}
        if self.measures:  # few projects measure, and many have 20,000 attempts
            by_id = {
                attempt.attempt_id: attempt
                for cells in self.tables.values()
                for cell in cells
                for attempt in cell.attempts
            }
        for measure in self.measures:
            taken = (by_id.get(sample.attempt) for sample in reversed(measure.samples))
            found[f"measure:{measure.name}"] = tuple(each for each in taken if each is not None)
        return found | {key_of(trial.cell): trial.cell.attempts for batch in self.batches for trial in batch.trials}


def key_of(row: Cell | ModelComparison) -> str:
    """The key of a row, stable between reports."""
    if isinstance(row, ModelComparison):
        names = " or ".join(dict(cell.key)["model"] for cell in (row.cheaper, row.dearer))
        return f"compare:{row.kind}: {names}"
    return ",".join(name for name, _ in row.key) + ":" + " · ".join(value for _, value in row.key)


def read_report(
    attempts: Sequence[Attempt],
    queue: Queue,
    now: int,
    other_calls: Sequence[AgentCall] = (),
    measures: Sequence[Measure] = (),
    archive: Mapping[str, Bead] | None = None,
) -> Report:
    """Compute every table as of ``now`` (ns since the epoch)."""
    beads = queue.beads
    return Report(
        tables={name: table(attempts, beads, by) for name, by in TABLES.items()},
        burn=burn(attempts, beads, now, left=to_do(queue), other_calls=other_calls),
        failing=failing(attempts, beads),
        models=compare_models(attempts, beads),
        batches=batches(attempts, beads),
        measures=tuple(measures),
        titles={parent: beads[parent].title for parent in queue.graph.children if parent in beads},
        forecast=forecast(attempts, beads, queue.graph, now, left=to_do(queue), archive=archive),
        without_result=count_without_result(attempts),
    )


def count_without_result(attempts: Iterable[Attempt]) -> int:
    """How many attempts left no result, or have not ended: no table counts them."""
    return sum(not attempt.finished for attempt in attempts)


def not_counted(number: int) -> str:
    """What to say of attempts that no table counts; empty without any."""
    return f"not counted: {counted(number, 'attempt')} without a result" if number else ""
