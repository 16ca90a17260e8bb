"""Read DDx's metrics: ``.ddx/metrics/attempts.jsonl``, one row per attempt (docs/formats/ddx.md §5)."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.files import LineTail, decode_object, instant, money, text, whole

MAX_ROWS = 40_000
"""Maximum number of rows kept, the last written: 0.6 KB each, 24 MB in all."""


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


class MetricsFile:
    """The rows so far; appended rows are added, and a rewritten file is read from its start."""

    def __init__(self, ddx_dir: Path) -> None:
        self._tail = LineTail(ddx_dir / "metrics" / "attempts.jsonl", cap=64 << 20)
        self.rows: dict[str, MetricRow] = {}
        self.unread = 0

    def refresh(self) -> set[str]:
        """Read appended rows; return the ids of their beads."""
        dirty = self._take(self._tail.poll())
        while self._tail.behind:
            dirty |= self._take(self._tail.poll())
        for oldest in [*islice(self.rows, max(0, len(self.rows) - MAX_ROWS))]:
            dirty.add(self.rows.pop(oldest).bead_id)
        return dirty

    def _take(self, lines: list[bytes]) -> set[str]:
        """Add the rows of one poll; any poll may find that the file was replaced."""
        dirty: set[str] = set()
        if self._tail.replaced:
            # beads not in the new file lose their rows
            dirty |= {row.bead_id for row in self.rows.values()}
            self.rows, self.unread = {}, 0
        for line in lines:
            row = _row(line)
            if row is not None:
                earlier = self.rows.pop(row.attempt_id, None)  # the last written row comes last
                self.rows[row.attempt_id] = _completed(row, earlier)
                dirty.add(row.bead_id)
            elif line.strip():
                self.unread += 1
        return dirty


def _row(line: bytes) -> MetricRow | None:
    try:
        row = _decode_metric(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # one field of a wrong type costs that field, not the row
        try:
            document = decode_object(line)
        except ValueError:
            return None
        texts: dict[str, object] = {key: text(document, key) for key in _METRIC_TEXTS}
        numbers = {key: whole(document.get(key)) for key in _METRIC_COUNTS}
        row = msgspec.convert(texts | numbers | {"cost_usd": money(document.get("cost_usd"))}, MetricRow)
    return row if row.attempt_id else None


def _completed(row: MetricRow, earlier: MetricRow | None) -> MetricRow:
    """The row with what an earlier row of its attempt knows.

    Where ddx lands or keeps work of before, it writes one more row, with an end, an outcome and a duration of 0.
    """
    if not row.duration_ms and not row.ts_start:
        row.duration_ms = None
    for name in _METRIC_FIELDS if earlier is not None else ():
        if getattr(row, name) in ("", None):
            setattr(row, name, getattr(earlier, name))
    return row


def metric_piece(row: MetricRow) -> Piece:
    """The piece from a row."""
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


_METRIC_FIELDS = tuple(f.name for f in msgspec.structs.fields(MetricRow))


_METRIC_TEXTS = tuple(f.name for f in msgspec.structs.fields(MetricRow) if f.type is str)


_METRIC_COUNTS = tuple(f.name for f in msgspec.structs.fields(MetricRow) if f.type is not str and f.name != "cost_usd")
