"""The planning commands, by the table of stages: align, backfill, design, polish, review, evolve, frame."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.commands import ROWS
from helix_tui.cli.helix.shared import (
    add_agent_options,
    agent_choice_of,
    autonomy_of,
    curator_of,
    delegate_of,
    explained,
    note_unheard,
    questions_of,
    refuse_in_attempt,
    show_dry_run,
)
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.plan import plan
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.supervision.decide.check import Checker, facts_text
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.signals.responses import Level
from helix_tui.core.supervision.signals.scope import WORD, read_scope
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate
from helix_tui.core.supervision.stages.results import raise_from
from helix_tui.core.supervision.stages.stage_run import (
    StageOutcome,
    acquire,
    command_of,
    find_missing,
    hand_back,
    perform,
    plan_governing,
    stage_context,
)
from helix_tui.core.supervision.stages.table import STAGES, Stage, render

_ROUNDS = {"design": 5, "polish": 6}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    stage = stage_of(parser.prog.split()[-1])
    if stage.name == "evolve":
        parser.add_argument("request", nargs="?", default="", help="the requirement")
        parser.add_argument("--scope", default=WORD, help="where it belongs")
        parser.add_argument("--artifact", default="", metavar="ID", help="the document that it goes into")
        parser.add_argument("--from", dest="source", default="", metavar="SRC", help="where it comes from")
    else:
        parser.add_argument("scope", nargs="?", default=stage.scope, help=f"what it is about (default: {stage.scope})")
    if stage.name in _ROUNDS:
        parser.add_argument(
            "--rounds",
            type=_rounds,
            default=_ROUNDS[stage.name],
            metavar="N",
            help=f"at most this many rounds (default: {_ROUNDS[stage.name]})",
        )
    add_agent_options(parser)


def run(call: Call) -> int:
    """Run one stage."""
    refuse_in_attempt(call)
    stage = stage_of(call.command)
    values = _values(call, stage)
    agent_choice, level = agent_choice_of(call), autonomy_of(call)
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        _refuse_missing(curator, stage, values["scope"])
        values |= {**known_of(curator, about_of(call, stage)), "autonomy": level}
        if call.options.dry_run:
            return _dry_run(call, curator, delegate, stage, agent_choice, values)
        curator.gate.check()
        curator.require_allowed()
        stamp = f"{stage.name}-{call.now}"
        # Checked first, so that no governing bead is created when the agent is not installed.
        command = command_of(curator.project, delegate, stage, agent_choice)
        note_unheard(call, command, agent_choice.for_agent(stage.agent))
        if not stage.governed:
            done = perform(curator.project, delegate, stage, values, agent_choice, stamp)
            return conclude(call, curator, done, level)
        governing, _ = acquire(curator, read_scope(values["scope"]))
        values["bead"] = governing.bead_id
        if not call.options.quiet:
            call.note(f"helix: governing bead {clean_line(governing.bead_id)} ({governing.mode})")
        done = perform(curator.project, delegate, stage, values, agent_choice, stamp)
        # whatever the result: a governing bead that stays claimed blocks the next alignment
        left = hand_back(curator, governing)
        if left:
            call.note(f"helix: {clean_line(left, 400)}")
        code = conclude(call, curator, done, level, governing=governing.bead_id)
        _print_governing(call, curator, governing.bead_id, done)
    return code


def _refuse_missing(curator: Curator, stage: Stage, word: str) -> None:
    """Refuse a scope that does not exist, before an agent is paid to look at it."""
    from helix_tui.core.editing.undo import Unreadable

    try:
        queue = curator.look().queue
    except Unreadable:  # a repository without a queue can be reviewed too
        return
    missing = find_missing(curator.project, queue, stage, word)
    if missing is None:
        return
    near = ", ".join(clean_line(name, 80) for name in missing.near)
    raise CliError(
        f"cannot {stage.name} {clean_line(word, 120)}: {missing.why}",
        (f"Similar: {near}. " if near else "`helix-tui queue` lists the beads. ")
        + f"Without a scope the scope is {'the last commit' if stage.scope != WORD else 'the whole repository'}.",
    )


def _print_governing(call: Call, curator: Curator, bead_id: str, done: StageOutcome) -> None:
    """Remind the user to close a governing bead whose work is done: while it is open it blocks the next one."""
    bead = curator.look().queue.beads.get(bead_id)
    if done.status == "COMPLETE" and bead is not None and bead.status not in TERMINAL:
        call.note(
            f"helix: {clean_line(bead_id)} is still {clean_line(bead.status)}: look at the report, then "
            f"`helix-tui close {clean_line(bead_id)}`"
        )


def stage_of(command: str) -> Stage:
    """The stage of a command or of its alias."""
    return STAGES[ROWS[command].alias_of or command]


def conclude(call: Call, curator: Curator, done: StageOutcome, level: Level, *, governing: str = "") -> int:
    """Raise the questions that a stage leaves to a person, report how it ended, and return the exit code."""
    raised = raise_from(curator, questions_of(curator), done, level)
    for question in raised:
        call.note(f"helix: question ({question.id}, {question.kind}): {clean_line(question.text, 400)}")
    code = report(call, done, governing=governing)
    return code or (1 if any(question.stops for question in raised) else 0)


def report(call: Call, done: StageOutcome, *, governing: str = "") -> int:
    """Print a stage's answer and whether it kept its contract."""
    if call.json:
        call.emit(
            {
                "stage": done.stage.name,
                "status": done.status or None,
                "trailers": done.trailers.values,
                "problems": [*done.problems, *([done.answer.problem] if done.answer.problem else [])],
                "answer": done.answer.text,
                "tokens": done.answer.tokens,
                "cost_usd": done.answer.cost_usd,
                "governing_bead": governing or None,
                "exit_code": done.code,
                "log": done.answer.log,
            }
        )
    elif done.answer.text and not call.options.quiet:
        call.print(clean_block(done.answer.text).rstrip("\n"))
    for line in _closing(done):
        call.note(f"helix: {line}")
    if done.answer.problem:
        call.note(f"helix: {done.stage.name} failed: {clean_line(done.answer.problem, 400)}")
    for problem in done.problems:
        call.note(f"helix: {clean_line(problem, 400)}")
    return done.code


