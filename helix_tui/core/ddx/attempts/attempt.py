"""One attempt: its record, merged from all sources, and the sum of what attempts cost.

Rules: docs/formats/ddx.md §5. Landed, preserved and closed are three facts (docs/decisions/0002). What the loop, the
bead's event or the metrics say about the end outweighs ``result.json``, which the worker may have written before
landing failed. `verdict.decide` decides the outcome.

`Sums` is the one sum for the console, the command line and the loop. A call without a recorded cost makes it a lower
bound, shown with ``≥``; it is never counted as 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

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
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.files import money, whole
from helix_tui.core.ddx.measures import Ratchet
from helix_tui.core.ddx.names import Outcome, began_at, status_of

Part = Literal["work", "reviews", "checks", "triage", "other"]

PARTS: tuple[Part, ...] = ("work", "reviews", "checks", "triage", "other")
"""Why an agent is called: the bead itself, a review of the change, ddx's readiness check before a claim, ddx's triage
of a failure, or anything without a bead (a question, a planning stage).
"""


class AgentCall(Struct, frozen=True):
    """One call of an agent. ``usd`` and ``tokens`` are None if they were not recorded."""

    part: Part
    at: int = 0
    """Instant of its end in ns."""
    usd: float | None = None
    tokens: int | None = None
    bead_id: str = ""
    attempt_id: str = ""
    made: bool = True
    """False if ddx found no agent for the call, so that it cost nothing."""


class Amount(Struct, frozen=True):
    """Known dollars and tokens, and the number of calls without a record of them."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    without_usd: int = 0
    without_tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.usd + other.usd,
            self.tokens + other.tokens,
            self.calls + other.calls,
            self.without_usd + other.without_usd,
            self.without_tokens + other.without_tokens,
        )

    @property
    def known(self) -> bool:
        """Whether any cost is known."""
        return self.without_usd < self.calls

    def record(self) -> dict[str, Any]:
        """As JSON; dollars are null if none are known."""
        return {
            "usd": round(self.usd, 6) if self.known or not self.calls else None,
            "tokens": self.tokens,
            "calls": self.calls,
            "without_usd": self.without_usd,
            "without_tokens": self.without_tokens,
        }


class Sums(Struct, frozen=True):
    """The total cost of some calls, and its parts."""

    parts: Mapping[Part, Amount] = {}

    def __add__(self, other: Sums) -> Sums:
        both = {part: self.part(part) + other.part(part) for part in PARTS}
        return Sums({part: amount for part, amount in both.items() if amount != Amount()})

    def part(self, name: Part) -> Amount:
        """One part; an empty amount if there was no such call."""
        return self.parts.get(name, Amount())

    @property
    def whole(self) -> Amount:
        """All parts together."""
        return sum(self.parts.values(), Amount())

    @property
    def usd(self) -> float | None:
        """Dollars known to have been spent, to the millionth: 0 if no agent was called, None if no cost is known."""
        whole_ = self.whole
        return round(whole_.usd, 6) if whole_.known or not whole_.calls else None

    @property
    def tokens(self) -> int | None:
        """Tokens known to have been used, or None."""
        return self.whole.tokens or None

    @property
    def complete(self) -> bool:
        """Whether the cost of every call is known; else `usd` is a lower bound."""
        return self.whole.without_usd == 0

    @property
    def tokens_complete(self) -> bool:
        """Whether the tokens of every call are known."""
        return self.whole.without_tokens == 0

    def record(self) -> dict[str, Any]:
        """As JSON."""
        whole_ = self.whole
        return {
            "usd": self.usd,
            "complete": self.complete,
            "tokens": self.tokens,
            "tokens_complete": self.tokens_complete,
            "calls": whole_.calls,
            "parts": {part: self.parts[part].record() for part in PARTS if part in self.parts},
        }


_NOTHING = (0.0, 0, 0, 0, 0)


def sum_calls(calls: Iterable[AgentCall], since: int | None = None, until: int | None = None) -> Sums:
    """The sum of some calls; those that ended before ``since`` or after ``until`` (ns) are left out."""
    # plain numbers: a struct for each of 20,000 calls took five times as long
    found: dict[Part, tuple[float, int, int, int, int]] = {}
    for call in calls:
        if (since is not None and call.at < since) or (until is not None and call.at > until):
            continue
        usd, tokens, made, without_usd, without_tokens = found.get(call.part, _NOTHING)
        found[call.part] = (
            usd + (call.usd or 0.0),
            tokens + (call.tokens or 0),
            made + call.made,
            without_usd + (call.made and call.usd is None),
            without_tokens + (call.made and call.tokens is None),
        )
    return Sums({part: Amount(*amounts) for part, amounts in found.items()})


def read_sums(document: object) -> Sums:
    """Sums from the JSON of `Sums.record`; values that are not numbers count as absent."""
    parts = document.get("parts") if isinstance(document, dict) else None
    found: dict[Part, Amount] = {}
    for part in PARTS:
        row = parts.get(part) if isinstance(parts, dict) else None
        if isinstance(row, dict):
            counts = [whole(row.get(name)) or 0 for name in ("tokens", "calls", "without_usd", "without_tokens")]
            found[part] = Amount(money(row.get("usd")) or 0.0, *counts)
    return Sums(found)


