"""Read DDx's measurements: ratchets of attempts, its store of definitions, and observations.

Formats: docs/formats/ddx.md §5. An attempt's ratchets are in ``result.json`` and ``checks.json`` of its evidence,
observations in ``.ddx/exec-runs.jsonl``. Documents define executions and metrics too (`ddx.documents`). DDx measures
and decides; this module only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins

from helix_tui.core.ddx.files import instant, text
from helix_tui.core.ground.files import below, read_bytes
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line

Direction = Literal["lower-is-better", "higher-is-better"]

MAX_ROWS_FILE = 64 << 20
MAX_RESULT = 1 << 20
MAX_RATCHETS = 50
"""Maximum number of ratchets kept per attempt."""


class Ratchet(Struct, frozen=True, rename={"definition": "definition_id", "metric": "metric_id"}):
    """One measured value of an attempt, compared with the value that it must not fall behind."""

    definition: str
    """The execution document that measured it."""
    metric: str
    """The metric's id; empty if the document names none."""
    value: float
    threshold: float
    unit: str
    direction: Direction
    passed: bool
    reason: str
    """DDx's own sentence."""
    baseline: float | None = None
    """The value of the last attempt that landed before this one; None if none was measured."""

    @property
    def name(self) -> str:
        """Its name: the metric's id, else the document's."""
        return self.metric or self.definition

    def describe(self) -> str:
        """``MET-001 310 ms, ratchet ≤ 250 ms, before 120 ms: worse``."""
        sign = "≤" if self.direction == "lower-is-better" else "≥"
        before = "" if self.baseline is None else f", before {amount(self.baseline, self.unit)}"
        limit = f"ratchet {sign} {amount(self.threshold, self.unit)}"
        verdict = "holds" if self.passed else "worse"
        return f"{clean_line(self.name, 80)} {amount(self.value, self.unit)}, {limit}{before}: {verdict}"

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**to_builtins(self), "metric_id": self.metric or None}


class StoredExecution(Struct, frozen=True):
    """A definition in DDx's own store of a check or a measurement."""

    id: str
    artifacts: tuple[str, ...]
    """Its documents."""
    active: bool = True
    unit: str = ""
    direction: Direction = "lower-is-better"
    ratchet: float | None = None
    warn: float | None = None


class Observation(Struct, frozen=True):
    """One run of an execution definition and its value."""

    run_id: str
    definition: str
    artifacts: tuple[str, ...]
    at: int | None
    status: str
    """DDx's word: success, failed, timed_out, errored."""
    value: float | None = None
    unit: str = ""
    baseline: float | None = None
    direction: Direction = "lower-is-better"

    @property
    def metric(self) -> str:
        """The metric that it observes."""
        return self.artifacts[0] if self.artifacts else ""


def amount(value: float, unit: str) -> str:
    """A value for display: ``310 ms``, ``0.5``."""
    number = f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.4g}"
    return f"{number} {clean_line(unit, 20)}".strip()


def better(direction: Direction, one: float, other: float) -> bool:
    """Whether ``one`` is better than ``other``."""
    return one < other if direction == "lower-is-better" else one > other


def read_ratchets(document: Mapping[str, Any] | None) -> tuple[Ratchet, ...]:
    """The ratchets in a result or a checks document: its own list, else those of its gates."""
    if document is None:
        return ()
    rows = [*rows_in(document.get("ratchet_evidence"))]
    for name in ("gate_results", "results"):
        if not rows:
            rows = [gate["ratchet"] for gate in rows_in(document.get(name)) if isinstance(gate.get("ratchet"), dict)]
    return tuple(found for row in rows[:MAX_RATCHETS] if (found := _ratchet(row)) is not None)


def ratchet_reason(gate: Mapping[str, Any]) -> str | None:
    """Why a gate's ratchet held or failed, in ddx's words; None if it has no ratchet."""
    ratchet = gate.get("ratchet")
    return text(ratchet, "reason") if isinstance(ratchet, dict) else None


