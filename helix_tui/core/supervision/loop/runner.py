"""Start a run: take the lock and the last run's state, loop, release the lock.

Used by the console and the command line; `supervise` blocks until the run ends, so call it from a worker thread or a
separate process (`start_run`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from msgspec import Struct

from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.ground.writes import append_file
from helix_tui.core.supervision.decide.check import Checker
from helix_tui.core.supervision.loop.loop import Loop
from helix_tui.core.supervision.loop.work import BlockerReport, LoopWork, RunOptions, Stop
from helix_tui.core.supervision.run_state.budget import Account
from helix_tui.core.supervision.run_state.run_control import Control, request
from helix_tui.core.supervision.run_state.run_log import Teller
from helix_tui.core.supervision.run_state.state import (
    DENIED,
    AlreadyRunning,
    RunState,
    denied_runs,
    fresh_state,
    load_state,
    sole_run,
)
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.signals.responses import Autonomy
from helix_tui.core.supervision.stages.delegate import Delegate, logs_folder


class RunOutcome(Struct, frozen=True):
    """How a run ended and what it did."""

    stop: Stop
    state: RunState


def supervise(
    project: Project,
    curator: Curator,
    delegate: Delegate,
    options: RunOptions,
    *,
    say: Callable[[str], None],
    blockers: BlockerReport,
    control: Control | None = None,
    confirm: Callable[[str], bool] | None = None,
    summary: bool = False,
    quiet: bool = False,
    clock: Callable[[], int] = now_ns,
) -> RunOutcome:
    """Run until something stops it.

    Args:
        say: called with each line for a person.
        blockers: reports at its end what is stuck.
        control: checked before each step; its ``interrupted`` may be set from a signal handler.
        confirm: asks the person at the terminal (autonomy low); None records the question and stops.

    Raises:
        AlreadyRunning: another run of this project is active; it was counted.
        WritesForbidden: --read-only.
        OSError: the project's folder cannot be written.
    """
    curator.gate.check()
    curator.require_allowed()
    control = control or Control(project)
    now = format_instant(clock())
    try:
        with sole_run(project, now=now):
            state = fresh_state(load_state(project), run_id=_run_id(now), now=now)
            state.parallel_run_denied_count = denied_runs(project)
            state.autonomy = options.autonomy
            state.agent = options.agent_choice.harness
            log = logs_folder(project) / f"helix-{_stamp(now)}.log"
            state.log = str(log)
            # a request left for an earlier run must not stop or pause this one
            request(project, "")
            questions = OpenQuestions(project, curator.gate)
            delegate.stop = control.stop
            work = LoopWork(
                project,
                curator,
                delegate,
                options,
                state,
                Teller(log, say, summary=summary, quiet=quiet),
                questions,
                Autonomy(options.autonomy, questions, state.run_id, confirm),
                control,
                Checker(curator, questions, delegate, options.agent_choice),
                Account(project.records_dir, anew=not state.pending),
                blockers,
                clock,
            )
            return RunOutcome(Loop(work).run(), state)
    except AlreadyRunning:
        with contextlib.suppress(OSError):
            _count_denied(project, now)
        raise


def _count_denied(project: Project, now: str) -> None:
    # one short append needs no lock; the state belongs to the active run
    append_file(project.helix_dir / DENIED, f"{now} {os.getpid()}\n".encode())


def _run_id(now: str) -> str:
    return f"run-{_stamp(now)}-{os.getpid()}"


def _stamp(now: str) -> str:
    """``20261121-123456`` of ``2026-11-21T12:34:56Z``."""
    return now.rstrip("Z").replace("-", "").replace(":", "").replace("T", "-")
