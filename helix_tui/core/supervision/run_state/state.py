"""The state of the loop, saved at every step in ``.helix/run-state.json``; and the lock that allows one run at a time.

Shape: docs/formats/helix.md §1a, with a stop reason that carries a code, in HELIX's own folder because
``.ddx/run-state.json`` is ddx's. Counters are those of one run; ``totals`` those of all. A run that died leaves its
phase and, while ddx was running, the file of ddx's answer, which the next run books. `REASONS` say in
words why it ended.

The kernel releases the lock of a dead process; ``.helix/helix.pid`` is for people and contains ``<pid> <ISO 8601
time>``. The same file under ``.ddx``, from this program's shell predecessor, counts too. A pid reused by another
process is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from helix_tui.core.ddx.attempts.costs import Sums, read_sums
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_locked, read_bytes, stamp_of
from helix_tui.core.ground.processes.family import CLOCK_MARGIN, began_at, born_at
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json, fitting_fields
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.ground.writes import open_own, remove, replace_file

PID = "helix.pid"
LOCK = "run.lock"
_TRIES, _STEP_S = 5, 0.02

NAME = "run-state.json"
MAX_STATE = 8 << 20
KEPT_CYCLES = 50
KEPT_INJECTED = 200

DENIED = "denied-runs"
"""A file with one line per run that found another one active; not part of any run's state."""

REASONS = {
    "next_action:BACKFILL": "documents had to be reconstructed first",
    "next_action:WAIT": "what was left was held, cooling down or blocked externally",
    "next_action:GUIDANCE": "a person had to decide",
    "next_action:STOP": "no bead was ready, and nothing said what else there was to do",
    "next_action:DESIGN": "a design pass changed nothing and would have been the next step again",
    "next_action:POLISH": "a polish pass changed nothing and would have been the next step again",
    "next_action:ALIGN": "alignment was the next step, and the run went no further",
    "budget": "its budget was spent",
    "max_cycles": "it completed as many cycles as requested",
    "batch_done": "nothing in the batch was left to run",
    "no_selectable": "twice in a row there was work and none of it could be selected",
    "no_progress": "what was left had been tried in the run and stayed open",
    "planning_without_progress": "planning continued and nothing was built",
    "question": "the next step waited for an answer",
    "approval": "a person had to approve it first",
    "operator_attention": "ddx asked for a person to look",
    "physics_level": "what governs the work contradicted itself",
    "stop_requested": "somebody asked it to stop",
    "interrupted": "it was interrupted",
    "check_failed": "the agent that was asked what comes next failed",
    "check_unreadable": "the check's answer named no NEXT_ACTION",
    "stage_failed": "a planning stage failed",
    "missing_binary": "ddx was not found",
    "too_old": "this ddx lacked a verb or flag that is needed",
    "malformed_output": "ddx answered with something that is not its contract",
    "timeout": "ddx gave no answer in time",
    "ddx_failed": "a ddx command failed",
    "ddx_refuses": "ddx refused this project as it was",
    "curation_failed": "a change to the queue failed",
    "unreadable_tracker": "the queue could not be read",
    "disk": "its state could not be written",
    "died": "its process ended without a message",
}
"""Stop reason -> what it means, for a person."""


class Holder(Struct, frozen=True):
    """The process of a run."""

    pid: int
    started_at: str
    path: Path
    live: bool
    born: int = 0
    """Start time of the process in ticks since boot (`born_at`)."""
    locked: bool = False
    """Whether a run holds the kernel's lock, so that the pid file is its own whatever clocks say."""


