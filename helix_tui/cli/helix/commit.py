"""``helix-tui commit [ID]``: gate, commit, push, and close the bead."""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import curator_of, explained, refuse_in_attempt, show_dry_run
from helix_tui.cli.loading import find_bead
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.commit import CommitError, commands_of, commit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="the bead that is done")
    parser.add_argument("--no-gate", action="store_true", help="commit without the project's build gate, and say so")
    parser.add_argument("--dry-run", action="store_true", help="print the exact commands; do nothing")


def run(call: Call) -> int:
    """Commit what is staged, or every change to a tracked file."""

    def say(text: str) -> None:
        call.note(f"helix: {clean_line(text, 400)}")

    refuse_in_attempt(call)
    with explained():
        curator = curator_of(call)
        bead_id = title = ""
        if call.options.id:
            queue = curator.look().queue
            bead_id = find_bead(queue, call.options.id)
            title = queue.beads[bead_id].title
        try:
            if call.options.dry_run:
                return show_dry_run(call, commands_of(curator, bead_id, title, gated=not call.options.no_gate))
            done = commit(curator, bead_id, title, say, gated=not call.options.no_gate)
        except CommitError as error:
            if error.output:
                call.note(error.output)
            raise CliError(str(error), error.advice) from None
    if call.json:
        call.emit(
            {
                "subject": done.subject,
                "sha": done.sha,
                "gate": done.gate,
                "pushed": done.pushed,
                "push_note": done.push_note,
                "closed": bead_id if done.closed else None,
            }
        )
    return 0
