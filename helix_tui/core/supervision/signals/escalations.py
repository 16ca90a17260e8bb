"""Beads that HELIX made for a person: what it assumed meanwhile, and the decision that ends the matter.

Rules: docs/formats/helix.md §4 (autonomy high). No worker picks such a bead; it is closed by deciding.
What is decided is written where the next agent reads it: ddx puts a bead's notes into its prompt, other
fields not (docs/formats/ddx.md §5).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import format_instant

if TYPE_CHECKING:  # whoever only lists them need not load what writes
    from helix_tui.core.editing.execute.curator import Curator
    from helix_tui.core.editing.operations import Operation

DECISION = "helix-decision"
"""Field of a bead that holds what a person decided last."""

KEY = "helix-conflict"
"""Field of an escalation that names the conflict between documents that it is about."""

MAX_NOTES = 60_000
"""Bytes of notes past which the oldest go: ddx keeps 65,535 of a field."""

_KINDS = {"kind:escalation": "escalation", "kind:speculative": "gap"}


def escalated(queue: Queue) -> Iterable[tuple[str, str, str]]:
    """(kind, bead, reason) of every escalation, and of every gap that was filled by an assumption."""
    for bead_id, bead in queue.beads.items():
        if bead.execution_eligible is not False or bead.status in TERMINAL:
            continue
        kind = next((_KINDS[label] for label in bead.labels if label in _KINDS), "")
        if not kind:
            continue
        said = str(bead.document().get("description") or "").replace("\\n", " ")
        yield kind, bead_id, clean_line(said or bead.title, 600)


def decide_escalation(curator: Curator, bead_id: str, text: str) -> None:
    """Decide on an escalation: the decision goes into the bead that it is about, and the escalation is
    closed.

    Raises:
        KeyError: it is none that is open.
        DdxError, Unreadable, WritesForbidden: it cannot be written.
    """
    wishes = deciding(curator.look().queue, bead_id, text)
    done = curator.run(wishes, title=f"decide {clean_line(bead_id, 60)}")
    if done.error is not None:
        raise done.error


def deciding(queue: Queue, bead_id: str, text: str) -> list[Operation]:
    """What decides an escalation.

    Raises:
        KeyError: it is none that is open.
    """
    from helix_tui.core.editing import operations

    if bead_id not in {each for _, each, _ in escalated(queue)}:
        raise KeyError(bead_id)
    about = queue.beads.get(str(queue.beads[bead_id].document().get("helix-trigger-bead") or ""))
    wishes = [decision(queue.beads[bead_id], text, queue.as_of)]
    if about is not None and about.status not in TERMINAL:
        wishes.append(decision(about, text, queue.as_of))
    return [*wishes, operations.close(bead_id)]


def decision(bead: Bead, text: str, now: int) -> Operation:
    """Write a decision into a bead: in its notes, below what stands there, and in a field of its own."""
    from helix_tui.core.editing import operations

    said = clean_block(text, 4000).strip()
    notes = str(bead.document().get("notes") or "").rstrip()
    notes = notes.encode()[-MAX_NOTES:].decode("utf-8", "ignore")
    added = f"DECISION [{format_instant(now)}]: {said}"
    return operations.assign(bead.id, {DECISION: said, "notes": f"{notes}\n\n{added}" if notes else added})