class AlreadyRunning(HelixError):
    """Another run is active."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(f"already running (pid={holder.pid}, started={holder.started_at or 'unknown'})")
        self.holder = holder


def pid_path(project: Project) -> Path:
    """The pid file of a run."""
    return project.helix_dir / PID


def read_holder(project: Project) -> Holder | None:
    """The process in the pid files, a live one before a dead one; None without a file."""
    found = [
        holder
        for path, held in (
            (pid_path(project), is_locked(project.helix_dir / LOCK)),
            (project.ddx_dir / PID, None),  # this program's shell predecessor takes no lock
        )
        if (holder := _read(path, held))
    ]
    return next((holder for holder in found if holder.live), found[0] if found else None)


def forget_dead(project: Project) -> Holder | None:
    """Remove the pid file of a run that is gone; return its process, or None.

    Raises:
        OSError: the file cannot be removed.
    """
    holder = read_holder(project)
    if holder is None or holder.live:
        return None
    remove(holder.path)
    return holder


@contextmanager
def sole_run(project: Project, *, now: str = "") -> Iterator[None]:
    """Be the only run of this project; the lock of a dead one is taken over.

    Raises:
        AlreadyRunning: another run is active.
        OSError: the folder cannot be written.
    """
    holder = read_holder(project)  # before the lock file is created: without one only a pid file counts
    descriptor = open_own(project.helix_dir / LOCK, os.O_RDWR)
    try:
        if not _take(descriptor):
            raise AlreadyRunning(holder or Holder(0, "", pid_path(project), True))
        # we hold the lock, so a live process in a pid file takes none: the older shell
        if holder is not None and holder.live and holder.pid != os.getpid():
            raise AlreadyRunning(holder)
        replace_file(pid_path(project), f"{os.getpid()} {now or format_instant(now_ns())}\n".encode())
        try:
            yield
        finally:
            mine = _read(pid_path(project), True)
            if mine is not None and mine.pid == os.getpid():
                with contextlib.suppress(OSError):
                    remove(pid_path(project))
    finally:
        # the lock file stays: otherwise one run could lock a file that another has removed, and both would run
        os.close(descriptor)


def process_lives(pid: int, started_at: str = "", born: int = 0) -> bool:
    """Whether a process is running and is the one of that time, not a later one with its id.

    ``born`` (`born_at`, recorded at that time) is certain; ``started_at`` is a fallback that assumes the clock was not
    set.
    """
    if pid <= 0 or not pid_alive(pid):
        return False
    if born and (now := born_at(pid)):
        return now == born
    began, said = began_at(pid), parse_instant(started_at)
    return began is None or said is None or began <= said + CLOCK_MARGIN


def _read(path: Path, held: bool | None) -> Holder | None:
    """Read a pid file; ``held``: whether a run holds the kernel's lock, None if unknown."""
    raw, stamp = read_bytes(path, 200), stamp_of(path)
    if raw is None or stamp is None:
        return None
    words = raw.decode("utf-8", "replace").split()
    if not words or not words[0].isdecimal():
        return None
    pid, started = int(words[0]), words[1] if len(words) > 1 else ""
    if parse_instant(started) is None:
        started = ""
    # the file was written when the run began, so its modification time is the fallback
    written = started or format_instant(stamp[0])
    # if the kernel was asked, clocks and reused ids do not matter
    live = process_lives(pid, written) if held is None else held and pid_alive(pid)
    return Holder(pid, started, path, live, born_at(pid) if live else 0, locked=bool(held))


def _take(descriptor: int) -> bool:
    """Take the lock, and return False if a run holds it; a process that only checks holds it for a moment too."""
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_STEP_S)
    return False


