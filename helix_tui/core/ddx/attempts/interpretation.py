"""What HELIX makes of an attempt's end: whether it can be retried, and what to do next."""

from __future__ import annotations

import re
from typing import Literal, assert_never

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import IN_HAND
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import Outcome, status_of
from helix_tui.core.ground.errors import UNROUTED, WHO
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_span

Interpretation = Literal["resolvable", "parked", "physics-level"]

_LANDED, _DONE = "nothing to do: it landed", "nothing to do"

_OVER_WITH_ITS_BEAD: frozenset[Outcome] = frozenset({"kept_aside", "refused", "no_change", "failed", "interrupted"})
"""Outcomes about which nothing is to be done once the bead is finished."""

_CONTRADICTION = re.compile(
    r"\b(contradict\w*|mutually exclusive|cannot (both|coexist)|conflicting (requirements?|constraints?))\b",
    re.IGNORECASE,
)

_BY_STATUS = {
    "land_retry": "landing is tried again by the loop",
    "post_run_check_failed": "see which check failed, fix the preserved change, or try again",
    "ratchet_failed": "see which measure got worse, fix the preserved change, or try again",
    "preserved_needs_review": "review the preserved change, then land it or reject it",
    "push_failed": "push by hand, or correct the remote",
    "push_conflict": "fetch, rebase and push by hand",
    "declined_needs_decomposition": "split the bead",
    "no_evidence_produced": "read the transcript; the agent must commit or say why it changed nothing",
    "no_changes": "read its reason; close the bead if it is done, otherwise sharpen its acceptance",
    "structural_validation_failed": "add the fields that the bead lacks",
    "resource_exhausted": "free disk or memory, then start the loop again",
    "review_request_clarification": "answer the reviewer in the bead, then open it again",
    "review_terminal_block": "read the review; split or rewrite the bead",
    "review_malfunction": "read the change yourself; the reviewer gave no usable verdict",
}

_BY_FAILURE = {
    "timeout": "split the bead, or give it more time",
    "context_overflow": "split the bead: it did not fit into the model's context",
    "no_viable_provider": "change the route: no provider was available",
    "auth_error": "sign in to the provider again",
    "worktree_lost": "try again: its work tree was removed",
    "attempt_integrity": "read the result: the attempt did not keep to its contract",
    "blocked_by_passthrough_constraint": "do not pin the harness or model",
    "resource_exhausted": "free disk or memory, then start the loop again",
}

_LIMIT = re.compile(r"(?<!\d)429(?!\d)|rate limit|usage limit|quota", re.IGNORECASE)
"""Messages of a provider about its limits, which ddx of May also reports as ``auth_error``."""


class Reading(Struct, frozen=True):
    """HELIX's reading of an outcome: its class of conflict, if any, and the suggested next step."""

    interpretation: Interpretation | None
    follow_up: str = ""


def interpret(attempt: Attempt, now: int, queue: Queue | None = None) -> Reading:
    """HELIX's reading of an attempt and the suggested follow-up.

    Args:
        attempt: the attempt.
        now: the current instant.
        queue: the queue, for what became of its bead since; None: judged by the attempt alone.

    An attempt that was preserved or that failed is never classed as physics-level; only an agent that declined a
    self-contradictory bead can say so (docs/formats/helix.md §4).
    """
    bead = queue.beads.get(attempt.bead_id) if queue is not None else None
    if queue is None or bead is None:
        return Reading(*_reading(attempt, now, ""))
    interpretation, follow_up = _reading(attempt, now, queue.parked(bead.id))
    # what is on the branch may still be at fault, whatever became of the bead
    if bead.status in TERMINAL and attempt.verdict.outcome in _OVER_WITH_ITS_BEAD:
        follow_up = f"nothing to do: its bead is {bead.status}"
    elif bead.status not in TERMINAL and follow_up in (_LANDED, _DONE):
        follow_up = _left_open(attempt, queue.state(bead.id))
    return Reading(interpretation, follow_up)


def _reading(attempt: Attempt, now: int, parked: str) -> tuple[Interpretation | None, str]:
    """The class and the follow-up of an attempt whose bead is open, or of which nothing else is known."""
    outcome = attempt.verdict.outcome
    if outcome == "landed":
        return None, _after_landing(attempt)
    if outcome == "unfinished":
        return None, "no result yet" if not attempt.status else "its landing has not been seen"
    if outcome == "no_change" and _contradicts(attempt):
        return "physics-level", "a person must decide: the agent says the bead contradicts itself"
    if parked:
        return "parked", parked
    if not attempt.finished and not attempt.attempt_id:
        return None, f"release its claim: `helix-tui unclaim {clean_line(attempt.bead_id, 60)}`"
    if not attempt.finished:
        return None, "it left no result: read its transcript, then try again"
    match outcome:
        case "satisfied":
            return None, _DONE
        case "unknown" if status_of(attempt.status).successful:
            # a worker writes its success before landing, so by itself it proves nothing
            return None, "check whether it landed: no record says so"
        case "kept_aside" | "refused" | "no_change" | "failed" | "interrupted" | "unknown":
            return "resolvable", _follow_up(attempt, now)
        case never:
            assert_never(never)


def _left_open(attempt: Attempt, state: str) -> str:
    """The follow-up of an attempt that did its work, though its bead is open."""
    what = "it landed" if attempt.landed else "the work was done before"
    if state in IN_HAND:
        return f"{what}, and its bead is being worked on again"
    close = f"`helix-tui close {clean_line(attempt.bead_id, 60)}`"
    return f"{what}, but its bead is still open: look at the result, then {close}"


def _after_landing(attempt: Attempt) -> str:
    if "auto-recovered" in attempt.detail:
        return "landed by a merge over other work: check that nothing was lost"
    if attempt.status.startswith("review_"):
        return "the change has landed: read it, then fix or revert it"
    if attempt.status.startswith("push_"):
        return "landed here, not pushed: push by hand"
    return _LANDED


def _contradicts(attempt: Attempt) -> bool:
    return _CONTRADICTION.search(attempt.no_changes_rationale) is not None


def _follow_up(attempt: Attempt, now: int) -> str:
    if attempt.retry_after is not None and attempt.retry_after > now:
        return f"retry in {format_span((attempt.retry_after - now) / NS)}"
    if attempt.status.startswith("land_conflict"):
        return "resolve its conflicts with the branch, or have the bead attempted again"
    if re.search(UNROUTED, f"{attempt.error}\n{attempt.detail}"):
        return WHO
    worse = [ratchet.describe() for ratchet in attempt.ratchets if not ratchet.passed]
    if worse:
        return f"{'; '.join(worse)}: fix the preserved change, or try again"
    if attempt.failure_mode == "auth_error" and _LIMIT.search(f"{attempt.error}\n{attempt.detail}"):
        return "wait until the provider's limit is over, then try again"
    known = _BY_STATUS.get(attempt.status) or _BY_FAILURE.get(attempt.failure_mode)
    if known:
        return known
    if attempt.preserved:
        return f"look at {attempt.kept_at or 'the preserved change'}, then land it or try again"
    if attempt.verdict.outcome == "interrupted":
        return "somebody ended it: it can be tried again"
    if attempt.status == "execution_failed":
        return "see its error; try again, or with a stronger model"
    return f"read its evidence: {status_of(attempt.status).meaning}"
