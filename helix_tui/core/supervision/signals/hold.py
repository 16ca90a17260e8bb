"""Keeping workers from a bead for a while, and giving it back exactly as it was.

The value that ``execution-eligible`` had is stamped into the row by the command that takes it, so the row
alone says what is to be given back, after a kill at any step too (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing.steps import Overlay, PlanBuilder, called, stored
from helix_tui.core.supervision.signals.drift import STALE, Drift
from helix_tui.core.supervision.signals.questions import DRIFTED, UNDECIDED

UNDECIDED_PRIOR = "helix-held-prior"
"""Beside it: ``absent``, true, or ``=`` and a text, what ``execution-eligible`` was before."""


FOR_DECISION = "a decision"


def hold(writing: PlanBuilder, bead_id: str, mark: str, why: str, prior_key: str) -> None:
    """Keep workers from a bead, marked, with the value of before."""
    value = writing.overlay.value(bead_id, "execution-eligible")
    prior: Any
    if value is None or value is True:
        prior = "absent" if value is None else True
    elif isinstance(value, str):
        prior = f"={value}"
    else:
        writing.notes.append(
            f"{called(bead_id)} is left alone: its execution-eligible is neither a boolean nor a string"
        )
        return
    writing.update(bead_id, {"execution-eligible": False, mark: why, prior_key: prior})


def release(writing: PlanBuilder, bead_id: str, mark: str, prior_key: str) -> None:
    """Give a bead its value of before, unless somebody has changed that since; then only the marks go."""
    overlay = writing.overlay
    fields: dict[str, Any] = {mark: None, prior_key: None}
    if overlay.value(bead_id, "execution-eligible") is False:
        prior = overlay.value(bead_id, prior_key)
        text = prior[1:] if isinstance(prior, str) and prior.startswith("=") else ""
        # ddx would make a real false of the text: workers took the bead before, and take it again without
        fields["execution-eligible"] = prior is True or stored("execution-eligible", text, writing.dialect) or None
    writing.update(bead_id, fields)


def undecided(queue: Queue) -> tuple[str, ...]:
    """Beads that a run keeps back until a person has judged what came of them, or it has done the others."""
    # the raw bytes tell without decoding every row of the queue
    mark = f'"{UNDECIDED}"'.encode()
    return tuple(bead_id for bead_id, bead in queue.beads.items() if mark in bead.raw)


def plan_undecided(writing: PlanBuilder, wanted: Iterable[str] | Mapping[str, str]) -> None:
    """Keep exactly these back, each for its reason: what is held besides is given back."""
    overlay, keep = writing.overlay, set(wanted)
    reasons = wanted if isinstance(wanted, Mapping) else {}
    have = set(undecided(overlay.queue))
    for bead_id in sorted(have - keep):
        release(writing, bead_id, UNDECIDED, UNDECIDED_PRIOR)
    for bead_id in sorted(keep - have):
        if bead_id in overlay and _eligible(overlay, bead_id):
            hold(writing, bead_id, UNDECIDED, reasons.get(bead_id, FOR_DECISION), UNDECIDED_PRIOR)


def _eligible(overlay: Overlay, bead_id: str) -> bool:
    return overlay.value(bead_id, "execution-eligible") is not False


DRIFTED_PRIOR = "helix-drift-prior"
"""Beside the mark of drift: ``absent``, true, or ``=`` and a text, what ``execution-eligible`` was before."""


def drifted(queue: Queue) -> tuple[str, ...]:
    """Beads that are kept from workers because their parent or governing document changed."""
    mark = f'"{DRIFTED}"'.encode()
    return tuple(bead_id for bead_id, bead in queue.beads.items() if mark in bead.raw)


def plan_drifted(writing: PlanBuilder, wanted: Iterable[str]) -> None:
    """Keep exactly these back for their drift (CONTRACT-001); the others are given back as they were."""
    overlay, keep = writing.overlay, set(wanted)
    have = set(drifted(overlay.queue))
    for bead_id in sorted(have - keep):
        release(writing, bead_id, DRIFTED, DRIFTED_PRIOR)
    for bead_id in sorted(keep - have):
        if bead_id in overlay and _eligible(overlay, bead_id):
            hold(writing, bead_id, DRIFTED, "parent or document changed", DRIFTED_PRIOR)


def stale(drift: Iterable[Drift]) -> set[str]:
    """Beads whose parent or governing document changed."""
    return {each.bead_id for each in drift if each.field in STALE}
