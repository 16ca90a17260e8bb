"""``helix-tui help``: the command surface, grouped as FEAT-002 classifies it.

Also what HELIX does with each result and at each level of autonomy, the text of docs/commands.md and docs/outcomes.md,
and a skill of Claude Code for each command, made from its record, its options and its stage.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.commands import COMMANDS, HEADINGS, ROWS, grouped
from helix_tui.cli.program import load, sentences
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.supervision.signals.responses import DEFAULT, LEVELS, RESPONSES, RULES, SHORT, table
from helix_tui.core.supervision.stages.commands import CommandRow
from helix_tui.core.supervision.stages.table import STAGES, Stage

TOPICS = {
    "outcomes": "what HELIX does with each result of ddx",
    "autonomy": "what low, medium and high do on their own",
}

_NOT_BY_ITSELF = frozenset(("run", "start", "stop", "build", "implement", "commit", "plan", "tracker"))
"""Commands for people only: agents do not start them on their own, and their skills cost a session no context."""

_HOW = {
    "run": "To drain a queue, prefer ddx's own loop: `ddx work`, or in April's ddx `ddx agent execute-loop`.",
    "start": "To drain a queue, prefer ddx's own loop: `ddx work`, or in April's ddx `ddx agent execute-loop`.",
    "build": "For one bead, prefer ddx itself: `ddx try ID`, or in April's ddx `ddx agent execute-bead ID`.",
    "tracker": "It passes its arguments on to `ddx bead`; use that directly where ddx is installed.",
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

_KEY_OPTIONS = (
    ("-C DIR", "the project"),
    ("--ddx PATH", "the ddx to use (DDX_BIN)"),
    ("--json", "one JSON document on stdout"),
    ("--dry-run", "print the exact command; do nothing"),
    ("--agent NAME, --model NAME, --effort LEVEL", "who does the work (HELIX_AGENT, HELIX_MODEL, HELIX_EFFORT)"),
    ("--review-agent NAME[/MODEL]", "who checks and reviews it (HELIX_REVIEW_AGENT)"),
    ("--autonomy low|medium|high", "how much run and input decide on their own (HELIX_AUTONOMY)"),
    ("-s, --summary", "run: one line per event, with the lines of the log"),
    ("--max-cycles N, --review-every N, --review-threshold N", "run: when to stop, align, review"),
    ("--no-auto-align, --no-auto-review, --no-focus", "run: leave out alignment, reviews, or the focus on one epic"),
)


def emit(call: Call, topic: str) -> None:
    """Print a topic, for people, as Markdown or as JSON."""
    if call.json:
        call.emit(document(topic))
    elif call.options.markdown:
        for line in markdown():
            call.print(line)
    else:
        for line in _lines(call, topic):
            call.print(line)


def document(topic: str) -> dict[str, Any]:
    """A topic as JSON."""
    if topic == "autonomy":
        rules = [{"when": when, "low": low, "medium": medium, "high": high} for when, low, medium, high in RULES]
        return {"levels": dict(SHORT), "default": DEFAULT, "rules": rules}
    rows = [
        {"status": word, "meaning": meaning, "response": response, "next": step}
        for word, meaning, response, step in table()
    ]
    return {"outcomes": rows, "responses": dict(RESPONSES)}


def markdown() -> Iterator[str]:
    """The lines of docs/outcomes.md."""
    yield "# What HELIX does with each result, and at each level"
    yield ""
    yield "`helix-tui help outcomes --markdown` prints this page. DDx decides how an attempt ended; HELIX decides what"
    yield "follows. Statuses are an open set: a word that is not in the table is shown as it is and never counts as"
    yield "success. The word alone does not decide: what git does not find on the branch has not landed."
    yield ""
    yield "| status | means | HELIX | what a person could do |"
    yield "|---|---|---|---|"
    for word, meaning, response, step in table():
        name = f"`{word}`" if " " not in word else word
        yield f"| {name} | {meaning} | {response} | {step} |"
    yield ""
    for response, said in RESPONSES.items():
        yield f"- **{response}**: {said}"
    yield ""
    yield "A ratchet that got worse keeps the work aside, whatever the status is called; its value, threshold and"
    yield "direction are shown with the attempt."
    yield ""
    yield "## Autonomy"
    yield ""
    for level in LEVELS:
        yield f"- **{level}** {SHORT[level]}."
    yield ""
    yield "`run --autonomy`, then `HELIX_AUTONOMY`, then `autonomy` in the settings, then medium. `L` shows the level"
    yield "and `a` changes it for the next start; while a loop runs, the status bar names it."
    yield ""
    yield "| when | low | medium | high |"
    yield "|---|---|---|---|"
    for row in RULES:
        yield f"| {' | '.join(row)} |"


def _lines(call: Call, topic: str) -> Iterator[str]:
    if topic == "autonomy":
        for level in LEVELS:
            shown = f"{level}{' (default)' if level == DEFAULT else ''}"
            yield f"{call.paint(f'{shown:<17}', 'bold')} {SHORT[level]}"
        for when, *said in RULES:
            yield ""
            yield call.paint(when, "bold")
            yield from (f"  {level:<8} {what}" for level, what in zip(LEVELS, said, strict=True))
        return
    rows = table()
    wide = max(len(row[0]) for row in rows)
    for word, meaning, response, step in rows:
        yield f"{call.paint(f'{word:<{wide}}', 'bold')}  {response:<8} {meaning}"
        if step:
            yield call.paint(f"{'':<{wide}}  {'':<8} {step}", "muted")
    yield ""
    for name, does in RESPONSES.items():
        yield f"{call.paint(f'{name:<8}', 'bold')} {does}"


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
        yield f"The old name of `helix-{real}`; see that skill."
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
        return " Use it only when asked for by this name."
    if row.group == "compatibility":
        return " A wrapper over ddx for people who are used to it."
    return ""


def _prefer(name: str) -> str:
    return f" {_HOW[name]}" if name in _HOW else ""


def _stage_lines(stage: Stage) -> Iterator[str]:
    yield f"- Stance of its prompt: {stage.stance}."
    trailers = ", ".join(f"**{trailer.name}**" if trailer.required else trailer.name for trailer in stage.trailers)
    yield f"- An agent does it and ends with {trailers}; required ones in bold."


def _own_options(name: str) -> Iterator[str]:
    # `next` has no options of its own, only the global ones
    shared = {action.dest for action in load("next")[1]._actions}
    for action in load(name)[1]._actions:
        if action.dest in shared or action.help in (None, argparse.SUPPRESS) or not action.option_strings:
            continue
        value = "" if action.nargs == 0 else f" {_metavar(action) or '|'.join(map(str, action.choices or ())) or 'X'}"
        yield f"- `{', '.join(action.option_strings)}{value}`: {(action.help or '').replace('%%', '%')}"


def _metavar(action: argparse.Action) -> str:
    """The names of an option's values, as they are typed; an option of several values has one name each."""
    return " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar or ""


