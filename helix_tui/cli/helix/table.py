"""The HELIX commands: module, summary and how seed 001 classifies each. The one place that lists them.

Seed 001 (execution model): planning, review and steering are HELIX's own and stay; wrappers over ddx are
kept for people who are used to them; of these, run and build go once ddx shows all that they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["first-class", "compatibility"]

_HERE = "helix_tui.cli.helix."


@dataclass(frozen=True, slots=True)
class Row:
    """One command."""

    module: str
    summary: str
    group: Group = "first-class"
    leaving: bool = False
    """A deprecation candidate."""
    alias_of: str = ""


ROWS: dict[str, Row] = {
    "check": Row("check", "what should happen next, who decided it, and what would change it"),
    "run": Row("run", "supervise ddx's loop until something says to stop", "compatibility", leaving=True),
    "start": Row("run", "run in the background", "compatibility", leaving=True),
    "stop": Row("run", "end the run that is active", "compatibility", leaving=True),
}
"""Command -> its row."""

TABLE = {name: (_HERE + row.module, row.summary) for name, row in ROWS.items()}
"""The same in the form of `cli.program`."""

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
