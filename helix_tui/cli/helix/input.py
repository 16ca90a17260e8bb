"""``helix-tui input``: turn a request into governed work, and answer HELIX's questions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import (
    add_agent_options,
    add_autonomy,
    agent_choice_of,
    autonomy_of,
    curator_of,
    delegate_of,
    explained,
    questions_of,
    refuse_in_attempt,
    show_dry_run,
)
from helix_tui.cli.helix.stage import conclude, known_of
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.plan import plan
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.supervision.signals.escalation import answering, decide_escalation, deciding, escalated, kept_by
from helix_tui.core.supervision.signals.questions import UnknownQuestion, still_asked
from helix_tui.core.supervision.signals.responses import ApprovalNeeded, Autonomy
from helix_tui.core.supervision.stages.results import answer_question
from helix_tui.core.supervision.stages.stage_run import command_of, perform
from helix_tui.core.supervision.stages.table import STAGES

GIVEN_UP = "the kept change {} is given up: it stays at its ref, and the next attempt starts over"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("request", nargs="?", default="", help="what is wanted, in your own words")
    add_autonomy(parser)
    parser.add_argument("--questions", action="store_true", help="list what waits for an answer")
    parser.add_argument("--answer", nargs=2, metavar=("ID", "TEXT"), default=None, help="answer a question")
    add_agent_options(parser)


def run(call: Call) -> int:
    """List questions, answer one, or pass a request to an agent."""
    options = call.options
    if sum((bool(options.request), options.questions, options.answer is not None)) != 1:
        raise CliError("input takes exactly one request (or --questions, or --answer ID TEXT)", exit_code=1)
    if options.questions:
        return _questions(call)
    if options.answer is not None:
        return _answer(call, *options.answer)
    return _request(call)


def _request(call: Call) -> int:
    refuse_in_attempt(call)
    level = autonomy_of(call)
    agent_choice, stage = agent_choice_of(call), STAGES["input"]
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        if call.options.dry_run:
            return show_dry_run(call, [command_of(curator.project, delegate, stage, agent_choice)], autonomy=level)
        curator.gate.check()
        questions = questions_of(curator)
        try:
            Autonomy(level, questions).permit("stage", call.options.request, f"shape: {call.options.request}?")
        except ApprovalNeeded as need:
            if need.refused:
                raise CliError(f"a person refused it ({need})", "Run the command again; it will ask again.") from None
            raise CliError(
                f"autonomy low: a person must approve it first ({need})",
                f"`helix-tui input --answer {need.question_id} yes`, then run the command again.",
            ) from None
        values = {"request": call.options.request, "autonomy": level, **known_of(curator)}
        done = perform(curator.project, delegate, stage, values, agent_choice, f"input-{call.now}")
        return conclude(call, curator, done, level)


def _questions(call: Call) -> int:
    with explained():
        curator = curator_of(call)
        waiting = [
            {
                "id": each.id,
                "kind": each.kind,
                "bead_id": each.bead_id or None,
                "text": each.text,
                "options": each.options,
                "raised_at": each.raised_at,
            }
            for each in still_asked(questions_of(curator).open(), _beads(curator))
        ]
        waiting += _escalated(curator)
    if call.json:
        call.emit({"questions": waiting})
        return 0
    if not waiting:
        call.print("nothing waits for an answer")
    for asked in waiting:
        options = f" [{' / '.join(asked['options'])}]" if asked["options"] else ""
        call.print(f"{clean_line(asked['id'])}  {asked['kind']}  {clean_line(asked['text'], 300)}{options}")
    if waiting:
        call.print(f"answer with: helix-tui input --answer {clean_line(waiting[0]['id'])} TEXT")
    return 0


def _beads(curator: Curator) -> Mapping[str, Bead]:
    """The tracker's beads; none if it cannot be read."""
    try:
        return curator.look().queue.beads
    except Unreadable:
        return {}


def _escalated(curator: Curator) -> list[dict[str, Any]]:
    """Escalation beads, made for a person to decide; the bead's id serves as the question's."""
    try:
        queue = curator.look().queue
    except Unreadable:
        return []  # the questions can be listed anyway
    return [
        {
            "id": bead_id,
            "kind": kind,
            "bead_id": bead_id,
            "text": reason,
            "options": (),
            "raised_at": queue.beads[bead_id].created_at or None,
        }
        for kind, bead_id, reason in escalated(queue)
    ]


def _answer(call: Call, question_id: str, text: str) -> int:
    with explained():
        curator = curator_of(call)
        if call.options.dry_run:
            return _foretell(call, curator, question_id, text)
        try:
            question, given_up = answer_question(curator, questions_of(curator), question_id, text)
        except UnknownQuestion:
            return _decide(call, curator, question_id, text)
    if call.json:
        said = {"id": question.id, "answer": question.answer, "answered_at": question.answered_at}
        call.emit(said | {"given_up": given_up or None})
    else:
        call.print(f"{question.id} answered" + (f"; {GIVEN_UP.format(given_up)}" if given_up else ""))
    return 0


def _foretell(call: Call, curator: Curator, question_id: str, text: str) -> int:
    """The commands that an answer would run; none if the question is not about a bead."""
    # if there is no such question, the id may be that of an escalation bead
    asked = next((each for each in questions_of(curator).open() if each.id == question_id), None)
    commands: Sequence[Sequence[str]] = ()
    if asked is None or (asked.bead_id and asked.kind != "approval"):
        queue = curator.look().queue
        kept = kept_by(curator.project, queue.beads)
        try:
            if asked is None:
                requested = deciding(queue, question_id, text, kept)
            else:
                requested = answering(queue.beads[asked.bead_id], text, queue.as_of, kept)
        except KeyError:
            if asked is None:
                raise _unknown(question_id) from None
            requested = []
        commands = plan(requested, queue, curator.dialect()).commands
    if not commands:
        call.note("no ddx command would run; the answer would be kept in .helix/questions.json")
    return show_dry_run(call, commands, question=question_id, answer=text)


def _unknown(question_id: str) -> CliError:
    return CliError(f"no open question {clean_line(question_id, 40)}", "`helix-tui input --questions` lists them.")


def _decide(call: Call, curator: Curator, bead_id: str, text: str) -> int:
    """Answer an escalation, which is a bead and not a question."""
    with explained():
        try:
            decide_escalation(curator, bead_id, text)
        except KeyError:
            raise _unknown(bead_id) from None
    if call.json:
        call.emit({"id": bead_id, "answer": text, "answered_at": format_instant(now_ns())})
    else:
        call.print(f"{clean_line(bead_id)} decided and closed")
    return 0
