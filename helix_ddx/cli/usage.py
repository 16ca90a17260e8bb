"""Finding the verb on a command line, and its usage block, laid out as DDx lays it out."""

from __future__ import annotations

from collections.abc import Sequence

from helix_ddx.base.flags import Flag, UsageError
from helix_ddx.base.verb import MANY, Verb
from helix_ddx.cli.verbs import flags_of, global_flags, verbs_of

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
