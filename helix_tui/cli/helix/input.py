"""``helix-tui input``: a request becomes governed work; and the questions that HELIX asks get their
answers.
"""

from __future__ import annotations

import argparse

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.helix.shared import (
    add_agent_options,
    add_autonomy,
    autonomy_of,
    curator_of,
    delegate_of,
    explained,
    questions_of,
    show_dry_run,
    wishes_of,
)
from helix_tui.cli.helix.stage import conclude, facts_of
from helix_tui.core.supervision.answering import answer_question
from helix_tui.core.supervision.autonomy import ApprovalNeeded, Autonomy
from helix_tui.core.supervision.questions import UnknownQuestion
from helix_tui.core.supervision.stages import STAGES
from helix_tui.core.supervision.stagework import command_of, perform
from helix_tui.core.text import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("request", nargs="?", default="", help="what is wanted, in your own words")
    add_autonomy(parser)
    parser.add_argument("--questions", action="store_true", help="list what waits for an answer")
    parser.add_argument("--answer", nargs=2, metavar=("ID", "TEXT"), default=None, help="answer a question")
    add_agent_options(parser)


def run(call: Call) -> int:
    """List, answer, or hand a request to an agent."""
    options = call.options
    if sum((bool(options.request), options.questions, options.answer is not None)) != 1:
        raise CliError("input takes exactly one request (or --questions, or --answer ID TEXT)", code=1)
    if options.questions:
        return _questions(call)
    if options.answer is not None:
        return _answer(call, *options.answer)
    return _request(call)


def _request(call: Call) -> int:
    level = autonomy_of(call)
    wishes, stage = wishes_of(call), STAGES["input"]
    with explained():
        curator = curator_of(call)
        delegate = delegate_of(call, curator)
        if call.options.dry_run:
            return show_dry_run(call, [command_of(curator.project, delegate, stage, wishes)], autonomy=level)
        curator.gate.check()
        questions = questions_of(curator)
        try:
            Autonomy(level, questions).permit(
                "stage", call.options.request, f"shape: {call.options.request}?"
            )
        except ApprovalNeeded as need:
            raise CliError(
                f"autonomy low: a person must say yes first ({need})",
                f"helix-tui input --answer {need.question_id} yes, then give the command again."
                if need.question_id
                else "",
            ) from None
        values = {"request": call.options.request, "autonomy": level, "facts": facts_of(curator)}
        done = perform(curator.project, delegate, stage, values, wishes, f"input-{call.now}")
        return conclude(call, curator, done, level)


def _questions(call: Call) -> int:
    with explained():
        asked = questions_of(curator_of(call)).open()
    if call.json:
        call.emit(
            {
                "questions": [
                    {
                        "id": each.id,
                        "kind": each.kind,
                        "bead_id": each.bead_id or None,
                        "text": each.text,
                        "options": each.options,
                        "raised_at": each.raised_at,
                    }
                    for each in asked
                ]
            }
        )
        return 0
    if not asked:
        call.print("nothing waits for an answer")
    for each in asked:
        options = f" [{' / '.join(each.options)}]" if each.options else ""
        call.print(f"{each.id}  {each.kind}  {clean_line(each.text, 300)}{options}")
    if asked:
        call.print(f"answer with: helix-tui input --answer {asked[0].id} TEXT")
    return 0


def _answer(call: Call, question_id: str, text: str) -> int:
    with explained():
        curator = curator_of(call)
        if call.options.dry_run:
            return show_dry_run(call, [], question=question_id, answer=text)
        try:
            question = answer_question(curator, questions_of(curator), question_id, text)
        except UnknownQuestion:
            raise CliError(
                f"no open question {clean_line(question_id, 40)}", "helix-tui input --questions lists them."
            ) from None
    if call.json:
        call.emit({"id": question.id, "answer": question.answer, "answered_at": question.answered_at})
    else:
        call.print(f"{question.id} answered")
    return 0
