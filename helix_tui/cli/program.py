"""Find the subcommand, read its options, run it, turn what goes wrong into a message and an exit code.

Contract: docs/formats/cli.md. A process that prints a queue must not pay for the screen, so a command's
module is imported when it is called, and none of the shared modules here imports Textual, Rich or asyncio.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

from helix_tui.cli.call import Call
from helix_tui.cli.commands import COMMANDS
from helix_tui.cli.parsers import load
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import DEFECT, HelixError
from helix_tui.core.ground.text import clean_block, clean_line

_TAKE_A_VALUE = {"-C", "--now", "--ddx", "--screen", "--theme"}
"""Options that may stand before the subcommand and are followed by a value."""


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
    """An exception that nobody expected: the trace to the log, one line to whoever called, exit code 70."""
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
    """Put something where the caller has closed a stream: None breaks whoever writes to it, and a file that
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


def _refuse(name: str) -> NoReturn:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean “{close[0]}”?" if close else f"There are: {', '.join(COMMANDS)}."
    print(f"helix-tui: unknown command: {clean_line(name, 60)}. {hint}", file=sys.stderr)
    raise SystemExit(2)
