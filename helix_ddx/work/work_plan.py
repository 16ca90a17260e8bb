"""``work plan`` and ``work status`` of head, ``agent workers`` of April: what the loop would take next, and
who is at it.

Formats: docs/formats/ddx.md §7. They only read, which is why they are here and not with the simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helix_ddx.base.go_format import ZERO_TIME, time_text
from helix_ddx.base.stamps import stamp
from helix_ddx.store.call import VerbCall
from helix_ddx.store.holders import ActiveWork, read_run_records, read_workers
from helix_ddx.verbs.lists import queue_of, say_ordered
from helix_ddx.verbs.status import active_work
from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.pids import pid_alive
from helix_tui.core.ground.time import format_age


def plan(call: VerbCall) -> None:
    """``work plan``: the queue in the order in which the loop would pick."""
    beads = call.store.read().beads
    limit = call.given.number("limit") if call.given.has("limit") else 10
    ready = queue_of(call, beads).ready
    rows = [_row(place, beads[bead_id]) for place, bead_id in enumerate(ready[: limit or None], 1)]
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("No ready beads.")
    for row in rows:
        call.say(f"{row['position']:>3}  {row['id']}  P{row['priority']}  {row['title']}  ({row['why']})")


def _row(place: int, bead: Bead) -> dict[str, Any]:
    row: dict[str, Any] = {"position": place, "id": bead.id, "title": bead.title, "priority": bead.priority}
    if bead.queue_rank is not None:
        row["queue_rank"] = bead.queue_rank
    decision = "next claim" if place == 1 else "eligible"
    why = decision if place == 1 else f"eligible (rank {place})"
    row |= {"updated_at": time_text(bead.updated_at), "status": bead.status}
    return row | {"filter_decision": decision, "why": why}


def status(call: VerbCall) -> None:
    """``work status``: live workers of this project."""
    beads = call.store.read().beads
    workers = _workers(call)
    if call.given.on("json"):
        report = {"project_root": str(call.workspace.root), "scope": "project", "workers": workers}
        say_ordered(call, report | {"active_work": active_work(call, beads)})
        return
    if not workers:
        call.say("No live workers in this project.")
    for worker in workers:
        call.say(f"pid {worker['pid']}  {worker.get('bead_id', '-')}  {worker.get('phase', '')}")


def _workers(call: VerbCall) -> list[dict[str, Any]]:
    now, found = call.clock(), []
    for claim in read_workers(call.workspace.project):
        if claim.pid is None or not claim.is_fresh(now):
            continue
        worker: dict[str, Any] = {"pid": claim.pid}
        if claim.started_at is not None:
            age = (now - claim.started_at) // 1_000_000_000
            worker |= {"started_at": stamp(claim.started_at), "age_seconds": age}
        worker["project_root"] = str(call.workspace.root)
        told = {
            "bead_id": claim.bead_id,
            "attempt_id": claim.attempt_id,
            "phase": claim.phase,
            "message": claim.message,
        }
        worker |= {name: text for name, text in told.items() if text}
        found.append(worker | {"last_activity_at": stamp(claim.at or 0)})
    return found


def workers(call: VerbCall) -> None:
    """``agent workers``: attempts at work in this project; there is no server here that could have others."""
    call.here /= call.given.text("project")
    beads = call.store.read().beads
    records = read_run_records(call.workspace.project)
    rows = [_at_work(call, each, beads) for each in records if each.attempt_id and _is_live(each, call.clock())]
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("no active workers")
    for row in rows:
        told = (row["state"], row["bead_id"], row.get("bead_title", "-"), row.get("harness", "-"))
        call.say("  ".join((*told, row.get("model", "-"), format_age(row.get("elapsed_ms", 0) / 1000))))


def _is_live(record: ActiveWork, now: int) -> bool:
    """Whether the process of a run record lives, or, where it names none, its own time has not run out."""
    if record.pid is not None:
        return pid_alive(record.pid)
    return record.expires_at is None or record.expires_at > now


def _at_work(call: VerbCall, record: ActiveWork, beads: Mapping[str, Bead]) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"local-{record.attempt_id}", "kind": "local", "state": "running"}
    bead = beads.get(record.bead_id)
    told = {"bead_id": record.bead_id, "bead_title": bead.title if bead else ""}
    told |= {"harness": record.harness, "model": record.model}
    row |= {name: text for name, text in told.items() if text}
    row["started_at"] = stamp(record.started_at) if record.started_at is not None else ZERO_TIME
    age_ms = (call.clock() - record.started_at) // 1_000_000 if record.started_at is not None else 0
    row |= {"elapsed_ms": age_ms} if age_ms > 0 else {}
    return row | ({"pid": record.pid} if record.pid is not None else {})
