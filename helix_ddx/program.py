"""``helix-ddx bead …``: from a command line to an answer and an exit code.

`VERBS` is the one table of verbs and flags of the embedded tracker; usage, help and
errors follow from it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from helix_ddx.flags import MANY, REFUSED, Flag, GivenFlags, Refused, UsageError, Verb, parse, refused
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.work import LOOP_VERBS
from helix_tui import __version__
from helix_tui.core.beads.record import UnreadableLine

JSON = Flag("json", "bool", "machine-readable answer")
SET = Flag("set", "stringArray", "write a field of your own, key=value; may be repeated")

GLOBAL_FLAGS = (
    Flag("config", about="another settings file", default="$HOME/.ddx.yml"),
    Flag("library-base-path", about="another location of the library"),
    Flag("no-update-check", "bool", "do not check for a newer release; the embedded tracker never does"),
    Flag("verbose", "bool", "print more", short="v"),
)
"""Flags that every DDx verb accepts."""

VERBS = (
    Verb(("bead",), "Beads: the queue's work items", aliases=("beads",)),
    Verb(("bead", "init"), "Create an empty tracker", "verbs.lists:init"),
    Verb(
        ("bead", "create"),
        "Create a bead and print its id",
        "verbs.create_update:create",
        "<title>",
        1,
        1,
        (
            Flag("type", about="kind of work: task, bug, epic, chore …"),
            Flag("priority", "int", "0 is the most urgent, 4 the least; without the flag it is 0", default="2"),
            Flag("labels", about="comma-separated labels"),
            Flag("acceptance", about="how to tell when it is done"),
            Flag("description", about="what it is about"),
            Flag("parent", about="id of its parent bead"),
            Flag("depends-on", "strings", "ids it waits for, comma-separated or repeated"),
            SET,
        ),
    ),
    Verb(("bead", "show"), "Everything about one bead", "verbs.status:show", "<id>", 1, 1, (JSON,)),
    Verb(
        ("bead", "update"),
        "Change fields of a bead",
        "verbs.create_update:update",
        "<id>",
        1,
        1,
        (
            Flag("title", about="new title"),
            Flag("status", about="new status; at head only a step of the lifecycle"),
            Flag("priority", "int", "new priority, 0 to 4", default="0"),
            Flag("labels", about="new comma-separated labels, replacing all old ones"),
            Flag("acceptance", about="new acceptance"),
            Flag("assignee", about="new owner; with --claim, who claims"),
            Flag("parent", about="new parent"),
            Flag("description", about="new description"),
            Flag("notes", about="new notes, replacing the old ones"),
            Flag("claim", "bool", "claim it: in_progress, with an owner"),
            Flag("unclaim", "bool", "release it: open, without an owner"),
            Flag("external-blocker-reason", about="why it is blocked, for --status blocked"),
            Flag("blocked-by-ref", about="bead of another repository it waits for, repo#id"),
            Flag("reject-preserved", about="refuse a preserved result by its revision"),
            SET,
            Flag("unset", "stringArray", "remove a field of your own; may be repeated"),
        ),
    ),
    Verb(
        ("bead", "close"),
        "Close a bead",
        "verbs.close:close",
        "<id>",
        1,
        1,
        (
            Flag("session", about="id of the session that did the work"),
            Flag("commit", about="the commit that did the work"),
        ),
    ),
    Verb(
        ("bead", "reopen"),
        "Open a closed bead again",
        "verbs.close:reopen",
        "<id>",
        1,
        1,
        (Flag("reason", about="the reason, kept as an event"), Flag("append-notes", about="text to add to the notes")),
    ),
    Verb(
        ("bead", "list"),
        "List beads",
        "verbs.lists:list_beads",
        flags=(
            Flag("status", about="only this status"),
            Flag("label", about="only with this label"),
            JSON,
            Flag("all", "bool", "no effect: archived beads are always listed"),
            Flag("where", "stringArray", "only where a field has a value, key=value; may be repeated"),
        ),
        aliases=("ls",),
    ),
    Verb(
        ("bead", "ready"),
        "List what can be worked on",
        "verbs.lists:ready",
        flags=(
            JSON,
            Flag("execution", "bool", "only what the loop would pick"),
            Flag("include-human", "bool", "no effect"),
        ),
    ),
    Verb(("bead", "blocked"), "List what is blocked, and why", "verbs.lists:blocked", flags=(JSON,)),
    Verb(("bead", "status"), "Count beads", "verbs.status:status", flags=(JSON,)),
    Verb(("bead", "dep"), "Dependencies between beads"),
    Verb(("bead", "dep", "add"), "Make a bead wait for another", "verbs.create_update:add", "<id> <dep-id>", 2, 2),
    Verb(("bead", "dep", "remove"), "Remove a dependency", "verbs.create_update:remove", "<id> <dep-id>", 2, 2),
    Verb(("bead", "dep", "tree"), "Draw what waits on what", "verbs.create_update:tree", "[id]", 0, 1),
    Verb(("bead", "evidence"), "Events of a bead, append-only"),
    Verb(
        ("bead", "evidence", "add"),
        "Add an event to a bead",
        "verbs.status:add",
        "<id>",
        1,
        1,
        (
            Flag("kind", about="kind of event", default="summary"),
            Flag("summary", about="one line"),
            Flag("body", about="the whole text"),
            Flag("source", about="where it comes from"),
            Flag("actor", about="who says it"),
        ),
    ),
    Verb(("bead", "evidence", "list"), "List a bead's events", "verbs.status:list_events", "<id>", 1, 1, (JSON,)),
    Verb(
        ("bead", "import"),
        "Import beads from a file or another tool",
        "verbs.lists:import_beads",
        "[file]",
        0,
        1,
        (Flag("from", about="auto, bd, br or jsonl", default="auto"),),
    ),
    Verb(
        ("bead", "export"),
        "Write every bead as JSONL",
        "verbs.lists:export",
        "[file]",
        0,
        1,
        (Flag("stdout", "bool", "print instead of writing a file"),),
    ),
    Verb(("bead", "metrics"), "Attempts, tokens and cost per bead", "verbs.status:metrics", flags=(JSON,)),
    Verb(
        ("bead", "doctor"),
        "Find rows that DDx would fail on",
        "verbs.close:doctor",
        most=MANY,
        flags=(JSON, Flag("fix", "bool", "repair them; needs ddx itself")),
    ),
    Verb(("bead", "queue"), "Order of beads of one priority"),
    Verb(("bead", "queue", "top"), "Put a bead first", "verbs.create_update:top", "<id>", 1, 1),
    Verb(
        ("bead", "queue", "move"),
        "Put a bead next to another",
        "verbs.create_update:move",
        "<id>",
        1,
        1,
        (Flag("before", about="id to place it before"), Flag("after", about="id to place it after")),
    ),
    Verb(("bead", "queue", "clear"), "Clear a bead's place", "verbs.create_update:clear", "<id>", 1, 1),
    Verb(("bead", "cooldown"), "The pause after an attempt that failed"),
    Verb(("bead", "cooldown", "show"), "Until when, and why", "verbs.work:show", "<id>", 1, 1, (JSON,)),
    Verb(("bead", "cooldown", "clear"), "End the pause now", "verbs.work:clear", "<id>", 1, 1),
    Verb(
        ("bead", "clear-cooldown"),
        "End the pause of many beads",
        "verbs.work:clear_many",
        flags=(
            Flag("all", "bool", "of every bead that has one"),
            Flag("reason", about="of those whose last status is this"),
        ),
    ),
    Verb(
        ("bead", "needs-human"),
        "List proposed beads, under an older name",
        "verbs.status:needs_human",
        flags=(JSON,),
    ),
    Verb(
        ("bead", "operator-attention"),
        "List claims that a stuck worker released",
        "verbs.status:released",
        flags=(JSON,),
    ),
    Verb(("bead", "human"), "Decide on a proposed bead"),
    Verb(
        ("bead", "human", "resolve"),
        "Retry, split, drop or keep a proposed bead",
        "verbs.status:resolve",
        "<id>",
        1,
        1,
        (
            Flag("action", about="retry, split, obsolete or defer", required=True),
            Flag("note", about="why; needed"),
            Flag("children", "strings", "ids it was split into, comma-separated or repeated"),
        ),
    ),
    Verb(
        ("bead", "reap"),
        "Close epics whose parts are all done",
        "verbs.close:reap",
        flags=(Flag("apply", "bool", "close them; without it they are only listed"),),
    ),
    Verb(
        ("bead", "lint"),
        "How much of the acceptance can be checked automatically",
        "verbs.close:lint",
        "<bead-id>",
        1,
        1,
        (JSON,),
    ),
    Verb(("bead", "ac-check"), "Needs ddx itself", REFUSED, "<bead-id>", 1, MANY),
    refused("bead", "archive"),
    Verb(("bead", "merge"), "Needs ddx itself", REFUSED, "[path]", most=1),
    refused("bead", "migrate"),
    refused("bead", "recheck-blockers"),
    Verb(("bead", "reconcile"), "Needs ddx itself", REFUSED, "[id ...]", most=MANY),
    refused("bead", "reconcile-attachments"),
    refused("bead", "replay"),
    refused("bead", "replay-bench"),
    Verb(("bead", "review"), "Needs ddx itself", REFUSED, "<id>", 1, MANY),
    Verb(("bead", "routing"), "Needs ddx itself", REFUSED, "<id>", 1, 1, (JSON,)),
    Verb(("bead", "validate-ready"), "Needs ddx itself", REFUSED, quiet=True),
    Verb(("version",), "Print the version of helix-ddx", "program:tell"),
    *LOOP_VERBS,
)

PROGRAM = "ddx"
_PLACEHOLDER = {"string": " string", "bool": "", "int": " int", "float": " float", "strings": " strings"}


def flags_of(verb: Verb) -> tuple[Flag, ...]:
    """The verb's own flags, and help."""
    return (*verb.flags, Flag("help", "bool", f"help for {verb.name}", short="h"))


