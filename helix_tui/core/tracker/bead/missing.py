"""Verbs of DDx that the embedded tracker knows of and does not offer."""

from __future__ import annotations

from helix_tui.core.tracker.bead.call import Call
from helix_tui.core.tracker.bead.refusal import Refused


def refuse(call: Call) -> None:
    """Say so, instead of answering with somebody else's help."""
    raise Refused(
        "this needs ddx itself: the embedded tracker edits beads, it does not execute or migrate them"
    )
