"""Describe what a run is doing and why it stopped, and print its output.

`run_status` and `status_document` read the run's state and the tracker, without asking ddx; the console and the
command line both show this. Shape: docs/formats/helix.md §6 (``status --json``).

`Teller` prints lines for a person and keeps a complete log (docs/formats/helix.md §1b). With a summary only short lines
are printed, each with its lines in the log; long ones go only into the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from helix_tui.core.beads.counts import QueueCounts, count_queue
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import STATES
from helix_tui.core.beads.tracker import only_archived, read_archive
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.files import is_file, read_end
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, clean_words, counted
from helix_tui.core.ground.time import NS, clock_time, format_instant, parse_instant
from helix_tui.core.ground.writes import append_file
from helix_tui.core.supervision.run_state.state import (
    PHASES,
    REASONS,
    Holder,
    RunState,
    ddx_lives,
    denied_runs,
    load_state,
    read_holder,
    state_path,
)
from helix_tui.core.supervision.signals.orphans import governs_alignment, injected_record, injected_type
from helix_tui.core.supervision.signals.questions import OpenQuestion, beads_in_question, read_questions, still_asked
from helix_tui.core.supervision.signals.stoppage import Stoppage, find_stoppage, refused_start

SHOWN_INJECTED = 20
NO_STATE = "No run state found. Run `helix-tui run` to generate."

_ASKED = ("question", "approval", "physics_level")
"""Reasons of a run to stop that are over once no question waits."""


class RunStatus(Struct, frozen=True):
    """The state of a run for display.

    Attributes:
        condition: ``never`` (no run here), ``active``, ``died`` (its process ended without a message) or
            ``stopped``.
        explanation: one or two sentences for a person: what it does, or why it stopped and what to do.
    """

    condition: str
    explanation: str
    state: RunState
    holder: Holder | None
    questions: tuple[OpenQuestion, ...]


def run_status(project: Project) -> RunStatus:
    """The state of a project's run. Reads three small files; changes nothing."""
    state = load_state(project)
    holder = read_holder(project)
    active = holder if holder is not None and holder.live else None
    asked = tuple(q for q in read_questions(project.helix_dir / "questions.json") if not q.answered)
    if not state.run_id and not is_file(state_path(project)) and active is None:
        return RunStatus("never", NO_STATE, state, None, asked)
    if active is not None:
        return RunStatus("active", _active(state, active), state, active, asked)
    if state.phase != "stopped":
        return RunStatus("died", _died(state), state, holder, asked)
    return RunStatus("stopped", _stopped(state), state, holder, asked)


def last_stoppage(project: Project, runs: Iterable[Run], state: RunState) -> Stoppage | None:
    """What stopped the last worker, by ddx's record of it; else by the end of the last run."""
    runs = tuple(runs)
    found = find_stoppage(project, runs)
    if found is not None or any(run.live for run in runs):
        return found
    return refused_start(project, state.run_id, state.stop_reason, state.stop_detail, state.ended_at)


def status_document(project: Project, queue: Queue, runs: Iterable[Run], dropped: int = 0) -> dict[str, Any]:
    """Everything that ``status`` shows, as JSON."""
    status = run_status(project)
    status = replace(status, questions=still_asked(status.questions, queue.beads))
    if status.condition == "stopped" and status.state.stop_reason in _ASKED and not status.questions:
        status = replace(status, explanation=f"{status.explanation}; no question waits now: `helix-tui run` continues")
    state = status.state
    runs = tuple(runs)
    stoppage = last_stoppage(project, runs, state)
    injected = [bead for bead in queue.beads.values() if _marked(bead)]
    return {
        "condition": status.condition,
        "explanation": status.explanation,
        "current_cycle": state.attempted_cycles,
        "running_bead": _running(queue, runs),
        "parked_beads": list(_parked(queue)),
        "injected_supervisory": _injected(injected),
        "last_stop_reason": _stop_reason(status),
        "stop_detail": state.stop_detail or None,
        "last_worker": stoppage.record() | {"words": stoppage.words} if stoppage is not None else None,
        "tracker": _tracker(_counts(project, queue, status), dropped),
        "focus": _focus(queue),
        "run": _run(state) | {"parallel_run_denied_count": denied_runs(project)},
        "active_run": _holder(status.holder, state) if status.condition == "active" else None,
        "next_action": state.next_action or None,
        "questions": [
            {"id": each.id, "kind": each.kind, "bead_id": each.bead_id or None, "text": each.text}
            for each in status.questions
        ],
        "blockers": state.blockers,
    }


