"""Find why nothing is running: how the last worker ended, and whether its cause would stop the next one.

One answer for every interface: ``status``, ``check``, ``stuck``, ``doctor``, *Needs me*, the Loop screen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.client import INSTALL_DDX, advice_for, starts_no_work
from helix_tui.core.ddx.git_state import WRITTEN_AT_START, implementation_changes, written_and_shown
from helix_tui.core.ddx.names import status_of
from helix_tui.core.ddx.runs.endings import WorkerEnding, read_ending
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.errors import WHO
from helix_tui.core.ground.files import stamp_of
from helix_tui.core.ground.project import Project, find_ddx
from helix_tui.core.ground.time import format_instant, parse_instant

NO_DDX = "missing_binary"
"""The reason of a run that ended because there is no ddx."""

_NAMED = 5
"""Maximum files named in a sentence."""

_DIRTY = ("checkpoint_dirty", "dirty", "uncommitted")
_FIXES = {
    "routing_unavailable": f"{WHO}; `ddx work` has --harness and --model, `ddx doctor` shows what ddx can reach",
    "budget": "raise --max-cost, or wait for the next day",
    "resource_exhausted": "free disk space or open files, then start a worker again",
    "fatal_config": "correct .ddx/config.yaml: `ddx doctor`",
    "preflight_failed": "`ddx doctor` says what is missing",
    "no_progress": "`helix-tui stuck` names the beads that do not move",
}


class Stoppage(Struct, frozen=True):
    """A worker that ended for a reason that must be fixed."""

    ending: WorkerEnding
    present: bool | None
    """Whether the cause is still there; None if that cannot be checked from here."""
    paths: tuple[str, ...] = ()
    """Files that would stop the next worker now."""
    fix: str = ""
    """What to do about it."""
    command: str = "git status --short"
    """What shows the cause."""
    foretold: bool = False
    """Whether it is what would stop the next worker, whatever the last one did."""
    one_bead: bool = False
    """Whether it concerns nothing but its bead, whose row says what a person can do."""

    @property
    def words(self) -> str:
        """The stoppage in one or two sentences, in ddx's words."""
        if self.foretold:
            return self.ending.message
        said = f": {self.ending.message}" if self.ending.message else ""
        gone = "only this bead is concerned" if self.one_bead else "the cause is gone since"
        state = {
            True: "the cause is still there" + (f": {_some(self.paths)}" if self.paths else ""),
            False: f"{gone}: the next worker can begin",
            None: "whether the cause is still there cannot be seen from here",
        }[self.present]
        return f"the last worker stopped ({self.ending.reason.replace('_', ' ')}){said}; {state}"

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "worker_id": self.ending.worker_id or None,
            "ended_at": format_instant(self.ending.at),
            "reason": self.ending.reason,
            "message": self.ending.message or None,
            "bead_id": self.ending.bead_id or None,
            "dirty_paths": list(self.ending.paths),
            "cause_present": self.present,
            "present_paths": list(self.paths),
            "fix": self.fix or None,
        }


def find_stoppage(project: Project, runs: Iterable[Run] = ()) -> Stoppage | None:
    """What would stop the next worker, else how the last one was stopped; None if nothing, or if one is running now.

    Reads the end of one or two files; runs git only if ddx named uncommitted files.
    """
    if any(run.live for run in runs):
        return None
    foretold = foretell_stoppage(project)
    if foretold is not None:
        return foretold
    ending = read_ending(project.records_dir)
    if ending is None or not ending.troubled:
        return None
    if ending.paths or any(word in ending.reason for word in _DIRTY):
        # ask git now: the files that ddx named may have been committed
        left = implementation_changes(project.root)
        again = _written_again(project, ending)
        if again:
            folders = " and ".join(f"`{folder}`" for folder in again)
            fix = f"enter {folders} in .gitignore and commit that: ddx writes there at each start"
            return Stoppage(ending, True, again, fix)
        fix = "commit them, or `git stash --include-untracked`"
        if not left and not any(word in ending.reason for word in _DIRTY):
            # files were named, but git refused for another reason
            return Stoppage(ending, None, (), _FIXES.get(ending.reason, "correct that, then start a worker again"))
        return Stoppage(ending, None if left is None else bool(left), left or (), fix)
    # the status of an attempt: ddx left its bead to a person, and a worker takes the next one
    if ending.bead_id and status_of(ending.reason).known and ending.reason not in _FIXES:
        return Stoppage(ending, False, one_bead=True)
    return Stoppage(ending, None, (), _FIXES.get(ending.reason, "correct that, then start a worker again"))


def _written_again(project: Project, ending: WorkerEnding) -> tuple[str, ...]:
    """Folders for whose files ddx stopped though it wrote them itself: to commit them helps until its next start."""
    named = [folder for folder in WRITTEN_AT_START if any(path.startswith(folder) for path in ending.paths)]
    return written_and_shown(project.root, named)


def foretell_stoppage(project: Project) -> Stoppage | None:
    """What would keep every release from landing anything here, before a worker was paid to find out; else None."""
    if project.notice:
        ending = WorkerEnding("", 0, "foreign_folder", project.notice)
        return Stoppage(ending, True, (), "correct that, or work in the project itself", foretold=True)
    if project.git_dir is None or not project.detached:
        return None
    stamp = stamp_of(project.git_dir / "HEAD")
    if stamp is None:
        return None  # the repository was removed meanwhile
    said = "no branch is checked out (HEAD is detached): what ddx lands would be on no branch"
    ending = WorkerEnding("", stamp[0], "detached_head", said)
    fix = "check out the branch on which work should land: `git switch BRANCH`"
    return Stoppage(ending, True, (), fix, "git branch", foretold=True)


def refused_start(project: Project, run_id: str, reason: str, detail: str, ended_at: str) -> Stoppage | None:
    """The stoppage by a run's end if no work was started in it, and no worker has ended since; else None."""
    at = parse_instant(ended_at)
    if at is None or not (reason == NO_DDX or starts_no_work(detail)):
        return None
    later = read_ending(project.records_dir)
    if later is not None and later.at >= at:
        return None
    if reason == NO_DDX:
        ending = WorkerEnding(run_id, at, reason, detail.partition("; ")[0])
        here = find_ddx(None, os.environ)
        return Stoppage(ending, here is None, (), INSTALL_DDX, "helix-tui doctor")
    fix = advice_for(detail, ())
    return Stoppage(WorkerEnding(run_id, at, "ddx_started_no_work", detail.partition(f"; {fix}")[0]), None, (), fix)


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