def _closing(done: StageOutcome) -> list[str]:
    """The stage's own trailers in a line or two."""
    trailers = done.trailers
    if done.ok and not done.status and done.stage.status is not None:
        return [f"the answer has no {done.stage.status.name} trailer: read it for the result"]
    if done.stage.name == "review" and done.status == "ISSUES_FOUND" and not done.problems:
        filed = trailers.get("FINDINGS_FILED") or 0
        return [f"review reported {trailers.get('ISSUES_COUNT')} issue(s), {filed} filed as tracker issues"]
    if done.stage.name == "backfill" and done.ok:
        return [f"research epic={trailers.get('RESEARCH_EPIC')}", f"backfill report={trailers.get('BACKFILL_REPORT')}"]
    return []


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, not {text!r}")
    return int(text)


def _values(call: Call, stage: Stage) -> dict[str, str]:
    options = call.options
    values = {"scope": options.scope, "rounds": str(getattr(options, "rounds", 1))}
    if stage.name == "evolve":
        if not options.request.strip():
            raise CliError("evolve requires a requirement description", 'helix-tui evolve "what to change"')
        more = {"Artifact": options.artifact, "From": options.source}
        extra = "".join(f"\n{name}: {value}" for name, value in more.items() if value)
        values["request"] = options.request + extra
    return values


def about_of(call: Call, stage: Stage) -> str:
    """The document that a stage is about, whichever trailer names it."""
    options = call.options
    return str((options.artifact or options.scope) if stage.name == "evolve" else options.scope)


def known_of(curator: Curator, about: str = "") -> dict[str, str]:
    """The present facts about queue and documents, with their context, as values of a prompt; a repository
    without a queue is no obstacle to planning."""
    from helix_tui.core.editing.undo import Unreadable

    try:
        facts = Checker(curator, questions_of(curator)).facts()
    except Unreadable as error:
        return {"facts": f"No queue: {error}"}
    return {"facts": facts_text(facts, decide(facts), about), "context": stage_context(curator.project, facts.queue)}


def _dry_run(
    call: Call, curator: Curator, delegate: Delegate, stage: Stage, agent_choice: AgentChoice, values: Mapping[str, str]
) -> int:
    commands: list[tuple[str, ...]] = []
    if stage.governed:
        queue = curator.look().queue
        planned = plan_governing(curator, read_scope(values["scope"]), queue)
        commands += plan(planned.operations, queue, curator.dialect()).commands
    commands.append(command_of(curator.project, delegate, stage, agent_choice))
    return show_dry_run(call, commands, prompt=render(curator.project, stage, values).text)
