"""``helix-tui create``: a new bead, checked against the authoring rules first."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import add_dry_run, change, resolve
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing.authoring import AuthoringVerdict, judge
from helix_tui.core.editing.operations import CreateBead
from helix_tui.core.editing.values import edge
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.agents.hooks import SKIP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("title", help="what to do, in one line")
    parser.add_argument("--type", default="task", help="task, bug, epic, chore, … (default: task)")
    parser.add_argument("--priority", default="2", metavar="0-4", help="0 is first (default: 2)")
    parser.add_argument("--labels", action="append", default=[], metavar="A,B", help="repeatable")
    parser.add_argument("--parent", default="", metavar="ID")
    parser.add_argument("--depends-on", action="append", default=[], metavar="ID,ID", help="repeatable")
    parser.add_argument("--spec-id", default="", metavar="ID", help="the document that governs it")
    parser.add_argument("--acceptance", default="", metavar="TEXT", help="how to tell when it is done")
    parser.add_argument("--description", default="", metavar="TEXT")
    parser.add_argument("--notes", default="", metavar="TEXT")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="fields", help="any other field; repeatable"
    )
    parser.add_argument("--allow-vague", action="store_true", help="allow acceptance that no command can check")
    parser.add_argument(
        "--no-triage",
        action="store_true",
        help="create the bead even if it breaks the authoring rules (also: HELIX_SKIP_TRIAGE=1)",
    )
    add_dry_run(parser)


def run(call: Call) -> int:
    """Check the bead and make it."""
    return change(call, lambda queue: [operation(call, queue)])


def operation(call: Call, queue: Queue) -> CreateBead:
    """The bead that the options describe.

    Raises:
        CliError: the authoring rules refuse it.
    """
    options = call.options
    fields = _fields(options.fields)
    labels = [text.strip() for word in options.labels for text in word.split(",") if text.strip()]
    unknown: list[CliError] = []
    parent = next(iter(_found(queue, [options.parent] if options.parent else [], unknown)), "")
    depends_on = _found(queue, options.depends_on, unknown)
    # unknown ids are reported together with what the rules find, so that one correction is enough
    if not options.no_triage and os.environ.get(SKIP) != "1":
        _triage(call, queue, labels, depends_on, fields, unknown)
    elif unknown:
        raise unknown[0]
    return CreateBead(
        title=options.title,
        issue_type=options.type,
        priority=options.priority,
        labels=labels,
        parent=parent,
        depends_on=depends_on,
        spec_id=options.spec_id,
        acceptance=options.acceptance,
        description=options.description,
        notes=options.notes,
        fields=fields,
    )


def _found(queue: Queue, words: Iterable[str], unknown: list[CliError]) -> list[str]:
    """The ids that the words mean; unknown words go into ``unknown`` as errors, to be reported with the rest."""
    ids: list[str] = []
    for word in words:
        for part in [word] if word in queue.beads else word.split(","):
            try:
                ids += resolve(queue, part)
            except CliError as error:
                unknown.append(error)
    return list(dict.fromkeys(ids))


def _fields(words: Iterable[str]) -> dict[str, str]:
    fields = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise CliError(f"--set takes KEY=VALUE, not “{clean_line(word, 60)}”", exit_code=2)
        fields[key] = value
    return fields


def _triage(
    call: Call, queue: Queue, labels: list[str], depends_on: list[str], fields: dict[str, str], unknown: list[CliError]
) -> None:
    """Say what the authoring rules find; stop at an error."""
    options = call.options
    row: dict[str, Any] = {
        "title": options.title,
        "issue_type": options.type,
        "labels": labels,
        "acceptance": options.acceptance,
        "spec-id": options.spec_id or fields.get("spec-id", ""),
        "dependencies": [edge("", target) for target in depends_on],
    }
    verdict: AuthoringVerdict = judge(row, queue.beads, strict=not options.allow_vague)
    for finding in verdict.findings:
        call.note(clean_line(str(finding), 400))
    if unknown and not verdict.errors:
        raise unknown[0]
    said = [*(finding.message for finding in verdict.errors), *(error.message for error in unknown)]
    if verdict.errors:
        vague = not unknown and all(finding.code == "vague" for finding in verdict.errors)
        fix = "Add what is missing, or create the bead anyway with --no-triage."
        raise CliError(
            "the bead was not created: " + "; ".join(clean_line(each, 300) for each in said),
            "Write acceptance that a command can check, or pass --allow-vague." if vague else fix,
        )
