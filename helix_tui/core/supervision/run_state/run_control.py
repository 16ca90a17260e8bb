"""Start, pause and stop a loop from outside, with files that the loop reads between two beads; and find what can stop a
worker started elsewhere.

``.helix/loop-request.json`` contains the request: ``stop`` (after the current bead) or ``pause``. Alternatively a
signal, SIGINT or SIGTERM, interrupts ddx itself, which ends the attempt (head releases the bead, April leaves its claim
to expire).

No release has a command for "end after the current bead" (docs/decisions/0026). In every release a worker that finds
nothing to pick ends, or idles if it watches. So the softest means is to keep the other beads from workers: it cuts no
attempt short, reaches workers on other machines, and can be undone at once. Next come ddx's own commands for the
workers of its server; last a signal, as ctrl+c in its terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.files import read_bytes, read_end
from helix_tui.core.ground.processes import family as session
from helix_tui.core.ground.processes.start import STDOUT, Process, start
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.ground.writes import open_own, remove, replace_file
from helix_tui.core.supervision.run_state.state import (
    Holder,
    forget_dead,
    load_state,
    pid_path,
    process_lives,
    read_holder,
)
from helix_tui.core.supervision.stages.delegate import logs_folder

LoopRequest = Literal["", "stop", "pause"]

STOP_PATIENCE_S = 10.0

DDX_PATIENCE_S = 6.0
"""Seconds for an interrupted ddx to end its attempt."""

_started: list[Process] = []
"""Runs started by this process, kept so that it reaps them."""

MANAGED = "worker-"
"""Prefix of the ids of workers run by ddx's server; a worker from a command line is ``agent-loop-…``."""

GIVEN_BACK = "ddx ends the attempt and releases the bead"
LEFT_CLAIMED = "ddx ends the attempt and leaves the claim to expire: Needs me will offer to recover it"


class Control(Struct):
    """What a run checks before each step.

    Attributes:
        interrupted: whether a signal came.
        cut: whether it came while ddx was running, which was interrupted for it.
        cold: seconds between two checks while paused.
    """

    project: Project
    interrupted: bool = False
    cold: float = 0.5
    cut: bool = False

    def requested(self) -> LoopRequest:
        """The pending request."""
        return read_request(self.project)

    def stop(self) -> bool:
        """Whether the running ddx is to be interrupted."""
        self.cut = self.cut or self.interrupted
        return self.interrupted

    def rest(self) -> None:
        """Wait a little, while paused."""
        time.sleep(self.cold)


class StopEnding(Struct, frozen=True):
    """The result of a stop.

    Attributes:
        pid: the run's; for ``left`` that of a program which a run or a command that has ended left running, and
            for ``ends`` the same, which may finish its bead.
        alive: processes that would not end.
    """

    pid: int
    how: Literal["none", "stale", "left", "ends", "stopped", "killed", "asked"]
    alive: tuple[int, ...] = ()


class Started(Struct, frozen=True):
    """A run in the background."""

    pid: int
    log: Path
    """What it prints."""
    code: int | None = None
    """Its exit code if it has already ended."""
    said: str = ""
    """Its message, if it failed at once."""

    @property
    def trouble(self) -> str:
        """Why it failed at once, in its own words; else ""."""
        if not self.code:
            return ""
        lines = [line.removeprefix("helix: ").strip() for line in self.said.splitlines() if line.strip()]
        line = next((line for line in lines if not line.startswith("delegating")), "")
        return line or f"it ended at once with exit code {self.code}; see {self.log}"


def request_path(project: Project) -> Path:
    """The file of requests."""
    return project.helix_dir / "loop-request.json"


def read_request(project: Project) -> LoopRequest:
    """The last request."""
    document = decode_json(read_bytes(request_path(project), 4096))
    requested = document.get("wish") if isinstance(document, dict) else None
    return "stop" if requested == "stop" else "pause" if requested == "pause" else ""


def request(project: Project, requested: LoopRequest) -> None:
    """Ask a running loop to stop after the current bead or to pause; ``""`` cancels either.

    Raises:
        OSError: the folder cannot be written.
    """
    if not requested:
        remove(request_path(project))
        return
    document = {"schema": "loop-request/1", "wish": requested, "at": format_instant(now_ns()), "pid": os.getpid()}
    replace_file(request_path(project), msgspec.json.encode(document) + b"\n")


def active_run(project: Project) -> Holder | None:
    """The active run, or None."""
    holder = read_holder(project)
    return holder if holder is not None and holder.live else None


