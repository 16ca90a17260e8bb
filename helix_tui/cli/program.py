"""The program: from a command line to an exit code.

It finds the subcommand, loads that module alone, reads the options (``--help`` begins with what a command does,
writes and uses), runs it, and turns what goes wrong into a message and an exit code.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from helix_tui import __version__
from helix_tui.cli.call import Call
from helix_tui.cli.commands import COMMANDS, CONSOLE, HEADINGS, MODULES, ROWS, grouped
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import DEFECT, READER_GONE, HelixError, ReaderGone
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.trust import person
from helix_tui.core.supervision.stages.commands import CommandRow

_TAKE_A_VALUE = {"-C", "--now", "--ddx", "--screen", "--theme"}
"""Options that may precede the subcommand and take a value."""

LAST_THREADS_S = 0.2
"""How long threads may take to clean up once a command has its exit code."""


def add_shared(parser: argparse.ArgumentParser, *, below: bool = False) -> None:
    """Add the global options; ``below``: to a verb's parser, where an omitted option must not reset the outer one."""
    group = parser.add_argument_group("for every command, before or after it")
    names = [
        group.add_argument(
            "-C", dest="directory", metavar="DIR", type=Path, help="project (default: the git root above here)"
        ),
        group.add_argument("--now", metavar="TIME", help="judge as of this ISO 8601 time"),
        group.add_argument("--read-only", action="store_true", help="change nothing, in any command"),
        group.add_argument("--ddx", metavar="PATH", help="the ddx to use (default: DDX_BIN, else the one on PATH)"),
        group.add_argument("--no-color", action="store_true", help="plain text"),
        group.add_argument("--json", action="store_true", help="one JSON document on stdout"),
        group.add_argument(
            "--debug", action="store_true", help="log everything; show the trace of an unexpected error"
        ),
    ]
    if below:
        for option in names:
            option.default = argparse.SUPPRESS


class CommandParser(argparse.ArgumentParser):
    """A parser that suggests the option that an unknown one may have meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2, and say where help is."""
        from difflib import get_close_matches

        words = message.partition("unrecognized arguments: ")[2].split()
        shown = [option for option, action in self._option_string_actions.items() if action.help != argparse.SUPPRESS]
        near = [
            close
            for word in words
            if word.startswith("--")
            for close in get_close_matches(word.partition("=")[0], shown, n=1)
        ]
        hint = f"did you mean {', '.join(near)}? " if near else ""
        super().error(f"{clean_line(message, 400)} ({hint}`{self.prog} --help` lists the options)")


def load(name: str | None) -> tuple[Any, argparse.ArgumentParser]:
    """The module of a command, the console's for None, and its parser with all options."""
    module = import_module(CONSOLE if name is None else MODULES[name])
    parser = parser_for(name)
    module.add_arguments(parser)
    if name not in (None, "memory"):
        _take_dry_run(parser)
    return module, parser


def _take_dry_run(parser: argparse.ArgumentParser, *, below: bool = False) -> None:
    """Take --dry-run: a script may put it behind any command and any verb of it."""
    if "--dry-run" not in parser._option_string_actions:
        said = "change nothing; show what would be done, if anything"
        # a verb that was not given it leaves alone what was said before the verb
        parser.add_argument("--dry-run", action="store_true", help=said, default=argparse.SUPPRESS if below else False)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                _take_dry_run(verb, below=True)


