"""``helix-tui help``: the command surface, grouped as FEAT-002 classifies it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.commands import COMMANDS, HEADINGS, ROWS, grouped
from helix_tui.cli.helix import help_topics
from helix_tui.cli.program import load, sentences
from helix_tui.core.ground.text import clean_line

_KEY_OPTIONS = (
    ("-C DIR", "the project"),
    ("--ddx PATH", "the ddx to use (DDX_BIN)"),
    ("--json", "one JSON document on stdout"),
    ("--dry-run", "print the exact command; do nothing"),
    (
        "--agent NAME, --model NAME, --effort LEVEL",
        "who does the work (HELIX_AGENT, HELIX_MODEL, HELIX_EFFORT)",
    ),
    ("--review-agent NAME", "who checks and reviews it (HELIX_REVIEW_AGENT)"),
    ("--autonomy low|medium|high", "how much run and input decide on their own (HELIX_AUTONOMY)"),
    ("-s, --summary", "run: one line per event, with the lines of the log"),
    ("--max-cycles N, --review-every N, --review-threshold N", "run: when to stop, align, review"),
    ("--no-auto-align, --no-auto-review, --no-focus", "run: what not to do on its own"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
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
        help="every command with its options, as docs/commands.md; of outcomes, autonomy docs/outcomes.md",
    )
    parser.add_argument(
        "--skills", type=Path, metavar="FOLDER", help="write the skill of each HELIX command into this folder"
    )


def run(call: Call) -> int:
    """Print the surface, or one command's own help."""
    about = call.options.about
    if about in help_topics.TOPICS:
        help_topics.emit(call, about)
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
    call.print("usage: helix-tui COMMAND [options]    (helix-tui --help lists curation and the console's own too)")
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
    for topic, meaning in help_topics.TOPICS.items():
        call.print(f"  helix-tui help {topic:<9} {meaning}")
    return 0


def _write_skills(call: Call, folder: Path) -> int:
    """The plugin's skills, one a command."""
    from helix_tui.cli.report.skills import skill_texts

    texts = skill_texts()
    for name, text in texts.items():
        path = folder / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    call.note(f"{len(texts)} skills written to {clean_line(str(folder))}")
    return 0


def _reference() -> Iterator[str]:
    """The lines of docs/commands.md: every command, and the options that are its own."""
    yield "# Commands"
    yield ""
    yield "What `helix-tui help --markdown` prints. Options that every command takes:"
    yield ""
    shared = load("help")[1]
    common = {action.dest for action in shared._actions} - {"about", "markdown", "skills"}
    yield from _options(action for action in shared._actions if action.dest in common)
    for name, row in COMMANDS.items():
        yield f"## {name}"
        yield ""
        yield sentences(row)
        yield ""
        yield from _options(action for action in load(name)[1]._actions if action.dest not in common)


def _options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    told = [action for action in actions if action.help != argparse.SUPPRESS]
    for action in told:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action._choices_actions:
                yield f"- `{verb.dest}`: {verb.help}"
            continue
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
        value = action.metavar or choices or action.dest.upper()
        name = ", ".join(action.option_strings)
        shown = name if action.nargs == 0 else f"{name} {value}".strip()
        yield f"- `{shown}`: {(action.help or '').replace('%%', '%')}"
    if told:
        yield ""