def format_usd(usd: float | None, complete: bool = True) -> str:
    """An amount: ``$1.10``; ``≥$1.10`` if part of it is unknown; ``n/a`` if all is."""
    if usd is None:
        return "n/a"
    # $0.00 would say that it cost nothing
    if 0 < usd < 0.005:
        return "<$0.01" if complete else ">$0"
    return ("" if complete else "≥") + (f"${usd:,.2f}" if usd < 1_000 else f"${usd:,.0f}")


def format_sum(sums: Sums) -> str:
    """A sum in dollars: ``$0.80``; ``≥$0.80`` if the cost of a call is unknown; ``n/a`` if the known part is zero, as
    ``≥$0.00`` would say nothing.
    """
    if sums.complete:
        return format_usd(sums.usd)
    return format_usd(sums.usd, False) if sums.usd else "n/a"


def format_tokens(sums: Sums) -> str:
    """Tokens: ``1,234 tokens``; ``≥`` if a call has no count, ``tokens n/a`` if none has."""
    if not sums.tokens_complete and not sums.tokens:
        return "tokens n/a"
    return f"{'' if sums.tokens_complete else '≥'}{sums.tokens or 0:,} tokens"


def format_parts(sums: Sums) -> str:
    """The parts of a sum: ``work $0.25 · reviews $0.38``; empty if there is only one part."""
    spent = [(part, sums.parts[part]) for part in PARTS if part in sums.parts and sums.parts[part].calls]
    if len(spent) < 2:
        return ""
    return " · ".join(f"{part} {format_sum(Sums({part: amount}))}" for part, amount in spent)


def format_whole(sums: Sums) -> str:
    """A sum with its parts in brackets."""
    parts = format_parts(sums)
    return format_sum(sums) + (f" ({parts})" if parts else "")


Source = Literal["recovery", "loop", "event", "metrics", "result", "cost", "manifest", "name", "run-state", "heartbeat"]

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


class Piece(Struct):
    """What one source says about one attempt; zero values where it is silent."""

    source: Source
    attempt_id: str = ""
    bead_id: str = ""
    status: str = ""
    outcome: str = ""
    detail: str = ""
    worker_id: str = ""
    session_id: str = ""
    harness: str = ""
    model: str = ""
    provider: str = ""
    started_at: int | None = None
    finished_at: int | None = None
    duration_ms: int | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    base_rev: str = ""
    result_rev: str = ""
    landed_rev: str = ""
    land_status: str = ""
    preserve_ref: str = ""
    retry_after: int | None = None
    no_changes_rationale: str = ""
    failure_mode: str = ""
    error: str = ""
    exit_code: int | None = None
    stopped: str = ""
    review_verdict: str = ""
    review_rationale: str = ""
    candidate_ref: str = ""
    recovered: bool = False
    effort: str = ""
    prompt: str = ""
    context: str = ""
    memories: str = ""
    ratchets: tuple[Ratchet, ...] = ()
    folder: Path | None = None
    at: int | None = None


class RowFacts(Struct, frozen=True):
    """What an attempt's bead says about it."""

    status: str = ""
    session_id: str = ""
    closing_commit: str = ""
    last_status: str = ""
    retry_after: int | None = None
    hold: Hold | None = None
    """The current hold on the bead, during which a worker's result is not final; None if there is none."""


NO_ROW = RowFacts()

_END: tuple[Source, ...] = ("recovery", "loop", "event", "metrics", "result")
"""Sources on the end of an attempt, strongest first."""
_OWN: tuple[Source, ...] = (
    "result", "metrics", "cost", "event", "loop", "recovery", "manifest", "name", "run-state", "heartbeat",
)  # fmt: skip
"""Sources on the attempt's other fields, best first."""

_BY_END = ("detail", "result_rev", "preserve_ref", "retry_after")
_BY_OWN = (
    "bead_id",
    "outcome",
    "worker_id",
    "session_id",
    "harness",
    "model",
    "provider",
    "duration_ms",
    "cost_usd",
    "base_rev",
    "landed_rev",
    "candidate_ref",
    "land_status",
    "no_changes_rationale",
    "failure_mode",
    "error",
    "exit_code",
    "stopped",
    "effort",
    "prompt",
    "context",
    "memories",
)


def count_outcomes(attempts: Iterable[Attempt]) -> dict[Outcome, int]:
    """The number of attempts per outcome, in the order of outcomes; absent ones are left out."""
    counted = Counter(attempt.verdict.outcome for attempt in attempts)
    return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}


def count_headings(attempts: Iterable[Attempt]) -> dict[str, int]:
    """The number of attempts that landed, were preserved, failed, changed nothing, or none of these (yet)."""
    counted = Counter(attempt.kind for attempt in attempts)
    return {heading: counted[heading] for heading in HEADINGS}