def find_verb(argv: Sequence[str]) -> tuple[Verb, list[str]]:
    """The most specific verb that the words name, and the rest of the command line.

    A word that names no verb is left to the verb above it, which may ignore it, as in DDx.
    """
    takes_value = {f"--{flag.name}" for flag in GLOBAL_FLAGS if flag.kind != "bool"}
    rest = list(argv)
    found: Verb | None = None
    path: tuple[str, ...] = ()
    place = 0
    while place < len(rest):
        word = rest[place]
        if word == "--":
            break
        if word.startswith("-"):
            # the value of a global flag is not a verb
            place += 2 if word in takes_value else 1
            continue
        deeper = next((verb for verb in VERBS if verb.path[:-1] == path and _is_called(verb, word)), None)
        if deeper is None:
            break
        found, path = deeper, deeper.path
        # remove only the verb's words: flags between them are for the verb to read
        del rest[place]
    if found is None:
        raise UsageError(f'unknown command "{rest[0] if rest else ""}" for "{PROGRAM}"')
    return found, rest


def _is_called(verb: Verb, word: str) -> bool:
    return word == verb.name or word in verb.aliases


def check_words(verb: Verb, words: Sequence[str]) -> None:
    """Check the number of words of a verb.

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


def usage(verb: Verb) -> str:
    """The usage block, after an error or at the end of a help text."""
    name = " ".join((PROGRAM, *verb.path))
    children = [child for child in VERBS if child.path[:-1] == verb.path]
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
    parts.append("Flags:\n" + _flag_rows(flags_of(verb)))
    parts.append("Global Flags:\n" + _flag_rows(GLOBAL_FLAGS))
    if children:
        parts.append(f'Use "{name} [command] --help" for more information about a command.')
    return "\n\n".join(parts) + "\n"


def help_text(verb: Verb) -> str:
    """What ``--help`` prints."""
    return f"{verb.about}\n\n{usage(verb)}"


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


def main(argv: Sequence[str]) -> int:
    """Run one command of the embedded tracker; its exit code."""
    # invalid bytes become U+FFFD, as in Go's JSON
    words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in argv]
    try:
        verb, rest = find_verb(words)
    except UsageError as problem:
        return complain_of_all(str(problem))
    flags = (*flags_of(verb), *GLOBAL_FLAGS)
    try:
        given = _given(verb, flags, rest)
        if verb.run != REFUSED and (given.on("help") or not verb.run):
            _print(help_text(verb).encode())
            return 0
        if not given.on("help"):  # the help of a verb that is not offered says so
            check_words(verb, given.words)
        _require(flags, given)
    except UsageError as problem:
        return _complain(str(problem), verb)

    call = VerbCall(given)
    module, _, function = verb.run.partition(":")
    module = module if module.startswith("helix_ddx.") else f"helix_ddx.{module}"
    try:
        code: int | None = getattr(importlib.import_module(module), function)(call)
    except (Refused, UnreadableLine) as problem:
        _tell(call)
        return _complain(str(problem), verb)
    _tell(call)
    return code or 0


def _given(verb: Verb, flags: Sequence[Flag], rest: Sequence[str]) -> GivenFlags:
    """The given flags and words; the flags of a verb that is not offered are unknown."""
    if verb.run != REFUSED:
        return parse(flags, rest)
    helped = {"help": ["true"]} if {"-h", "--help"} & set(rest) else {}
    return GivenFlags([word for word in rest if not word.startswith("-")], helped)


def _require(flags: Sequence[Flag], given: GivenFlags) -> None:
    missing = [f'"{flag.name}"' for flag in flags if flag.required and not given.has(flag.name)]
    if missing:
        raise UsageError(f"required flag(s) {', '.join(missing)} not set")


def _tell(call: VerbCall) -> None:
    """Print a command's output; messages for people first, so that they are not lost."""
    for line in call.err:
        _warn(line + "\n")
    _print(b"".join(call.out))


