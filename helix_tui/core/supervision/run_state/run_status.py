"""What a run is doing, or how the last one ended: its state, its process and the questions that wait.

Reads three small files of ours and the record of ddx's last worker, without asking ddx. The words for it are in
`helix_tui.core.statements.run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.files import is_file
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.run_state.state import Holder, RunState, load_state, read_holder, state_path
from helix_tui.core.supervision.signals.questions import OpenQuestion, read_questions, still_asked
from helix_tui.core.supervision.signals.stoppage import Stoppage, find_stoppage, refused_start

Condition = Literal["never", "active", "died", "stopped"]
"""No run here, one is active, its process ended without a message, it stopped."""


class RunStatus(Struct, frozen=True):
    """The state of a project's run, and who holds it."""

    condition: Condition = "never"
    state: RunState = field(default_factory=RunState)
    holder: Holder | None = None
    questions: tuple[OpenQuestion, ...] = ()
    """Those that wait for an answer."""


def run_status(project: Project, beads: Mapping[str, Bead] | None = None) -> RunStatus:
    """The state of a project's run. Changes nothing.

    Args:
        beads: the queue, which decides whether a question still matters; None: every unanswered one counts.
    """
    state, holder = load_state(project), read_holder(project)
    asked = tuple(q for q in read_questions(project.helix_dir / "questions.json") if not q.answered)
    asked = asked if beads is None else still_asked(asked, beads)
    if holder is not None and holder.live:
        return RunStatus("active", state, holder, asked)
    if not state.run_id and not is_file(state_path(project)):
        return RunStatus("never", state, None, asked)
    return RunStatus("stopped" if state.phase == "stopped" else "died", state, holder, asked)


def last_stoppage(project: Project, runs: Iterable[Run], state: RunState) -> Stoppage | None:
    """What stopped the last worker, by ddx's record of it; else by the end of the last run."""
    runs = tuple(runs)
    stoppage = find_stoppage(project, runs)
    if stoppage is not None or any(run.live for run in runs):
        return stoppage
    return refused_start(project, state.run_id, state.stop_reason, state.stop_detail, state.ended_at)
