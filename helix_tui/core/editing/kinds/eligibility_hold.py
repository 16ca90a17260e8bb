"""Keep workers from a bead for a reason in its row, and restore its ``execution-eligible`` exactly.

Rules: docs/decisions/0009. DDx skips beads whose ``execution-eligible`` is false. The command that changes it writes
the earlier value into the row too, so the row alone says what to restore, even after a kill at any step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import HELD, REFUSED, hold_reason
from helix_tui.core.editing.steps import PlanBuilder, called, stored

HELD_PRIOR = "helix-drift-prior"
"""Field with ``execution-eligible`` before: ``absent``, true, or ``=`` and a text."""


def hold(writing: PlanBuilder, bead_id: str, mark: str, why: str, prior_key: str) -> None:
    """Keep workers from a bead, with a mark and the earlier value."""
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
    """Restore a bead's earlier value, unless it was changed since; then only remove the marks."""
    overlay = writing.overlay
    fields: dict[str, Any] = {mark: None, prior_key: None}
    if overlay.value(bead_id, "execution-eligible") is False:
        prior = overlay.value(bead_id, prior_key)
        text = prior[1:] if isinstance(prior, str) and prior.startswith("=") else ""
        # ddx would turn the text into a boolean false: workers picked the bead before, and do again without the field
        fields["execution-eligible"] = prior is True or stored("execution-eligible", text, writing.dialect) or None
    writing.update(bead_id, fields)


def release_refused(writing: PlanBuilder, bead_id: str) -> None:
    """Give a bead back to workers that was kept from them for its refused change, once a person has decided."""
    if writing.overlay.value(bead_id, HELD) == REFUSED:
        release(writing, bead_id, HELD, HELD_PRIOR)


def give_back(writing: PlanBuilder, bead_id: str) -> None:
    """Give workers a bead whose refused change a person has decided on, whoever kept it from them: HELIX by its hold,
    or ddx, some releases of which park such a bead as proposed.
    """
    release_refused(writing, bead_id)
    if writing.overlay.status(bead_id) == "proposed":
        writing.add("update", (bead_id, "--status", "open"), {bead_id: {"status": "open"}})


def held_back(queue: Queue) -> dict[str, str]:
    """The beads that HELIX keeps from workers until a person decides, each with the reason."""
    return {bead_id: reason for bead_id, bead in queue.beads.items() if (reason := hold_reason(bead))}


def plan_holds(writing: PlanBuilder, reasons: Mapping[str, str]) -> None:
    """Keep workers from exactly these beads, each for its reason; restore the others."""
    overlay = writing.overlay
    held = held_back(overlay.queue)
    for bead_id in sorted(held.keys() - reasons.keys()):
        release(writing, bead_id, HELD, HELD_PRIOR)
    for bead_id, reason in sorted(reasons.items()):
        if bead_id not in overlay:
            continue
        if overlay.value(bead_id, "execution-eligible") is not False:
            hold(writing, bead_id, HELD, reason, HELD_PRIOR)
        elif held.get(bead_id, reason) != reason:
            writing.update(bead_id, {HELD: reason})
