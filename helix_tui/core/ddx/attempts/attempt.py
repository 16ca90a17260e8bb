"""One attempt: its record.

Rules: docs/formats/ddx.md §5. Landed, preserved and closed are three facts (docs/decisions/0002). `verdict.decide`
decides the outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from helix_tui.core.ddx.attempts.costs import AgentCall, Sums, sum_calls
from helix_tui.core.ddx.attempts.verdict import (
    HEADINGS,
    OUTCOME_WORDS,
    OUTCOMES,
    UNDECIDED,
    AttemptEnd,
    AttemptVerdict,
    StatusClass,
    decide,
    found_after_landing,
)
from helix_tui.core.ddx.measures import Ratchet
from helix_tui.core.ddx.names import Outcome, status_of

MEMORY_CLASSES = ("none", "1 to 3", "4 and more")
"""Classes for the number of memories that an attempt was given."""


def memory_class(count: int) -> str:
    """The class of a number of memories."""
    return MEMORY_CLASSES[0 if not count else 1 if count <= 3 else 2]


class Tokens(Struct, frozen=True):
    """Token counts of an attempt; None if not recorded."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    total: int | None = None


class Review(Struct, frozen=True):
    """What a reviewer said about an attempt."""

    verdict: str
    rationale: str = ""
    at: int | None = None
    folder: Path | None = None


class Attempt(AttemptEnd, frozen=True):
    """One execution of one bead. Landed, preserved and closed are three facts: closed belongs to the bead."""

    attempt_id: str
    bead_id: str = ""
    worker_id: str = ""
    session_id: str = ""
    harness: str = ""
    model: str = ""
    provider: str = ""
    started_at: int | None = None
    finished_at: int | None = None
    recorded_at: int | None = None
    """When ddx wrote down what came of it: after its review and its landing, be it by a later recovery."""
    duration_ms: int | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    base_rev: str = ""
    retry_after: int | None = None
    failure_mode: str = ""
    exit_code: int | None = None
    review: Review | None = None
    bundle: Path | None = None
    """Its evidence folder under ``.ddx/executions``, if it has one."""
    effort: str = ""
    """What the agent was asked for, if recorded."""
    prompt: str = ""
    """The size class of its prompt, and its file if it was not ddx's own."""
    context: str = ""
    """How many governing documents its prompt named, and whether it had HELIX's context."""
    memories: str = ""
    """The class of the number of memories in its bead."""
    ratchets: tuple[Ratchet, ...] = ()
    """Measured values that decided, or would have decided, whether it may land."""
    calls: tuple[AgentCall, ...] = ()
    """Every agent call made for it: the work, its reviews, ddx's check before and triage after."""
    verdict: AttemptVerdict = UNDECIDED
    """The outcome and its evidence, derived from the other fields."""

    def __post_init__(self) -> None:
        """Decide the verdict once, as lists, sums and filters read it often."""
        force_setattr(self, "verdict", decide(self))

    @property
    def landed(self) -> bool:
        """Whether the change is on the branch."""
        return self.verdict.landed

    @property
    def preserved(self) -> bool:
        """Whether the change is kept outside the branch."""
        return self.verdict.preserved

    @property
    def kept_refs(self) -> tuple[str, ...]:
        """Refs of a change that has not landed; a ddx that reviews before landing may name the candidate alone."""
        named = () if self.landed else (self.preserve_ref, self.candidate_ref if self.preserved else "")
        return tuple(filter(None, named))

    @property
    def kept_at(self) -> str:
        """The ref of a change that has not landed; empty where none is named."""
        return next(iter(self.kept_refs), "")

    @property
    def faulted(self) -> bool:
        """Whether it landed and ddx reports a fault nevertheless: a review after landing, or a push."""
        return self.landed and found_after_landing(self.status)

    @property
    def at(self) -> int | None:
        """Instant at which it is counted, in ns: its end or, if not recorded, its start."""
        return self.finished_at or self.started_at

    @property
    def counted_at(self) -> int:
        """`at` as a sort key: 0 if no instant is recorded."""
        return self.at or 0

    @property
    def landed_at(self) -> int:
        """For what landed: when that was, as near as records tell."""
        return self.recorded_at or self.counted_at

    @property
    def word(self) -> str:
        """The outcome as shown: ``landing`` while its change is being landed, ``not seen`` if ddx's status says that it
        landed and no record confirms it.
        """
        outcome = self.verdict.outcome
        if outcome == "unfinished" and self.status:
            return "landing"
        if outcome == "unknown" and status_of(self.status).known:
            return "not seen"
        return OUTCOME_WORDS[outcome]

    @property
    def kind(self) -> StatusClass:
        """The heading under which it is counted."""
        return self.verdict.heading

    @property
    def only_its_worker_says(self) -> bool:
        """Whether the outcome rests only on the worker's own result, written before landing."""
        return self.status_source == "result" and self.verdict.proof == "status"

    @property
    def finished(self) -> bool:
        """Whether its end is recorded or its outcome known otherwise; an attempt that is being landed has not ended."""
        if self.verdict.outcome == "unfinished":
            return False
        return bool(self.status) or self.verdict.proof not in ("nothing", "worker", "status")

    @property
    def spent(self) -> tuple[AgentCall, ...]:
        """Its cost: its calls in ddx's index, plus its own record of work missing there."""
        had = {call.part for call in self.calls}
        at = self.counted_at
        more = []
        if "work" not in had:
            more.append(AgentCall("work", at, self.cost_usd, self.tokens.total, self.bead_id, self.attempt_id))
        if "reviews" not in had and self.review is not None and self.review.verdict:
            more.append(AgentCall("reviews", at, bead_id=self.bead_id, attempt_id=self.attempt_id))
        return (*self.calls, *more)

    @property
    def sums(self) -> Sums:
        """Its cost, in parts."""
        return sum_calls(self.spent)


def count_outcomes(attempts: Iterable[Attempt]) -> dict[Outcome, int]:
    """The number of attempts per outcome, in the order of outcomes; absent ones are left out."""
    counted = Counter(attempt.verdict.outcome for attempt in attempts)
    return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}


def count_headings(attempts: Iterable[Attempt]) -> dict[str, int]:
    """The number of attempts that landed, were preserved, failed, changed nothing, or none of these (yet)."""
    counted = Counter(attempt.kind for attempt in attempts)
    return {heading: counted[heading] for heading in HEADINGS}