def _complain(message: str, verb: Verb) -> int:
    if verb.quiet:
        _warn(f"Error: {message}\n")
    else:
        # DDx says it before and after the usage (docs/formats/ddx.md §0)
        _warn(f"Error: {message}\n{usage(verb)}\nError: {message}\n")
    return 1


def complain_of_all(message: str) -> int:
    """Print DDx's error for an unknown verb; returns the exit code."""
    _warn(f"Error: {message}\nRun 'ddx --help' for usage.\nError: {message}\n")
    return 1


def _print(data: bytes) -> None:
    """Write an answer; on a terminal, without control sequences."""
    if sys.stdout.isatty():
        from helix_tui.core.ground.text import clean_block

        sys.stdout.write(clean_block(data.decode("utf-8", "replace")))
    else:
        sys.stdout.flush()
        # bypass the text layer, because a record may contain invalid bytes
        sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _warn(text: str) -> None:
    if sys.stderr.isatty():
        from helix_tui.core.ground.text import clean_block

        text = clean_block(text)
    sys.stderr.write(text)


def refuse(call: VerbCall) -> None:
    """Say that ddx itself is needed, instead of printing another verb's help."""
    raise Refused("this needs ddx itself: the embedded tracker edits beads, it does not execute or migrate them")


def tell(call: VerbCall) -> None:
    """``version``; DDx has no machine-readable form of it either."""
    call.say(f"DDx stand-in: helix-ddx {__version__}")
