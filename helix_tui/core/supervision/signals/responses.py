"""What HELIX does with each result of DDx: the loop acts by it, `helix-tui help outcomes` and docs print it.

The word of a status alone does not decide (docs/decisions/0002): a `success` that git does not find on the branch is
treated as work that was kept aside. Rules: docs/decisions/0004, 0011.
"""

from __future__ import annotations

from typing import Literal

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import interpret
from helix_tui.core.ddx.attempts.verdict import found_after_landing
from helix_tui.core.ddx.names import STATUSES, Outcome, status_of

Response = Literal["count", "nothing", "later", "again", "polish", "ask"]

RESPONSES: dict[Response, str] = {
    "count": (
        "A completed cycle, where the work landed and the bead is closed: a review is injected, acceptance scripts "
        "run, a bead that grew two children becomes an epic."
    ),
    "nothing": "No cycle and no review: it was done already, or it landed under another word. The run continues.",
    "later": (
        "No cycle. DDx sets its own cooldown; a bead that stays ready is skipped by this run until its record changes. "
        "If the reason says that the bead contradicts itself, the run stops."
    ),
    "again": "No cycle. DDx makes the next attempt itself, with the feedback it got. The run continues.",
    "polish": "No cycle. The run names `helix-tui polish ID` and skips the bead.",
    "ask": (
        "No cycle. Low and medium ask and keep workers from the bead; medium continues with the others. High files an "
        "escalation bead and continues without it."
    ),
}
"""What is done, in words."""


def respond(status: str, outcome: Outcome, *, faulted: bool = False) -> Response:
    """What HELIX does with an attempt.

    Args:
        status: DDx's word.
        outcome: what came of it, by the one verdict.
        faulted: it landed, and a review or a push found fault with it afterwards.
    """
    landed = outcome == "landed" and not faulted
    known = status_of(status)
    if known.retried and not landed:
        return "again"
    if not known.known or faulted or outcome in ("kept_aside", "refused", "unknown"):
        return "ask"
    if status == "structural_validation_failed":
        return "polish"
    if landed and status == "success":  # no other word counts a cycle (CONTRACT-001)
        return "count"
    return "nothing" if landed or outcome == "satisfied" else "later"


def response_to(attempt: Attempt) -> Response:
    """What HELIX does with an attempt, by its verdict."""
    return respond(attempt.status, attempt.verdict.outcome, faulted=attempt.faulted)


UNKNOWN_STATUS = "any other word"
"""How the table names a status that HELIX does not know."""


def table() -> list[tuple[str, str, Response, str]]:
    """(status, what it means, what HELIX does, what a person could do next) of each status, by its word alone."""
    rows = []
    for word in (*STATUSES, UNKNOWN_STATUS):
        known = status_of(word)
        faulted = known.outcome == "landed" and found_after_landing(word)
        reading = interpret(Attempt(attempt_id="", status=word, status_source="event"), 0)
        rows.append((word, known.meaning, respond(word, known.outcome, faulted=faulted), reading.follow_up))
    return rows