def start_run(
    project: Project, command: Sequence[str], *, env: Mapping[str, str] | None = None, patience: float = 10.0
) -> Started:
    """Start a run in the background, and check that it has found its ddx.

    Args:
        command: the whole command, as ``helix-tui run --summary``.
        patience: seconds to wait for it to get going or to end.

    Raises:
        OSError: it cannot be started.
    """
    log = logs_folder(project) / f"start-{format_instant(now_ns()).replace(':', '').replace('-', '')}.log"
    with open(open_own(log, os.O_WRONLY), "wb") as out:
        process = start(command, cwd=project.root, env=env, stdout=out, stderr=STDOUT)
    _started.append(process)
    logs.logger("loop").info("%s: started in the background as %d", logs.masked(command), process.pid)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and process.poll() is None and not _under_way(project, process.pid):
        time.sleep(0.02)
    code = process.poll()
    return Started(process.pid, log, code, read_end(log, 4096) if code else "")


def _under_way(project: Project, pid: int) -> bool:
    """Whether a run has found something to do: one that only checks may still end at once."""
    state = load_state(project)
    return state.pid == pid and state.phase not in ("starting", "curating", "checking", "stopped")


def stop_run(project: Project, *, now: bool = True, patience: float = STOP_PATIENCE_S) -> StopEnding:
    """Stop the active run: at once by a signal (then by force), or after the current bead by a request.

    Raises:
        HelixError: the process that the pid file names is not provably this run; nothing was signalled.
        OSError: the request cannot be written, or the process is another user's.
    """
    holder = active_run(project)
    if holder is None:
        return _end_of_dead(project, now=now)
    if not now:
        request(project, "stop")
        return StopEnding(holder.pid, "asked")
    require_run(project, holder)
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself since
        os.kill(holder.pid, signal.SIGTERM)
    if _gone(holder, patience):
        return StopEnding(holder.pid, "stopped")
    # killed by force it can neither end its ddx nor remove its pid file: do both here
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGKILL)
    _gone(holder, 2.0)
    with contextlib.suppress(OSError):
        remove(pid_path(project))
    alive = [each for pid in session.left_behind(project.root) for each in _interrupt(pid)]
    return StopEnding(holder.pid, "killed", tuple(alive))


def require_run(project: Project, holder: Holder) -> None:
    """Require that the process of a pid file is a run of this project.

    Raises:
        HelixError: it is not provably one.
    """
    session.require_ours(
        holder.pid,
        f"{holder.path.parent.name}/{holder.path.name}",
        (project.root, project.main_root),
        r"helix([-_]tui)?\0(.*\0)?run\0",
        since=None if holder.locked else parse_instant(holder.started_at) or 0,
    )


def interrupt_worker(project: Project, means: StopMeans, ddx: str) -> tuple[int, ...]:
    """Interrupt a worker of ddx that somebody else started, as ctrl+c in its terminal would; who still lives.

    Args:
        ddx: the name of the executable.

    Raises:
        HelixError: the process is not provably a worker of this project; nothing was signalled.
    """
    command = rf"(ddx|helix[-_]ddx|{re.escape(Path(ddx).name)})\0"
    session.require_ours(
        means.pid, "ddx's record of the worker", (project.root, project.main_root), command, since=means.since
    )
    return _interrupt(means.pid)


def left_at_work(project: Project) -> tuple[int, ...]:
    """What works on here for a run, a command or a console that has ended: pids; none where a run is active."""
    if active_run(project) is not None:
        return ()
    # known by the mark in its environment: what a file says of a process is no proof
    return session.left_behind(project.root)


def _end_of_dead(project: Project, *, now: bool) -> StopEnding:
    """Where no run is active: forget the one that died, and end what was left at work, or let it finish."""
    holder = None
    with contextlib.suppress(OSError):
        holder = forget_dead(project)
    left = left_at_work(project)
    if left and not now:
        return StopEnding(left[0], "ends")
    alive = [each for pid in left for each in _interrupt(pid)]
    if left:
        return StopEnding(left[0], "left", tuple(alive))
    return StopEnding(holder.pid, "stale") if holder is not None else StopEnding(0, "none")


def _interrupt(pid: int) -> tuple[int, ...]:
    """End a ddx and the agent that it started: who still lives. The next run books the result."""
    try:
        # it was started in a session of its own: a signal to the one who started it does not reach it
        return tuple(member.pid for member in session.interrupt(pid, DDX_PATIENCE_S))
    except PermissionError:
        return (pid,)


