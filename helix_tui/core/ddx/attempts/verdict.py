"""What came of an attempt: one verdict, with what it rests on. Whoever shows an outcome asks here.

What decides, in this order (docs/decisions/0002): git (is its revision in the history of the target
branch), a landed revision, a preserve or candidate ref, an event, the status. DDx of April reviews after
the merge ("post-merge review …": refused means landed all the same), later releases before ("pre-land
review …": refused means not landed, the candidate stays at its ref; docs/formats/ddx.md §4 and §5).
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from msgspec import Struct

from helix_tui.core.ddx.names import Outcome, status_of

Proof = Literal["git", "landed revision", "ref", "event", "status", "worker", "nothing"]
"""What a verdict rests on, the strongest first."""

StatusClass = Literal["landed", "preserved", "failed", "no_changes", "other"]
"""The five headings that JSON documents count attempts under."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""Every outcome, in the order in which they are listed; ``unfinished`` is none yet."""

OUTCOME_WORDS: dict[Outcome, str] = {
    **{outcome: outcome.replace("_", " ") for outcome in OUTCOMES},
    "unfinished": "no result",
}
"""Every outcome as people read it."""

HEADINGS: tuple[StatusClass, ...] = get_args(StatusClass)

_HEADINGS: dict[Outcome, StatusClass] = {
    "landed": "landed",
    "kept_aside": "preserved",
    "refused": "preserved",
    "no_change": "no_changes",
    "satisfied": "no_changes",
    "failed": "failed",
}


class AttemptVerdict(Struct, frozen=True):
    """What came of an attempt, and the evidence that decides it."""

    outcome: Outcome
    proof: Proof
    why: str
    """The evidence in words."""

    @property
    def landed(self) -> bool:
        """The change is on the branch."""
        return self.outcome == "landed"

    @property
    def preserved(self) -> bool:
        """The change is kept beside the branch, refused by a review or not."""
        return self.outcome in ("kept_aside", "refused")

    @property
    def heading(self) -> StatusClass:
        """The heading under which documents count it: what was interrupted has not failed."""
        return _HEADINGS.get(self.outcome, "other")


UNDECIDED = AttemptVerdict("unknown", "nothing", "")
"""What stands for a verdict until the fields that decide it are there."""


class AttemptEnd(Struct, frozen=True, kw_only=True):
    """What records and git tell of an attempt's end: all that a verdict may rest on."""

    status: str = ""
    """DDx's own word, verbatim; empty while it runs or where it crashed without a result."""
    status_source: str = ""
    """Who said it: loop, event, metrics or result, strongest first."""
    outcome: str = ""
    detail: str = ""
    result_rev: str = ""
    landed_rev: str = ""
    preserve_ref: str = ""
    candidate_ref: str = ""
    """Where a DDx that reviews before it lands keeps what it reviews."""
    land_status: str = ""
    merged: bool = False
    """Its result, or whoever spoke later, says that it was merged."""
    recovered: bool = False
    """DDx landed it in a later call (event ``dangling-success-recovery``)."""
    held: bool = False
    """Somebody still holds the bead for it: what its worker wrote is not the last word."""
    gone: str = ""
    """What is known of its worker that ended without a word; empty where it lives or nobody knows."""
    stopped: str = ""
    """Why ddx ended its processes, in ddx's words; empty where they ended by themselves."""
    closed_by_it: bool = False
    """The bead is closed, with a commit, by this attempt's session."""
    on_branch: bool | None = None
    """Whether git finds its result in the history of the target branch; None where git cannot tell."""
    no_changes_rationale: str = ""
    error: str = ""
    sources: tuple[str, ...] = ()

    @property
    def of_later_release(self) -> bool:
        """Written by a DDx that reviews before it lands."""
        return bool(self.candidate_ref or self.land_status) or "metrics" in self.sources


def decide(attempt: AttemptEnd) -> AttemptVerdict:
    """The verdict on an attempt, from what its record holds."""
    for rule in (_by_git, _by_revision, _by_ref, _by_event):
        found = rule(attempt)
        if found is not None:
            return found
    return _by_status(attempt)


def found_after_landing(status: str) -> bool:
    """Whether a status tells of a fault that does not undo a landing: in a review after it, or in a push."""
    return status.startswith(("review_", "push_"))


def _by_git(attempt: AttemptEnd) -> AttemptVerdict | None:
    """A revision in the history of the branch has landed; one that is not there has not."""
    if attempt.on_branch is None:
        return None
    short = (attempt.landed_rev or attempt.result_rev)[:12]
    # the commit that such an attempt names is the one it began from, which is on the branch anyway
    if attempt.on_branch and status_of(attempt.status).outcome in ("no_change", "satisfied"):
        return None
    if attempt.on_branch:
        return AttemptVerdict("landed", "git", f"commit {short} is in the history of the branch")
    known = status_of(attempt.status)
    if not attempt.status or known.outcome in _NOTHING_TO_LAND:
        return None
    # the result is written before landing, and its worker is still at that
    if attempt.held and known.outcome == "landed":
        return _landing()
    return _aside(attempt, "git", f"commit {short} is not in the history of the branch")


