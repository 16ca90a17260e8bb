"""Batches of experiment beads side by side, from the metadata of their attempts.

An experiment bead has the type ``experiment`` or a label ``experiment``, ``kind:experiment`` or
``experiment:NAME``; NAME is its batch, else its parent is. CONTRACT-001: queue a batch, let DDx
run it, keep what improves; what failed leaves a record of why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.insights.cells import Cell

UNBATCHED = "no batch"

_PREFIX = "experiment:"


@dataclass(frozen=True, slots=True)
class Trial:
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


@dataclass(frozen=True, slots=True)
class Batch:
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
    shown = max(ended, key=lambda each: (each.landed, each.finished_at or each.started_at or 0), default=None)
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
