"""``helix-tui build``: one bounded execution of one bead, by ddx's own verb for that. A compatibility
surface.
"""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import (
    add_agent_options,
    curator_of,
    delegate_of,
    explained,
    show_dry_run,
    wishes_of,
)
from helix_tui.core.supervision.building import Undone, build_bead, select, undone
from helix_tui.core.text import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "selector",
        nargs="?",
        default="",
        help="a ready bead's id, parent, spec-id, label, or part of its title",
    )
    add_agent_options(parser)


def run(call: Call) -> int:
    """Execute one bead."""
    wishes = wishes_of(call)
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        bead_id = select(curator.look().queue, call.options.selector)
        if not bead_id:
            raise CliError(
                "no execution-ready bead matched the build selector",
                "`helix-tui queue` lists what is ready and why not.",
            )
        words = ("ddx", *delegate.one_bead(bead_id, wishes))
        left: Undone = undone(words)
        if call.options.dry_run:
            return show_dry_run(call, [words], bead_id=bead_id, leaves_undone=list(left))
        curator.gate.check()
        for line in left:
            call.note(f"helix: {line}")
        built = build_bead(curator, delegate, bead_id, wishes)
    if call.json:
        call.emit(built.record())
    else:
        call.print(
            f"{clean_line(bead_id)} → "
            f"{clean_line(built.status)}{clean_line(built.detail and ': ' + built.detail, 400)}"
        )
        if built.follow_up:
            call.print(f"next: {clean_line(built.follow_up, 400)}")
    return built.code
