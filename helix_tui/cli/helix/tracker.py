"""``helix-tui tracker``: ddx's own bead commands, unchanged; a thin wrapper for people who are used to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import curator_of, explained, show_dry_run
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.kinds.eligibility_hold import release_refused
from helix_tui.core.ground.text import clean_output

TIMEOUT_S = 600.0
"""How long one command may take; a migration rewrites the whole tracker."""

MAX_OUTPUT = 1 << 30
"""Bytes of output that are passed on; an export of a large tracker has tens of millions."""

_READS = frozenset(
    {"show", "list", "ready", "blocked", "status", "export", "lint", "metrics"}
    | {"operator-attention", "needs-human", "routing", "validate-ready"}
)
"""Verbs after ``ddx bead`` that change nothing, whatever flags they have."""

_READS_BELOW = frozenset({("dep", "tree"), ("cooldown", "show"), ("evidence", "list")})

_WRITES_WITH = {
    "doctor": "--fix",
    "reap": "--apply",
    "reconcile": "--apply",
    "review": "--output",
    "ac-check": "--attempt-id",
}
"""Verbs that change something only with this flag."""

_OWN_DRY_RUN = frozenset({"migrate", "reconcile"})
"""Verbs whose ``--dry-run`` is ddx's own."""

_OURS = frozenset({"-C", "--ddx", "--now"})
_OURS_ALONE = frozenset({"--read-only", "--no-color", "--dry-run", "--json"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--dry-run", action="store_true", help="print the exact command; do nothing")
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        help="a command of `ddx bead` and its own options; `tracker help` lists those that this ddx has",
    )


def arrange(words: list[str]) -> list[str]:
    """Move helix-tui's own options before ddx's words, except those that the verb itself takes."""
    ours: list[str] = []
    theirs: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _OURS:
            ours += [word, next(rest, "")]
        elif word in ("-h", "--help") and not theirs:
            ours.append(word)
        elif word == "--dry-run" and theirs and theirs[0] in _OWN_DRY_RUN:
            theirs.append(word)
        elif word in _OURS_ALONE:
            ours.append(word)
        else:
            theirs.append(word)
    return ours + theirs


def run(call: Call) -> int:
    """Pass the words on to ddx, and its output and exit code back."""
    words = list(call.options.words)
    if not words:
        raise CliError("tracker needs a command", "`helix-tui tracker help` lists what ddx has.", exit_code=2)
    words = ["--help"] if words == ["help"] else words
    if call.json and "--json" not in words:
        words.append("--json")
    args = ("bead", *words)
    if call.options.dry_run:
        return show_dry_run(call, [("ddx", *args)])
    with explained():
        curator = curator_of(call)
        words = _with_old_name(curator, words)
        args = ("bead", *words)
        # without a tracker, as before `tracker init`, there is nothing to lock
        if reads(words) or not curator.project.ddx_dir.is_dir():
            if not reads(words):
                curator.gate.check()
            executable = curator.executable()
            finished = executable.attempt(args, timeout=TIMEOUT_S, cap=MAX_OUTPUT)
        else:
            finished = curator.run_as_written(args, timeout=TIMEOUT_S, cap=MAX_OUTPUT)
            if not finished.rc and any(word.startswith("--reject-preserved") for word in words):
                curator.run_steps(
                    "hold",
                    "release what was refused and is rejected now",
                    lambda writing, _: release_refused(writing, words[1]),
                )
    # what ddx prints quotes the repository: it reaches a terminal cleaned, a program as it is
    if sys.stdout.isatty():
        sys.stdout.write(clean_output(finished.out))
    else:
        sys.stdout.buffer.write(finished.stdout)
    sys.stdout.flush()
    sys.stderr.write(clean_output(finished.err))
    sys.stderr.flush()
    if finished.truncated:
        call.note(f"helix-tui: ddx printed more than {MAX_OUTPUT:,} bytes; the rest is left out")
    return finished.rc


def reads(words: Sequence[str]) -> bool:
    """Whether a command of ``ddx bead`` is known to change nothing."""
    if "-h" in words or "--help" in words or words[0] in _READS or tuple(words[:2]) in _READS_BELOW:
        return True
    flag = _WRITES_WITH.get(words[0])
    if flag is not None:
        return not any(word == flag or word.startswith(f"{flag}=") for word in words)
    if words[0] != "migrate":
        return False
    return "--dry-run" in words or ("--lifecycle" in words and "--apply" not in words)


def _with_old_name(curator: Curator, words: list[str]) -> list[str]:
    """The words with FEAT-002's ``migrate SOURCE`` as ``import``, unless this ddx has a ``migrate`` of its own.

    Without a source no import was asked for: ddx itself says that it has no such verb.
    """
    names_source = any(word.startswith("--from") or not word.startswith("-") for word in words[1:])
    if words[0] != "migrate" or not names_source:
        return words
    told = curator.executable().attempt(("bead", "migrate", "--help"), timeout=TIMEOUT_S)
    # for a verb that it does not know, ddx prints the help of `ddx bead`
    own = b"bead migrate [flags]" in told.stdout + told.stderr
    return words if own else ["import", *words[1:]]
