"""Which module carries a HELIX command out, and under which heading it is listed."""

from __future__ import annotations

from helix_tui.core.supervision.stages.commands import ROWS

__all__ = ["HEADINGS", "ROWS", "TABLE", "grouped"]

_HERE = "helix_tui.cli.helix."

_SHARED = {
    **dict.fromkeys(("status", "stuck", "next"), "status"),
    **dict.fromkeys(("run", "start", "stop"), "run"),
    **dict.fromkeys(("build", "implement"), "build"),
    **dict.fromkeys(("frame", "evolve", "design", "plan", "polish", "align", "backfill", "review"), "stage"),
}
"""Command -> the module that it shares with others; the rest have one of their own name."""

TABLE = {name: (_HERE + _SHARED.get(name, name), row.summary) for name, row in ROWS.items()}
"""Command -> its module and what it does, in the form of `cli.program`."""

HEADINGS: dict[str, str] = {
    "first-class": "HELIX commands, first-class",
    "compatibility": "HELIX commands, compatibility (thin wrappers over ddx)",
    "deprecation": "HELIX commands, deprecation candidates (prefer `input` and ddx's own loop)",
}


def grouped() -> dict[str, list[str]]:
    """Heading -> commands, in the order of the table; each command under one heading."""
    found: dict[str, list[str]] = {key: [] for key in HEADINGS}
    for name, row in ROWS.items():
        found["deprecation" if row.leaving else row.group].append(name)
    return found