def merge(
    attempt_id: str,
    pieces: Mapping[Source, Piece],
    row: RowFacts = NO_ROW,
    reviews: Sequence[Review] = (),
    *,
    on_branch: bool | None = None,
) -> Attempt:
    """Merge all pieces about an attempt into one record; ``on_branch`` is git's answer about its result."""
    end = [pieces[source] for source in _END if source in pieces]
    own = [pieces[source] for source in _OWN if source in pieces]
    said = next((piece for piece in end if piece.status), None)
    fields: dict[str, Any] = {name: _first(end, name) for name in _BY_END}
    fields |= {name: _first(own, name) for name in _BY_OWN}
    status = said.status if said is not None else ""
    session_id = fields["session_id"]
    started_at = _earliest(own) or began_at(attempt_id)
    # a hold that began later is another worker's and does not concern this attempt
    hold = row.hold if row.hold is not None and row.hold.covers(started_at) else None
    attempt = Attempt(
        attempt_id,
        status=status,
        status_source=said.source if said is not None else "",
        merged=any(piece.outcome == "merged" for piece in end),
        recovered=any(piece.recovered for piece in end),
        held=hold is not None and not hold.gone,
        gone=hold.gone if hold is not None else "",
        # a person or another attempt may have closed the bead: only its own session ties the commit to this one
        closed_by_it=bool(
            row.status == "closed" and row.closing_commit and session_id and row.session_id == session_id
        ),
        on_branch=on_branch,
        started_at=started_at,
        finished_at=_finished(end, own),
        recorded_at=next((piece.at for piece in end if piece.at is not None and piece.status), None),
        tokens=_tokens(own),
        review=_review(end, reviews),
        bundle=next((piece.folder for piece in own if piece.folder is not None), None),
        sources=tuple(pieces),
        ratchets=next((piece.ratchets for piece in own if piece.ratchets), ()),
        **fields,
    )
    # the row keeps one time to retry, that of the attempt whose status it keeps too
    if attempt.retry_after is None and status and row.last_status == status and not attempt.landed:
        return replace(attempt, retry_after=row.retry_after)
    return attempt


def with_baselines(newest_first: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts, with the previously landed value added to each measured value."""
    before: dict[str, float] = {}
    found: dict[str, Attempt] = {}
    # oldest first, and only landed values count: the next attempt started from them
    for attempt in reversed(newest_first):
        if not attempt.ratchets:
            continue
        ratchets = tuple(replace(each, baseline=before.get(each.name)) for each in attempt.ratchets)
        found[attempt.attempt_id] = replace(attempt, ratchets=ratchets)
        if attempt.landed:
            before |= {each.name: each.value for each in attempt.ratchets}
    return tuple(found.get(each.attempt_id, each) for each in newest_first) if found else tuple(newest_first)


def revisions(pieces: Mapping[Source, Piece]) -> tuple[str, ...]:
    """Revisions that an attempt made, as named by its sources, without its base.

    Without a known base a result may be an unchanged revision, and does not count; a landed revision does.
    """
    bases = {piece.base_rev for piece in pieces.values()}
    found = [piece.landed_rev for piece in pieces.values()]
    found += [piece.result_rev for piece in pieces.values() if bases - {""}]
    return tuple(dict.fromkeys(rev for rev in found if rev and rev not in bases))


def _first(pieces: Iterable[Piece], name: str) -> Any:
    empty: Any = "" if name in _TEXTS else None
    for piece in pieces:
        value = getattr(piece, name)
        if value is not None and value != "":
            return value
    return empty


_TEXTS = frozenset(
    name for name in (*_BY_END, *_BY_OWN) if name not in {"retry_after", "duration_ms", "cost_usd", "exit_code"}
)


def _tokens(own: Sequence[Piece]) -> Tokens:
    given, cached = _first(own, "tokens_in"), _first(own, "tokens_cached")
    out, total = _first(own, "tokens_out"), _first(own, "tokens")
    if given is not None or out is not None:  # a total below its parts is invalid: May writes 0
        total = max(total or 0, (given or 0) + (out or 0))
    return Tokens(given, cached, out, total or None)


def _earliest(own: Sequence[Piece]) -> int | None:
    return next((piece.started_at for piece in own if piece.started_at is not None), None)


def _finished(end: Sequence[Piece], own: Sequence[Piece]) -> int | None:
    exact = next((piece.finished_at for piece in own if piece.finished_at is not None), None)
    if exact is not None:
        return exact
    # else when its end was recorded: slightly late, never early; a recovery may come days later
    return next((piece.at for piece in end if piece.at is not None and piece.status and not piece.recovered), None)


def _review(end: Sequence[Piece], reviews: Sequence[Review]) -> Review | None:
    """The last review with a verdict; the result's own review if none has a record."""
    reviewed = next((piece for piece in end if piece.review_verdict), None)
    if reviews:
        last = max(reviews, key=lambda review: review.at or 0)
        # a review's folder exists before its verdict, and stays without one if the review was aborted
        if last.verdict or reviewed is None:
            return last
    return Review(reviewed.review_verdict, reviewed.review_rationale, reviewed.at) if reviewed is not None else None
