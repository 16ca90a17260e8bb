"""Merge what several sources say of one attempt.

What the loop, the bead's event or the metrics say about the end outweighs ``result.json``, which the worker may have
written before landing failed (docs/formats/ddx.md §5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt, Review, Tokens
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.measures import Ratchet
from helix_tui.core.ddx.names import began_at

Source = Literal["recovery", "loop", "event", "metrics", "result", "cost", "manifest", "name", "run-state", "heartbeat"]

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

_TEXTS = frozenset(
    name for name in (*_BY_END, *_BY_OWN) if name not in {"retry_after", "duration_ms", "cost_usd", "exit_code"}
)


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
    piece = next((piece for piece in end if piece.status), None)
    fields: dict[str, Any] = {name: _first(end, name) for name in _BY_END}
    fields |= {name: _first(own, name) for name in _BY_OWN}
    status = piece.status if piece is not None else ""
    session_id = fields["session_id"]
    started_at = _earliest(own) or began_at(attempt_id)
    # a hold that began later is another worker's and does not concern this attempt
    hold = row.hold if row.hold is not None and row.hold.covers(started_at) else None
    attempt = Attempt(
        attempt_id,
        status=status,
        status_source=piece.source if piece is not None else "",
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
        ratchets = tuple(replace(ratchet, baseline=before.get(ratchet.name)) for ratchet in attempt.ratchets)
        found[attempt.attempt_id] = replace(attempt, ratchets=ratchets)
        if attempt.landed:
            before |= {ratchet.name: ratchet.value for ratchet in attempt.ratchets}
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
