"""Every table of a project at one moment, worked out together, and the attempts behind each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.sums import AgentCall
from helix_tui.core.insights.cells import Cell, table
from helix_tui.core.insights.experiments import Batch, batches
from helix_tui.core.insights.routing import Comparison, compare_models
from helix_tui.core.insights.spending import Burn, Failing, burn, failing, to_do

TABLES: Mapping[str, tuple[str, ...]] = {
    "models": ("harness", "model", "kind"),
    "areas": ("area", "kind"),
    "endings": ("status",),
}
"""Tables by dimension that the console shows, beside burn, failing beads, comparisons and experiments."""


@dataclass(frozen=True)
class Report:
    """Everything the console shows of costs and outcomes."""

    tables: Mapping[str, tuple[Cell, ...]]
    burn: Burn
    failing: tuple[Failing, ...]
    models: tuple[Comparison, ...]
    batches: tuple[Batch, ...]
    _behind: dict[str, tuple[Attempt, ...]] = field(default_factory=dict, repr=False)

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
        return found | {key_of(trial.cell): trial.cell.attempts for batch in self.batches for trial in batch.trials}


def key_of(row: Cell | Comparison) -> str:
    """What a row is known by from one report to the next."""
    if isinstance(row, Comparison):
        names = " or ".join(dict(cell.key)["model"] for cell in (row.cheaper, row.dearer))
        return f"compare:{row.kind}: {names}"
    return ",".join(name for name, _ in row.key) + ":" + " · ".join(value for _, value in row.key)


def read_report(attempts: Sequence[Attempt], queue: Queue, now: int, other_calls: Sequence[AgentCall] = ()) -> Report:
    """Work out every table as of ``now`` (ns since the epoch)."""
    beads = queue.beads
    return Report(
        tables={name: table(attempts, beads, by) for name, by in TABLES.items()},
        burn=burn(attempts, beads, now, left=to_do(queue), other_calls=other_calls),
        failing=failing(attempts, beads),
        models=compare_models(attempts, beads),
        batches=batches(attempts, beads),
    )