def _stop_reason(status: RunStatus) -> str:
    if status.condition == "died":
        return "died"
    return status.state.stop_reason or "unknown"


def _active(state: RunState, holder: Holder) -> str:
    since = f"pid {holder.pid}, started at {holder.started_at or 'an unknown time'}"
    if state.pid != holder.pid:
        return f"running ({since}); it has not yet written what it does"
    if state.phase == "paused":
        return f"paused ({since}); {state.progress}"
    # the table is worded for an ended run
    what = PHASES.get(state.phase, state.phase).replace("it was ", "").replace("it had ", "")
    doing = "executing a bead" if state.phase == "dispatching" else what
    stage = f" ({state.stage})" if state.stage else ""
    return f"running ({since}): {doing}{stage}; {state.progress}"


def _died(state: RunState) -> str:
    doing = PHASES.get(state.phase, state.phase)
    parts = [f"the last run (pid {state.pid}) ended without a message: {doing}"]
    if "command" in state.pending:
        if ddx_lives(state.pending):
            parts.append(f"its ddx is still running (pid {state.pending.get('pid') or 'unknown'})")
        parts.append("the next run books what ddx reports or left as evidence")
    if "aftermath" in state.pending:
        parts.append("its last turn is counted, and the next run finishes what follows from it")
    if state.focused_epic:
        epic = clean_line(state.focused_epic, 60)
        parts.append(f"its focus on {epic} holds beads back until `helix-tui run` or `helix-tui focus --off`")
    return "; ".join(parts)


def _stopped(state: RunState) -> str:
    why = REASONS.get(state.stop_reason, state.stop_reason or "it is not recorded why")
    return f"the last run stopped: {why}" + (f" ({clean_words(state.stop_detail, 300)})" if state.stop_detail else "")


def _running(queue: Queue, runs: Iterable[Run]) -> dict[str, Any] | None:
    for run in runs:
        if run.live and run.bead_id:
            age = run.age_s(queue.as_of)
            return {
                "id": run.bead_id,
                "worker": run.worker_id,
                "harness": run.harness or None,
                "claim_age_seconds": None if age is None else round(age),
                "started_at": None if run.started_at is None else format_instant(run.started_at),
                "source": run.source,
            }
    return None


def _parked(queue: Queue) -> Iterable[dict[str, Any]]:
    for bead_id, bead in queue.beads.items():
        parked = STATES[queue.state(bead_id)].parked
        if parked is None or bead.status in TERMINAL or governs_alignment(bead):
            continue
        until = queue.standing(bead_id).until
        since = parse_instant(bead.updated_at) or parse_instant(bead.created_at)
        yield {
            "id": bead_id,
            "reason": parked.reason,
            "next_eligible": None if until is None else format_instant(until),
            "age_seconds": None if since is None else (queue.as_of - since) // NS,
        }


def _marked(bead: Bead) -> bool:
    return any(
        label.startswith("helix-injected:") or label in ("review-finding", "alignment-review", "acceptance-failure")
        for label in bead.labels
    )


def _injected(beads: Sequence[Bead]) -> list[dict[str, Any]]:
    found = [injected_record(bead) for bead in beads if injected_type(bead)]
    return sorted(found, key=lambda each: str(each["created_at"] or ""), reverse=True)[:SHOWN_INJECTED]


def _counts(project: Project, queue: Queue, status: RunStatus) -> QueueCounts:
    archive = only_archived(read_archive(project.archive_file), queue.beads)
    return count_queue(queue, beads_in_question(status.questions), archive=archive)