def _gone(holder: Holder, within: float) -> bool:
    deadline = time.monotonic() + within
    while process_lives(holder.pid, holder.started_at, holder.born):
        if time.monotonic() > deadline:
            return False
        for process in _started:
            process.poll()  # if this process started it, it must be reaped to be gone
        time.sleep(0.02)
    return True


class StopMeans(Struct, frozen=True):
    """One way to stop a worker."""

    kind: Literal["hold", "command", "signal"]
    name: str
    """Its label: a command, or a signal and a process."""
    effect: str
    words: tuple[str, ...] = ()
    """For a command: the arguments after ``ddx``."""
    pid: int = 0
    since: int | None = None
    """For a signal: when the worker was running, by its records."""
    beads: tuple[str, ...] = ()
    """For a hold: the beads to keep from workers."""


def ways_to_stop(run: Run, queue: Queue, dialect: Dialect, *, here: str) -> tuple[StopMeans, ...]:
    """Ways to stop a worker, the softest first; empty if it is not running.

    Args:
        run: the worker.
        here: this machine's name: only its processes can be signalled.
    """
    if not run.live:
        return ()
    found = [hold(queue, {run.bead_id or ""})]
    managed = managed_id(run)
    elsewhere = run.machine not in ("", here)
    # April's server runs workers in its own process: a signal would end other projects' workers too
    server = run.pid is not None and not elsewhere and is_server(run.pid)
    stop, desired = dialect.verbs.get("stop_worker"), dialect.verbs.get("set_workers")
    if stop is not None and (managed or server):
        target = (managed,) if managed else ("--bead", run.bead_id or "")
        words = (*stop.words, *target)
        found.append(StopMeans("command", _shown(words), f"its server cuts the attempt short; {GIVEN_BACK}", words))
    elif desired is not None and managed:
        words = (*desired.words, "--count", "0")
        effect = (
            "its server ends all its workers here within 30 s, and starts no new ones; a running attempt is cut short"
        )
        found.append(StopMeans("command", _shown(words), effect, words))
    if run.pid is not None and not elsewhere and not server:
        effect = GIVEN_BACK if dialect.gives_back else LEFT_CLAIMED
        again = "; its server starts another" if managed and desired is not None else ""
        name = f"ctrl+c (SIGINT) to process {run.pid}"
        found.append(StopMeans("signal", name, effect + again, pid=run.pid, since=run.started_at or 0))
    return tuple(found)


def hold(queue: Queue, at_work: Collection[str]) -> StopMeans:
    """Keep from workers everything they could pick after the current beads."""
    beads = next_picks(queue, at_work)
    count = counted(len(beads), "bead")
    effect = "workers end after the current bead, or idle if they watch; u allows the beads again"
    if not beads:
        return StopMeans("hold", "wait", "nothing else is ready: workers end after the current bead")
    return StopMeans("hold", f"hold {count} (execution-eligible=false)", effect, beads=beads)


def next_picks(queue: Queue, at_work: Collection[str]) -> tuple[str, ...]:
    """The beads that a worker could pick now, in its order, and those that the current beads make ready."""
    freed = [
        bead_id
        for done in at_work
        for bead_id in queue.graph.dependents.get(done, ())
        if queue.state(bead_id) == "waiting_dependencies"
        and all(
            reason.kind == "waiting_dependencies" and set(reason.refs) <= set(at_work)
            for reason in queue.standing(bead_id).reasons
        )
    ]
    return tuple(dict.fromkeys([*(each for each in queue.ready if each not in at_work), *freed]))


def managed_id(run: Run) -> str:
    """The id of a worker in ddx's server; empty if the server does not run it."""
    names = [run.worker_id or "", *(fact.value for fact in run.facts if fact.name == "worker")]
    return next((worker for worker in names if worker.startswith(MANAGED)), "")


def is_server(pid: int) -> bool:
    """Whether a process of this machine is ddx's server with workers in its own process (April): a signal would end
    every worker of every project.
    """
    return "server" in session.words_of(pid)[1:3]


def describe_left(pid: int) -> str:
    """A program that was left at work: which command, for whom."""
    words = session.words_of(pid) or ["a program"]
    shown = clean_line(" ".join([Path(words[0]).name, *words[1:]]), 120)
    return f"`{shown}` (pid {pid}) is still at work for a run, a console or a command that has ended"


def _shown(words: tuple[str, ...]) -> str:
    return " ".join(("ddx", *words))
