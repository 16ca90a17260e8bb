"""``helix-tui experiment``: one session by an agent, or a batch of experiment beads and their comparison."""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.run import supervised
from helix_tui.cli.helix.shared import (
    add_agent_options,
    add_autonomy,
    agent_choice_of,
    autonomy_of,
    curator_of,
    delegate_of,
    explained,
    refuse_in_attempt,
    show_dry_run,
)
from helix_tui.cli.helix.stage import known_of, report
from helix_tui.cli.show.insights import trial_document, trial_lines
from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.ground.text import clean_line
from helix_tui.core.insights.report import batch_of, trials
from helix_tui.core.supervision.loop.work import RunOptions
from helix_tui.core.supervision.run_state.budget import with_memories_given
from helix_tui.core.supervision.signals.scope import named_beads
from helix_tui.core.supervision.stages.commit import CommitError, clean_tree
from helix_tui.core.supervision.stages.stage_run import command_of, perform
from helix_tui.core.supervision.stages.table import STAGES, render

_DIRTY = (
    "worktree has uncommitted changes",
    "please commit your changes before starting an experiment",
    "experiment needs a clean worktree to safely branch and revert",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "goal", nargs="?", default="", help="a bead or a goal; with a batch: its name, an epic, label or spec-id"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--close", action="store_true", help="end the session: keep the best, write down what was learned")
    how.add_argument(
        "--batch",
        action="store_true",
        help="let ddx run a batch of experiment beads, and what it orders before them, then compare them",
    )
    how.add_argument("--compare", action="store_true", help="compare the results of a batch so far; run nothing")
    add_autonomy(parser)
    add_agent_options(parser)


def run(call: Call) -> int:
    """Run a session, run a batch, or compare a batch."""
    if not call.options.compare:
        refuse_in_attempt(call)
    with explained():
        curator = curator_of(call)
        if call.options.compare:
            return _print(call, curator)
        if call.options.batch:
            return _batch(call, curator)
        return _session(call, curator)


def _session(call: Call, curator: Curator) -> int:
    stage, agent_choice = STAGES["experiment"], agent_choice_of(call)
    delegate = delegate_of(call, curator)
    closing = "CLOSE SESSION: keep the best result, revert the rest, and write down what was learned."
    values = {
        "scope": call.options.goal or "the most promising open experiment",
        "request": closing if call.options.close else "",
        **known_of(curator),
    }
    if call.options.dry_run:
        command = command_of(curator.project, delegate, stage, agent_choice)
        return show_dry_run(call, [command], prompt=render(curator.project, stage, values).text)
    _must_be_clean(call, curator)
    curator.gate.check()
    curator.require_allowed()
    done = perform(curator.project, delegate, stage, values, agent_choice, f"experiment-{call.now}")
    return report(call, done)


def _batch(call: Call, curator: Curator) -> int:
    queue = curator.look().queue
    batch = _named(call, curator)
    epic = (
        call.options.goal
        if call.options.goal in queue.beads and looks_like_epic(queue.beads[call.options.goal])
        else ""
    )
    delegate = delegate_of(call, curator)
    if call.options.dry_run:
        return show_dry_run(call, [("ddx", *delegate.drain(agent_choice_of(call).builder))], batch=list(batch))
    _must_be_clean(call, curator)
    options = RunOptions(
        autonomy=autonomy_of(call),
        focus=epic,
        auto_focus=False,
        auto_align=False,
        auto_review=False,
        batch=batch,
        agent_choice=agent_choice_of(call),
    )
    outcome = supervised(call, curator, delegate, options)
    code = _print(call, curator)
    return outcome.stop.code or code


def _print(call: Call, curator: Curator) -> int:
    records = AttemptIndex.of(curator.project)
    queue_state = curator.look(records)
    wanted = [queue_state.queue.beads[bead_id] for bead_id in _named(call, curator)]
    rows = trials(with_memories_given(curator.project, tuple(records.book)), wanted)
    if call.json:
        documents = [trial_document(trial, queue_state.queue.state(trial.bead.id)) for trial in rows]
        call.emit({"rows": documents, "kept": [trial.bead.id for trial in rows if trial.kept]})
    else:
        for line in trial_lines(call, rows):
            call.print(line)
    return 0


def _named(call: Call, curator: Curator) -> tuple[str, ...]:
    """The beads of the batch: what an epic, a label or a specification holds, a batch by its name, or every
    bead that is marked as an experiment; no containers.
    """
    queue, goal = curator.look().queue, call.options.goal
    if goal:
        batch = named_beads(queue, goal) or named_beads(queue, f"experiment:{goal}") or ()
    else:
        batch = tuple(bead_id for bead_id, bead in queue.beads.items() if batch_of(bead) is not None)
    batch = tuple(
        bead_id
        for bead_id in batch
        # an epic without children is ordinary work
        if not (looks_like_epic(queue.beads[bead_id]) and queue.graph.children.get(bead_id))
    )
    if not batch:
        raise CliError(
            f"no experiment beads{f' under {clean_line(goal, 60)}' if goal else ' here'}",
            "Name an epic, a label, a spec-id or a batch, or label beads kind:experiment or experiment:NAME.",
        )
    return batch


def _must_be_clean(call: Call, curator: Curator) -> None:
    try:
        clean = clean_tree(curator.project.root)
    except CommitError as error:
        raise CliError(str(error), error.advice) from None
    if not clean:
        for line in _DIRTY[1:]:
            call.note(f"helix: {line}")
        raise CliError(_DIRTY[0], "Commit them, or `git stash -u`.")
