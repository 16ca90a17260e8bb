"""``helix-tui doctor``: what is here, what is not, and whether ddx and we see the same queue."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import wrap
from typing import Any

from helix_tui import __version__
from helix_tui.cli.call import Call
from helix_tui.cli.loading import NO_TRACKER, Present, judge, locate
from helix_tui.cli.memory.report import examine_memory
from helix_tui.cli.queue_lines import claims_left, counts_of
from helix_tui.cli.report.checks import DoctorCheck
from helix_tui.cli.setup.agreement import examine_ddx
from helix_tui.core.beads.tracker import Tracker, find_archived, read_archive, read_tracker
from helix_tui.core.ddx.git_state import implementation_changes, tracked
from helix_tui.core.ddx.runs.running import beads_at_work, gone
from helix_tui.core.ground import process
from helix_tui.core.ground.files import NAMES
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, counted

_MARKS = {True: ("ok   ", "success"), False: ("BAD  ", "error"), None: ("–    ", "muted")}


_MAX_FILES = 5
"""Uncommitted files that are named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A report to attach to an issue."""
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        type=Path,
        help="pack log, versions, settings, sizes and eras into a zip, secrets removed",
    )


def run(call: Call) -> int:
    """Look at everything; 1 when something is wrong."""
    checks = list(examine(call))
    packed: dict[str, Any] = {}
    if call.options.bundle and call.options.dry_run:
        call.note(f"{call.options.bundle} is not written (--dry-run)")
    elif call.options.bundle:
        packed = _pack(call, checks)
    if call.json:
        found = [{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks]
        call.emit({"checks": found, **packed})
    elif packed:
        call.print(f"{packed['bundle']} holds, without secrets and texts of beads:")
        for part in packed["contents"]:
            call.print(f"  {part['bytes']:>10,}  {part['name']}")
    else:
        for line in listing(call, checks):
            call.print(line)
    if packed:
        return 0
    return 1 if any(check.ok is False for check in checks) else 0


def _pack(call: Call, checks: list[DoctorCheck]) -> dict[str, Any]:
    from helix_tui.cli.setup.bundle import write_bundle

    target: Path = call.options.bundle
    contents = [{"name": name, "bytes": size} for name, size in write_bundle(call, target, checks)]
    return {"bundle": str(target), "contents": contents}


def listing(call: Call, checks: list[DoctorCheck]) -> list[str]:
    """Each check in as many lines as it needs."""
    width = max(len(check.name) for check in checks)
    indent = " " * (width + 7)
    lines = []
    for check in checks:
        mark, role = _MARKS[check.ok]
        room = call.paint.width - len(indent)
        first, *rest = wrap(clean_line(check.detail), room) or [""]
        lines.append(f"{call.paint(mark, role)}{check.name:<{width}}  {first}")
        if check.fix and check.ok is not True:
            rest += [call.paint(line, "muted") for line in wrap(clean_line(check.fix), room)]
        lines += [indent + line for line in rest]
    return lines


def examine(call: Call) -> Iterator[DoctorCheck]:
    """Every check, in the order in which one would look."""
    parts = (
        f"helix-tui {__version__}",
        f"Python {platform.python_version()}",
        f"textual {_version('textual')}",
    )
    yield DoctorCheck("program", True, ", ".join(parts))
    yield _terminal()
    yield _git()
    project = locate(call)
    yield _project(project)
    yield from _work_tree(project)
    yield from _last_worker(project)
    tracker = read_tracker(project.beads_file)
    yield _tracker(project, tracker)
    yield from _archive(project)
    lacking = tracker.missing and not project.ddx_dir.is_dir()
    present = None if lacking or tracker.problem else judge(call, project, tracker)
    if present is not None:
        yield from _queue(present)
    yield from examine_ddx(call, project, present)
    yield from examine_memory(project)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _terminal() -> DoctorCheck:
    size = shutil.get_terminal_size((0, 0))
    where = "tmux" if os.environ.get("TMUX") else "no tmux"
    encoding = (sys.stdout.encoding or "ascii").lower()
    detail = f"TERM={os.environ.get('TERM', 'unset')}, {where}, {encoding}"
    if sys.stdout.isatty():
        detail += f", {size.columns}×{size.lines}"
    if "utf" not in encoding:
        return DoctorCheck("terminal", False, detail, "Set LANG=C.UTF-8, or start the console with --ascii.")
    return DoctorCheck("terminal", True, detail)


def _git() -> DoctorCheck:
    git = shutil.which("git")
    if git is None:
        return DoctorCheck("git", False, "no git on PATH", "Install git: the demo and DDx itself need it.")
    try:
        done = process.run([git, "--version"], timeout=10)
    except OSError as error:
        return DoctorCheck("git", False, f"{git} does not start: {error}", "Try `git --version` by hand.")
    if done.timed_out:
        return DoctorCheck("git", False, f"{git} does not answer", "Try `git --version` by hand.")
    return DoctorCheck("git", done.rc == 0, clean_line(done.out) or git)


def _project(project: Project) -> DoctorCheck:
    branch = project.branch()
    detail = f"{project.root}, " + (f"branch {branch}" if branch else "no git repository around it")
    if project.ddx_dir.is_dir():
        return DoctorCheck("project", True, f"{detail}, records in {project.ddx_dir}")
    return DoctorCheck("project", False, f"{detail}; no {project.ddx_dir}", NO_TRACKER)


def _last_worker(project: Project) -> Iterator[DoctorCheck]:
    """What stopped the last worker, and would stop the next one."""
    from helix_tui.core.supervision.signals.stoppage import find_stoppage

    stoppage = find_stoppage(project)
    if stoppage is not None:
        ok = True if stoppage.present is False else False if stoppage.present else None
        yield DoctorCheck("last worker", ok, stoppage.words, stoppage.fix)


def _work_tree(project: Project) -> Iterator[DoctorCheck]:
    """What would keep ddx from beginning an attempt, and what of ours git should not know."""
    if project.git_dir is None:
        return
    found = implementation_changes(project.root)
    if found is None:
        yield DoctorCheck("work tree", None, "git cannot tell what is uncommitted here")
    elif found:
        some = ", ".join(clean_line(path, 80) for path in found[:_MAX_FILES])
        more = f" and {len(found) - _MAX_FILES} more" if len(found) > _MAX_FILES else ""
        yield DoctorCheck(
            "work tree",
            False,
            f"{counted(len(found), 'file')} not committed: {some}{more}",
            "ddx since May 2026 starts no attempt beside such changes, ddx of April commits them with the "
            "next attempt. Commit them, or `git stash --include-untracked`.",
        )
    else:
        yield DoctorCheck("work tree", True, "nothing uncommitted that would stop ddx")
    ours = [path for path in tracked(project.root, NAMES) if "/prompts/" not in path]
    if ours:
        folders = " ".join(sorted({path.split("/")[0] for path in ours}))
        detail = f"git tracks {counted(len(ours), 'file')} that helix-tui changes: {clean_line(ours[0], 80)}"
        fix = f"`git rm -r --cached {folders}`, and commit that; the files stay."
        yield DoctorCheck("files of ours", False, detail, fix)


def _tracker(project: Project, tracker: Tracker) -> DoctorCheck:
    if tracker.missing:
        here = project.ddx_dir.is_dir()
        detail = f"no bead yet: {project.beads_file} is not there" if here else f"no {project.beads_file}"
        return DoctorCheck("tracker", None if here else False, detail, "`ddx bead create` makes the first bead.")
    if tracker.problem:
        return DoctorCheck("tracker", False, tracker.problem, "DDx itself needs to read it too.")
    detail = f"{counted(len(tracker.beads), 'bead')} in {counted(tracker.rows, 'row')}, {tracker.size:,} bytes"
    if tracker.folded:
        detail += f", {counted(len(tracker.folded), 'id')} on more than one line"
    if tracker.dropped:
        first = tracker.dropped[0]
        return DoctorCheck(
            "tracker",
            False,
            f"{detail}; {counted(len(tracker.dropped), 'line')} unread: {first.line}, {first.reason}",
            "`helix-tui queue --json` lists them under dropped. DDx drops them at its next write.",
        )
    return DoctorCheck("tracker", True, detail)


def _archive(project: Project) -> Iterator[DoctorCheck]:
    """What of ddx's archive cannot be read."""
    archive = read_archive(project.archive_file)
    if archive.problem:
        yield DoctorCheck("archive", False, archive.problem, "What it holds is neither counted nor found.")
    elif archive.dropped:
        yield DoctorCheck("archive", False, archive.unread, "Their content is neither counted nor found.")