def _tracker(counts: QueueCounts, dropped: int) -> dict[str, Any]:
    return {**counts.record(), "unread_lines": dropped}


def _focus(queue: Queue) -> dict[str, Any] | None:
    """The focused epic and how many beads are held back for it, by the marks in the rows."""
    on = [bead.id for bead in queue.beads.values() if bead.focus_since]
    held = sum(bool(bead.focus_epic) for bead in queue.beads.values())
    return {"epic": on[0] if on else None, "held": held} if on or held else None


def _run(state: RunState) -> dict[str, Any]:
    document = asdict(state)
    rest = document.pop("rest")
    return {**rest, **document}


def _holder(holder: Holder | None, state: RunState) -> dict[str, Any] | None:
    if holder is None:
        return None
    return {"pid": holder.pid, "started": holder.started_at or None, "log": state.log or None, "phase": state.phase}


MAX_LOG_CHARS = 200_000
"""Characters of one program's output that go into the log."""


class Teller:
    """The output of one run.

    Attributes:
        path: the log.
        last: the last line printed for everyone.
    """

    def __init__(self, path: Path, say: Callable[[str], None], *, summary: bool = False, quiet: bool = False) -> None:
        self.path = path
        self.summary = summary
        self.last = ""
        self._say = say
        self._quiet = quiet
        self._lines = read_end(path, 1 << 30).count("\n")

    def verbose(self, text: str) -> None:
        """Print a detail, for a person who follows the run."""
        self._log(text)
        if not self.summary and not self._quiet:
            self._say(f"helix: {clean_line(text, 1000)}")

    def brief(self, text: str) -> None:
        """Print a short line of a summary; without a summary only log it."""
        self._log(text)
        if self.summary:
            self._say(f"helix: {clean_line(text, 1000)}")

    def always(self, text: str) -> None:
        """Print a line in every mode."""
        self.last = text
        self._log(text)
        # clean_line strips it, and the blocker report is indented
        indent = " " * (len(text) - len(text.lstrip(" ")))
        self._say(f"helix: {indent}{clean_line(text, 1000)}")

    def quote(self, text: str, prose: str) -> None:
        """Print a line with an agent's prose after it, for which a summary names its line in the log."""
        if not self.summary:
            self.always(f"{text} — {prose}")
            return
        self._log(prose)
        self.always(f"{text} — log L{self._lines} in {self.path}")
        self.last = prose

    def block(self, title: str, finished: Finished, at: int) -> tuple[int, int]:
        """Write a program's output into the log; return the numbers of its first and last line there."""
        first = self._lines + 1
        self._log(f"--- {title} [{clock_time(at)}] rc={finished.rc} elapsed={finished.seconds:.0f}s ---")
        for text in (finished.out, finished.err):
            if text.strip():
                self._log(_clipped(text).rstrip("\r\n"))
        self._log(f"--- end {title} ---")
        return first, self._lines

    def _log(self, text: str) -> None:
        lines = clean_block(text).split("\n")
        # An unwritable log must not end a run whose state can be saved.
        with contextlib.suppress(OSError):
            append_file(self.path, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        self._lines += len(lines)


def _clipped(text: str) -> str:
    """The beginning and end of output too long for the log; the turn's own file has all of it."""
    if len(text) <= MAX_LOG_CHARS:
        return text
    head, tail = text[: MAX_LOG_CHARS // 2], text[-MAX_LOG_CHARS // 2 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {counted(left_out, 'character')} left out here …\n{tail}"


def said_lines(text: str) -> list[str]:
    """The end of a log without output of programs and quoted texts: the run's own lines, oldest first."""
    said: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("--- end ") and line.endswith(" ---"):
            if not inside:
                said.clear()  # the block began before the text
            inside = False
        elif not inside and line.startswith("--- ") and line.endswith(" ---"):
            inside = True
        elif not inside and line.strip():
            said.append(line)
    return said
