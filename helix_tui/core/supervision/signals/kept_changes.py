"""The kept change of a bead: whether ddx lands it as it is, without an agent, and whether a person let it.

What a review refused lands only after a person decided so, whichever worker kept it and whatever starts the next
(docs/decisions/0008). All that starts work asks `refused_changes`, and keeps workers from those beads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import DRIFTED, REFUSED, TERMINAL, Bead, hold_reason
from helix_tui.core.beads.states import OPENED_BY_A_PERSON
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.sources.from_events import accepted_at, was_rejected
from helix_tui.core.ddx.files import text
from helix_tui.core.editing.kinds.fields import ALLOWED, DROPPED
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.drift import STALE, Drift

if TYPE_CHECKING:  # imported for types only: a command without attempts need not load them
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.ddx.dialect import Dialect
    from helix_tui.core.ground.project import Project


def may_land(dialect: Dialect, made: Attempt | None, bead: Bead | None = None) -> bool:
    """Whether the verb for one bead may land a kept change unchanged, without an agent."""
    if made is None or not made.preserved or not dialect.carries_through:
        return False
    return bead is None or not was_rejected(bead, made.result_rev)


def decided_by_a_person(bead: Bead, attempt: Attempt) -> bool:
    """Whether a person dropped this change, let it land, or accepted its bead after the attempt had parked it."""
    if accepted_at(bead) > attempt.counted_at:
        return True
    # exactly this change: that of a later attempt waits again
    marks = [name for name in (DROPPED, ALLOWED) if name.encode() in bead.raw]
    return any(text(bead.document(), name) == attempt.attempt_id for name in marks)


def refused_changes(queue: Queue, dialect: Dialect | None, attempts: AttemptBook) -> dict[str, Attempt]:
    """The beads whose change a review refused and the next worker would land, though no person let it, each with its
    attempt; parked ones wait anyway.
    """
    if dialect is None or not dialect.lands_kept:
        return {}
    parked = {*TERMINAL, *OPENED_BY_A_PERSON}
    kept = landable(
        queue, dialect, attempts, (bead_id for bead_id in queue.beads if queue.state(bead_id) not in parked)
    )
    refused = (attempt for attempt in kept if attempt.verdict.outcome == "refused")
    return {each.bead_id: each for each in refused if not decided_by_a_person(queue.beads[each.bead_id], each)}


def refusal_words(bead: Bead, attempt: Attempt) -> str:
    """That a review refused a bead's change, and what happens to that change until a person decides."""
    what = "workers are kept from the bead" if hold_reason(bead) else "the next worker would land it as it is"
    return f"{refusal(attempt)}; {what} until you land it, drop it or attempt it afresh (helix-tui needs)"


def hold_reasons(drift: Iterable[Drift], refused: Iterable[str]) -> dict[str, str]:
    """The beads to keep from workers until a person decides, each with the reason."""
    stale = (each.bead_id for each in drift if each.field in STALE)
    return dict.fromkeys(stale, DRIFTED) | dict.fromkeys(refused, REFUSED)


def attempts_now(records: AttemptIndex, queue: Queue, dialect: Dialect | None) -> AttemptBook:
    """The attempts, as far as `refused_changes` needs them: none where this ddx lands no kept change by itself."""
    if dialect is None or not dialect.lands_kept:
        return AttemptBook()
    records.refresh(queue.beads)
    return records.book


def refusal(attempt: Attempt) -> str:
    """A warning before landing a change that a review refused, with the reason; else ""."""
    if attempt.verdict.outcome != "refused":
        return ""
    review = attempt.review
    said = ": ".join(text for text in (review.verdict, review.rationale) if text) if review is not None else ""
    return clean_line(f"review refused this change of {attempt.bead_id}{f' ({said})' if said else ''}", 300)


def lands_words(kept: Attempt) -> str:
    """The consequence of opening a bead whose kept change ddx would land, and the command to prevent it."""
    bead_id = clean_line(kept.bead_id, 80)
    return (
        f"{refusal(kept) or f'a change of {bead_id} is kept aside'}: once the bead is open a worker lands "
        f"{kept.result_rev[:12]} as it is, without an agent; to have it attempted afresh first: "
        f"helix-tui tracker update {bead_id} --reject-preserved {clean_line(kept.result_rev, 80)}"
    )


def landable(queue: Queue, dialect: Dialect, attempts: AttemptBook, bead_ids: Iterable[str]) -> list[Attempt]:
    """The attempts that decide these beads' states, as far as their kept change may be landed."""
    latest = (attempts.deciding(bead_id) for bead_id in bead_ids)
    return [made for made in latest if made is not None and may_land(dialect, made, queue.beads.get(made.bead_id))]


def kept_change(project: Project, queue: Queue, dialect: Dialect, bead_id: str) -> Attempt | None:
    """The attempt that decides a bead's state, if its kept change may be landed."""
    records = AttemptIndex.of(project)
    records.refresh(queue.beads)
    return next(iter(landable(queue, dialect, records.book, [bead_id])), None)


def landed_by_opening(project: Project, queue: Queue, dialect: Dialect, bead_ids: Iterable[str]) -> tuple[str, ...]:
    """The kept changes of these beads that a worker would land by itself once the beads are open."""
    parked = [bead_id for bead_id in bead_ids if queue.state(bead_id) in OPENED_BY_A_PERSON]
    attempts = attempts_now(AttemptIndex.of(project), queue, dialect) if parked else AttemptBook()
    return tuple(map(lands_words, landable(queue, dialect, attempts, parked)))
