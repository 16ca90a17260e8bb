"""Attempts: one record per execution of a bead, merged from everything DDx writes about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    """Who said it: loop, event, result or metrics, strongest first."""
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