class RunState(Struct):
    """Everything that survives the process; unknown keys of a newer release are kept in ``rest``."""

    run_id: str = ""
    pid: int = 0
    started_at: str = ""
    updated_at: str = ""
    ended_at: str = ""
    phase: str = "stopped"
    stage: str = ""
    """The planning stage while one runs."""
    current_issue: str = ""
    """The bead that ddx is on or was last on, as far as known."""
    focused_epic: str = ""
    attempted_cycles: int = 0
    completed_cycles: int = 0
    supervisory_cycles: int = 0
    skipped_count: int = 0
    outcomes: dict[str, int] = {}
    """Result status, verbatim -> count; without supervisory cycles, which succeed at no bead of the queue's."""
    verdicts: dict[str, int] = {}
    """Outcome of its attempts (`core/ddx/attempts/verdict.py`) -> count: a ``success`` may be kept aside."""
    total_tokens: int = 0
    cost_usd: float = 0.0
    spent: dict[str, Any] = {}
    """The cost of all agent calls, in parts, as in `Sums.record`."""
    ddx_delegation_success_count: int = 0
    ddx_delegation_failure_count: dict[str, int] = {}
    parallel_run_denied_count: int = 0
    supervisory_injection_count: dict[str, int] = {}
    injected: list[dict[str, Any]] = []
    last_results: list[dict[str, Any]] = []
    cycles: list[dict[str, Any]] = []
    """The last turns of the loop: time, duration, tokens, result."""
    next_action: dict[str, Any] = {}
    """The last check's answer: code, source, reasons."""
    blockers: list[dict[str, Any]] = []
    """What was stuck when the run ended."""
    tried: list[dict[str, Any]] = []
    """Beads that this run attempted and left open (`Tried`)."""
    stop_reason: str = ""
    stop_detail: str = ""
    exit_code: int | None = None
    next_eligible: str = ""
    last_run: str = ""
    budget: dict[str, Any] = {}
    """The budget of the run and the day: {run, day}, each {usd, tokens, attempts}."""
    agent: str = ""
    autonomy: str = "medium"
    log: str = ""
    pending: dict[str, Any] = {}
    """While ddx is running: {command, out, pid, born, started_at, booked}; if not booked, the next run books it."""
    totals: dict[str, int] = {}
    """Totals of all runs: attempted, completed, supervisory, runs, recovered."""
    problems: list[str] = []
    rest: dict[str, Any] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Add to one of the totals."""
        self.totals[name] = self.totals.get(name, 0) + number

    @property
    def progress(self) -> str:
        """The cycles so far, as far as known: an unreadable state, or one of another release, may lack them."""
        done, tried = self.completed_cycles, self.attempted_cycles
        if done > tried:
            return f"{counted(done, 'cycle')} completed"
        if not tried:
            return "no cycle begun" if self.run_id else "number of cycles unknown"
        supervisory = f", {self.supervisory_cycles} supervisory" if self.supervisory_cycles else ""
        return f"{done} of {counted(tried, 'cycle')} completed{supervisory}"

    @property
    def sums(self) -> Sums:
        """The cost of the run."""
        return read_sums(self.spent)

    def spend(self, sums: Sums) -> None:
        """Add the cost of some agent calls."""
        whole = self.sums + sums
        self.spent = whole.record()
        self.total_tokens, self.cost_usd = whole.tokens or 0, whole.usd or 0.0
        self.count("tokens", sums.tokens or 0)


def ddx_lives(pending: Mapping[str, Any]) -> bool:
    """Whether the ddx that a run started for a turn is still running."""
    pid, born, out = pending.get("pid"), pending.get("born"), str(pending.get("out") or "")
    if not pid:  # killed between starting ddx and recording its process id
        return bool(out and is_locked(out))
    since = str(pending.get("started_at") or "")
    return isinstance(pid, int) and process_lives(pid, since, born if isinstance(born, int) else 0)


def state_path(project: Project) -> Path:
    """The file of the state."""
    return project.helix_dir / NAME


def load_state(project: Project) -> RunState:
    """The last saved state; empty if the file is missing or broken."""
    raw = read_bytes(state_path(project), MAX_STATE)
    if raw is None:
        return RunState()
    document = decode_json(raw)
    if not isinstance(document, dict):
        return RunState(problems=[f"{NAME} was unreadable; its counters were reset"])
    return _from_document(document)


def save_state(project: Project, state: RunState) -> None:
    """Save the state atomically.

    Raises:
        OSError: the disk is full or the folder cannot be written; the old content remains.
    """
    document = asdict(state)
    rest = document.pop("rest")
    document["cycles"] = document["cycles"][-KEPT_CYCLES:]
    document["injected"] = document["injected"][-KEPT_INJECTED:]
    whole = {"schema": "run-state/1", **rest, **document}
    replace_file(state_path(project), msgspec.json.encode(whole) + b"\n")


def fresh_state(last: RunState, *, run_id: str, now: str) -> RunState:
    """The state of a new run: counters are 0, lasting values are taken over.

    A run that stopped for an approval continues in the next one, as does one at autonomy low that stopped for any
    answer: its list of tried beads is kept.
    """
    asked = last.stop_reason == "approval" or (last.stop_reason == "question" and last.autonomy == "low")
    return RunState(
        run_id=run_id,
        pid=os.getpid(),
        started_at=now,
        updated_at=now,
        phase="starting",
        ddx_delegation_success_count=last.ddx_delegation_success_count,
        ddx_delegation_failure_count=dict(last.ddx_delegation_failure_count),
        parallel_run_denied_count=last.parallel_run_denied_count,
        supervisory_injection_count=dict(last.supervisory_injection_count),
        injected=list(last.injected),
        next_action=dict(last.next_action),
        pending=dict(last.pending),
        focused_epic=last.focused_epic,
        tried=list(last.tried) if asked else [],
        totals=dict(last.totals),
        # without a run id it is the empty state of an unreadable file, and says so
        problems=list(last.problems) if not last.run_id else [],
        rest=dict(last.rest),
    )


def _from_document(document: dict[str, Any]) -> RunState:
    """Read each field separately: one of a wrong type costs only that field."""
    state = RunState(**fitting_fields({**document, "rest": {}}, RunState))
    if not all(isinstance(state.next_action.get(name), str) for name in ("next_action", "decided_by")):
        state.next_action = {}
    state.rest = {name: value for name, value in document.items() if name not in {"schema", *state.__struct_fields__}}
    return state


def denied_runs(project: Project) -> int:
    """The number of runs that found another one active."""
    return (read_bytes(project.helix_dir / DENIED, 1 << 20) or b"").count(b"\n")
