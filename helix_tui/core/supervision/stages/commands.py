"""HELIX's commands and how FEAT-002 classifies each: the one place that lists them.

FEAT-002 (docs/formats/helix.md §1): planning, review and steering are HELIX's own and stay; wrappers over
ddx are kept for people who are used to them; of these, run and build go once ddx shows all that they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["first-class", "compatibility"]


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command."""

    summary: str
    group: Group = "first-class"
    leaving: bool = False
    """A deprecation candidate."""
    alias_of: str = ""
    asks: str | None = ""
    """What the console asks for before it runs it: nothing, or what its words are; None where the console
    has a place of its own for it."""


ROWS: dict[str, CommandRow] = {
    "input": CommandRow("turn a request into governed work; answer what HELIX asks", asks="request"),
    "check": CommandRow("what should happen next, who decided it, and what would change it"),
    "status": CommandRow("what the run does, or why it stopped"),
    "stuck": CommandRow("what does not move, why, and what one could do"),
    "next": CommandRow("the bead that ddx would pick next"),
    "frame": CommandRow("say what is to be built and why", asks="scope"),
    "evolve": CommandRow("carry a new requirement through the documents", asks="requirement"),
    "design": CommandRow("decide how, before anybody builds", asks="scope"),
    "plan": CommandRow("the old name of design", "compatibility", alias_of="design", asks="scope"),
    "polish": CommandRow("make beads ready to be executed", asks="scope"),
    "triage": CommandRow("make a bead that keeps the authoring rules", asks="title and options"),
    "align": CommandRow("compare what is with what was decided, governed by a bead", asks="scope"),
    "backfill": CommandRow("write down what the code already decides", asks="scope"),
    "review": CommandRow("look at a change with fresh eyes; exits 10 on findings", asks="scope"),
    "experiment": CommandRow("change, measure, keep or revert; or run and compare a batch of beads", asks="goal"),
    "commit": CommandRow("gate, commit, push, and close the bead", asks="id"),
    "run": CommandRow("supervise ddx's loop until something says to stop", "compatibility", leaving=True, asks=None),
    "start": CommandRow("run in the background", "compatibility", asks=None),
    "stop": CommandRow("end the run that is active", "compatibility", asks=None),
    "build": CommandRow("one bounded execution of one bead", "compatibility", leaving=True, asks="selector"),
    "implement": CommandRow("the old name of build", "compatibility", leaving=True, alias_of="build", asks="selector"),
    "tracker": CommandRow("ddx's own bead commands, as they are", "compatibility", asks="command"),
    "help": CommandRow("every command, grouped, and the options all of them take"),
}
"""Command -> its row."""

ONE_TEXT = frozenset({"request", "requirement", "scope", "goal", "selector", "id"})
"""Words that are one text, whatever spaces are in it; of others, each word is one."""
