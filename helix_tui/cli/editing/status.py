"""``helix-tui claim | unclaim | close | reopen | cancel``: the commands that change a bead's status."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from helix_tui.cli.call import Call
from helix_tui.cli.editing.change import add_dry_run, add_ids, change, resolve
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    add_ids(parser)
    command = parser.prog.split()[-1]
    if command == "claim":
        parser.add_argument("--assignee", default="", metavar="NAME", help="who claims it (default: as ddx decides)")
    elif command == "unclaim":
        parser.add_argument("--force", action="store_true", help="even if a live worker has claimed it")
    elif command == "reopen":
        parser.add_argument("--reason", default="", metavar="TEXT", help="kept in the bead's history")
        parser.add_argument("--append-notes", default="", metavar="TEXT", help="added to its notes")
    add_dry_run(parser)


def run(call: Call) -> int:
    """Make the change, or with --dry-run show what it would do."""
    return change(call, lambda queue: _operations(call, queue))


def _operations(call: Call, queue: Queue) -> Iterable[Operation]:
    options = call.options
    for bead_id in resolve(queue, options.ids):
        match call.command:
            case "claim":
                yield operations.ClaimBead(bead_id, options.assignee)
            case "unclaim":
                yield operations.ReleaseBead(bead_id, force=options.force)
            case "close":
                yield operations.CloseBead(bead_id)
            case "reopen":
                yield operations.ReopenBead(bead_id, options.reason, options.append_notes)
            case _:
                yield operations.CancelBead(bead_id)