def _queue(present: Present) -> Iterator[DoctorCheck]:
    queue = present.queue
    states = ", ".join(f"{number} {state}" for state, number in queue.counts().items())
    said = f"judged by the rules of {present.judged_by}: {states or 'empty'}"
    put_away = counts_of(present.project, queue).put_away
    yield DoctorCheck("queue", True, ", ".join(filter(None, (said, put_away))))
    for remark in present.remarks:
        yield DoctorCheck("ddx and tracker", False, remark, "See `helix-tui queue`.")
    missing = {edge.missing for edge in queue.graph.dangling}
    if missing:
        waiting = len({edge.bead_id for edge in queue.graph.dangling})
        said = f"{counted(waiting, 'bead waits', 'beads wait')} for {len(missing)} not in the tracker"
        away = len(find_archived(present.project.archive_file, missing))
        said += f", {away} of them archived" if away else ""
        fix = "They are never ready, and ddx does not report it: `helix-tui queue --json`, under dangling."
        yield DoctorCheck("dependencies", False, said, fix)
    if queue.graph.cycles:
        yield DoctorCheck(
            "cycles",
            False,
            counted(len(queue.graph.cycles), "dependency cycle"),
            "`helix-tui queue --json` lists them under cycles; take one edge out of each.",
        )
    held, free, lost = gone(present.runs, queue)
    at_work = f"{len(beads_at_work(present.runs))} at work"
    if held:
        fix = "`helix-tui needs` says which, and what can be done."
        yield DoctorCheck("workers", False, claims_left(held, free, lost), fix)
    elif free or lost:
        yield DoctorCheck("workers", True, f"{at_work}; {claims_left(held, free, lost)}")
    else:
        yield DoctorCheck("workers", True, at_work)
