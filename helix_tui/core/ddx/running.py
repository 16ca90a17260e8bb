"""What is running, from the files that say so: tracker rows, leases, run records, worker sidecars.

Formats: reference/ddx.md §4. No one file is enough: a row stays ``open`` while a worker of the head era
runs it, a run record outlives a killed worker, a heartbeat beats in a worker that is stuck. So every source
is read, the facts are merged per piece of work, and each keeps its source and its age.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Verdict = Literal["alive", "silent", "dead"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of one file about a run."""

    name: str
    value: str
    source: str
    path: Path | None = None
    at: int | None = None
    """When the source wrote it, nanoseconds since the epoch; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Run:
    """One piece of work that some file calls running; a worker between beads has ``bead_id`` None."""

    bead_id: str | None
    attempt_id: str | None = None
    worker_id: str | None = None
    source: str = ""
    """The strongest source that names it: run-state, lease, sidecar or row."""
    phase: str = ""
    message: str = ""
    last_tool: str = ""
    last_event_at: int | None = None
    started_at: int | None = None
    age_s: float | None = None
    harness: str = ""
    model: str = ""
    pid: int | None = None
    machine: str = ""
    worktree: Path | None = None
    transcript: Path | None = None
    """The file that tells most of what it is doing now."""
    tokens: int | None = None
    live: bool = True
    verdict: Verdict = "alive"
    why: str = ""
    """One sentence: what the verdict rests on."""
    facts: tuple[Fact, ...] = ()
