"""Metrics over time: what DDx observed by its store and by the ratchets of attempts, beside what is wanted.

CONTRACT-001 asks for ratchets as policy input, and for experiments that keep what improves. Definitions come from
documents (`ddx.execution`, `metric`) and from DDx's store; nothing here runs or decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.dialect import AUGUST, Dialect
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
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant


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
    """One metric: its last value, what it is held against, and whether it gets better."""

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
        return next((each.value for each in reversed(self.samples[:-1]) if each.landed), None)

    @property
    def trend(self) -> str:
        """``better``, ``worse`` or ``same`` than the baseline; empty where there is none."""
        if self.value is None or self.baseline is None:
            return ""
        if self.value == self.baseline:
            return "same"
        return "better" if better(self.direction, self.value, self.baseline) else "worse"

    @property
    def holds(self) -> bool | None:
        """Whether the last value keeps its ratchet; None where there is no value or none is wanted."""
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


def read_measures(project: Project, attempts: Iterable[Attempt], dialect: Dialect | None = None) -> tuple[Measure, ...]:
    """Every metric that is defined or was observed, by name. Reads documents and two files of DDx's."""
    found = {each.name: each for each in _defined(project, dialect)}
    samples: dict[str, list[Sample]] = {name: [] for name in found}
    stored = {each.id: each for each in read_stored_executions(project.ddx_dir)}
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
            limits[each.name] = each
    made = []
    for name in sorted(samples):
        series = tuple(sorted(samples[name], key=lambda each: each.at or 0))
        last = series[-1] if series else None
        known = found.get(name) or Measure(name, "", "", last.direction if last else "lower-is-better", ())
        ratchet = known.ratchet
        if ratchet is None and name in limits:
            ratchet = limits[name].threshold
        if ratchet is None:
            kept = (each.ratchet for each in stored.values() if each.active and name in each.artifacts)
            ratchet = next((limit for limit in kept if limit is not None), None)
        unit = known.unit or (last.unit if last else "")
        made.append(replace(known, unit=unit, samples=series, ratchet=ratchet))
    return tuple(made)


def _defined(project: Project, dialect: Dialect | None) -> Iterable[Measure]:
    """The metrics that documents define, with the ratchets of the documents that measure them."""
    rule = (dialect or AUGUST).documents
    try:
        documents = read_graph(project.root, project.ddx_dir, rule=rule).documents
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
