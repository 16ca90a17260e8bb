"""``helix-tui triage``: create a bead only if it keeps the authoring rules."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from helix_tui.cli.call import Call
from helix_tui.cli.editing import create
from helix_tui.cli.editing.change import change, tell
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.ground.text import clean_line

_BUILDS = ("build", "deploy", "iterate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``create``, under HELIX's names."""
    create.add_arguments(parser)
    parser.add_argument("--deps", action="append", default=[], metavar="ID,ID", help="the same as --depends-on")
    parser.add_argument("--design", default="", metavar="TEXT", help="how to do it")
    parser.add_argument("--superseded-by", default="", metavar="ID")
    parser.add_argument("--replaces", default="", metavar="ID")
    parser.add_argument("--execution-eligible", default="", choices=("true", "false"), help="default: from its phase")
    parser.add_argument("--silent", action="store_true", help="print only the id and errors")


def run(call: Call) -> int:
    """Check the bead and create it; its phase decides whether workers may pick it."""
    options = call.options
    options.depends_on = [*options.depends_on, *options.deps]
    given = {
        "design": options.design,
        "superseded-by": options.superseded_by,
        "replaces": options.replaces,
        "execution-eligible": options.execution_eligible or _eligible(options.labels, options.fields),
    }
    options.fields = [*options.fields, *(f"{key}={value}" for key, value in given.items() if value)]
    return change(call, lambda queue: [create.operation(call, queue)], telling=_print)


def _print(call: Call, done: Result, curator: Curator) -> int:
    """The new bead's id alone on stdout, for scripts; everything else on stderr."""
    if call.json:
        return tell(call, done, curator)
    for bead_id in done.created.values():
        call.print(clean_line(bead_id))
    if call.options.silent and done.error is None and not (done.problems or done.plan.refusals):
        return 0
    # scripts read all of stdout as the id
    return tell(replace(call, aside=True), done, curator)


def _eligible(labels: list[str], fields: list[str]) -> str:
    """True for beads that build, deploy or iterate; beads of other phases are not executed."""
    if any(field.startswith("execution-eligible=") for field in fields):
        return ""
    words = {text.strip() for word in labels for text in word.split(",")}
    building = any(f"{kind}:{phase}" in words for kind in ("phase", "activity") for phase in _BUILDS)
    return "true" if building else "false"
