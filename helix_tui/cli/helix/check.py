"""``helix-tui check``: what should happen next, who decided that, and what would change it."""

from __future__ import annotations

import argparse
from typing import Any

from helix_tui.cli.call import Call, CliError, sentence
from helix_tui.cli.helix.shared import (
    add_agent_options,
    agent_choice_of,
    curator_of,
    delegate_of,
    explained,
    note_difference,
    note_unheard,
    questions_of,
    show_dry_run,
)
from helix_tui.core.beads.graph import with_titles
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.kinds.eligibility_hold import held_back, plan_holds
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.statements.counts import queue_line
from helix_tui.core.statements.next import ROLES, WHO, captions
from helix_tui.core.supervision.decide.check import Asking, Checker, CheckFailed
from helix_tui.core.supervision.decide.facts import Facts
from helix_tui.core.supervision.decide.verdict import NextVerdict
from helix_tui.core.supervision.signals.drift import DriftWatch
from helix_tui.core.supervision.signals.kept_changes import hold_reasons, refused_changes
from helix_tui.core.supervision.signals.scope import EVERYTHING, read_scope
from helix_tui.core.supervision.stages.stage_run import command_of
from helix_tui.core.supervision.stages.table import STAGES

_ALONE = "`helix-tui check --no-model` shows what the facts alone say."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "scope",
        nargs="?",
        default="",
        help="a bead and everything under it, a label, an area or a spec-id; default, or `repo`: everything",
    )
    asking = parser.add_mutually_exclusive_group()
    asking.add_argument("--ask", action="store_true", help="ask an agent even where the facts decide")
    asking.add_argument("--no-model", action="store_true", help="decide by the facts alone")
    parser.add_argument(
        "--acknowledge",
        nargs="*",
        metavar="ID",
        default=None,
        help="acknowledge what others changed: in these beads, or in all",
    )
    parser.add_argument(
        "--apply",
        action="store_true",
        help="keep workers from beads whose parent or document changed or whose change a review refused, "
        "and release those that a person decided on",
    )
    add_agent_options(parser)


def run(call: Call) -> int:
    """Print what should happen next."""
    options = call.options
    # --read-only asks no agent by default; together with --ask it is refused below
    alone = options.no_model or (call.read_only and not options.ask)
    asking: Asking = "always" if options.ask else "never" if alone else "auto"
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        agent_choice = agent_choice_of(call)
        checker = Checker(curator, questions_of(curator), delegate, agent_choice)
        if options.dry_run:
            return show_dry_run(call, [command_of(curator.project, delegate, STAGES["check"], agent_choice)])
        if options.acknowledge is not None:
            _acknowledge(call, curator)
        if options.ask:
            curator.gate.check()
        if options.apply or options.acknowledge is not None:
            _keep_back(call, checker)
        note_difference(call, curator.look())
        scope = read_scope(options.scope)
        facts = checker.facts(scope)
        if checker.trouble:
            call.note(checker.trouble)
        # conflicting facts of the documents become a question, which is a write
        if not call.read_only:
            for finding in facts.unasked:
                checker.questions.ask_about(finding)
        try:
            verdict = checker.check(scope, asking=asking, stamp=f"check-{call.now}")
        except CheckFailed as error:
            raise CliError(str(error), _ALONE, exit_code=1) from None
        except DdxError as error:
            raise CliError(
                f"the facts do not decide it, and no agent can be asked: {error.message}",
                f"{sentence(error.advice)}. {_ALONE}",
                error.exit_code,
            ) from None
        if verdict.decided_by == "prompt":
            asked = STAGES["check"]
            command = command_of(curator.project, delegate, asked, agent_choice)
            note_unheard(call, command, agent_choice.for_agent(asked.agent))
    if call.json:
        call.emit(document(facts, verdict))
    else:
        _print(call, facts, verdict)
    return 0


