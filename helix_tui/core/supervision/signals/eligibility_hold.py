"""Why workers do not have a bead: what HELIX waits for, and what a person can do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from helix_tui.core.beads.record import TERMINAL, Bead

UNDECIDED = "helix-held-for"
"""In the row of a bead that a run goes on without, because a person must judge its outcome or because it was
tried and stays open: for what.
"""

DRIFTED = "helix-drift"
"""In the row of a bead whose parent or governing document changed since it was written: since when."""

_ESCALATIONS = frozenset({"kind:escalation", "kind:speculative"})


class Asked(Protocol):
    """A question to a person, as far as the bead that waits for it is concerned."""

    @property
    def id(self) -> str: ...
    @property
    def bead_id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def answered(self) -> bool: ...


def causes(bead: Bead, questions: Iterable[Asked] = ()) -> tuple[str, ...]:
    """Sentences, each with a cause that a person can act on; none where the row says it all."""
    if bead.status in TERMINAL:
        return ()
    found = [
        f"waits for your answer to {question.id}: {question.text}"
        for question in questions
        if question.bead_id == bead.id and not question.answered
    ]
    if bead.execution_eligible is not False:
        return tuple(found)
    if f'"{UNDECIDED}":"tried'.encode() in bead.raw:
        found.append("tried in this run and skipped until its record changes or the run ends")
    elif not found and f'"{UNDECIDED}"'.encode() in bead.raw:
        found.append("waits for your decision on its last attempt")
    if f'"{DRIFTED}"'.encode() in bead.raw:
        found.append("its parent or document changed: polish it, or accept that (helix-tui check --acknowledge)")
    if bead.focus_epic:
        found.append(f"held back by the focus on {bead.focus_epic}")
    if _ESCALATIONS & set(bead.labels):
        found.append("waits for your decision; no worker picks it")
    return tuple(found)
