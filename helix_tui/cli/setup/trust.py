"""``helix-tui trust``: what this repository brings that would run, and whether you allow it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.trust_question import ask_person
from helix_tui.core.editing.execute.trust import NOT_ALLOWED, Brought, allow, brought_by, not_allowed
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.sqlite import record_of
from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.own_folders import why_unused
from helix_tui.core.ground.trust.person import Allowed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show what it brings and what is allowed")
    what.add_argument("--revoke", action="store_true", help="forget everything that was allowed of this repository")
    what.add_argument("--yes", action="store_true", help="allow without being asked")


def run(call: Call) -> int:
    """Show, allow or revoke."""
    project, options = locate(call), call.options
    if options.revoke and not call.read_only:
        person.revoke(os.path.realpath(project.main_root))
    waiting = (*not_allowed(project), *_unused(project))
    if waiting and not (options.show or options.revoke or call.read_only):
        if not (options.yes or (not call.json and sys.stdin.isatty() and ask_person(call, waiting))):
            raise CliError(
                "nothing was allowed: it was not confirmed", "`helix-tui trust --yes` allows it.", NOT_ALLOWED
            )
        allow(waiting)
        waiting = tuple(_unused(project))
    items = dict.fromkeys((*brought_by(project), *waiting))
    if call.json:
        rows = [
            {"subject": item.subject, "runs": item.runs, "lines": item.lines, "allowed": item not in waiting}
            for item in items
        ]
        folders = sorted(item.subject for item in waiting if item.entry.kind == "folder")
        call.emit({"repository": project.main_root, "brought": rows, "folders": folders})
        return 0
    for item in items:
        call.print(f"{'not allowed' if item in waiting else 'allowed'}  " + "\n".join(item.describe()))
    if not items:
        call.print("This repository brings nothing that would run.")
    return 0


def _unused(project: Project) -> Iterator[Brought]:
    """Folders of ours and a database in them that are not used until the person allows them."""
    for name in (".helix", ".helix-logs"):
        refusal = why_unused(project.main_root, name, project.common_dir if project.primary else project.git_dir)
        if refusal is not None and "trust" in refusal.advice:
            yield Brought(Allowed("folder", os.path.realpath(project.main_root), name), refusal.message)
    path = project.helix_dir / "helix.db"
    record = record_of(path) if path.is_file() else None
    if record is not None and not person.allows(record):
        yield Brought(record, "this database is not known to be yours")
