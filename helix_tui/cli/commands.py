"""Every subcommand: the module that is loaded for it, what it does, what it writes and uses."""

from __future__ import annotations

from helix_tui.core.supervision.stages.commands import ROWS, CommandRow, Means

__all__ = ["COMMANDS", "CONSOLE", "HEADINGS", "MODULES", "ROWS", "grouped"]

_CLI = "helix_tui.cli."

_MODULES = {
    "show.queue": "queue",
    "show.why": "why",
    "show.attempts": "attempts",
    "editing.fields": "set unset label dep supersede eligible rank",
    "editing.focus": "focus",
    "editing.status": "claim unclaim close reopen cancel",
    "editing.create": "create",
    "editing.journal": "undo redo journal",
    "editing.hooks": "install-hooks",
    "setup.plugin": "install-plugin",
    "show.insights": "insights",
    "show.doc": "doc",
    "memory.verbs": "memory",
    "setup.hook": "hook",
    "show.ask": "ask",
    "setup.doctor": "doctor",
    "setup.settings": "settings",
    "setup.weights": "setup",
    "show.snapshot": "snapshot",
    "setup.demo": "demo",
    "setup.tmux": "tmux",
    "setup.trust": "trust",
    "helix.status": "status stuck next",
    "helix.run": "run start stop",
    "helix.build": "build implement",
    "helix.stage": "frame evolve design plan polish align backfill review",
    **{
        f"helix.{name}": name
        for name in ("needs", "input", "check", "triage", "experiment", "commit", "tracker", "help")
    },
}
"""Module -> the commands that it implements."""

MODULES = {name: _CLI + module for module, names in _MODULES.items() for name in names.split()}
"""Subcommand -> the module that is loaded for it."""

CONSOLE = "helix_tui.cli.console"
"""The module that runs when no subcommand is given."""

_QUEUE = "the tracker, the journal"

HEADINGS: dict[str, str] = {
    "first-class": "HELIX commands, first-class",
    "compatibility": "HELIX commands, compatibility (thin wrappers over ddx)",
    "deprecation": "HELIX commands, deprecation candidates (prefer `input` and ddx's own loop)",
}


def _row(summary: str, writes: str = "", *uses: Means) -> CommandRow:
    return CommandRow(summary, writes, uses, group="console", asks=None)


COMMANDS = {
    "queue": _row("the queue as DDx sees it"),
    "why": _row("why a bead is or is not next, and what closing it would make ready"),
    "attempts": _row("all attempts, with evidence, cost and outcome", "", "git"),
    "doc": _row(
        "the document graph: dependencies, stale, invalid and changed documents, and their beads", "", "ddx", "git"
    ),
    "needs": _row(
        "what waits for a person, and what can be done about it", "with --snooze, --wake: .helix/snoozed.json", "git"
    ),
    "set": _row("set fields of a bead", _QUEUE, "ddx"),
    "unset": _row("remove fields from a bead", _QUEUE, "ddx"),
    "label": _row("add and remove labels; the others stay", _QUEUE, "ddx"),
    "dep": _row("add or remove a dependency", _QUEUE, "ddx"),
    "supersede": _row("mark a bead as superseded by another", _QUEUE, "ddx"),
    "eligible": _row("allow or forbid workers to pick a bead", _QUEUE, "ddx"),
    "rank": _row("order beads within one priority", _QUEUE, "ddx"),
    "focus": _row("let workers pick only what one epic needs", _QUEUE, "ddx"),
    "claim": _row("take a bead", _QUEUE, "ddx"),
    "unclaim": _row("release a bead", _QUEUE, "ddx"),
    "close": _row("close a bead by hand", _QUEUE, "ddx"),
    "reopen": _row("reopen a closed bead", _QUEUE, "ddx"),
    "cancel": _row("cancel a bead for good", _QUEUE, "ddx"),
    "create": _row("create a bead, checked against the authoring rules", _QUEUE, "ddx"),
    "undo": _row("undo changes made with helix-tui", _QUEUE, "ddx"),
    "redo": _row("redo changes that were undone", _QUEUE, "ddx"),
    "journal": _row("changes made with helix-tui, by whom, and how to undo them"),
    "install-hooks": _row(
        "install hooks: ddx checks new beads against the authoring rules, Claude Code gets memories",
        ".ddx/hooks, Claude Code's settings of the project",
        "ddx",
    ),
    "install-plugin": _row(
        "install the Claude Code plugin: skills, agents, hooks and `helix`; or the older links",
        "Claude Code's plugins, with --links: ~/.agents, ~/.claude, ~/.local/bin",
    ),
    "insights": _row("what attempts cost and how they ended, with n and interval", "", "git"),
    "memory": _row(
        "what was learned: store, recall, inject, feedback and more", "the memory store", "search by meaning"
    ),
    "hook": _row("answer a Claude Code hook: JSON on stdin, JSON on stdout", "the memory store", "search by meaning"),
    "ask": _row(
        "ask the repository a question; the answer cites its evidence",
        "its index, in .helix",
        "git",
        "search by meaning",
    ),
    "doctor": _row(
        "what is installed, what is missing, and whether ddx and helix-tui agree",
        "with --bundle: one archive",
        "search by meaning",
    ),
    "settings": _row("what can be set, what is, and what is wrong with it; --schema for editors"),
    "setup": _row(
        "download the model weights for search by meaning; asks first",
        "a package beside helix-tui",
        "search by meaning",
    ),
    "snapshot": _row("one frame of a screen as text, SVG or JSON", "", "search by meaning"),
    "demo": _row(
        "the console on a throw-away queue that a simulation drains", "a throw-away folder", "git", "search by meaning"
    ),
    "trust": _row(
        "what this repository brings that would run, and whether you allow it", "your own state folder", "git"
    ),
    "tmux": _row("the side pane beside the current tmux pane", "opens a pane", "tmux"),
    **ROWS,
}
"""Subcommand -> its record."""


def grouped() -> dict[str, list[str]]:
    """Heading -> commands, in the order of the table; each command under one heading."""
    found: dict[str, list[str]] = {key: [] for key in HEADINGS}
    for name, row in ROWS.items():
        found["deprecation" if row.leaving else row.group].append(name)
    return found
