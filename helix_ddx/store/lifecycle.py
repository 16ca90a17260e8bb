"""Which status may follow which, and what else has to hold of a record (docs/formats/ddx.md §1, Lifecycle
H)."""

from __future__ import annotations

from msgspec import Struct

from helix_ddx.base.flags import Refused
from helix_ddx.store.places import TrackerRow
from helix_tui.core.beads.record import STATUSES, Bead

APRIL_STATUSES = ("open", "in_progress", "closed")

_STEPS = {
    "proposed": ("open", "cancelled"),
    "open": ("in_progress", "blocked", "proposed", "cancelled"),
    "in_progress": ("open", "closed", "blocked", "proposed"),
    "blocked": ("open", "proposed", "cancelled"),
}


class StatusChange(Struct, frozen=True):
    """Facts about a change of status that the statuses alone do not tell."""

    manual_close: bool = False
    manual_reopen: bool = False
    blocker_reason: str = ""


NOTHING_MORE = StatusChange()
"""No fact beyond the two statuses."""


def check_row(row: TrackerRow, era: str) -> Bead:
    """What holds of every record that is written.

    Raises:
        Refused: it has no title, or an impossible priority, status or dependency.
    """
    bead = row.bead()
    if not bead.title.strip():
        raise Refused("bead: title is required")
    if not 0 <= bead.priority <= 4:
        raise Refused(f"bead: priority must be 0-4, got {bead.priority}")
    if bead.status not in (STATUSES if era == "head" else APRIL_STATUSES):
        raise Refused(f"bead: invalid status: {bead.status}")
    if bead.id in bead.depends_on:
        raise Refused("bead: cannot depend on self")
    return bead


def transition(row: TrackerRow, to: str, step: StatusChange = NOTHING_MORE) -> None:
    """Set a status as head allows it, with what a change of status cleans up.

    Raises:
        Refused: that step does not exist, or lacks what it needs.
    """
    status = row.text("status") or "open"
    problem = _objection(status, to, step)
    if problem:
        raise Refused(f"bead: lifecycle transition {status} -> {to} rejected: {problem}")
    row.put("status", to)
    if to == "blocked":
        if step.blocker_reason.strip():
            row.put("lifecycle-external-blocker-reason", step.blocker_reason.strip())
    else:
        row.drop(
            "lifecycle-external-blocker-reason",
            "lifecycle-cross-repo-blocker-ref",
            "lifecycle-local-blocker-ref",
        )
    if to == "open" and status in ("proposed", "blocked"):
        row.drop("work-consecutive-wedges")


def _objection(status: str, to: str, step: StatusChange) -> str:
    for word in (status, to):
        if word not in STATUSES:
            return f'invalid_status: "{word}"'
    if status == to:
        return ""
    if to == "closed" and step.manual_close and status in _STEPS:
        return ""
    if (status, to) == ("closed", "open") and step.manual_reopen:
        return ""
    if status not in _STEPS:
        return f"transition_from_terminal: {status} -> {to}"
    if to == "proposed":
        return f"transition_requires_operator: {status} -> {to}"
    if to == "blocked" and not step.blocker_reason.strip():
        return f"transition_requires_external_blocker: {status} -> {to}"
    return "" if to in _STEPS[status] else f"transition_unsupported: {status} -> {to}"
