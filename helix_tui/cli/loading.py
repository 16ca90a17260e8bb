"""The present data of a project, read once, for the commands that print it.

`core.live.take_snapshot` reads more than a queue needs; what one cold process pays counts here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from helix_tui.cli.call import Call, CliError
from helix_tui.core.beads.readiness import Claims, Era, Queue, classify
from helix_tui.core.beads.tracker import Tracker, read_tracker
from helix_tui.core.ddx.workers.running import Run, RunReader
from helix_tui.core.project import Project, find_project
from helix_tui.core.text import clean_line

NO_TRACKER = (
    "`ddx init` makes one here; -C DIR names another project; `helix-tui demo` shows a throw-away one."
)


@dataclass(frozen=True, slots=True)
class Present:
    """One project's tracker and the queue that it makes."""

    project: Project
    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...]
    """What some file calls running, dead claims too."""


def locate(call: Call) -> Project:
    """The project of this call: the folder that ``-C`` names where it has a ``.ddx``, else its git root."""
    if not call.directory.is_dir():
        raise CliError(f"{clean_line(str(call.directory))} is not a folder", "Name the project with -C DIR.")
    project = find_project(call.directory)
    named = call.options.directory
    if named is not None and not os.environ.get("DDX_BEAD_DIR"):
        here = named.absolute()
        if here != project.root and (here / ".ddx").is_dir():
            return replace(project, root=here, ddx_dir=here / ".ddx")
    return project


def load(call: Call, *, era: Era = "auto", digest: bool = False) -> Present:
    """Read and judge the tracker of this call's project.

    Raises:
        CliError: there is none, or it cannot be read.
    """
    project = locate(call)
    tracker = read_tracker(project.beads_file, digest=digest)
    path = clean_line(str(project.beads_file))
    if tracker.missing:
        raise CliError(f"no queue here: looked for {path}", NO_TRACKER)
    if tracker.problem:
        raise CliError(tracker.problem, f"Look at {path}: DDx itself needs to read it too.")
    return judge(call, project, tracker, era=era)


def judge(
    call: Call, project: Project, tracker: Tracker, *, era: Era = "auto", now: int | None = None
) -> Present:
    """What runs, and which bead stands where, as of the call's instant or of another one."""
    now = call.now if now is None else now
    reader = RunReader(project)
    runs = reader.find(tracker.beads, now)
    claims = Claims(
        leases=reader.fresh_leases(now),
        running=frozenset(run.bead_id for run in runs if run.live and run.bead_id),
        origin_head=project.origin_head() or "",
    )
    return Present(project, tracker, classify(tracker.beads, now=now, era=era, claims=claims), runs)


def find_bead(queue: Queue, text: str) -> str:
    """The id that a text stands for: the id itself, or the beginning or end of exactly one.

    Raises:
        CliError: no id fits, or several do.
    """
    if text in queue.beads:
        return text
    fits = [
        bead_id for bead_id in queue.beads if text and (bead_id.startswith(text) or bead_id.endswith(text))
    ]
    if len(fits) == 1:
        return fits[0]
    shown = clean_line(text, 60)
    if fits:
        some = ", ".join(clean_line(bead_id, 60) for bead_id in fits[:6])
        more = f" and {len(fits) - 6} more" if len(fits) > 6 else ""
        raise CliError(f"“{shown}” fits {len(fits)} beads: {some}{more}", "Write more of the id.")
    from difflib import get_close_matches

    near = get_close_matches(text[:80], queue.beads, n=3)
    hint = f"Near it: {', '.join(clean_line(bead_id, 60) for bead_id in near)}." if near else ""
    raise CliError(f"no bead “{shown}” in the tracker", hint or "`helix-tui queue` lists the ids.")
