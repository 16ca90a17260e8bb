"""Verbs of DDx that the embedded tracker knows of and does not offer."""

from __future__ import annotations

from helix_ddx.base.refusal import Refused
from helix_ddx.store.call import VerbCall


def refuse(call: VerbCall) -> None:
    """Say so, instead of answering with somebody else's help."""
    raise Refused("this needs ddx itself: the embedded tracker edits beads, it does not execute or migrate them")
