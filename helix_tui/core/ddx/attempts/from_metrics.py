"""``.ddx/metrics/attempts.jsonl``: one row an attempt. Format: docs/formats/ddx.md §5."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from helix_tui.core.ddx.attempts.attempt import Piece
from helix_tui.core.ddx.fields import instant, money, text, whole
from helix_tui.core.ddx.files import LineTail, decode_object


class MetricRow(msgspec.Struct, gc=False):
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