def _acknowledge(call: Call, curator: Curator) -> None:
    """Mark what others changed as seen, and list it."""
    wanted = call.options.acknowledge
    watch = DriftWatch(curator.project, curator.gate)
    seen = watch.acknowledge(curator.look().queue.beads, curator.history(), wanted or None)
    for drift in seen:
        call.note(f"seen: {drift}")
    for bead_id in wanted:
        if bead_id not in {drift.bead_id for drift in seen}:
            call.note(f"nobody has changed {clean_line(bead_id, 60)} since it was last seen")


def _keep_back(call: Call, checker: Checker) -> None:
    """Update the holds until a person decides: ``--apply`` sets them, either option releases what was decided."""
    curator = checker.curator
    queue_state = curator.look()
    refused = refused_changes(queue_state.queue, queue_state.dialect, checker.attempts(queue_state))
    reasons = hold_reasons(checker.drift(queue_state), refused)
    if not call.options.apply:
        held = held_back(queue_state.queue)
        reasons = {bead_id: reason for bead_id, reason in reasons.items() if bead_id in held}
    title = "keep beads from workers" if reasons else "give beads back to workers"
    done = curator.run_steps("hold", title, lambda writing, _: plan_holds(writing, reasons))
    if done.error is not None:
        raise done.error
    for step in done.plan.steps:
        for bead_id, fields in step.edits.items():
            kept = fields.get("execution-eligible") is False
            call.note(f"{'kept from' if kept else 'released to'} workers: {clean_line(bead_id, 60)}")


def document(facts: Facts, verdict: NextVerdict) -> dict[str, Any]:
    """The answer as JSON (docs/formats/cli.md)."""
    return {
        **verdict.record(),
        "queue_health": facts.health,
        "drift": [
            {"bead_id": each.bead_id, "field": each.field, "was": each.was, "now": each.now, "meaning": each.meaning}
            for each in facts.drift
        ],
        "orphans": [{"bead_id": orphan.bead_id, "pid": orphan.pid, "age_s": orphan.age_s} for orphan in facts.orphans],
        "stalls": [{"bead_id": run.bead_id, "why": run.why} for run in facts.stalls],
        "cooldowns": [{"bead_id": bead_id, "until_ns": until} for bead_id, until in facts.cooling],
        "dangling": [{"bead_id": bead_id, "missing": target} for bead_id, target in facts.missing],
        "waits_on_cancelled": [
            {"bead_id": bead_id, "cancelled": target} for bead_id, target in facts.waits_on_cancelled
        ],
        "vague": facts.vague,
        "missing_acceptance": facts.unaccepted,
        "missing_authority": facts.ungoverned,
        "cycles": facts.cycles,
        "conflicts": [
            {"class": conflict.kind, "text": conflict.text, "documents": conflict.documents}
            for conflict in facts.conflicts
        ],
        "unread_lines": facts.unread or None,
        "questions": [
            {"id": question.id, "kind": question.kind, "text": question.text} for question in facts.questions
        ],
        "answer": verdict.text or None,
    }


def _print(call: Call, facts: Facts, verdict: NextVerdict) -> None:
    code = call.paint(verdict.next_action, ROLES.get(verdict.next_action, "bold"))
    call.print(f"NEXT_ACTION: {code}")
    if call.options.quiet:
        return
    about = "everything" if verdict.scope is EVERYTHING else clean_line(verdict.scope, 120)
    call.print(f"{WHO[verdict.decided_by]}; about {about}")
    for reason in verdict.reasons:
        call.print(f"  because {clean_line(with_titles(reason.detail, facts.queue.beads, most=5), 600)}")
    for reason in verdict.notes:
        call.print(
            call.paint(f"  also    {clean_line(with_titles(reason.detail, facts.queue.beads, most=5), 600)}", "muted")
        )
    call.print(f"queue: {queue_line(facts.counts)}")
    for name, words in captions(verdict):
        call.print(f"{name}: {words}")
    if verdict.text:
        call.print()
        call.print(clean_block(verdict.text, 20_000))
