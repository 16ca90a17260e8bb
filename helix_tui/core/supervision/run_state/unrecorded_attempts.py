"""Attempts that ddx's loop told a run of and of which no evidence is left: what its results said of them.

ddx's evidence is the one record of attempts (CONTRACT-001); what the run's state keeps of the results
stands in only where that record has nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helix_tui.core.ddx.attempts.attempt import Attempt, Piece
from helix_tui.core.ddx.attempts.branch import BranchHistory, merge_report
from helix_tui.core.ddx.fields import instant, money, text, whole
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.run_state.state import load_state


def with_told(project: Project, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Attempts with evidence, and those of the last run that have none."""
    known = {attempt.attempt_id for attempt in attempts}
    evident = {attempt.bead_id for attempt in attempts}
    branch, told = BranchHistory(project), []
    for cycle in load_state(project).cycles:
        rows = cycle.get("attempts")
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict):
                continue
            name = text(row, "attempt_id")
            # Without a name nobody can tell whether the evidence of its bead is of this very attempt.
            if name not in known if name else text(row, "bead_id") not in evident:
                piece = _piece(name, row, parse_instant(str(cycle.get("at", ""))))
                told.append(merge_report(branch, piece))
    return (*attempts, *told)


def _piece(name: str, row: Mapping[str, Any], at: int | None) -> Piece:
    words = ("bead_id", "status", "detail", "session_id", "harness", "model", "provider")
    revs = ("base_rev", "result_rev", "preserve_ref")
    said: dict[str, Any] = {word: text(row, word) for word in (*words, *revs)}
    return Piece(
        "loop",
        name,
        **said,
        tokens=whole(row.get("tokens")) or None,
        cost_usd=money(row.get("cost_usd")) or None,
        duration_ms=whole(row.get("duration_ms")),
        retry_after=instant(row.get("retry_after")),
        finished_at=at,
    )
