"""Every subcommand: the module that is loaded for it, and what it does in a few words."""

from __future__ import annotations

from helix_tui.core.supervision.stages.commands import ROWS

__all__ = ["COMMANDS", "CONSOLE", "HEADINGS", "HELIX", "ROWS", "grouped"]

_HERE = "helix_tui.cli.helix."

_SHARED = {
    **dict.fromkeys(("status", "stuck", "next"), "status"),
    **dict.fromkeys(("run", "start", "stop"), "run"),
    **dict.fromkeys(("build", "implement"), "build"),
    **dict.fromkeys(("frame", "evolve", "design", "plan", "polish", "align", "backfill", "review"), "stage"),
}
"""Command -> the module that it shares with others; the rest have one of their own name."""

HELIX = {name: (_HERE + _SHARED.get(name, name), row.summary) for name, row in ROWS.items()}
"""Command -> its module and what it does, in the form of `COMMANDS`."""


CONSOLE = "helix_tui.cli.console"
"""What runs where no subcommand is named."""

COMMANDS = {
    "queue": ("helix_tui.cli.show.queue", "the queue as DDx sees it"),
    "why": ("helix_tui.cli.show.why", "why a bead is or is not next, and what closing it makes ready"),
    "attempts": ("helix_tui.cli.show.attempts", "what was executed, with evidence, cost and outcome"),
    "set": ("helix_tui.cli.editing.fields", "set fields of a bead"),
    "unset": ("helix_tui.cli.editing.fields", "take fields from a bead"),
    "label": ("helix_tui.cli.editing.fields", "add and remove labels; the others stay"),
    "dep": ("helix_tui.cli.editing.fields", "let a bead wait on another one, or no longer"),
    "supersede": ("helix_tui.cli.editing.fields", "say that another bead replaces one"),
    "eligible": ("helix_tui.cli.editing.fields", "allow or forbid workers to pick a bead"),
    "rank": ("helix_tui.cli.editing.fields", "order beads inside one priority"),
    "focus": ("helix_tui.cli.editing.focus", "let workers pick only what one epic needs"),
    "claim": ("helix_tui.cli.editing.status", "take a bead"),
    "unclaim": ("helix_tui.cli.editing.status", "release a bead"),
    "close": ("helix_tui.cli.editing.status", "close a bead by hand"),
    "reopen": ("helix_tui.cli.editing.status", "open a closed bead again"),
    "cancel": ("helix_tui.cli.editing.status", "give a bead up for good"),
    "create": ("helix_tui.cli.editing.create", "make a bead, checked against the authoring rules"),
    "undo": ("helix_tui.cli.editing.journal", "undo what was changed from here"),
    "redo": ("helix_tui.cli.editing.journal", "redo what was undone"),
    "journal": ("helix_tui.cli.editing.journal", "what was changed from here, by whom, and the way back"),
    "install-hooks": (
        "helix_tui.cli.editing.hooks",
        "let ddx ask our authoring rules before it takes a bead, and Claude Code what is remembered",
    ),
    "insights": (
        "helix_tui.cli.show.insights",
        "what attempts cost and what came of them, with n and interval",
    ),
    "memory": ("helix_tui.cli.memory.verbs", "what was learnt: store, recall, inject, feedback and more"),
    "hook": ("helix_tui.cli.setup.hook", "answer a Claude Code hook: JSON on stdin, JSON on stdout"),
    "ask": ("helix_tui.cli.show.ask", "a question to the repository, answered from evidence with citations"),
    "doctor": ("helix_tui.cli.setup.doctor", "what is here, what is not, and whether ddx agrees with us"),
    "snapshot": ("helix_tui.cli.show.snapshot", "one frame of a screen as text, SVG or JSON"),
    "demo": ("helix_tui.cli.setup.demo", "the console on a throw-away queue that a simulation drains"),
    "tmux": ("helix_tui.cli.setup.tmux", "the side pane beside the current tmux pane"),
    **HELIX,
}
"""Subcommand -> its module, and what it does in a few words."""

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