def parser_for(name: str | None) -> argparse.ArgumentParser:
    """The parser of a command, the console's for None, with the options that all commands have."""
    if name is None:
        parser = CommandParser(
            "helix-tui",
            usage="helix-tui [COMMAND] [options]",
            description="Without a command: the console on this project's queue.",
            epilog=_command_list(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    else:
        parser = CommandParser(f"helix-tui {name}", description=sentences(COMMANDS[name]), allow_abbrev=False)
    add_shared(parser)
    parser.add_argument("--version", "-V", action="version", version=f"helix-tui {__version__}")
    return parser


def sentences(row: CommandRow) -> str:
    """What a command does, what it may change and what it uses."""
    summary = row.summary[0].upper() + row.summary[1:]
    writes = f"Writes: {row.writes}." if row.writes else "Writes nothing."
    uses = f" Uses: {', '.join(row.uses)}." if row.uses else ""
    return f"{summary}. {writes}{uses}"


def _command_list() -> str:
    width = max(map(len, COMMANDS))

    def listed(names: Iterable[str]) -> list[str]:
        return [f"  {name:<{width}}  {COMMANDS[name].summary}" for name in names]

    lines = ["commands (helix-tui COMMAND --help shows more):", *listed(name for name in COMMANDS if name not in ROWS)]
    for group, names in grouped().items():
        lines += ["", f"{HEADINGS[group]}:", *listed(names)]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    _open_streams()
    try:
        code = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        code = READER_GONE
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # Python would flush once more at exit, complain, and exit with 120 instead of the code
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if argv is None:
        _leave_threads(code)
    return code


def _leave_threads(code: int) -> None:
    """End the process where threads still work for a console that has ended: Python would wait for them."""
    until = time.monotonic() + LAST_THREADS_S
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(max(0.0, until - time.monotonic()))
    if threading.active_count() > 1:
        os._exit(code)


def _main(words: list[str]) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output must work in a C locale
    # Garbage collection costs 40 ms at start and finds nothing. The console turns it on again once it is drawn.
    gc.disable()
    try:
        return _run(words)
    except (BrokenPipeError, ReaderGone):
        raise
    except KeyboardInterrupt:
        print("helix-tui: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{clean_line(os.fspath(error.filename), 200)}: " if isinstance(error.filename, str | Path) else ""
        print(f"helix-tui: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except SystemExit as exit_:  # argparse: 0 after --help, 2 after a usage error
        return exit_.code if isinstance(exit_.code, int) else 2
    except Exception as error:  # noqa: BLE001 - the one place where a defect of ours ends a command
        return _defect(error, debug="--debug" in words)
    finally:
        gc.enable()


def _defect(error: Exception, *, debug: bool) -> int:
    """Handle an unexpected exception: the trace goes to the log, one line to stderr, exit code 70."""
    from helix_tui.core.ground.log import scrubbed

    logs.logger("program").critical("the command failed with an unexpected exception", exc_info=error)
    if debug:
        import traceback

        print(clean_block("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    what = clean_line(scrubbed(f"{type(error).__name__}: {error}"), 300)
    where = "" if debug else f"; --debug shows the trace, and so does {logs.shown_file()}"
    print(f"helix-tui: this command failed because of a bug in helix-tui: {what}{where}", file=sys.stderr)
    return DEFECT


def _open_streams() -> None:
    """Replace a stream that the caller has closed: None breaks code that writes to it, and a file that
    is opened later would get its number."""
    for name, way in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, way, encoding="utf-8"))  # noqa: SIM115 - for as long as we run


def _run(words: list[str]) -> int:
    name, rest = split_command(words)
    if name is not None and name not in COMMANDS:
        _refuse(name)
    if name is None or "search by meaning" in COMMANDS[name].uses:
        _pass_settings_on()
    module, parser = load(name)
    arrange = getattr(module, "arrange", None)  # a command that passes words on to another program
    options = parser.parse_args(arrange(rest) if arrange else rest)
    call = Call.of(name or "console", options)
    on_copy = getattr(options, "on_copy", False)
    logs.begin(call.directory, process=name or "console", read_only=call.read_only or on_copy, debug=options.debug)
    adjust = getattr(module, "adjust", None)  # a command with other defaults for the global options
    call = adjust(call) if adjust else call
    failure = ""
    unattended = name in ("hook", "run") or getattr(options, "serve", False) or call.read_only
    person.attended = not unattended and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        code: int = module.run(call)
    except HelixError as error:
        call.fail(error)
        code, failure = error.exit_code, error.message
    if name not in (None, "hook"):
        for line in person.notes():
            if not failure or failure not in line:
                call.note(f"helix-tui: {line}")
    return code


def _pass_settings_on() -> None:
    """Apply the settings' model folder and memory window to this process and those it starts."""
    from helix_tui.settings.file import load_settings

    settings = load_settings()
    # the environment takes precedence over the settings
    if settings.model_dir:
        os.environ.setdefault("HELIX_MODEL_DIR", settings.model_dir)
    if settings.systemic_days is not None:
        os.environ.setdefault("HELIX_SYSTEMIC_DAYS", f"{settings.systemic_days:g}")


def split_command(words: list[str]) -> tuple[str | None, list[str]]:
    """The subcommand and all other words; global options may come before or after it."""
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


def _refuse(name: str) -> NoReturn:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean “{close[0]}”?" if close else f"Commands: {', '.join(COMMANDS)}."
    print(f"helix-tui: unknown command: {clean_line(name, 60)}. {hint}", file=sys.stderr)
    raise SystemExit(2)
