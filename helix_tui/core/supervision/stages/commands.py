"""HELIX's commands and how FEAT-002 classifies each: the one place that lists them.

FEAT-002 (docs/formats/helix.md §1): planning, review and steering are HELIX's own and stay; wrappers over ddx are kept
for people who are used to them; run and build will be removed once ddx shows the same.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Group = Literal["first-class", "compatibility", "console"]

Means = Literal["ddx", "git", "agent", "memory", "search by meaning", "tmux"]
"""What a command needs; search by meaning needs the encoder's weights."""

ONE_TEXT = frozenset({"request", "requirement", "scope", "goal", "selector", "id"})
"""Arguments that are one text with spaces; others are split into words."""


class CommandRow(Struct, frozen=True):
    """One command, as listed in ``--help``, the palette, the plugin's skills and docs/commands.md."""

    summary: str
    writes: str = ""
    """What it may change, as a noun; empty if nothing."""
    uses: tuple[Means, ...] = ()
    group: Group = "first-class"
    leaving: bool = False
    """Whether it is a deprecation candidate."""
    alias_of: str = ""
    asks: str | None = ""
    """The arguments that the console asks for; empty if none; None if the console has its own screen for the command.
    """


ROWS: dict[str, CommandRow] = {
    "input": CommandRow(
        "turn a request into governed work; answer what HELIX asks",
        "the tracker, HELIX's questions",
        ("ddx", "agent"),
        asks="request",
    ),
    "check": CommandRow(
        "what should happen next, who decided it, and what would change it", "with --apply: the tracker"
    ),
    "status": CommandRow("what the run does, or why it stopped"),
    "stuck": CommandRow("what is stuck, why, and what to do about it"),
    "next": CommandRow("the bead that ddx would pick next"),
    "frame": CommandRow(
        "write down what to build and why", "documents, the tracker", ("ddx", "git", "agent"), asks="scope"
    ),
    "evolve": CommandRow(
        "carry a new requirement through the documents",
        "documents, the tracker",
        ("ddx", "git", "agent"),
        asks="requirement",
    ),
    "design": CommandRow(
        "decide how, before building", "documents, the tracker", ("ddx", "git", "agent"), asks="scope"
    ),
    "plan": CommandRow(
        "the old name of design",
        "documents, the tracker",
        ("ddx", "git", "agent"),
        group="compatibility",
        alias_of="design",
        asks="scope",
    ),
    "polish": CommandRow("make beads ready to be executed", "the tracker", ("ddx", "git", "agent"), asks="scope"),
    "triage": CommandRow(
        "create a bead that follows the authoring rules", "the tracker", ("ddx",), asks="title and options"
    ),
    "align": CommandRow(
        "compare what exists with what was decided, governed by a bead",
        "the tracker",
        ("ddx", "git", "agent"),
        asks="scope",
    ),
    "backfill": CommandRow(
        "write down what the code already decides", "documents, the tracker", ("ddx", "git", "agent"), asks="scope"
    ),
    "review": CommandRow(
        "review a change with fresh eyes; exits with 10 when it finds something",
        "the tracker",
        ("ddx", "git", "agent"),
        asks="scope",
    ),
    "experiment": CommandRow(
        "change, measure, keep or revert; or run and compare a batch of beads",
        "code, the tracker",
        ("ddx", "git", "agent"),
        asks="goal",
    ),
    "commit": CommandRow("gate, commit, push, and close the bead", "git, the tracker", ("ddx", "git"), asks="id"),
    "run": CommandRow(
        "supervise ddx's loop until something says to stop",
        "anything ddx and its agents write",
        ("ddx", "git", "agent"),
        group="compatibility",
        leaving=True,
        asks=None,
    ),
    "start": CommandRow(
        "run in the background",
        "anything ddx and its agents write",
        ("ddx", "git", "agent"),
        group="compatibility",
        asks=None,
    ),
    "stop": CommandRow("end the run that is active", "the run's control file", group="compatibility", asks=None),
    "build": CommandRow(
        "one bounded execution of one bead",
        "anything ddx and its agent write",
        ("ddx", "git", "agent"),
        group="compatibility",
        leaving=True,
        asks="selector",
    ),
    "implement": CommandRow(
        "the old name of build",
        "anything ddx and its agent write",
        ("ddx", "git", "agent"),
        group="compatibility",
        leaving=True,
        alias_of="build",
        asks="selector",
    ),
    "tracker": CommandRow(
        "ddx's own bead commands, as they are",
        "what ddx's command writes",
        ("ddx",),
        group="compatibility",
        asks="command",
    ),
    "help": CommandRow("every command, grouped, and the options all of them take"),
}
"""Command -> its row."""
