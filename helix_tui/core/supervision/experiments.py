"""Batches of experiment beads: which beads, and what came of each, side by side.

Rules: seed 000 (performance metadata and optimization). ddx runs the batch like all other work; what is
compared here is what its evidence holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.clock import format_span
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.project import Project
from helix_tui.core.supervision.check.facts import in_scope

LABEL = "kind:experiment"
"""The label of an experiment bead where no other scope is given."""


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment: its bead and its last attempt. None where nobody recorded it."""

    bead_id: str
    title: str
    state: str
    status: str
    kept: bool
    """Its change is on the branch."""
    attempts: int
    harness: str
    model: str
    tokens: int | None
    cost_usd: float | None
    duration_ms: int | None
    base_rev: str
    result_rev: str
    preserve_ref: str
    why: str
    """What did not work, in the agent's or ddx's words."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def batch_of(queue: Queue, scope: str) -> tuple[str, ...]:
    """The beads of a batch: all under an epic, all with a label, or those marked as experiments; no
    containers.
    """
    scope = scope or LABEL
    known = scope in queue.beads or any(
        scope in bead.labels or bead.spec_id == scope for bead in queue.beads.values()
    )
    inside = in_scope(queue, scope) if known else ()
    return tuple(
        bead_id
        for bead_id in inside
        if not (looks_like_epic(queue.beads[bead_id]) and queue.graph.children.get(bead_id))
    )


def compare(project: Project, queue: Queue, batch: Iterable[str]) -> tuple[Row, ...]:
    """What came of each bead of a batch; kept ones first, then by cost and tokens."""
    index = AttemptIndex(project.ddx_dir)
    index.refresh(queue.beads)
    by_bead: dict[str, list[Attempt]] = {}
    for attempt in index.attempts:
        by_bead.setdefault(attempt.bead_id, []).append(attempt)
    rows = [_row(queue, bead_id, by_bead.get(bead_id, [])) for bead_id in batch if bead_id in queue.beads]
    return tuple(sorted(rows, key=_rank))


def table(rows: Iterable[Row]) -> list[list[str]]:
    """The comparison as cells; the first row is the header."""
    header = ["bead", "result", "kept", "tries", "model", "tokens", "cost", "time", "what"]
    return [header, *(_cells(row) for row in rows)]


def _cells(row: Row) -> list[str]:
    return [
        row.bead_id,
        row.status or row.state,
        "yes" if row.kept else "no",
        str(row.attempts),
        row.model or row.harness or "–",
        "–" if row.tokens is None else f"{row.tokens:,}",
        "–" if row.cost_usd is None else f"${row.cost_usd:.4f}",
        "–" if row.duration_ms is None else format_span(row.duration_ms / 1000),
        row.why or row.title,
    ]


def _row(queue: Queue, bead_id: str, attempts: list[Attempt]) -> Row:
    bead = queue.beads[bead_id]
    last = attempts[0] if attempts else None
    landed = next((attempt for attempt in attempts if attempt.landed), last)
    return Row(
        bead_id=bead_id,
        title=bead.title,
        state=queue.state(bead_id),
        status=landed.status if landed else "",
        kept=bool(landed and landed.landed),
        attempts=len(attempts),
        harness=landed.harness if landed else "",
        model=landed.model if landed else "",
        tokens=_sum(attempt.tokens.total for attempt in attempts),
        cost_usd=_sum(attempt.cost_usd for attempt in attempts),
        duration_ms=_sum(attempt.duration_ms for attempt in attempts),
        base_rev=landed.base_rev if landed else "",
        result_rev=landed.result_rev if landed else "",
        preserve_ref=landed.preserve_ref if landed else "",
        why=""
        if landed is None or landed.landed
        else landed.no_changes_rationale or landed.error or landed.detail,
    )


def _sum(values: Iterable[Any]) -> Any:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rank(row: Row) -> tuple[bool, float, int, str]:
    cost = row.cost_usd if row.cost_usd is not None else float("inf")
    return not row.kept, cost, row.tokens or 0, row.bead_id
