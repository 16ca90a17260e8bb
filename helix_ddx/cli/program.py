"""``helix-ddx bead …``: from the words of a command line to an answer and an exit code.

A mistake is told as DDx tells it: the complaint, the usage block, the complaint again, and exit code 1.

Here too: usage blocks, laid out as DDx lays them out; verbs of DDx that are not offered; ``version``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from helix_ddx.base.flags import MANY, REFUSED, Flag, GivenFlags, Refused, UsageError, Verb, parse
from helix_ddx.cli.verbs import flags_of, global_flags, verbs_of
from helix_ddx.store.call import VerbCall
from helix_tui import __version__
from helix_tui.core.beads.record import UnreadableLine

PROGRAM = "ddx"

_PLACEHOLDER = {"string": " string", "bool": "", "int": " int", "float": " float", "strings": " strings"}


def find_verb(era: str, argv: Sequence[str]) -> tuple[Verb, list[str]]:
    """The deepest verb that the words name, and the rest of the command line.

    A word that names no verb is left to the verb above it, which may ignore it: so does DDx.
    """
    verbs = verbs_of(era)
    takes_value = {f"--{flag.name}" for flag in global_flags(era) if flag.kind != "bool"}
    rest = list(argv)
    found: Verb | None = None
    path: tuple[str, ...] = ()
    place = 0
    while place < len(rest):
        word = rest[place]
        if word == "--":
            break
        if word.startswith("-"):
            place += 2 if word in takes_value else 1
            continue
        deeper = next((verb for verb in verbs if verb.path[:-1] == path and _is_called(verb, word)), None)
        if deeper is None:
            break
        found, path = deeper, deeper.path
        del rest[place]
    if found is None:
        raise UsageError(f'unknown command "{rest[0] if rest else ""}" for "{PROGRAM}"')
    return found, rest


def _is_called(verb: Verb, word: str) -> bool:
    return word == verb.name or word in verb.aliases


def check_words(verb: Verb, words: Sequence[str]) -> None:
    """Whether the verb takes so many words.

    Raises:
        UsageError: it takes more or fewer, in DDx's words.
    """
    count = len(words)
    if verb.least <= count <= verb.most or not verb.run:
        return
    if verb.most == 0:
        raise UsageError(f'unknown command "{words[0]}" for "{PROGRAM} {" ".join(verb.path)}"')
    if verb.least == verb.most:
        raise UsageError(f"accepts {verb.least} arg(s), received {count}")
    if verb.most == MANY:
        raise UsageError(f"requires at least {verb.least} arg(s), only received {count}")
    raise UsageError(f"accepts at most {verb.most} arg(s), received {count}")


def usage(verb: Verb, era: str) -> str:
    """The block that follows a complaint, and ends a help text."""
    name = " ".join((PROGRAM, *verb.path))
    children = [child for child in verbs_of(era) if child.path[:-1] == verb.path]
    line = f"{name} {verb.use} [flags]" if verb.use else f"{name} [flags]"
    parts = [f"Usage:\n  {line}"]
    if children:
        parts[0] += f"\n  {name} [command]"
    if verb.aliases:
        parts.append("Aliases:\n  " + ", ".join((verb.name, *verb.aliases)))
    if children:
        width = max(11, *(len(child.name) for child in children))
        listed = sorted(children, key=lambda child: child.name)
        rows = "".join(f"\n  {child.name:<{width}} {child.about.partition(chr(10))[0]}" for child in listed)
        parts.append(f"Available Commands:{rows}")
    parts.append("Flags:\n" + _flag_rows(flags_of(verb, era)))
    parts.append("Global Flags:\n" + _flag_rows(global_flags(era)))
    if children:
        parts.append(f'Use "{name} [command] --help" for more information about a command.')
    return "\n\n".join(parts) + "\n"


def help_text(verb: Verb, era: str) -> str:
    """What ``--help`` prints."""
    return f"{verb.about}\n\n{usage(verb, era)}"


def _flag_rows(flags: Sequence[Flag]) -> str:
    rows = []
    for flag in sorted((flag for flag in flags if not flag.hidden), key=lambda flag: flag.name):
        dash = f"-{flag.short}, " if flag.short else "    "
        rows.append((f"  {dash}--{flag.name}{_PLACEHOLDER.get(flag.kind, ' ' + flag.kind)}", flag))
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"{left:<{width}}   {flag.about}{_default(flag)}".rstrip() for left, flag in rows)


def _default(flag: Flag) -> str:
    if not flag.default or flag.default == "0":
        return ""
    shown = flag.default if flag.kind in ("int", "float") or flag.default[0] == "$" else f'"{flag.default}"'
    return f" (default {'is ' if flag.default[0] == '$' else ''}{shown})"


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
    """What was given; of a verb that is not offered HELIX does not know the flags."""
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


def refuse(call: VerbCall) -> None:
    """Say so, instead of answering with somebody else's help."""
    raise Refused("this needs ddx itself: the embedded tracker edits beads, it does not execute or migrate them")


def tell(call: VerbCall) -> None:
    """``version``; DDx has no machine-readable form of it either."""
    call.say(f"DDx stand-in: helix-ddx {__version__}\nSpeaks: {call.era}")
