"""Decide the outcome of an attempt: one verdict with its evidence, used wherever an outcome is shown.

What decides, in this order (docs/decisions/0002): git (is its revision in the history of the target
branch), a landed revision, a preserve or candidate ref, an event, the status. DDx of April reviews after
the merge ("post-merge review …": refused means landed all the same), later releases before ("pre-land
review …": refused means not landed, the candidate stays at its ref; docs/formats/ddx.md §4 and §5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from helix_tui.core.ddx.names import Outcome, status_of

Proof = Literal["git", "landed revision", "ref", "event", "status", "worker", "nothing"]
"""Kinds of evidence for a verdict, the strongest first."""

StatusClass = Literal["landed", "preserved", "failed", "no_changes", "other"]
"""The five headings under which JSON documents count attempts."""

HEADINGS: tuple[StatusClass, ...] = get_args(StatusClass)

_REVIEWED_AFTER = frozenset({"review_request_changes", "review_block", "review_malfunction"})
"""April's statuses for a review that found faults after landing; later releases use them before landing."""

_SATISFIED = re.compile(r"\s*status:\s*already_satisfied\b")
"""The start of a rationale that says that there was nothing to do; the loop then verifies it (docs/formats/ddx.md §5).
"""

_STOPPED = re.compile(
    r"(escalation exhausted: )?"
    r"(cancell?ed|context cancell?ed|interrupted|signal: (terminated|killed|interrupt))\W*\Z",
    re.IGNORECASE,
)


class OutcomeRow(Struct, frozen=True):
    """What there is to know of one outcome."""

    glyph: str
    ink: str
    """A role and attributes."""
    word: str
    verb: str
    """What the attempt did, after *it*."""
    heading: StatusClass
    """The heading under which it is counted; an interrupted attempt has not failed."""
    decides: bool
    """Whether it decides what becomes of its bead, in place of an attempt before it."""

    @property
    def role(self) -> str:
        """The role of the ink, where there are no attributes."""
        return self.ink.partition(" ")[0]


OUTCOME_ROWS: Mapping[Outcome, OutcomeRow] = {
    "landed": OutcomeRow("✓", "success", "landed", "landed", "landed", decides=True),
    "kept_aside": OutcomeRow("◆", "attention", "kept aside", "was kept aside", "preserved", decides=True),
    "refused": OutcomeRow("◆", "attention bold", "refused", "was refused by review", "preserved", decides=True),
    "no_change": OutcomeRow("○", "muted", "no change", "changed nothing", "no_changes", decides=True),
    # looks.md: `✓` is for what landed, `○` for an attempt that had nothing to do
    "satisfied": OutcomeRow("○", "muted", "satisfied", "found its work done already", "no_changes", decides=True),
    "failed": OutcomeRow("✗", "error", "failed", "failed", "failed", decides=False),
    "interrupted": OutcomeRow("✗", "muted", "interrupted", "was interrupted", "other", decides=False),
    "unknown": OutcomeRow("?", "attention bold", "unknown", "ended: unknown", "other", decides=True),
    "unfinished": OutcomeRow("…", "waiting", "no result", "has not ended", "other", decides=True),
}

OUTCOMES: tuple[Outcome, ...] = tuple(OUTCOME_ROWS)
"""Every outcome, in display order; ``unfinished`` means none yet."""

_NOTHING_TO_LAND = frozenset(name for name, row in OUTCOME_ROWS.items() if row.heading in ("failed", "no_changes"))
"""Outcomes that a commit outside the branch does not change."""

OUTCOME_WORDS: Mapping[Outcome, str] = {outcome: row.word for outcome, row in OUTCOME_ROWS.items()}
"""Every outcome as shown."""


class AttemptVerdict(Struct, frozen=True):
    """The outcome of an attempt, and the evidence for it."""

    outcome: Outcome
    proof: Proof
    why: str
    """The evidence in words."""

    @property
    def landed(self) -> bool:
        """Whether the change is on the branch."""
        return self.outcome == "landed"

    @property
    def preserved(self) -> bool:
        """Whether the change is kept outside the branch, refused by a review or not."""
        return self.heading == "preserved"

    @property
    def heading(self) -> StatusClass:
        """The heading under which it is counted."""
        return OUTCOME_ROWS[self.outcome].heading


UNDECIDED = AttemptVerdict("unknown", "nothing", "")
"""Placeholder until the deciding fields are set."""


class AttemptEnd(Struct, frozen=True, kw_only=True):
    """The facts on an attempt's end, from records and git: all that a verdict may use."""

    status: str = ""
    """DDx's own status, verbatim; empty while it runs or if it crashed without a result."""
    status_source: str = ""
    """Source of the status: loop, event, metrics or result, strongest first."""
    outcome: str = ""
    detail: str = ""
    result_rev: str = ""
    landed_rev: str = ""
    preserve_ref: str = ""
    candidate_ref: str = ""
    """The ref at which a DDx that reviews before landing keeps the candidate."""
    land_status: str = ""
    merged: bool = False
    """Its result, or a later source, says that it was merged."""
    recovered: bool = False
    """DDx landed it in a later call (event ``dangling-success-recovery``)."""
    held: bool = False
    """The bead is still held for it, so the worker's result is not final."""
    gone: str = ""
    """What is known of a worker that ended without a result; empty if it runs or nothing is known."""
    stopped: str = ""
    """Why ddx ended its processes, in ddx's words; empty if they ended by themselves."""
    closed_by_it: bool = False
    """The bead is closed, with a commit, by this attempt's session."""
    on_branch: bool | None = None
    """Whether git finds its result in the history of the target branch; None if git cannot tell."""
    no_changes_rationale: str = ""
    error: str = ""
    sources: tuple[str, ...] = ()

    @property
    def of_later_release(self) -> bool:
        """Whether it was written by a DDx that reviews before landing."""
        return bool(self.candidate_ref or self.land_status) or "metrics" in self.sources


