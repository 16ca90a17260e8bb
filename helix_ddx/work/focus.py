"""``work focus`` of head: what the loop will not take by itself, and whether a worker is called for.

Formats: docs/formats/ddx.md §7. It only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helix_ddx.base.go_format import instant_of, second
from helix_ddx.store.call import VerbCall
from helix_ddx.store.places import TrackerRow
from helix_ddx.verbs.lists import queue_of, say_ordered
from helix_ddx.verbs.status import active_work
from helix_tui.core.beads.readiness import HEAD, Queue, pick_order
from helix_tui.core.beads.record import Bead

_KINDS = {
    "waiting_dependencies": "dependency",
    "blocked_external": "blocked-status",
    "epic_container": "epic-only",
    "not_eligible": "not-execution-eligible",
    "superseded": "superseded",
    "retry_cooldown": "retry-cooldown",
}


def focus(call: VerbCall) -> None:
    """``work focus``."""
    beads = call.store.read().beads
    queue, work = queue_of(call, beads), active_work(call, beads)
    blocked = _blocked(queue)
    report: dict[str, Any] = {
        "human_required": _proposed(beads),
        "blocked_or_planning": blocked or None,
        "ready_summary": {"count": len(queue.ready), "depth": _depth(len(queue.ready))},
    }
    if work["records"]:
        report["active_workers"] = [_worker(record) for record in work["records"]]
    report |= {"active_work": work, "worker_recommendation": _advice(len(queue.ready), work["count"])}
    report["unknowns"] = _unknowns(beads, work) or None
    if call.given.on("json"):
        say_ordered(call, report)
    else:
        _tell(call, report)


def _proposed(beads: Mapping[str, Bead]) -> list[dict[str, Any]]:
    order = pick_order(HEAD)
    found = []
    for bead in sorted((bead for bead in beads.values() if bead.status == "proposed"), key=order):
        row = TrackerRow.to_read(bead)
        told = {
            "reason": row.text("needs-human-reason") or row.text("needs-human-summary"),
            "suggested_action": row.text("needs-human-suggested-action"),
        }
        found.append({"id": bead.id, "title": bead.title} | {name: text for name, text in told.items() if text})
    return found


def _blocked(queue: Queue) -> list[dict[str, Any]]:
    found = []
    for bead in sorted(
        queue.beads.values(), key=lambda bead: (bead.priority, instant_of(bead.created_at), bead.id.encode())
    ):
        standing = queue.standing(bead.id)
        kind = _KINDS.get(standing.reasons[0].kind if standing.reasons else "")
        if kind is None:
            continue
        detail = standing.reasons[0].detail
        if kind == "dependency":
            detail = f"unclosed deps: {', '.join(standing.reasons[0].refs)}"
        elif kind == "retry-cooldown":
            detail = f"retry after: {second(standing.until or 0)}"
        elif kind == "epic-only":
            detail = "ordinary ddx work skips epic/container beads"
        elif kind == "superseded":
            detail = bead.superseded_by.strip()
        elif kind == "not-execution-eligible":
            detail = bead.skip_reason
        row = {"id": bead.id, "title": bead.title, "blocker_kind": kind}
        found.append(row | ({"detail": detail} if detail else {}))
    return found


def _depth(count: int) -> str:
    return "empty" if count == 0 else "shallow" if count == 1 else "moderate" if count <= 3 else "deep"


def _worker(record: Mapping[str, Any]) -> dict[str, Any]:
    names = {"worker_id": "worker_id", "current_bead": "bead_id", "attempt_id": "attempt_id"}
    names |= {"phase": "phase", "last_activity_at": "last_activity_at"}
    told = {name: record.get(source, "") for name, source in names.items()}
    return {name: text for name, text in told.items() if text or name == "worker_id"}


def _advice(ready: int, active: int) -> str:
    if not ready:
        return "Queue is empty; no worker action needed."
    if active:
        seen = f"{active} active worker(s) observed"
        return f"{ready} bead(s) ready; {seen}. Monitor progress or run 'ddx work' to add capacity."
    if ready >= 3:
        return f"{ready} bead(s) ready and no active workers detected; consider running: ddx work"
    return f"{ready} bead(s) ready; run 'ddx work' to process."


def _unknowns(beads: Mapping[str, Bead], work: Mapping[str, Any]) -> list[str]:
    claimed = sum(bead.status == "in_progress" for bead in beads.values())
    if not claimed or any(record["source"] != "claim" for record in work["records"]):
        return []
    return [
        f"worker process liveness: {claimed} bead(s) are in_progress but no active worker snapshot is fresh; "
        "check `ddx work status` for live processes"
    ]


def _tell(call: VerbCall, report: Mapping[str, Any]) -> None:
    proposed, blocked = report["human_required"], report["blocked_or_planning"] or []
    call.say(f"=== Operator attention ({len(proposed)}) ===")
    for item in proposed:
        call.say(f"  [{item['id']}] {item['title']}")
        for label, name in (("reason", "reason"), ("suggested action", "suggested_action")):
            if name in item:
                call.say(f"       {label}: {item[name]}")
    _say_none(call, proposed)
    call.say(f"\n=== Blocked / planning ({len(blocked)}) ===")
    for item in blocked:
        detail = f" — {item['detail']}" if "detail" in item else ""
        call.say(f"  [{item['id']}] {item['title']}\n       blocker: {item['blocker_kind']}{detail}")
    _say_none(call, blocked)
    ready = report["ready_summary"]
    call.say("\n=== Worker-ready summary ===")
    call.say(f"  {ready['count']} bead(s) ready for worker execution ({ready['depth']})")
    workers = report.get("active_workers", [])
    if workers:
        call.say(f"\n=== Active workers ({len(workers)}) ===")
    for worker in workers:
        bead, attempt, phase = (worker.get(name, "-") for name in ("current_bead", "attempt_id", "phase"))
        last = worker.get("last_activity_at", "")
        call.say(f"  [{worker['worker_id']}] bead={bead} attempt={attempt} phase={phase} last={last}")
    call.say(f"\n=== Worker recommendation ===\n  {report['worker_recommendation']}\n\n=== Unknowns ===")
    for unknown in report["unknowns"] or []:
        call.say(f"  - {unknown}")
    _say_none(call, report["unknowns"])


def _say_none(call: VerbCall, items: object) -> None:
    if not items:
        call.say("  (none)")
