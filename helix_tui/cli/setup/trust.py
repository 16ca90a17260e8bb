"""``helix-tui trust``: what this repository brings that would run, and whether you allow it."""

from __future__ import annotations

import argparse
import os
import sys

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.trust_question import ask_person, describe
from helix_tui.core.editing.execute.trust import NOT_ALLOWED, allow, brought_by, not_allowed
from helix_tui.core.ground import person
from helix_tui.core.ground.own_folders import why_unused
from helix_tui.core.ground.sqlite import record_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show what it brings and what is allowed")
    what.add_argument("--revoke", action="store_true", help="forget everything that was allowed of this repository")
    what.add_argument("--yes", action="store_true", help="allow without being asked")


def run(call: Call) -> int:
    """Show, allow or revoke."""
    project = locate(call)
    root, options = project.main_root, call.options
    refusals = {name: why_unused(root, name, project.git_dir) for name in (".helix", ".helix-logs")}
    folders = {name: refusal for name, refusal in refusals.items() if refusal and "trust" in refusal.advice}
    if options.revoke and not call.read_only:
        person.revoke(os.path.realpath(root))
    brought, waiting = brought_by(project), not_allowed(project)
    path = project.helix_dir / "helix.db"
    database = record_of(path) if path.is_file() else None
    databases = [] if database is None or person.allows(database) else [database]
    if not (options.show or options.revoke or call.read_only) and (waiting or folders or databases):
        for refusal in folders.values():
            call.note(refusal.message)
        for entry in databases:
            call.note(f"the database {entry.subject} is not known to be yours")
        if not (options.yes or (not call.json and sys.stdin.isatty() and ask_person(call, waiting))):
            raise CliError(
                "nothing was allowed: it was not confirmed", "`helix-tui trust --yes` allows it.", NOT_ALLOWED
            )
        allow(project, waiting)
        person.allow(*(person.Allowed("folder", os.path.realpath(root), name) for name in folders), *databases)
        waiting, folders = (), {}
    if call.json:
        rows = [
            {"subject": item.subject, "runs": item.runs, "lines": item.lines, "allowed": item not in waiting}
            for item in brought
        ]
        call.emit({"repository": root, "brought": rows, "folders": sorted(folders)})
        return 0
    for item in brought:
        call.print(f"{'not allowed' if item in waiting else 'allowed'}  " + "\n".join(describe(item)))
    if not brought:
        call.print("This repository brings nothing that would run.")
    for refusal in folders.values():
        call.print(refusal.message)
    return 0