def _quoted(text: str) -> str:
    """A text as a YAML scalar."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "about",
        nargs="?",
        default="",
        metavar="COMMAND",
        help="the command to describe; outcomes, autonomy: their rules",
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print docs/commands.md, all commands with their options; for outcomes or autonomy, docs/outcomes.md",
    )
    parser.add_argument(
        "--skills", type=Path, metavar="FOLDER", help="write the skill of each HELIX command into this folder"
    )


def run(call: Call) -> int:
    """Print the list of commands, or the help of one."""
    about = call.options.about
    if about in TOPICS:
        emit(call, about)
        return 0
    if call.options.skills is not None:
        return _write_skills(call, call.options.skills)
    if call.options.markdown:
        call.print("\n".join(_reference()).rstrip("\n"))
        return 0
    if about:
        if about not in COMMANDS:
            raise CliError(f"no command “{clean_line(about, 60)}”", "`helix-tui help` lists them.", exit_code=2)
        load(about)[1].print_help()
        return 0
    if call.json:
        groups = {
            group: [{"name": name, "summary": ROWS[name].summary} for name in names]
            for group, names in grouped().items()
        }
        call.emit({"groups": groups, "aliases": {name: row.alias_of for name, row in ROWS.items() if row.alias_of}})
        return 0
    width = max(map(len, ROWS))
    call.print("usage: helix-tui COMMAND [options]    (helix-tui --help also lists editing and console commands)")
    for group, names in grouped().items():
        call.print()
        call.print(call.paint(f"{HEADINGS[group]}:", "bold"))
        for name in names:
            call.print(f"  {name:<{width}}  {ROWS[name].summary}")
    call.print()
    call.print("Prefer `input` and ddx's own loop (`ddx work`, `ddx agent execute-loop`) for execution; run and build")
    call.print("delegate every bead to it and own neither claims nor landing, closing or retries.")
    call.print()
    call.print(call.paint("Options that matter:", "bold"))
    for option, meaning in _KEY_OPTIONS:
        call.print(f"  {option}\n      {meaning}")
    call.print()
    call.print(call.paint("Rules:", "bold"))
    for topic, meaning in TOPICS.items():
        call.print(f"  helix-tui help {topic:<9} {meaning}")
    return 0


def _write_skills(call: Call, folder: Path) -> int:
    """The plugin's skills, one a command."""

    texts = skill_texts()
    for name, text in texts.items():
        path = folder / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    call.note(f"{counted(len(texts), 'skill')} written to {clean_line(str(folder))}")
    return 0


def _reference() -> Iterator[str]:
    """The lines of docs/commands.md: every command with its own options."""
    yield "# Commands"
    yield ""
    yield "`helix-tui help --markdown` prints this page. Options that every command takes:"
    yield ""
    shared = load("help")[1]
    # `help` has three options of its own
    common = {action.dest for action in shared._actions} - {"about", "markdown", "skills"}
    yield from _options(action for action in shared._actions if action.dest in common)
    for name, row in COMMANDS.items():
        yield f"## {name}"
        yield ""
        yield sentences(row)
        yield ""
        yield from _options(action for action in load(name)[1]._actions if action.dest not in common)


def _options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    visible = [action for action in actions if action.help != argparse.SUPPRESS]
    for action in visible:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action._choices_actions:
                yield f"- `{verb.dest}`: {verb.help}"
            continue
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
        value = _metavar(action) or choices or action.dest.upper()
        name = ", ".join(action.option_strings)
        shown = name if action.nargs == 0 else f"{name} {value}".strip()
        yield f"- `{shown}`: {(action.help or '').replace('%%', '%')}"
    if visible:
        yield ""
