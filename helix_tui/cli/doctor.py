"""``helix-tui doctor``: what is here, what is not, and whether ddx and we see the same queue."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from textwrap import wrap

from helix_tui import __version__
from helix_tui.cli.agreement import examine_ddx
from helix_tui.cli.call import Call
from helix_tui.cli.checks import Check
from helix_tui.cli.loading import NO_TRACKER, Present, judge, locate
from helix_tui.cli.memory.checking import examine_memory
from helix_tui.cli.paint import counted
from helix_tui.core.beads.tracker import Tracker, read_tracker
from helix_tui.core.project import Project
from helix_tui.core.text import clean_line

_MARKS = {True: ("ok   ", "success"), False: ("BAD  ", "error"), None: ("–    ", "muted")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no options of its own."""


def run(call: Call) -> int:
    """Look at everything; 1 when something is wrong."""
    checks = list(examine(call))
    if call.json:
        call.emit(
            {"checks": [{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks]}
        )
    else:
        for line in listing(call, checks):
            call.print(line)
    return 1 if any(check.ok is False for check in checks) else 0


def listing(call: Call, checks: list[Check]) -> list[str]:
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


def examine(call: Call) -> Iterator[Check]:
    """Every check, in the order in which one would look."""
    parts = (
        f"helix-tui {__version__}",
        f"Python {platform.python_version()}",
        f"textual {_version('textual')}",
    )
    yield Check("program", True, ", ".join(parts))
    yield _terminal()
    yield _git()
    project = locate(call)
    yield _project(project)
    tracker = read_tracker(project.beads_file)
    yield _tracker(project, tracker)
    present = None if tracker.missing or tracker.problem else judge(call, project, tracker)
    if present is not None:
        yield from _queue(present)
    yield from examine_ddx(call, project, present)
    yield from examine_memory(project)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _terminal() -> Check:
    size = shutil.get_terminal_size((0, 0))
    where = "tmux" if os.environ.get("TMUX") else "no tmux"
    encoding = (sys.stdout.encoding or "ascii").lower()
    detail = f"TERM={os.environ.get('TERM', 'unset')}, {where}, {encoding}"
    if sys.stdout.isatty():
        detail += f", {size.columns}×{size.lines}"
    if "utf" not in encoding:
        return Check("terminal", False, detail, "Set LANG=C.UTF-8, or start the console with --ascii.")
    return Check("terminal", True, detail)


def _git() -> Check:
    git = shutil.which("git")
    if git is None:
        return Check("git", False, "no git on PATH", "Install git: the demo and DDx itself need it.")
    try:
        done = subprocess.run(
            [git, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("git", False, f"{git} does not answer: {error}", "Try `git --version` by hand.")
    return Check("git", done.returncode == 0, clean_line(done.stdout) or git)


def _project(project: Project) -> Check:
    branch = project.branch()
    detail = f"{project.root}, " + (f"branch {branch}" if branch else "no git repository around it")
    if project.ddx_dir.is_dir():
        return Check("project", True, f"{detail}, records in {project.ddx_dir}")
    return Check("project", False, f"{detail}; no {project.ddx_dir}", NO_TRACKER)


def _tracker(project: Project, tracker: Tracker) -> Check:
    if tracker.missing:
        return Check("tracker", False, f"no {project.beads_file}", "`ddx bead create` makes the first bead.")
    if tracker.problem:
        return Check("tracker", False, tracker.problem, "DDx itself needs to read it too.")
    detail = (
        f"{counted(len(tracker.beads), 'bead')} in {counted(tracker.rows, 'row')}, {tracker.size:,} bytes"
    )
    if tracker.folded:
        detail += f", {counted(len(tracker.folded), 'id')} on more than one line"
    if tracker.dropped:
        first = tracker.dropped[0]
        return Check(
            "tracker",
            False,
            f"{detail}; {counted(len(tracker.dropped), 'line')} unread: {first.line}, {first.reason}",
            "`helix-tui queue --json` lists them under dropped. DDx drops them at its next write.",
        )
    return Check("tracker", True, detail)


def _queue(present: Present) -> Iterator[Check]:
    queue = present.queue
    states = ", ".join(f"{number} {state}" for state, number in queue.counts().items())
    yield Check("queue", True, f"judged by the rules of {queue.default_era}: {states or 'empty'}")
    missing = {edge.missing for edge in queue.graph.dangling}
    if missing:
        waiting = len({edge.bead_id for edge in queue.graph.dangling})
        said = f"{counted(waiting, 'bead waits', 'beads wait')} for {len(missing)} not in the tracker"
        fix = "They are never ready, and ddx does not say so: `helix-tui queue --json`, under dangling."
        yield Check("dependencies", False, said, fix)
    if queue.graph.cycles:
        yield Check(
            "cycles",
            False,
            f"{counted(len(queue.graph.cycles), 'circle')} of dependencies",
            "`helix-tui queue --json` lists them under cycles; take one edge out of each.",
        )
    dead = [run for run in present.runs if not run.live]
    if dead:
        yield Check(
            "workers",
            False,
            f"{counted(len(dead), 'claim')} of workers that are gone",
            "`helix-tui queue --json` lists them under running, with live false.",
        )
    else:
        yield Check("workers", True, f"{len(present.runs)} at work")
