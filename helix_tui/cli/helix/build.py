"""``helix-tui build``: one bounded execution of one bead, with ddx's own command for it; a compatibility surface."""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import (
    add_agent_options,
    agent_choice_of,
    curator_of,
    delegate_of,
    explained,
    note_difference,
    note_unheard,
    refuse_in_attempt,
    refuse_shut,
    show_dry_run,
)
from helix_tui.cli.loading import note_unread
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.kept_changes import kept_change
from helix_tui.core.supervision.stages.build import build_bead, let_land, select, undone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "selector", nargs="?", default="", help="a ready bead's id, parent, spec-id, label, or part of its title"
    )
    parser.add_argument(
        "--land-kept", action="store_true", help="continue even if ddx may land a change that a review refused"
    )
    add_agent_options(parser)


def run(call: Call) -> int:
    """Execute one bead."""
    refuse_in_attempt(call)
    agent_choice = agent_choice_of(call).builder
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        queue_state = curator.look()
        refuse_shut(queue_state, curator.project)
        bead_id = select(queue_state.queue, call.options.selector, held=call.options.land_kept)
        if not bead_id:
            raise _no_match(queue_state, call.options.selector)
        words = ("ddx", *delegate.one_bead(bead_id, agent_choice))
        left = undone(delegate.dialect)
        note_unread(call, queue_state.tracker)
        # August's ddx lands a kept change as it is, even if a review refused it
        kept = kept_change(curator.project, queue_state.queue, delegate.dialect, bead_id)
        if kept is not None and not call.options.land_kept:
            _warn_of(call, bead_id, kept, rejects=delegate.dialect.lands_kept)
        if call.options.dry_run:
            call.note(f"helix: what ddx lands goes to {curator.project.branch() or 'no branch'}")
            return show_dry_run(call, [words], bead_id=bead_id, leaves_undone=list(left))
        curator.gate.check()
        curator.require_allowed()
        note_difference(call, queue_state)
        note_unheard(call, words, agent_choice)
        for line in () if call.options.quiet else left:
            call.note(f"helix: {line}")
        let_land(curator, [kept] if kept is not None and kept.verdict.outcome == "refused" else [])
        built = build_bead(curator, delegate, bead_id, agent_choice)
    if call.json:
        call.emit(built.record())
    else:
        said = clean_line(f": {built.detail}", 400) if built.detail not in ("", built.status) else ""
        call.print(f"{clean_line(bead_id)} → {clean_line(built.status)}{said}")
        if built.landed:
            call.print(f"landed on: {curator.project.branch() or 'no branch'}")
        if built.preserve_ref:
            call.print(f"kept at: {clean_line(built.preserve_ref, 200)}")
        if built.follow_up:
            call.print(f"next: {clean_line(built.follow_up, 400)}")
    return built.code


def _warn_of(call: Call, bead_id: str, kept: Attempt, *, rejects: bool) -> None:
    """Warn that ddx may land the bead's kept change.

    Raises:
        CliError: a review refused it, and ``--land-kept`` was not given.
    """
    lands = f"ddx may land {kept.result_rev[:12]} as it is, without an agent"
    if kept.verdict.outcome == "refused":
        named = clean_line(bead_id, 80)
        advice = f"If that is what you want: helix-tui build {named} --land-kept"
        if rejects:
            advice += f". To attempt it afresh: helix-tui tracker update {named} --reject-preserved {kept.result_rev}"
        raise CliError(f"nothing was run: {lands}, and a review refused it", advice)
    call.note(f"helix: {lands}: it was kept aside")


def _no_match(queue_state: QueueState, selector: str) -> CliError:
    """Why nothing was selected: the tracker cannot be read, the bead named is not ready, or none fits."""
    dropped = queue_state.tracker.dropped
    if dropped:
        where = f"line {dropped[0].line} of {clean_line(str(queue_state.tracker.path), 200)}"
        return CliError(
            f"nothing was selected: {where} cannot be read: {clean_line(dropped[0].reason, 200)}",
            "Correct or remove that line, then build again.",
        )
    message = "no execution-ready bead matched the build selector"
    if selector in queue_state.queue.beads:
        state = queue_state.queue.state(selector).replace("_", " ")
        shown = clean_line(selector, 60)
        return CliError(f"{message}: {shown} is {state}", f"`helix-tui why {shown}` says what it waits for.")
    return CliError(message, "`helix-tui queue` lists what is ready and why not.")
