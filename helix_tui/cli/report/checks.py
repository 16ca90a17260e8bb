"""One finding of ``helix-tui doctor``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing that was looked at; ``ok`` is None where there is nothing to judge."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""
