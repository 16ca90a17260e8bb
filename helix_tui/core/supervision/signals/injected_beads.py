"""Telling an injected bead from one of its own kind, and what it was injected for.

Rules: docs/formats/helix.md §3.6: labels ``helix-injected:<type>`` with fields, or a plain label with notes;
either is read.
"""

from __future__ import annotations

import re
from typing import Any

from helix_tui.core.beads.record import Bead

REVIEW, ALIGNMENT, ACCEPTANCE = "review-finding", "alignment-review", "acceptance-failure"

PLANNING, ALIGN = "kind:planning", "action:align"
"""Labels of the bead that governs an alignment (docs/formats/helix.md §3.6)."""

_CAUSE = re.compile(r"TRIGGERING_(CYCLE|BEAD)=(\S+)")


def injected_type(bead: Bead) -> str:
    """Which kind of injected bead it is, by either way of marking them; empty for a bead of its own."""
    if bead.injected:
        return bead.injected
    for kind in (REVIEW, ALIGNMENT, ACCEPTANCE):
        if kind in bead.labels and b"TRIGGERING_" in bead.raw:
            return kind
    return ""


def supervisory(bead: Bead) -> bool:
    """Whether executing it is supervision and no build: it counts no cycle and has nothing injected."""
    if injected_type(bead) in (REVIEW, ALIGNMENT) or bead.issue_type in (REVIEW, ALIGNMENT):
        return True
    return "action:align" in bead.labels or "kind:review" in bead.labels


def governs_alignment(bead: Bead) -> bool:
    """Whether it is a bead that HELIX keeps for itself: it governs an alignment and holds up nobody."""
    return bead.title.startswith("align: ") and {PLANNING, ALIGN} <= set(bead.labels)


def injected_record(bead: Bead) -> dict[str, Any]:
    """What ``status`` shows of an injected bead; None where nobody wrote it down."""
    row = bead.document()
    notes = dict(_CAUSE.findall(str(row.get("notes") or "")))
    cycle = str(row.get("helix-trigger-cycle") or notes.get("CYCLE") or "")
    return {
        "id": bead.id,
        "type": injected_type(bead),
        "triggering_cycle": int(cycle) if cycle.isdecimal() else None,
        "triggering_bead": row.get("helix-trigger-bead") or notes.get("BEAD"),
        "trigger_source": row.get("helix-trigger-source"),
        "remediation": row.get("helix-remediation"),
        "status": bead.status,
        "created_at": bead.created_at or None,
    }
