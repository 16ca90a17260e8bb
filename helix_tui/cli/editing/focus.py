"""``helix-tui focus``: let workers pick only what one epic needs, and release the rest again."""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import add_dry_run, change_steps, clear_errors, curator_of, some
from helix_tui.cli.loading import find_bead
from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.supervision.signals.focus import plan_focus, plan_unfocus, plan_upkeep, read_focus


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", nargs="?", help="the epic; without one, show the current focus")
    parser.add_argument("--off", action="store_true", help="end the focus and release the beads it held back")
    parser.add_argument(
        "--reconcile", action="store_true", help="hold back beads created since; repair an interrupted focus"
    )
    add_dry_run(parser)


def run(call: Call) -> int:
    """Set, end, repair or show the focus."""
    options = call.options
    if sum((bool(options.id), options.off, options.reconcile)) > 1:
        raise CliError("name an epic, or pass --off or --reconcile: one of them", exit_code=2)
    curator = curator_of(call)
    if options.id:
        with clear_errors():
            epic = find_bead(curator.look().queue, options.id)
        return change_steps(
            call, curator, "focus", f"focus on {clean_line(epic, 60)}", lambda writing, _: plan_focus(writing, epic)
        )
    if options.off:
        return change_steps(call, curator, "focus", "end the focus", lambda writing, _: plan_unfocus(writing))
    if options.reconcile:
        return change_steps(call, curator, "focus", "repair the focus", lambda writing, _: plan_upkeep(writing))
    return _show(call, curator)


def _show(call: Call, curator: Curator) -> int:
    with clear_errors():
        queue_state: QueueState = curator.look()
    focus = read_focus(Overlay(queue_state.queue))
    if call.json:
        call.emit({"epic": focus.epic or None, "held": focus.held, "leftovers": focus.leftovers})
        return 0
    if focus.epic:
        title = clean_line(queue_state.queue.beads[focus.epic].title, 120)
        held = counted(len(focus.held), "bead is", "beads are")
        call.print(f"focus on {clean_line(focus.epic)} {title}; {held} held back for it")
    else:
        call.print("no focus")
    if focus.leftovers:
        call.print(
            f"still held back by an earlier focus: {some(focus.leftovers)}; `helix-tui focus --reconcile` repairs it"
        )
    return 0