def decide(attempt: AttemptEnd) -> AttemptVerdict:
    """The verdict on an attempt, from its record."""
    for rule in (_by_git, _by_revision, _by_ref, _by_event):
        found = rule(attempt)
        if found is not None:
            return found
    return _by_status(attempt)


def found_after_landing(status: str) -> bool:
    """Whether a status reports a fault that does not undo the landing: a review after it, or a push."""
    return status.startswith(("review_", "push_"))


def _by_git(attempt: AttemptEnd) -> AttemptVerdict | None:
    """The verdict by git: a revision in the history of the branch has landed, any other has not."""
    if attempt.on_branch is None:
        return None
    short = (attempt.landed_rev or attempt.result_rev)[:12]
    # such an attempt names the commit it began from, which is on the branch anyway
    if attempt.on_branch and status_of(attempt.status).outcome in ("no_change", "satisfied"):
        return None
    if attempt.on_branch:
        return AttemptVerdict("landed", "git", f"commit {short} is in the history of the branch")
    status = status_of(attempt.status)
    if not attempt.status or status.outcome in _NOTHING_TO_LAND:
        return None
    # the result is written before landing, which is still under way
    if attempt.held and status.outcome == "landed":
        return _landing()
    return _aside(attempt, "git", f"commit {short} is not in the history of the branch")


def _by_revision(attempt: AttemptEnd) -> AttemptVerdict | None:
    """The verdict by a recorded landed revision."""
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
    """The verdict by a ref outside the branch."""
    if attempt.preserve_ref:
        # August merges some conflicts itself, but still names the ref
        if attempt.status == "success" and "auto-recovered" in attempt.detail:
            return AttemptVerdict("landed", "event", "ddx merged it after a conflict (auto-recovered)")
        return _aside(attempt, "ref", f"kept at {attempt.preserve_ref}")
    if attempt.outcome == "preserved" or attempt.status.startswith("preserved"):
        return _aside(attempt, "ref", "its result says that it was preserved")
    # a DDx that reviews before landing leaves a refused candidate at its ref
    if attempt.candidate_ref and attempt.status.startswith("review_"):
        return _aside(attempt, "ref", f"the candidate is kept at {attempt.candidate_ref}")
    return None


def _by_event(attempt: AttemptEnd) -> AttemptVerdict | None:
    """The verdict by DDx's event on the end: a review before or after landing."""
    said = attempt.detail
    if said.startswith("pre-land") and status_of(attempt.status).outcome != "failed":
        return _aside(attempt, "event", "reviewed before landing")
    if said.startswith(("post-merge", "pre-close review")):
        return AttemptVerdict("landed", "event", "reviewed after landing")
    if attempt.closed_by_it and status_of(attempt.status).outcome == "landed":
        return AttemptVerdict("landed", "event", "the bead was closed with its commit")
    return None


def _by_status(attempt: AttemptEnd) -> AttemptVerdict:
    """The verdict by DDx's status, if there is nothing stronger."""
    if not attempt.status:
        if attempt.held:
            return AttemptVerdict("unfinished", "nothing", "no result yet")
        if attempt.gone:
            return AttemptVerdict("interrupted", "worker", f"it left no result: {attempt.gone}")
        return AttemptVerdict("interrupted", "nothing", "it left no result")
    status = status_of(attempt.status)
    if status.outcome == "landed":
        return _success(attempt)
    # 10 May: an attempt that was ended is retried at once, and the retry changes nothing
    stop = _stop(attempt) if status.outcome in ("failed", "no_change") else ""
    if stop:
        return AttemptVerdict("interrupted", "status", f"{attempt.status}: {stop}")
    # the loop verifies such a claim, and then reports it in another source than the result
    unverified = attempt.status_source == "result" and status.outcome == "no_change"
    if unverified and _SATISFIED.match(attempt.no_changes_rationale):
        return AttemptVerdict(
            "unknown", "status", "its agent says that it was done already; ddx has not confirmed it yet"
        )
    reviewed_after = attempt.status in _REVIEWED_AFTER and not attempt.of_later_release
    if reviewed_after:
        return AttemptVerdict("landed", "status", f"{attempt.status}: this release reviews after landing")
    return AttemptVerdict(status.outcome, "status", f"{attempt.status}: {status.meaning}")


def _success(attempt: AttemptEnd) -> AttemptVerdict:
    """The verdict for ``success``: landed, unless only a result written before landing says so.

    Both eras write the result when the agent ends, head even with ``land_status: landed`` in it; while the bead is
    held, landing is still to come.
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
    """The verdict for a kept change: refused if a review said so, else preserved."""
    status = status_of(attempt.status)
    refused = status.outcome == "refused"
    return AttemptVerdict("refused" if refused else "kept_aside", proof, f"{why}; {status.meaning}" if refused else why)


def _stop(attempt: AttemptEnd) -> str:
    """DDx's reason for a failure or for ending the processes, if it says only that they were ended; else ""."""
    said = (attempt.detail, attempt.error, attempt.stopped)
    return next((words for words in said if _STOPPED.match(words)), "")
