"""``.ddx/metrics/attempts.jsonl``: one row an attempt. Format: docs/formats/ddx.md §5.

Run records, each read as a piece of an attempt: of one whose worker was killed it may be all there is.

``.ddx/run-state/<attempt>.json`` and ``.ddx/run-state.json`` (docs/formats/ddx.md §4.1). Since May the
evidence folder comes into the project when the agent has ended; what ddx was killed at has none.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Piece
from helix_tui.core.ddx.claims import Claim, run_state_claim, run_state_files
from helix_tui.core.ddx.files import Folder, JsonCache, LineTail, decode_object
from helix_tui.core.ddx.names import instant, money, text, whole


class MetricRow(Struct, gc=False):
    """One row; fields of a later schema are left out."""

    attempt_id: str = ""
    bead_id: str = ""
    session_id: str = ""
    ts_start: str = ""
    ts_end: str = ""
    model: str = ""
    harness: str = ""
    provider: str = ""
    outcome: str = ""
    exit_code: int | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    review_verdict: str = ""


_decode_metric = msgspec.json.Decoder(MetricRow).decode


MAX_ROWS = 40_000
"""Rows that are held, those written last: 0.6 KB each, 24 MB of so many."""


class MetricsFile:
    """The rows so far; appended ones are taken in as they come, a rewritten file from its start."""

    def __init__(self, ddx_dir: Path) -> None:
        self._tail = LineTail(ddx_dir / "metrics" / "attempts.jsonl", cap=64 << 20)
        self.rows: dict[str, MetricRow] = {}
        self.unread = 0

    def refresh(self) -> set[str]:
        """Take in appended rows; the ids of beads they speak of."""
        dirty: set[str] = set()
        lines = self._tail.poll()
        if self._tail.replaced:
            dirty |= {row.bead_id for row in self.rows.values()}
            self.rows, self.unread = {}, 0
        while self._tail.behind:
            lines += self._tail.poll()
        for line in lines:
            row = _row(line)
            if row is not None:
                self.rows.pop(row.attempt_id, None)  # the last written stands last
                self.rows[row.attempt_id] = row
                dirty.add(row.bead_id)
            elif line.strip():
                self.unread += 1
        for oldest in [*islice(self.rows, max(0, len(self.rows) - MAX_ROWS))]:
            dirty.add(self.rows.pop(oldest).bead_id)
        return dirty


def _row(line: bytes) -> MetricRow | None:
    try:
        row = _decode_metric(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            document = decode_object(line)
        except ValueError:
            return None
        texts: dict[str, object] = {key: text(document, key) for key in _METRIC_TEXTS}
        numbers = {key: whole(document.get(key)) for key in _METRIC_COUNTS}
        row = msgspec.convert(texts | numbers | {"cost_usd": money(document.get("cost_usd"))}, MetricRow)
    return row if row.attempt_id else None


def metric_piece(row: MetricRow) -> Piece:
    """What a row says about its attempt."""
    ended = instant(row.ts_end)
    return Piece(
        "metrics",
        row.attempt_id,
        row.bead_id,
        status=row.outcome,
        session_id=row.session_id,
        harness=row.harness,
        model=row.model,
        provider=row.provider,
        started_at=instant(row.ts_start),
        finished_at=ended,
        duration_ms=whole(row.duration_ms),
        tokens_in=whole(row.input_tokens),
        tokens_cached=whole(row.cached_tokens),
        tokens_out=whole(row.output_tokens),
        tokens=whole(row.total_tokens),
        cost_usd=money(row.cost_usd),
        exit_code=row.exit_code,
        review_verdict=row.review_verdict,
        at=ended,
    )


_METRIC_TEXTS = tuple(f.name for f in msgspec.structs.fields(MetricRow) if f.type is str)
_METRIC_COUNTS = tuple(f.name for f in msgspec.structs.fields(MetricRow) if f.type is not str and f.name != "cost_usd")


class RunStates:
    """The run records of a project, look after look."""

    def __init__(self, ddx_dir: Path) -> None:
        self._ddx = ddx_dir
        self._folder = Folder(ddx_dir / "run-state")
        self._documents = JsonCache(limit=1 << 20)
        self._claims: dict[str, Claim] = {}
        self._by_bead: dict[str, dict[str, Piece]] = {}

    def refresh(self) -> set[str]:
        """Take in what changed; the ids of beads whose attempts may differ now."""
        found: dict[str, Claim] = {}
        for path in run_state_files(self._ddx, self._folder):
            document = self._documents.load(path)
            claim = run_state_claim(path, document) if document is not None else None
            if claim is not None and claim.attempt_id:
                found.setdefault(claim.attempt_id, claim)
        self._documents.sweep()
        told = {name: _told(claim) for name, claim in found.items()}
        before = {name: _told(claim) for name, claim in self._claims.items()}
        names = {name for name in told.keys() | before.keys() if told.get(name) != before.get(name)}
        if not names:
            return set()
        self._claims = found
        self._by_bead = {}
        for claim in found.values():
            self._by_bead.setdefault(claim.bead_id, {})[claim.attempt_id] = _piece(claim)
        return {row[0] for name in names for row in (told.get(name), before.get(name)) if row is not None}

    def of(self, bead_id: str) -> tuple[Piece, ...]:
        """What is recorded of attempts of a bead."""
        return tuple(self._by_bead.get(bead_id, {}).values())


def _told(claim: Claim) -> tuple[str, int | None, str, str]:
    """What an attempt takes from its record: nothing that each heartbeat changes."""
    return claim.bead_id, claim.started_at, claim.harness, claim.model


def _piece(claim: Claim) -> Piece:
    return Piece(
        "run-state",
        claim.attempt_id,
        claim.bead_id,
        worker_id=claim.worker_id,
        harness=claim.harness,
        model=claim.model,
        started_at=claim.started_at,
    )
