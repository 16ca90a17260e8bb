"""``helix-tui set | unset | dep | supersede | eligible | label | rank``: the commands that change a bead's fields."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import add_dry_run, add_ids, change, resolve
from helix_tui.cli.loading import find_bead
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    _ARGUMENTS[parser.prog.split()[-1]](parser)
    add_dry_run(parser)


def run(call: Call) -> int:
    """Make the change, or with --dry-run show what it would do."""
    return change(call, lambda queue: _OPERATIONS[call.command](call, queue))


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="ID… KEY=VALUE…",
        help="beads, then fields: title, status, priority, labels, acceptance, description, notes, "
        "parent, owner, type, spec-id, eligible, or any other name; an empty value clears a text",
    )


def _set(call: Call, queue: Queue) -> Iterable[Operation]:
    words: list[str] = call.options.words
    ids = [word for word in words if "=" not in word]
    fields = {key: value for word in words if "=" in word for key, _, value in [word.partition("=")]}
    if not ids or not fields:
        raise CliError("name the bead and what to set", "For example: helix-tui set ID priority=1 title='New'", 2)
    return [operations.SetFields(bead_id, fields) for bead_id in resolve(queue, ids)]


def _unset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", help="a bead id; several, separated by commas, are one change")
    parser.add_argument("keys", nargs="+", metavar="KEY", help="fields to remove")


def _unset(call: Call, queue: Queue) -> Iterable[Operation]:
    return [operations.ClearFields(bead_id, call.options.keys) for bead_id in resolve(queue, call.options.ids)]


def _dep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "remove"))
    parser.add_argument("ids", metavar="A", help="the bead that waits; several, separated by commas, are one change")
    parser.add_argument("on", metavar="B", help="the bead it waits on; several may be separated by commas")


def _dep(call: Call, queue: Queue) -> Iterable[Operation]:
    waiting = resolve(queue, call.options.ids)
    if call.options.action == "add":
        return [operations.AddDependency(a, b) for a in waiting for b in resolve(queue, call.options.on)]
    # An edge to a bead that is missing from the tracker is named by its full id.
    edges = {target for bead_id in waiting for target in queue.beads[bead_id].depends_on}
    on = [call.options.on] if call.options.on in edges else resolve(queue, call.options.on)
    return [operations.RemoveDependency(a, b) for a in waiting for b in on]


def _supersede_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="A", help="the bead that is replaced; several, separated by commas")
    parser.add_argument("by", metavar="B", nargs="?", help="the bead that replaces it")
    parser.add_argument("--off", action="store_true", help="clear the mark")


def _supersede(call: Call, queue: Queue) -> Iterable[Operation]:
    if bool(call.options.by) == call.options.off:
        raise CliError("name the bead that replaces it, or pass --off", "`helix-tui supersede OLD NEW`", 2)
    by = find_bead(queue, call.options.by) if call.options.by else None
    return [operations.Supersede(bead_id, by) for bead_id in resolve(queue, call.options.ids)]


def _eligible_arguments(parser: argparse.ArgumentParser) -> None:
    add_ids(parser)
    parser.add_argument("state", choices=("on", "off"), help="whether workers may pick it")


def _eligible(call: Call, queue: Queue) -> Iterable[Operation]:
    on = call.options.state == "on"
    return [operations.SetEligible(bead_id, on) for bead_id in resolve(queue, call.options.ids)]


def _label_arguments(parser: argparse.ArgumentParser) -> None:
    add_ids(parser)
    parser.add_argument("--add", action="append", default=[], metavar="LABEL", help="repeatable")
    parser.add_argument("--remove", action="append", default=[], metavar="LABEL", help="repeatable")


def _label(call: Call, queue: Queue) -> Iterable[Operation]:
    add, remove = call.options.add, call.options.remove
    if not add and not remove:
        raise CliError("name the label to --add or to --remove", "The other labels stay as they are.", 2)
    return [operations.ChangeLabels(bead_id, add=add, remove=remove) for bead_id in resolve(queue, call.options.ids)]


def _rank_arguments(parser: argparse.ArgumentParser) -> None:
    add_ids(parser, many=False)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--top", action="store_true", help="first within its priority")
    place.add_argument("--before", metavar="ID", default="")
    place.add_argument("--after", metavar="ID", default="")
    place.add_argument("--clear", action="store_true", help="clear the rank; the bead is ordered by age again")


def _rank(call: Call, queue: Queue) -> Iterable[Operation]:
    options = call.options
    before, after = (find_bead(queue, text) if text else "" for text in (options.before, options.after))
    return [
        operations.SetRank(bead_id, before=before, after=after, top=options.top)
        for bead_id in resolve(queue, options.ids)
    ]


_ARGUMENTS = {
    "set": _set_arguments,
    "unset": _unset_arguments,
    "dep": _dep_arguments,
    "supersede": _supersede_arguments,
    "eligible": _eligible_arguments,
    "label": _label_arguments,
    "rank": _rank_arguments,
}

_OPERATIONS = {
    "set": _set,
    "unset": _unset,
    "dep": _dep,
    "supersede": _supersede,
    "eligible": _eligible,
    "label": _label,
    "rank": _rank,
}
