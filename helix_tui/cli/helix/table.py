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
    "input": Row("input", "turn a request into governed work; answer what HELIX asks"),
    "check": Row("check", "what should happen next, who decided it, and what would change it"),
    "status": Row("status", "what the run does, or why it stopped"),
    "stuck": Row("status", "what does not move, why, and what one could do"),
    "next": Row("status", "the bead that ddx would pick next"),
    "frame": Row("stage", "say what is to be built and why"),
    "evolve": Row("stage", "carry a new requirement through the documents"),
    "design": Row("stage", "decide how, before anybody builds"),
    "plan": Row("stage", "the old name of design", "compatibility", alias_of="design"),
    "polish": Row("stage", "make beads ready to be executed"),
    "triage": Row("triage", "make a bead that keeps the authoring rules"),
    "align": Row("stage", "compare what is with what was decided, governed by a bead"),
    "backfill": Row("stage", "write down what the code already decides"),
    "review": Row("stage", "look at a change with fresh eyes; exits 10 on findings"),
    "experiment": Row("experiment", "change, measure, keep or revert; or run and compare a batch of beads"),
    "commit": Row("commit", "gate, commit, push, and close the bead"),
    "run": Row("run", "supervise ddx's loop until something says to stop", "compatibility", leaving=True),
    "start": Row("run", "run in the background", "compatibility"),
    "stop": Row("run", "end the run that is active", "compatibility"),
    "build": Row("build", "one bounded execution of one bead", "compatibility", leaving=True),
    "implement": Row("build", "the old name of build", "compatibility", leaving=True, alias_of="build"),
    "tracker": Row("tracker", "ddx's own bead commands, as they are", "compatibility"),
    "help": Row("help", "every command, grouped, and the options all of them take"),
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
