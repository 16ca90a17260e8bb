"""``bead status``: how many beads there are of what kind, and at head who is at work.

Rules: docs/formats/ddx.md §2 (the fields of both eras).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from helix_ddx.base.stamps import stamp
from helix_ddx.store.call import VerbCall
from helix_ddx.store.holders import ActiveWork, read_leases, read_run_records, read_workers
from helix_ddx.verbs.lists import dependency_blocked, dependency_ready, everything, queue_of, say_ordered
from helix_tui.core.beads.record import Bead


def status(call: VerbCall) -> None:
    """``bead status``."""
    if call.head:
        _head_status(call)
    else:
        _april_status(call)


def _april_status(call: VerbCall) -> None:
    beads = call.store.read().beads
    queue = queue_of(call, beads)
    statuses = Counter(bead.status for bead in beads.values())
    counts = {
        "open": statuses["open"],
        "closed": statuses["closed"],
        "blocked": len(dependency_blocked(queue)),
        "ready": len(dependency_ready(queue)),
        "total": len(beads),
    }
    if call.given.on("json"):
        say_ordered(call, counts)
        return
    for name in ("total", "open", "closed", "ready", "blocked"):
        call.say(f"{name.capitalize() + ':':<9}{counts[name]}")


def _head_status(call: VerbCall) -> None:
    beads = call.store.read().beads
    queue = queue_of(call, beads)
    known = everything(call, beads)
    statuses = Counter(bead.status for bead in known.values())
    states = Counter(queue.state(bead_id) for bead_id in beads)
    proposed = states["proposed"]
    work = active_work(call, beads)
    counts: dict[str, Any] = {"total": len(known)}
    counts |= {name: statuses[name] for name in ("open", "in_progress", "closed", "blocked", "proposed", "cancelled")}
    counts |= {"needs_human": proposed, "ready": len(queue.ready), "worker_ready": len(queue.ready)}
    counts |= {
        "dependency_waiting": states["waiting_dependencies"],
        "external_blocked": states["blocked_external"],
    }
    counts |= {"operator_attention": proposed, "active_work": work}
    if call.given.on("json"):
        say_ordered(call, counts)
        return
    for label, name in (
        ("Total", "total"),
        ("Open", "open"),
        ("Lifecycle in progress", "in_progress"),
        ("Closed", "closed"),
        ("Blocked", "blocked"),
        ("Proposed", "proposed"),
        ("Cancelled", "cancelled"),
    ):
        call.say(f"{label + ':':<19} {counts[name]}")
    call.say(f"{'Active workers:':<19} {work['count']}")
    if work["bead_ids"]:
        call.say(f"{'Active bead IDs:':<19} {', '.join(work['bead_ids'])}")
    for label, name in (
        ("Ready", "ready"),
        ("Worker ready", "worker_ready"),
        ("Dependency waiting", "dependency_waiting"),
        ("External blocked", "external_blocked"),
        ("Operator attention", "operator_attention"),
    ):
        call.say(f"{label + ':':<19} {counts[name]}")


def active_work(call: VerbCall, beads: Mapping[str, Bead]) -> dict[str, Any]:
    """Who is at work, from leases, workers' own files and run records that are fresh."""
    now, project = call.clock(), call.workspace.project
    holders = (*read_leases(project, call.env), *read_workers(project), *read_run_records(project))
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for holder in holders:
        bead = beads.get(holder.bead_id)
        if holder.at is None or not holder.is_fresh(now):
            continue
        if holder.source == "lease" and (bead is None or bead.status not in ("open", "in_progress")):
            continue
        key = holder.bead_id or holder.attempt_id or holder.worker_id
        known = found.get(key)
        record = _record(call, holder)
        if known is None:
            found[key] = holder.at, record
        elif holder.at > known[0]:
            found[key] = holder.at, known[1] | record
        else:
            found[key] = known[0], record | known[1]
    records = [record for _, record in sorted(found.values(), key=lambda pair: (-pair[0], str(pair[1])))]
    ids = sorted({record["bead_id"] for record in records if "bead_id" in record})
    ordered = [{name: record[name] for name in _ORDER if name in record} for record in records]
    return {"count": len(records), "bead_ids": ids, "records": ordered}


_ORDER = (
    "project_root",
    "worker_id",
    "bead_id",
    "attempt_id",
    "owner",
    "phase",
    "source",
    "last_activity_at",
)


def _record(call: VerbCall, holder: ActiveWork) -> dict[str, Any]:
    source = {"lease": "claim", "sidecar": "liveness"}.get(holder.source, holder.source)
    record = {
        "project_root": str(call.workspace.root),
        "worker_id": holder.owner if holder.source == "lease" else holder.worker_id,
        "bead_id": holder.bead_id,
        "attempt_id": holder.attempt_id,
        "owner": holder.owner,
        "phase": holder.phase if holder.source == "sidecar" else "",
        "source": source,
        "last_activity_at": stamp(holder.at or 0),
    }
    return {name: value for name, value in record.items() if value}
