"""One attempt: its record, and how the sources that speak of it are merged into one.

Rules: reference/ddx.md §5. Landed, preserved and closed are three facts (rulings.md 3). What the loop, the
bead's event or the metrics say of the end is stronger than ``result.json``, which the worker may have
written before landing failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from helix_tui.core.ddx.attempts.bundles import began_at
from helix_tui.core.ddx.names import STATUSES, StatusClass, classify

Source = Literal["loop", "event", "metrics", "result", "cost", "manifest", "name"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of an attempt; None where nobody recorded them."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer said about an attempt."""

    verdict: str
    rationale: str = ""
    at: int | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of one bead. Landed, preserved and closed are three facts: closed is the bead's own."""

    attempt_id: str
    bead_id: str = ""
    status: str = ""
    """DDx's own word, verbatim; empty while it runs or where it crashed without a result."""
    status_source: str = ""
    """Who said it: loop, event, metrics or result, strongest first."""
    outcome: str = ""
    detail: str = ""
    landed: bool = False
    preserved: bool = False
    worker_id: str = ""
    session_id: str = ""
    harness: str = ""
    model: str = ""
    provider: str = ""
    started_at: int | None = None
    finished_at: int | None = None
    duration_ms: int | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    base_rev: str = ""
    result_rev: str = ""
    landed_rev: str = ""
    preserve_ref: str = ""
    retry_after: int | None = None
    no_changes_rationale: str = ""
    failure_mode: str = ""
    error: str = ""
    exit_code: int | None = None
    review: Review | None = None
    bundle: Path | None = None
    """Its evidence folder under ``.ddx/executions``, where it has one."""
    sources: tuple[str, ...] = ()

    @property
    def kind(self) -> StatusClass:
        """Under which heading it is listed."""
        return classify(self.status, landed=self.landed, preserved=self.preserved)

    @property
    def finished(self) -> bool:
        """Whether somebody said how it ended."""
        return bool(self.status)


@dataclass(slots=True)
class Piece:
    """What one source says about one attempt; zero values where it says nothing."""

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
    review_verdict: str = ""
    review_rationale: str = ""
    has_candidate: bool = False
    """Written by a DDx that reviews before it lands and then writes the result again (head)."""
    folder: Path | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What an attempt's bead says about it."""

    status: str = ""
    session_id: str = ""
    closing_commit: str = ""
    last_status: str = ""
    retry_after: int | None = None
    claimed: bool = False
    """Somebody's loop still holds the row, so what the worker wrote is not the last word."""


NO_ROW = RowFacts()

_END: tuple[Source, ...] = ("loop", "event", "metrics", "result")
"""Whose word on the end counts, strongest first."""
_OWN: tuple[Source, ...] = ("result", "metrics", "cost", "event", "loop", "manifest", "name")
"""Who knows best what the attempt was: its own result first."""

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
    "no_changes_rationale",
    "failure_mode",
    "error",
    "exit_code",
)


def merge(
    attempt_id: str, pieces: Mapping[Source, Piece], row: RowFacts = NO_ROW, reviews: Sequence[Review] = ()
) -> Attempt:
    """One record of everything that is said about an attempt."""
    end = [pieces[source] for source in _END if source in pieces]
    own = [pieces[source] for source in _OWN if source in pieces]
    said = next((piece for piece in end if piece.status), None)
    fields: dict[str, Any] = {name: _first(end, name) for name in _BY_END}
    fields |= {name: _first(own, name) for name in _BY_OWN}
    status = said.status if said is not None else ""
    landed = _landed(said, end, row, fields["session_id"]) if said is not None else False
    if fields["retry_after"] is None and status and row.last_status == status and not landed:
        fields["retry_after"] = row.retry_after
    return Attempt(
        attempt_id,
        status=status,
        status_source=said.source if said is not None else "",
        landed=landed,
        preserved=not landed and _preserved(status, fields["outcome"], fields["preserve_ref"]),
        started_at=_earliest(own) or began_at(attempt_id),
        finished_at=_finished(end, own),
        tokens=_tokens(own),
        review=_review(end, reviews),
        bundle=next((piece.folder for piece in own if piece.folder is not None), None),
        sources=tuple(pieces),
        **fields,
    )


def _landed(said: Piece, end: Iterable[Piece], row: RowFacts, session_id: str) -> bool:
    """Whether the change is on the branch, by whoever saw it there."""
    known = STATUSES.get(said.status)
    kind = known.kind if known is not None else "other"
    if kind in ("failed", "no_changes") or said.status.startswith("land_"):
        return False
    if any(piece.outcome == "merged" or piece.landed_rev for piece in end):
        return True
    if row.status == "closed" and row.closing_commit and session_id and row.session_id == session_id:
        return kind == "landed"
    if said.detail.startswith("post-merge"):
        return True
    if kind == "landed":
        return _success_landed(said, row)
    reviewed_after = said.status in ("review_request_changes", "review_block", "review_malfunction")
    return reviewed_after and not said.preserve_ref and not any(piece.has_candidate for piece in end)


def _success_landed(said: Piece, row: RowFacts) -> bool:
    """``success`` means landed, but for what is preserved, and for a result written before landing.

    Both eras write the result when the agent ends, head even with ``land_status: landed`` in it; while
    somebody holds the bead, landing is still to come.
    """
    if said.preserve_ref:
        return "auto-recovered" in said.detail
    if said.source != "result":
        return True
    return not row.claimed and (not said.has_candidate or said.land_status == "landed")


def _preserved(status: str, outcome: str, preserve_ref: str) -> bool:
    known = STATUSES.get(status)
    if preserve_ref or outcome == "preserved" or status.startswith("preserved"):
        return True
    return known is not None and known.kind == "preserved"


def _first(pieces: Iterable[Piece], name: str) -> Any:
    empty: Any = "" if name in _TEXTS else None
    for piece in pieces:
        value = getattr(piece, name)
        if value is not None and value != "":
            return value
    return empty


_TEXTS = frozenset(
    name
    for name in (*_BY_END, *_BY_OWN)
    if name not in {"retry_after", "duration_ms", "cost_usd", "exit_code"}
)


def _tokens(own: Sequence[Piece]) -> Tokens:
    given, cached = _first(own, "tokens_in"), _first(own, "tokens_cached")
    out, total = _first(own, "tokens_out"), _first(own, "tokens")
    if total is None and (given is not None or out is not None):
        total = (given or 0) + (out or 0)
    return Tokens(given, cached, out, total)


def _earliest(own: Sequence[Piece]) -> int | None:
    return next((piece.started_at for piece in own if piece.started_at is not None), None)


def _finished(end: Sequence[Piece], own: Sequence[Piece]) -> int | None:
    exact = next((piece.finished_at for piece in own if piece.finished_at is not None), None)
    if exact is not None:
        return exact
    return next((piece.at for piece in end if piece.at is not None and piece.status), None)


def _review(end: Sequence[Piece], reviews: Sequence[Review]) -> Review | None:
    """The last review that gave a verdict; what the result says of it where no review has its own record."""
    told = next((piece for piece in end if piece.review_verdict), None)
    if reviews:
        last = max(reviews, key=lambda review: review.at or 0)
        if last.verdict or told is None:
            return last
    return Review(told.review_verdict, told.review_rationale, told.at) if told is not None else None
