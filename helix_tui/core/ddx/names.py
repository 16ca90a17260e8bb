"""The one table of DDx's words: verbs and field names of each era, result statuses and what they mean.

Sources: docs/formats/ddx.md §0, §4, §5. A new word of a release needs only a row here; a word without a row is shown as
it is and never counts as success (docs/decisions/0002).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from helix_tui.core.ground.time import NS

Era = Literal["april", "head"]
Outcome = Literal[
    "landed", "kept_aside", "refused", "no_change", "satisfied", "failed", "interrupted", "unknown", "unfinished"
]
"""The possible outcomes of an attempt; `attempts.verdict.decide` decides."""

DdxAction = Literal[
    "drain",
    "one_bead",
    "ask_model",
    "workers",
    "stop_worker",
    "set_workers",
    "usage",
    "plan",
    "queue",
    "operator_attention",
    "cooldown",
    "archive",
    "ready",
    "show",
    "create",
    "update",
    "close",
    "reopen",
    "dep",
    "evidence",
    "export",
]
"""What a ddx can be asked to do."""

VERBS: dict[DdxAction, tuple[tuple[str, ...], ...]] = {
    "drain": (("work",), ("agent", "execute-loop")),
    "one_bead": (("try",), ("agent", "execute-bead")),
    "ask_model": (("run",), ("agent", "run")),
    "workers": (("work", "status"), ("agent", "workers")),
    "stop_worker": (("agent", "workers", "stop"),),
    "set_workers": (("worker", "set"),),
    "usage": (("metrics", "summary"), ("agent", "usage")),
    "plan": (("work", "plan"),),
    "queue": (("bead", "queue"),),
    "operator_attention": (("bead", "operator-attention"),),
    "cooldown": (("bead", "cooldown"),),
    "archive": (("bead", "archive"),),
    "ready": (("bead", "ready"),),
    "show": (("bead", "show"),),
    "create": (("bead", "create"),),
    "update": (("bead", "update"),),
    "close": (("bead", "close"),),
    "reopen": (("bead", "reopen"),),
    "dep": (("bead", "dep"),),
    "evidence": (("bead", "evidence"),),
    "export": (("bead", "export"),),
}
"""Action to its names, as arguments after ``ddx``, the newest first; each is probed by its own help."""

BARE = ("agent", "execute-bead")
"""The verb that lands one bead's change and does nothing else for it (docs/formats/ddx.md §4.6)."""

WORKER_PREFIX: dict[Era, str] = {"april": "execute-loop-", "head": "work-"}
"""Prefixes of the row keys that a worker writes: retry-after, last-status, last-detail, heartbeat-at, …"""


EventRole = Literal["end", "cost", "recovery", "disruption", "step", "aside"]
"""What an event says of an attempt: its end, its cost, that a later call landed it, what cut it short, a step of it; or
nothing of one.
"""

_RETRIED = frozenset({"review_request_changes", "review_fixable_gap", "land_retry"})

MADE_PROMPT = re.compile(r"\s*(?:<[a-z]+(?:-[a-z]+)+[\s>]|MODE: [a-z-]+\s)")
"""Start of a prompt written by a program: a tag of several words (``<bead-review>``), or a mode of DDx's checks
(``MODE: intake``).
"""

ATTEMPT_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}(?![0-9a-f])")
"""An attempt's id; its first part is the UTC time at which it began."""

STAMPED_NAME = re.compile(r"(\d{8}T\d{6})-[0-9A-Za-z]+\Z")
"""An attempt's id with any ending, to read its time."""


class EventKind(Struct, frozen=True):
    """A kind of event of a bead."""

    role: EventRole = "aside"
    heading: str = ""
    """The heading of its text among what was written about the bead; "" for ddx's bookkeeping."""


EVENTS: Mapping[str, EventKind] = {
    "execute-bead": EventKind("end"),
    "cost": EventKind("cost"),
    "dangling-success-recovery": EventKind("recovery"),
    "dangling-success-preserved": EventKind("recovery"),
    "disruption_detected": EventKind("disruption"),
    "execution-routing-intent": EventKind("step"),
    "review": EventKind("step", "Review on"),
    "operator_attention": EventKind("step", "Needed a person on"),
    "triage-decomposed": EventKind(heading="Split on"),
    "checks-blocked": EventKind(heading="Check failed on"),
    "pre_merge_check_failed": EventKind(heading="Check failed on"),
    "candidate-checks-failed": EventKind(heading="Check failed on"),
    "no_changes_blocked": EventKind(heading="Blocked on"),
    "no_changes_needs_investigation": EventKind(heading="Unclear on"),
    "no_changes_operator_required": EventKind(heading="Needed a person on"),
    "reopen": EventKind(heading="Opened again on"),
}
"""The kinds of events that are read; the text of every other is shown as it is (docs/formats/ddx.md §3)."""

