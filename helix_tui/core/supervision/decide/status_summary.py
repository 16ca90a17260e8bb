"""Where the work stands and what should come next, as the console shows it: facts only, nobody is asked.

The answer is that of ``check`` without an agent; where the facts decide nothing, it says what was not looked
at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.decide.check import undecided
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.verdict import NextVerdict, decide
from helix_tui.core.supervision.run_state.control import Wish, read_wish
from helix_tui.core.supervision.run_state.state import RunState
from helix_tui.core.supervision.run_state.status import NO_STATE, RunStatus, run_status
from helix_tui.core.supervision.signals.authority import Authority
from helix_tui.core.supervision.signals.drift import Drift
from helix_tui.core.supervision.signals.orphans import Orphan
from helix_tui.core.supervision.signals.questions import OpenQuestion
from helix_tui.core.supervision.signals.stoppage import Stoppage, find_stoppage

UNKNOWN = NextVerdict("")
NEVER = RunStatus("never", NO_STATE, RunState(), None, ())


@dataclass(frozen=True, slots=True)
class StatusSummary:
    """One look."""

    verdict: NextVerdict = UNKNOWN
    """NEXT_ACTION with its reasons; its code is empty before anything was read."""
    run: RunStatus = field(default=NEVER)
    """How HELIX's own loop stands."""
    wish: Wish = ""
    """What somebody asked the loop for, and it has not done yet."""
    stoppage: Stoppage | None = None
    """What stopped the last worker of ddx, where somebody must mend it."""

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What HELIX asks a person."""
        return self.run.questions


def take_bearing(
    queue_state: QueueState,
    project: Project,
    *,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    dead: Iterable[Orphan] = (),
    authority: Authority | None = None,
) -> StatusSummary:
    """Where the work stands now. Reads a few small files; changes nothing and asks nobody."""
    status = run_status(project)
    stoppage = find_stoppage(project, queue_state.runs)
    facts = gather_facts(
        queue_state,
        drift=drift,
        orphans=orphans,
        dead=dead,
        questions=status.questions,
        authority=authority,
        stoppage=stoppage,
        archive=project.archive_file,
    )
    verdict = decide(facts)
    found = verdict if verdict.decided else undecided(verdict)
    return StatusSummary(found, status, read_wish(project), stoppage)