def read_stored_executions(ddx_dir: Path) -> tuple[StoredExecution, ...]:
    """The definitions in DDx's own store."""
    found = []
    for row in _lines(ddx_dir / "exec-definitions.jsonl"):
        inside = row.get("definition")
        definition = inside if isinstance(inside, dict) else row
        name = text(definition, "id") or text(row, "id")
        if not name:
            continue
        rules = _object(definition.get("evaluation"))
        limits = _object(rules.get("thresholds"))
        found.append(
            StoredExecution(
                name,
                _texts(definition.get("artifact_ids")),
                definition.get("active") is not False and text(row, "status") != "closed",
                text(_object(_object(definition.get("result")).get("metric")), "unit"),
                direction_of(text(rules, "comparison")),
                _number(limits, "ratchet_ms", "ratchet"),
                _number(limits, "warn_ms", "warn"),
            )
        )
    return tuple(found)


def read_observations(ddx_dir: Path) -> tuple[Observation, ...]:
    """All observations, oldest first; a run whose result is gone has no value."""
    found = [run for row in _lines(ddx_dir / "exec-runs.jsonl") if (run := _observation(ddx_dir, row)) is not None]
    return tuple(sorted(found, key=lambda run: (run.at or 0, run.run_id)))


def _observation(ddx_dir: Path, row: Mapping[str, Any]) -> Observation | None:
    manifest = _object(row.get("manifest")) or row
    run_id = text(manifest, "run_id") or text(row, "id")
    if not run_id:
        return None
    result = _object(row.get("result")) or _stored_result(ddx_dir, manifest)
    metric = _object(result.get("metric"))
    compared = _object(metric.get("comparison"))
    value = _number(metric, "value")
    first = next((_real(each) for each in metric.get("samples") or () if _real(each) is not None), None)
    return Observation(
        run_id,
        text(manifest, "definition_id"),
        _texts(manifest.get("artifact_ids")),
        instant(manifest.get("started_at")) or instant(row.get("created_at")),
        text(manifest, "status") or text(row, "run_status"),
        value if value is not None else first,
        text(metric, "unit"),
        _number(compared, "baseline"),
        direction_of(text(compared, "direction")),
    )


def _stored_result(ddx_dir: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a row, only from a path below ``exec-runs.d``."""
    name = text(_object(manifest.get("attachments")), "result")
    if not name.startswith("exec-runs.d/"):
        return {}
    return _object(decode_json(read_bytes(below(ddx_dir, name), MAX_RESULT)))


def _ratchet(row: Mapping[str, Any]) -> Ratchet | None:
    value, threshold = _number(row, "observed"), _number(row, "threshold")
    name = text(row, "definition_id")
    if value is None or threshold is None or not (name or text(row, "metric_id")):
        return None
    return Ratchet(
        clean_line(name, 120),
        clean_line(text(row, "metric_id"), 120),
        value,
        threshold,
        clean_line(text(row, "unit"), 20),
        direction_of(text(row, "comparison")),
        # an unknown status counts as not passed
        text(row, "decision") == "pass",
        clean_line(text(row, "reason"), 300),
    )


def direction_of(word: str) -> Direction:
    """DDx's own rule: anything but ``higher-is-better`` means lower."""
    return "higher-is-better" if word == "higher-is-better" else "lower-is-better"


def _number(document: Mapping[str, Any], *names: str) -> float | None:
    return next((found for name in names if (found := _real(document.get(name))) is not None), None)


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < 1e18 else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def rows_in(value: object) -> list[dict[str, Any]]:
    """The objects in a list of a record; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(each for each in value if isinstance(each, str) and each) if isinstance(value, list) else ()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines; other lines are skipped."""
    for line in (read_bytes(path, MAX_ROWS_FILE) or b"").splitlines():
        row = decode_json(line)
        if isinstance(row, dict):
            yield row
