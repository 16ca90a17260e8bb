"""One finding of ``helix-tui doctor``."""

from __future__ import annotations

from msgspec import Struct


class DoctorCheck(Struct, frozen=True):
    """One thing that was looked at; ``ok`` is None where there is nothing to judge."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""
