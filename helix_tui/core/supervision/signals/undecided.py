"""Keep workers from a bead until a person has decided, and restore it exactly (docs/formats/helix.md §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing.kinds.eligibility_hold import hold, release
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import PlanBuilder
from helix_tui.core.supervision.signals.tried import UNDECIDED

UNDECIDED_PRIOR = "helix-held-prior"
"""Field with the earlier ``execution-eligible``: ``absent``, true, or ``=`` and a text."""

FOR_DECISION = "a decision"


def undecided(queue: Queue) -> tuple[str, ...]:
    """Beads that a run holds back until a person has decided on them, or the others are done."""
    # check the raw bytes without decoding every row of the queue
    mark = f'"{UNDECIDED}"'.encode()
    return tuple(bead_id for bead_id, bead in queue.beads.items() if mark in bead.raw)


def held_for(queue: Queue, reason: str) -> tuple[str, ...]:
    """Those of `undecided` that are held back for one reason."""
    return tuple(bead_id for bead_id in undecided(queue) if queue.beads[bead_id].document().get(UNDECIDED) == reason)


def plan_undecided(writing: PlanBuilder, wanted: Iterable[str] | Mapping[str, str]) -> None:
    """Hold back exactly these, each for its reason; release the others."""
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
