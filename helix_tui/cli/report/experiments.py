"""Experiments for people and machines, and the figures of insights in words: n/a for what nobody recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.cli.paint import columns
from helix_tui.core.ddx.attempts.sums import format_sum, format_usd
from helix_tui.core.ground.text import clean_line, fit
from helix_tui.core.ground.time import format_span
from helix_tui.core.insights.cells import Cell
from helix_tui.core.insights.report import Trial

_HEADER = ("bead", "result", "kept", "tries", "model", "tokens", "cost", "time", "what")


def trial_document(trial: Trial, state: str) -> dict[str, Any]:
    """One experiment: sums over its attempts, and the metadata of the one that landed, else of the newest.

    Args:
        state: of its bead in the queue.
    """
    told, cell = trial.shown, trial.cell
    texts = ("status", "harness", "model", "provider", "base_rev", "result_rev", "preserve_ref")
    return {
        "bead_id": trial.bead.id,
        "title": trial.bead.title,
        "state": state,
        "outcome": trial.outcome,
        "kept": trial.kept,
        "attempts": cell.n,
        "cost_usd": cell.cost,
        "cost_complete": cell.cost_complete,
        "tokens_total": cell.tokens_total,
        "duration_ms": cell.duration_ms,
        **{name: (getattr(told, name) or None) if told else None for name in texts},
        "attempt_id": (told.attempt_id or None) if told else None,
        "session_id": (told.session_id or None) if told else None,
        "why": trial.why or None,
        "ratchets": [each.document() for each in told.ratchets] if told else [],
    }


def trial_lines(call: Call, trials: Iterable[Trial]) -> list[str]:
    """A comparison as lines, the header first."""
    cells = [list(_HEADER), *map(_cells, trials)]
    lines = columns([[fit(clean_line(cell, 200), 60).rstrip() for cell in row] for row in cells], right=(3, 5, 6, 7))
    return [call.paint(lines[0], "muted"), *lines[1:]]


def _cells(trial: Trial) -> list[str]:
    told, cell = trial.shown, trial.cell
    ratchets = told.ratchets if told else ()
    return [
        trial.bead.id,
        told.status if told else trial.outcome,
        "yes" if trial.kept else "no",
        f"{cell.n}×",
        (told.model or told.harness if told else "") or "n/a",
        count(cell.tokens_total),
        dollars(cell),
        span(cell.duration_ms),
        "; ".join(each.describe() for each in ratchets) or trial.why or trial.bead.title,
    ]


def percent(part: float | None) -> str:
    """A share in whole percent."""
    return "n/a" if part is None else f"{part * 100:.0f}%"


def dollars(cell: Cell) -> str:
    """What a cell is known to have cost; ``≥`` where the cost of some calls is unknown."""
    return format_usd(None) if cell.cost is None else format_sum(cell.sums)


def per_landed(cell: Cell) -> str:
    """Cost of each bead that landed."""
    mark = "≥" if cell.cost_per_landed is not None and not cell.cost_complete else ""
    return mark + format_usd(cell.cost_per_landed)


def count(tokens: int | None) -> str:
    """Tokens, short."""
    if tokens is None:
        return "n/a"
    return f"{tokens:,}" if tokens < 10_000 else f"{tokens / 1000:,.0f}k"


def span(milliseconds: int | None) -> str:
    """A duration, short."""
    return "n/a" if milliseconds is None else format_span(milliseconds / 1000)
