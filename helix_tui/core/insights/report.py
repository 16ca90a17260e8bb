"""Every table of a project at one moment, worked out together, and the attempts behind each row.

Would a cheaper model have done? Models compared on the same kind of bead, with their intervals.

CONTRACT-001's question for model routing (docs/formats/helix.md). Nothing is recommended where
too few attempts stand behind a row.

Batches of experiment beads side by side, from the metadata of their attempts.

An experiment bead has the type ``experiment`` or a label ``experiment``, ``kind:experiment`` or
``experiment:NAME``; NAME is its batch, else its parent is. CONTRACT-001: queue a batch, let DDx
run it, keep what improves; what failed leaves a record of why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.sums import AgentCall
from helix_tui.core.insights.cells import UNKNOWN, Cell, table
from helix_tui.core.insights.forecast import Forecast, forecast
from helix_tui.core.insights.measures import Measure
from helix_tui.core.insights.spending import Burn, Failing, burn, failing, to_do

UNBATCHED = "no batch"

_PREFIX = "experiment:"


class Trial(Struct, frozen=True):
    """One experiment bead with its attempts."""

    bead: Bead
    cell: Cell
    shown: Attempt | None
    """The attempt that landed, else the newest; None as long as nobody tried."""

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
        """What did not work, in the agent's or ddx's words; empty where it was kept or nobody says."""
        told = None if self.kept else self.shown
        return "" if told is None else told.no_changes_rationale or told.error or told.detail


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
    shown = max(ended, key=lambda each: (each.landed, each.at or 0), default=None)
    return Trial(bead, Cell((("bead", bead.id),), ended), shown)


def _rank(trial: Trial) -> tuple[bool, bool, float, int, int, str]:
    cell = trial.cell
    return (
        not trial.kept,
        cell.cost is None,
        cell.cost or 0.0,
        sum(cell.tokens),
        sum(cell.durations),
        trial.bead.id,
    )


Verdict = Literal["as good", "worse", "better", "unclear"]


class ModelComparison(Struct, frozen=True):
    """A dearer and a cheaper model on one kind of bead."""

    kind: str
    dearer: Cell
    cheaper: Cell
    rescued: int
    """Beads that the cheaper one failed on and the dearer one landed later."""

    @property
    def verdict(self) -> Verdict:
        """What the cheaper one is, by its share of landed attempts.

        ``as good`` where its share is above the lower half of what the dearer one's may be below its own;
        ``unclear`` where a row is too small, or the intervals overlap and say no more than that.
        """
        one, other = self.cheaper.landed, self.dearer.landed
        if self.cheaper.small or self.dearer.small or one.rate is None or other.rate is None:
            return "unclear"
        if not one.overlaps(other):
            return "better" if one.low > other.high else "worse"
        return "as good" if one.rate >= (other.low + other.rate) / 2 else "unclear"

    @property
    def saved(self) -> float | None:
        """Dollars saved on each landed bead; below 0 where the cheaper attempts land so rarely that they
        cost more. None where nothing landed or no cost is known."""
        one, other = self.cheaper.cost_per_landed, self.dearer.cost_per_landed
        return None if one is None or other is None else other - one


def compare_models(attempts: Iterable[Attempt], beads: Mapping[str, Bead]) -> tuple[ModelComparison, ...]:
    """Every pair of models with known costs on each kind of bead, the most promising first."""
    cells = [
        cell
        for cell in table(attempts, beads, ("kind", "model"))
        if cell.cost_per_attempt is not None and UNKNOWN not in dict(cell.key).values()
    ]
    found = []
    for one, other in combinations(cells, 2):
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


TABLES: Mapping[str, tuple[str, ...]] = {
    "models": ("harness", "model", "kind"),
    "areas": ("area", "kind"),
    "endings": ("status",),
    "prompts": ("prompt", "effort"),
    "contexts": ("context", "memories"),
}
"""Tables by dimension that the console shows, beside burn, failing beads, comparisons and experiments."""


class Report(Struct, frozen=True):
    """Everything the console shows of costs and outcomes."""

    tables: Mapping[str, tuple[Cell, ...]]
    burn: Burn
    failing: tuple[Failing, ...]
    models: tuple[ModelComparison, ...]
    batches: tuple[Batch, ...]
    forecast: Forecast
    measures: tuple[Measure, ...] = ()
    _behind: dict[str, tuple[Attempt, ...]] = {}

    def attempts_behind(self, key: str) -> tuple[Attempt, ...]:
        """The attempts that the row of this key stands for; none where there is no such row."""
        if not self._behind:
            self._behind.update(self._all_behind())
        return self._behind.get(key, ())

    def _all_behind(self) -> dict[str, tuple[Attempt, ...]]:
        found = {key_of(cell): cell.attempts for cells in self.tables.values() for cell in cells}
        found |= {key_of(cell): cell.attempts for cell in self.burn.days}
        found |= {key_of(each.cell): each.cell.attempts for each in self.failing}
        found |= {key_of(each): (*each.cheaper.attempts, *each.dearer.attempts) for each in self.models}
        by_id = {each.attempt_id: each for cells in self.tables.values() for cell in cells for each in cell.attempts}
        for measure in self.measures:
            taken = (by_id.get(sample.attempt) for sample in reversed(measure.samples))
            found[f"measure:{measure.name}"] = tuple(each for each in taken if each is not None)
        return found | {key_of(trial.cell): trial.cell.attempts for batch in self.batches for trial in batch.trials}


def key_of(row: Cell | ModelComparison) -> str:
    """What a row is known by from one report to the next."""
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
    """Work out every table as of ``now`` (ns since the epoch)."""
    beads = queue.beads
    return Report(
        tables={name: table(attempts, beads, by) for name, by in TABLES.items()},
        burn=burn(attempts, beads, now, left=to_do(queue), other_calls=other_calls),
        failing=failing(attempts, beads),
        models=compare_models(attempts, beads),
        batches=batches(attempts, beads),
        measures=tuple(measures),
        forecast=forecast(attempts, beads, queue.graph, now, left=to_do(queue), archive=archive),
    )
