"""Say what a run is doing, or why the last one ended; and all of it as ``status`` shows it.

Shape: docs/formats/helix.md §6 (``status --json``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from msgspec.structs import asdict

from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import STATES
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, clean_words
from helix_tui.core.ground.time import NS, format_instant, parse_instant
from helix_tui.core.supervision.run_state.run_status import RunStatus, last_stoppage, run_status
from helix_tui.core.supervision.run_state.state import REASONS, Holder, RunState, ddx_lives, denied_runs
from helix_tui.core.supervision.signals.orphans import governs_alignment, injected_record, injected_type

SHOWN_INJECTED = 20

_ASKED = ("question", "approval", "physics_level")
"""Reasons of a run to stop that are over once no question waits."""

_PHASES = {
    "starting": "it was starting",
    "curating": "it was putting the queue in order",
    "checking": "it was deciding what comes next",
    "dispatching": "ddx was executing",
    "booking": "it was booking what ddx had done",
    "planning": "a planning stage was running",
    "paused": "it was paused",
    "stopped": "it had stopped",
}
"""Phase -> what the loop was doing then, for a person."""


def explain_run(status: RunStatus) -> str:
    """One or two sentences for a person: what the run does, or why it stopped and what to do."""
    match status.condition:
        case "never":
            return "No run state found. Run `helix-tui run` to generate."
        case "active":
            assert status.holder is not None
            return _active(status.state, status.holder)
        case "died":
            return _died(status.state)
        case "stopped":
            return _stopped(status)
    assert_never(status.condition)


def _active(state: RunState, holder: Holder) -> str:
    since = f"pid {holder.pid}, started at {holder.started_at or 'an unknown time'}"
    if state.pid != holder.pid:
        return f"running ({since}); it has not yet written what it does"
    if state.phase == "paused":
        return f"paused ({since}); {state.progress}"
    # the table is worded for an ended run
    what = _PHASES.get(state.phase, state.phase).replace("it was ", "").replace("it had ", "")
    doing = "executing a bead" if state.phase == "dispatching" else what
    stage = f" ({state.stage})" if state.stage else ""
    return f"running ({since}): {doing}{stage}; {state.progress}"


def _died(state: RunState) -> str:
    doing = _PHASES.get(state.phase, state.phase)
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


def _stopped(status: RunStatus) -> str:
    state = status.state
    why = REASONS.get(state.stop_reason, state.stop_reason or "it is not recorded why")
    detail = f" ({clean_words(state.stop_detail, 300)})" if state.stop_detail else ""
    answered = state.stop_reason in _ASKED and not status.questions
    return f"the last run stopped: {why}{detail}" + (
        "; no question waits now: `helix-tui run` continues" if answered else ""
    )


def status_document(
    project: Project, queue: Queue, counts: QueueCounts, runs: Iterable[Run], dropped: int
) -> dict[str, Any]:
    """Everything that ``status`` shows, as JSON."""
    status = run_status(project, queue.beads)
    state = status.state
    runs = tuple(runs)
    stoppage = last_stoppage(project, runs, state)
    injected = [bead for bead in queue.beads.values() if _marked(bead)]
    return {
        "condition": status.condition,
        "explanation": explain_run(status),
        "current_cycle": state.attempted_cycles,
        "running_bead": _running(queue, runs),
        "parked_beads": list(_parked(queue)),
        "injected_supervisory": _injected(injected),
        "last_stop_reason": _stop_reason(status),
        "stop_detail": state.stop_detail or None,
        "last_worker": stoppage.record() | {"words": stoppage.words} if stoppage is not None else None,
        "tracker": _tracker(counts, dropped),
        "focus": _focus(queue),
        "run": _run(state) | {"parallel_run_denied_count": denied_runs(project)},
        "active_run": _holder(status.holder, state) if status.condition == "active" else None,
        "next_action": state.next_action or None,
        "questions": [
            {"id": question.id, "kind": question.kind, "bead_id": question.bead_id or None, "text": question.text}
            for question in status.questions
        ],
        "blockers": state.blockers,
    }


def _stop_reason(status: RunStatus) -> str:
    if status.condition == "died":
        return "died"
    return status.state.stop_reason or "unknown"


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
