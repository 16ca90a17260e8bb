"""``helix-tui tracker``: ddx's own bead commands, as they are. A thin wrapper kept for people who are used
to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import curator_of, explained, show_dry_run
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.names import Era
from helix_tui.core.supervision.curation.conflicts import Unreadable
from helix_tui.core.supervision.curation.curator import Curator, Sight
from helix_tui.core.supervision.curation.steps import CLAIM_FIELDS, NEW, Writing
from helix_tui.core.text import clean_line

VERBS = {
    **{
        name: name
        for name in ("init", "create", "show", "update", "close", "list", "ready", "blocked", "dep")
    },
    **{name: name for name in ("status", "import", "export", "reopen", "evidence", "queue", "cooldown")},
    "migrate": "import",
}
"""Word after ``tracker`` -> word after ``ddx bead``."""

_READS = frozenset({"show", "list", "ready", "blocked", "status", "export"})
_TELL = _READS - {"export"}
_CHANGES = frozenset({"create", "update", "close", "reopen", "dep"})
_OURS = frozenset({"-C", "--ddx", "--now"})
_OURS_ALONE = frozenset({"--read-only", "--no-color", "--dry-run", "--json"})
_TRACES = frozenset({"id", "updated_at", "events", "schema_version"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--dry-run", action="store_true", help="print the exact command; do nothing")
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, help=f"one of {', '.join(VERBS)}, and its own options"
    )


def arrange(words: list[str]) -> list[str]:
    """Our own options before ddx's words, wherever they were written."""
    ours: list[str] = []
    theirs: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _OURS:
            ours += [word, next(rest, "")]
        elif word in _OURS_ALONE:
            ours.append(word)
        else:
            theirs.append(word)
    return ours + theirs


def run(call: Call) -> int:
    """Hand the words on to ddx and what it prints to the terminal."""
    words = list(call.options.words)
    if not words:
        raise CliError("tracker wants a command", f"There are: {', '.join(VERBS)}.", code=2)
    if words[0] not in VERBS:
        raise CliError(
            f"tracker: unknown command: {clean_line(words[0], 60)}", f"There are: {', '.join(VERBS)}."
        )
    if call.json and words[0] in _TELL:
        words.append("--json")
    args = ("bead", VERBS[words[0]], *words[1:])
    if call.options.dry_run:
        return show_dry_run(call, [("ddx", *args)])
    with explained():
        curator = curator_of(call)
        if words[0] in _CHANGES:
            return _change(call, curator, args)
        if words[0] not in _READS:
            curator.gate.check()
        try:
            finished = curator.executable(_era(curator)).run(args)
        except DdxError as error:
            sys.stdout.buffer.write(error.output)
            raise
    sys.stdout.buffer.write(finished.stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(finished.stderr)
    return 0


def _era(curator: Curator) -> Era:
    try:
        return "april" if curator.look().queue.default_era == "april" else "head"
    except Unreadable:
        return "head"  # `tracker init` makes the first one


def _change(call: Call, curator: Curator, args: tuple[str, ...]) -> int:
    """A change is journalled like every other, though ddx's words are taken as they are."""

    def make(writing: Writing, sight: Sight) -> None:
        if args[1] == "create":
            title = next((word for word in args[2:] if not word.startswith("-")), "")
            writing.add(args, {NEW: {"title": title}}, creates=NEW)
            return
        ids = [word for word in args[2:] if word in sight.queue.beads]
        watched = [
            (bead_id, field) for bead_id in ids[:1] for field in _fields(writing.scene.row(bead_id), args)
        ]
        writing.add(args, {}, watched=watched)

    done = curator.run_steps("tracker", clean_line(" ".join(args), 120), make)
    for made in done.created.values():
        call.print(clean_line(made))
    if done.error is not None:
        raise done.error
    return 0


def _fields(row: Mapping[str, Any], args: Iterable[str]) -> list[str]:
    """Fields that a command may change: those there are, and those that its words name."""
    named = [word.removeprefix("--") for word in args if word.startswith("--")]
    named += [word.partition("=")[0] for word in args if "=" in word]
    names = {"assignee": "owner", "type": "issue_type"}
    known = [
        *row,
        "status",
        "dependencies",
        "owner",
        *CLAIM_FIELDS,
        *(names.get(each, each) for each in named),
    ]
    return [name for name in dict.fromkeys(known) if name not in _TRACES]