_NO_KIND = EventKind()


def event_kind(word: str) -> EventKind:
    """The kind of an event; of an unknown one nothing is read."""
    return EVENTS.get(word, _NO_KIND)


About = Literal["work", "check", "bead", "machine", "conflict", "landing", "nothing"]
"""The subject of a status: the work, a check of it, the bead's text, the environment, landing a finished change (with a
conflict or otherwise), or nothing, as there was no work or no judgement.
"""


class Status(Struct, frozen=True):
    """The meaning of one result status."""

    word: str
    """DDx's own word, verbatim."""
    outcome: Outcome
    """The outcome by the word alone, if nothing stronger is known (`attempts.verdict`)."""
    about: About
    meaning: str
    known: bool = True

    @property
    def successful(self) -> bool:
        """Whether the word says that the bead is done."""
        return self.outcome in ("landed", "satisfied")

    @property
    def retried(self) -> bool:
        """Whether DDx itself retries, with the feedback it got."""
        return self.word in _RETRIED


def _rows(*rows: tuple[str, Outcome, About, str]) -> dict[str, Status]:
    return {word: Status(word, outcome, about, meaning) for word, outcome, about, meaning in rows}


STATUSES = _rows(
    ("success", "landed", "landing", "the change is on the branch"),
    ("already_satisfied", "satisfied", "nothing", "what the bead asks for was there already"),
    ("no_changes", "no_change", "work", "the agent changed nothing"),
    ("no_evidence_produced", "no_change", "work", "the agent left neither a commit nor a reason"),
    ("execution_failed", "failed", "work", "the agent or its harness failed"),
    ("structural_validation_failed", "failed", "bead", "the bead is malformed or lacks a required field"),
    ("resource_exhausted", "failed", "machine", "the machine ran out of disk, files or memory"),
    ("declined_needs_decomposition", "failed", "bead", "the agent declined: the bead must be split first"),
    ("land_conflict", "kept_aside", "conflict", "the change conflicts with the branch"),
    ("land_conflict_unresolvable", "kept_aside", "conflict", "the conflict could not be resolved"),
    ("land_conflict_operator_required", "kept_aside", "conflict", "a person must resolve the conflict"),
    ("land_conflict_needs_human", "kept_aside", "conflict", "a person must resolve the conflict"),
    ("land_operator_attention", "kept_aside", "landing", "a person must look before it can land"),
    ("land_retry", "kept_aside", "landing", "landing lost a race and is tried again"),
    ("post_run_check_failed", "kept_aside", "check", "a check after the run failed"),
    ("ratchet_failed", "kept_aside", "check", "a measured value got worse than its ratchet allows"),
    ("preserved_needs_review", "kept_aside", "landing", "the change waits for a person's review"),
    ("push_failed", "kept_aside", "landing", "the change could not be pushed"),
    ("push_conflict", "kept_aside", "conflict", "the remote branch has moved"),
    ("repair-cycle-exhausted", "refused", "work", "review or a check found faults that repairs did not fix"),
    ("review_fixable_gap", "refused", "work", "review found a gap that can be fixed"),
    ("review_terminal_block", "refused", "work", "review refuses the change"),
    ("review_request_clarification", "kept_aside", "nothing", "review needs an answer from a person"),
    ("review_request_changes", "refused", "work", "review asks for changes"),
    ("review_block", "refused", "work", "review refuses the change"),
    ("review_malfunction", "kept_aside", "nothing", "the reviewer did not answer usably"),
)
"""Every status seen or read in the sources; the six of CONTRACT-001 among them."""


def status_of(word: str) -> Status:
    """The meaning of a status; an unknown word has an unknown outcome and is not a success."""
    known = STATUSES.get(word)
    if known is not None:
        return known
    return Status(word, "unknown", "nothing", "a status that helix-tui does not know", known=False)


def began_at(attempt_id: str) -> int | None:
    """The instant in an attempt's id; None for another form."""
    match = STAMPED_NAME.match(attempt_id)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * NS
