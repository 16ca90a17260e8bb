"""Find the subcommand, read its options, run it, turn what goes wrong into a message and an exit code.

Contract: design/cli.md. A process that prints a queue must not pay for the screen, so a command's module is
imported when it is called, and none of the shared modules here imports Textual, Rich or asyncio.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from helix_tui import __version__
from helix_tui.cli.call import Call
from helix_tui.cli.helix.table import HEADINGS, grouped
from helix_tui.cli.helix.table import TABLE as HELIX
from helix_tui.cli.options import add_shared
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import DEFECT, HelixError
from helix_tui.core.ground.text import clean_block, clean_line

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
    "demo": ("helix_tui.cli.setup.demo", "the console on a throw-away queue that a rehearsal drains"),
    "tmux": ("helix_tui.cli.setup.tmux", "the side pane beside the current tmux pane"),
    **HELIX,
}
"""Subcommand -> its module, and what it does in a few words."""

_SEARCH_BY_MEANING = {None, "ask", "demo", "doctor", "hook", "memory", "snapshot"}
"""Commands that may load the weights of the encoder."""

_TAKE_A_VALUE = {"-C", "--now", "--ddx", "--screen", "--theme"}
"""Options that may stand before the subcommand and are followed by a value."""


class Parser(argparse.ArgumentParser):
    """A parser that says which option an unknown one may have meant."""

    def error(self, message: str) -> NoReturn:
        """End with 2, and say where help is."""
        from difflib import get_close_matches

        words = message.partition("unrecognized arguments: ")[2].split()
        shown = [
            option
            for option, action in self._option_string_actions.items()
            if action.help != argparse.SUPPRESS
        ]
        near = [
            close
            for word in words
            if word.startswith("--")
            for close in get_close_matches(word.partition("=")[0], shown, n=1)
        ]
        hint = f"did you mean {', '.join(near)}? " if near else ""
        super().error(f"{clean_line(message, 400)} ({hint}`{self.prog} --help` tells what there is)")


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a C locale must not break the output
    # Looking for garbage costs a start 40 ms and finds none. The console turns it on again once it stands.
    gc.disable()
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("helix-tui: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has had enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = (
            f"{clean_line(os.fspath(error.filename), 200)}: "
            if isinstance(error.filename, str | Path)
            else ""
        )
        print(f"helix-tui: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except SystemExit as exit_:  # argparse: 0 after --help, 2 after a usage error
        return exit_.code if isinstance(exit_.code, int) else 2
    except Exception as error:  # noqa: BLE001 - the one place where a defect of ours ends a command
        return _defect(error, debug="--debug" in words)
    finally:
        gc.enable()


def _defect(error: Exception, *, debug: bool) -> int:
    """An exception that nobody expected: the trace to the log, one line to whoever called, exit code 70."""
    from helix_tui.core.ground.log_file import scrubbed

    logs.logger("program").critical("the command ended by an unexpected exception", exc_info=error)
    if debug:
        import traceback

        print(clean_block("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    what = clean_line(scrubbed(f"{type(error).__name__}: {error}"), 300)
    where = "" if debug else f"; --debug shows the trace, and so does {logs.shown_file()}"
    print(f"helix-tui: a defect of helix-tui ended this command: {what}{where}", file=sys.stderr)
    return DEFECT


def _open_streams() -> None:
    """Put something where the caller has closed a stream: None breaks whoever writes to it, and a file that
    is opened later would get its number."""
    for name, way in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, way, encoding="utf-8"))  # noqa: SIM115 - for as long as we run


def _run(words: list[str]) -> int:
    name, rest = split_command(words)
    if name is not None and name not in COMMANDS:
        _refuse(name)
    if name in _SEARCH_BY_MEANING:
        _pass_settings_on()
    module = import_module(CONSOLE if name is None else COMMANDS[name][0])
    parser = _parser(name)
    module.add_arguments(parser)
    arrange = getattr(module, "arrange", None)  # a command that hands words on to another program
    options = parser.parse_args(arrange(rest) if arrange else rest)
    call = Call.of(name or "console", options)
    logs.begin(call.directory, process=name or "console", read_only=call.read_only, debug=options.debug)
    adjust = getattr(module, "adjust", None)  # a command with other defaults for the global options
    call = adjust(call) if adjust else call
    try:
        code: int = module.run(call)
    except HelixError as error:
        call.fail(error)
        code = error.exit_code
    return code


def _pass_settings_on() -> None:
    """Let the settings name the weights and the memory's window, for this process and those it starts."""
    from helix_tui.settings import load_settings

    settings = load_settings()
    if settings.model_dir:
        os.environ.setdefault("HELIX_MODEL_DIR", settings.model_dir)
    if settings.systemic_days is not None:
        os.environ.setdefault("HELIX_SYSTEMIC_DAYS", f"{settings.systemic_days:g}")


def split_command(words: list[str]) -> tuple[str | None, list[str]]:
    """The subcommand and all other words; global options may stand on both sides of it."""
    skip = False
    for place, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            break
        elif word in _TAKE_A_VALUE:
            skip = True
        elif not word.startswith("-"):
            return word, words[:place] + words[place + 1 :]
    return None, words


def _parser(name: str | None) -> argparse.ArgumentParser:
    if name is None:
        parser = Parser(
            "helix-tui",
            usage="helix-tui [COMMAND] [options]",
            description="Without a command: the console on this project's queue.",
            epilog=_command_list(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    else:
        parser = Parser(f"helix-tui {name}", description=COMMANDS[name][1], allow_abbrev=False)
    add_shared(parser)
    parser.add_argument("--version", "-V", action="version", version=f"helix-tui {__version__}")
    return parser


def _command_list() -> str:
    width = max(map(len, COMMANDS))

    def listed(names: Iterable[str]) -> list[str]:
        return [f"  {name:<{width}}  {COMMANDS[name][1]}" for name in names]

    lines = [
        "commands (helix-tui COMMAND --help tells more):",
        *listed(name for name in COMMANDS if name not in HELIX),
    ]
    for group, names in grouped().items():
        lines += ["", f"{HEADINGS[group]}:", *listed(names)]
    return "\n".join(lines)


def _refuse(name: str) -> NoReturn:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean “{close[0]}”?" if close else f"There are: {', '.join(COMMANDS)}."
    print(f"helix-tui: unknown command: {clean_line(name, 60)}. {hint}", file=sys.stderr)
    raise SystemExit(2)
