"""``helix-ddx bead …``: from the words of a command line to an answer and an exit code.

A mistake is told as DDx tells it: the complaint, the usage block, the complaint again, and exit code 1.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from helix_ddx.base.flags import Flag, GivenFlags, UsageError, parse
from helix_ddx.base.refusal import Refused
from helix_ddx.base.verb import REFUSED, Verb
from helix_ddx.cli.usage import check_words, find_verb, help_text, usage
from helix_ddx.cli.verbs import flags_of, global_flags
from helix_ddx.store.call import VerbCall
from helix_tui.core.beads.record import UnreadableLine


def main(argv: Sequence[str], era: str) -> int:
    """Run one command of the embedded tracker; its exit code."""
    words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in argv]
    try:
        verb, rest = find_verb(era, words)
    except UsageError as problem:
        return complain_of_all(str(problem))
    flags = (*flags_of(verb, era), *global_flags(era))
    try:
        given = _given(verb, flags, rest)
        if verb.run != REFUSED and (given.on("help") or not verb.run):
            _print(help_text(verb, era).encode())
            return 0
        if not given.on("help"):  # asked what it is, a verb that is not offered says that it is not
            check_words(verb, given.words)
        _require(flags, given)
    except UsageError as problem:
        return _complain(str(problem), verb, era)

    call = VerbCall(era, given)
    module, _, function = verb.run.partition(":")
    module = module if module.startswith("helix_ddx.") else f"helix_ddx.{module}"
    try:
        code: int | None = getattr(importlib.import_module(module), function)(call)
    except (Refused, UnreadableLine) as problem:
        _tell(call)
        return _complain(str(problem), verb, era)
    _tell(call)
    return code or 0


def _given(verb: Verb, flags: Sequence[Flag], rest: Sequence[str]) -> GivenFlags:
    """What was given; of a verb that is not offered nobody here knows the flags."""
    if verb.run != REFUSED:
        return parse(flags, rest)
    helped = {"help": ["true"]} if {"-h", "--help"} & set(rest) else {}
    return GivenFlags([word for word in rest if not word.startswith("-")], helped)


def _require(flags: Sequence[Flag], given: GivenFlags) -> None:
    missing = [f'"{flag.name}"' for flag in flags if flag.required and not given.has(flag.name)]
    if missing:
        raise UsageError(f"required flag(s) {', '.join(missing)} not set")


def _tell(call: VerbCall) -> None:
    """Print what the command has to say; what is for people first, so that it does not drown."""
    for line in call.err:
        _warn(line + "\n")
    _print(b"".join(call.out))


def _complain(message: str, verb: Verb, era: str) -> int:
    if verb.quiet:
        _warn(f"Error: {message}\n")
    else:
        _warn(f"Error: {message}\n{usage(verb, era)}\nError: {message}\n")
    return 1


def complain_of_all(message: str) -> int:
    """What DDx says where no verb was found that could tell its usage; the exit code."""
    _warn(f"Error: {message}\nRun 'ddx --help' for usage.\nError: {message}\n")
    return 1


def _print(data: bytes) -> None:
    """Write an answer; on a terminal, without what could steer it."""
    if sys.stdout.isatty():
        from helix_tui.core.ground.text import clean_block

        sys.stdout.write(clean_block(data.decode("utf-8", "replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _warn(text: str) -> None:
    if sys.stderr.isatty():
        from helix_tui.core.ground.text import clean_block

        text = clean_block(text)
    sys.stderr.write(text)