def _by_revision(attempt: AttemptEnd) -> AttemptVerdict | None:
    """Somebody named the revision as which it landed."""
    if attempt.recovered:
        return AttemptVerdict("landed", "landed revision", "ddx landed it later (dangling-success-recovery)")
    if status_of(attempt.status).outcome in _NOTHING_TO_LAND or attempt.status.startswith("land_"):
        return None
    if attempt.landed_rev:
        return AttemptVerdict("landed", "landed revision", f"landed as {attempt.landed_rev[:12]}")
    if attempt.merged:
        return AttemptVerdict("landed", "landed revision", "its result says that it was merged")
    return None


def _by_ref(attempt: AttemptEnd) -> AttemptVerdict | None:
    """Work that was put at a ref beside the branch."""
    if attempt.preserve_ref:
        # August merges some conflicts itself, and names the ref all the same
        if attempt.status == "success" and "auto-recovered" in attempt.detail:
            return AttemptVerdict("landed", "event", "ddx merged it after a conflict (auto-recovered)")
        return _aside(attempt, "ref", f"kept at {attempt.preserve_ref}")
    if attempt.outcome == "preserved" or attempt.status.startswith("preserved"):
        return _aside(attempt, "ref", "its result says that it was preserved")
    # whoever reviews before landing leaves what was refused at its ref
    if attempt.candidate_ref and attempt.status.startswith("review_"):
        return _aside(attempt, "ref", f"the candidate is kept at {attempt.candidate_ref}")
    return None


def _by_event(attempt: AttemptEnd) -> AttemptVerdict | None:
    """What DDx wrote of the end: a review before landing, or one after it."""
    said = attempt.detail
    if said.startswith("pre-land") and status_of(attempt.status).outcome != "failed":
        return _aside(attempt, "event", "reviewed before landing")
    if said.startswith(("post-merge", "pre-close review")):
        return AttemptVerdict("landed", "event", "reviewed after landing")
    if attempt.closed_by_it and status_of(attempt.status).outcome == "landed":
        return AttemptVerdict("landed", "event", "the bead was closed with its commit")
    return None


def _by_status(attempt: AttemptEnd) -> AttemptVerdict:
    """What DDx's word for the end means, where nothing stronger speaks."""
    if not attempt.status:
        if attempt.held:
            return AttemptVerdict("unfinished", "nothing", "no result yet")
        if attempt.gone:
            return AttemptVerdict("interrupted", "worker", f"it left no result: {attempt.gone}")
        return AttemptVerdict("interrupted", "nothing", "it left no result")
    known = status_of(attempt.status)
    if known.outcome == "landed":
        return _success(attempt)
    stop = _stop(attempt) if known.outcome == "failed" else ""
    if stop:
        return AttemptVerdict("interrupted", "status", f"{attempt.status}: {stop}")
    # the loop verifies such a claim, and its word then comes from another source than the result
    unverified = attempt.status_source == "result" and known.outcome == "no_change"
    if unverified and _SATISFIED.match(attempt.no_changes_rationale):
        return AttemptVerdict(
            "unknown", "status", "its agent says that it was done already; ddx has not confirmed it yet"
        )
    reviewed_after = attempt.status in _REVIEWED_AFTER and not attempt.of_later_release
    if reviewed_after:
        return AttemptVerdict("landed", "status", f"{attempt.status}: this release reviews after landing")
    return AttemptVerdict(known.outcome, "status", f"{attempt.status}: {known.meaning}")


def _success(attempt: AttemptEnd) -> AttemptVerdict:
    """``success`` means landed, but where only a result says so that was written before landing.

    Both eras write the result when the agent ends, head even with ``land_status: landed`` in it; while
    somebody holds the bead, landing is still to come.
    """
    if attempt.status_source == "result":
        if attempt.held:
            return _landing()
        if attempt.candidate_ref and not attempt.land_status:
            return AttemptVerdict("unknown", "status", "success, written before landing; no record says that it landed")
    return AttemptVerdict("landed", "status", "success")


def _landing() -> AttemptVerdict:
    return AttemptVerdict("unfinished", "status", "the agent has ended; its change is being landed")


def _aside(attempt: AttemptEnd, proof: Proof, why: str) -> AttemptVerdict:
    """Kept beside the branch: refused where a review said so, else merely kept."""
    known = status_of(attempt.status)
    refused = known.outcome == "refused"
    return AttemptVerdict("refused" if refused else "kept_aside", proof, f"{why}; {known.meaning}" if refused else why)


_NOTHING_TO_LAND: frozenset[Outcome] = frozenset({"failed", "no_change", "satisfied"})
"""Outcomes of which a commit beside the branch says nothing."""

_REVIEWED_AFTER = frozenset({"review_request_changes", "review_block", "review_malfunction"})
"""April's words for a review that found fault with what had landed; later releases use them before."""

_SATISFIED = re.compile(r"\s*status:\s*already_satisfied\b")
"""How an agent says that there was nothing to do; the loop then verifies that (docs/formats/ddx.md §5)."""

_STOPPED = re.compile(
    r"(escalation exhausted: )?"
    r"(cancell?ed|context cancell?ed|interrupted|signal: (terminated|killed|interrupt))\W*\Z",
    re.IGNORECASE,
)


def _stop(attempt: AttemptEnd) -> str:
    """How somebody ended it: what DDx says of the failure, or of ending its processes, is that alone."""
    said = (attempt.detail, attempt.error, attempt.stopped)
    return next((words for words in said if _STOPPED.match(words)), "")
