"""Write a question about a bead, and the answer to it, into the bead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import (
    TERMINAL,
    Bead,
)
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import format_instant

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.editing.execute.curator import Curator
    from helix_tui.core.editing.operations import Operation


DECISION = "helix-decision"
"""Field with a person's last decision on a bead."""

KEY = "helix-conflict"
"""Field naming the document conflict of an escalation."""

MAX_NOTES = 60_000
"""Maximum bytes of notes; the oldest are dropped, as ddx keeps 65,535 of a field."""

Escalation = Literal["escalation", "gap"]
_KINDS: Mapping[str, Escalation] = {"kind:escalation": "escalation", "kind:speculative": "gap"}

_LANDING = re.compile(r"(?:please\s+)?(?:land|merge)\b", re.IGNORECASE)


def escalated(queue: Queue) -> Iterable[tuple[Escalation, str, str]]:
    """(kind, bead, reason) of every escalation, and of every gap filled with an assumption."""
    for bead_id, bead in queue.beads.items():
        if bead.execution_eligible is not False or bead.status in TERMINAL:
            continue
        kind = next((_KINDS[label] for label in bead.labels if label in _KINDS), None)
        if kind is None:
            continue
        said = str(bead.document().get("description") or "").replace("\\n", " ")
        yield kind, bead_id, clean_line(said or bead.title, 600)


Kept = Callable[[str], "Attempt | None"]
"""Bead to the attempt that decides its state."""


def kept_by(project: Project, beads: Mapping[str, Bead]) -> Kept:
    """The kept changes of attempts, from their current records."""
    from helix_tui.core.ddx.attempts.index import AttemptIndex

    records = AttemptIndex.of(project)
    records.refresh(beads)
    return records.deciding


def decide_escalation(curator: Curator, bead_id: str, text: str) -> None:
    """Decide an escalation: write the decision into its bead, and close the escalation.

    Raises:
        KeyError: there is no such open escalation.
        DdxError, Unreadable, WritesForbidden: the change cannot be written.
    """
    queue = curator.look().queue
    requested = deciding(queue, bead_id, text, kept_by(curator.project, queue.beads))
    done = curator.run(requested, title=f"decide {clean_line(bead_id, 60)}")
    if done.error is not None:
        raise done.error


def deciding(queue: Queue, bead_id: str, text: str, kept: Kept) -> list[Operation]:
    """The operations that decide an escalation.

    Raises:
        KeyError: there is no such open escalation.
    """
    from helix_tui.core.editing import operations

    if bead_id not in {each for _, each, _ in escalated(queue)}:
        raise KeyError(bead_id)
    about = queue.beads.get(str(queue.beads[bead_id].document().get("helix-trigger-bead") or ""))
    requested = [decision(queue.beads[bead_id], text, queue.as_of)]
    if about is not None and about.status not in TERMINAL:
        requested += answering(about, text, queue.as_of, kept)
    return [*requested, operations.CloseBead(bead_id)]


def answering(bead: Bead, text: str, now: int, kept: Kept) -> list[Operation]:
    """Write an answer into its bead, and drop the bead's kept change.

    Otherwise ddx of August would land that change unchanged, and no agent would read the answer. An answer may ask to
    keep it.
    """
    from helix_tui.core.ddx.attempts.sources.from_events import was_rejected
    from helix_tui.core.editing import operations
    from helix_tui.core.editing.kinds.fields import ALLOWED

    requested, made = [decision(bead, text, now)], kept(bead.id)
    if made is None or not made.preserved or was_rejected(bead, made.result_rev):
        return requested
    if _LANDING.match(text.strip()):
        refused = made.verdict.outcome == "refused"
        return [*requested, operations.SetFields(bead.id, {ALLOWED: made.attempt_id})] if refused else requested
    if made.result_rev:
        requested.append(operations.DropChange(bead.id, made.attempt_id, made.result_rev))
    return requested


def decision(bead: Bead, text: str, now: int) -> Operation:
    """Write a decision into a bead: appended to its notes, and in a separate field."""
    from helix_tui.core.editing import operations

    said = clean_block(text, 4000).strip()
    notes = str(bead.document().get("notes") or "").rstrip()
    # cut by bytes, as ddx counts; a character cut in two is dropped
    notes = notes.encode()[-MAX_NOTES:].decode("utf-8", "ignore")
    added = f"DECISION [{format_instant(now)}]: {said}"
    return operations.SetFields(bead.id, {DECISION: said, "notes": f"{notes}\n\n{added}" if notes else added})
