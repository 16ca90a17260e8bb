"""A skill of Claude Code for each HELIX command, made from the command's record, its options and its stage.

The plugin carries what this writes; `helix-tui help --skills FOLDER` writes it anew, and a test compares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from helix_tui.cli.commands import ROWS
from helix_tui.cli.program import load
from helix_tui.core.supervision.stages.commands import CommandRow
from helix_tui.core.supervision.stages.table import STAGES, Stage

_NOT_BY_ITSELF = frozenset(("run", "start", "stop", "build", "implement", "commit", "plan", "tracker"))
"""Commands that a person asks for: agents do not begin them by themselves, and no session pays for them."""

_HOW = {
    "run": "For draining a queue prefer ddx's own loop: `ddx work`, or `ddx agent execute-loop` of April.",
    "start": "For draining a queue prefer ddx's own loop: `ddx work`, or `ddx agent execute-loop` of April.",
    "build": "For one bead prefer ddx itself: `ddx try ID`, or `ddx agent execute-bead ID` of April.",
    "tracker": "It passes its arguments on to `ddx bead`; use that where ddx is installed.",
}

_ARGUMENTS = {
    "request": "REQUEST",
    "requirement": "REQUIREMENT",
    "scope": "[SCOPE]",
    "goal": "GOAL",
    "selector": "[SELECTOR]",
    "id": "[ID]",
    "title and options": "TITLE [options]",
    "command": "COMMAND …",
}


def skill_texts() -> dict[str, str]:
    """Name of each skill -> its SKILL.md."""
    return {f"helix-{name}": "\n".join(_skill(name, row)) + "\n" for name, row in ROWS.items()}


def _skill(name: str, row: CommandRow) -> Iterator[str]:
    real = row.alias_of or name
    stage = STAGES.get(real)
    summary = f"{row.summary[0].upper()}{row.summary[1:]}"
    yield "---"
    yield f"name: helix-{name}"
    yield f"description: {_quoted(f'{summary}.' + _when(row))}"
    hint = _ARGUMENTS.get(row.asks or "", "")
    if hint:
        yield f"argument-hint: {_quoted(hint)}"
    if name in _NOT_BY_ITSELF:
        yield "disable-model-invocation: true"
    yield "---"
    yield ""
    if row.alias_of:
        yield f"The old name of `helix-{real}`; that skill says more."
        yield ""
    text = ' "$ARGUMENTS"' if row.asks in ("request", "requirement", "goal") else " $ARGUMENTS"
    yield f"Run `helix-tui {real}{text}` in the project (`helix {real}` is the same) and report what it says."
    yield ""
    yield f"- Writes: {row.writes or 'nothing'}." + (f" Uses: {', '.join(row.uses)}." if row.uses else "")
    yield f"- Class: {'deprecation candidate' if row.leaving else row.group}." + _prefer(real)
    if stage is not None:
        yield from _stage_lines(stage)
    options = list(_own_options(name))
    if options:
        yield ""
        yield "Options:"
        yield from options
    yield ""
    yield "With `--json` it prints one document and nothing else. Exit code 0: done; 1: it failed, and says why and"
    yield "what to do; 2: usage, or another run is active; 10: a review found something. Report a refusal; do not work"
    yield "around it."


def _when(row: CommandRow) -> str:
    if row.alias_of:
        return " Use it only where somebody asks for that name."
    if row.group == "compatibility":
        return " A wrapper over ddx for people who are used to it."
    return ""


def _prefer(name: str) -> str:
    return f" {_HOW[name]}" if name in _HOW else ""


def _stage_lines(stage: Stage) -> Iterator[str]:
    yield f"- Stance of its prompt: {stage.stance}."
    trailers = ", ".join(f"**{each.name}**" if each.required else each.name for each in stage.trailers)
    yield f"- An agent does it and ends with {trailers}; required ones in bold."


def _own_options(name: str) -> Iterator[str]:
    shared = {action.dest for action in load("next")[1]._actions}
    for action in load(name)[1]._actions:
        if action.dest in shared or action.help in (None, argparse.SUPPRESS) or not action.option_strings:
            continue
        value = "" if action.nargs == 0 else f" {action.metavar or '|'.join(map(str, action.choices or ())) or 'X'}"
        yield f"- `{', '.join(action.option_strings)}{value}`: {(action.help or '').replace('%%', '%')}"


def _quoted(text: str) -> str:
    """A text as a YAML scalar."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
