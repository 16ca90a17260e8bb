"""The verbs of DDx's loop, with the flags that each release gives them (help texts of both transcripts), and answers.

``work`` and ``try`` are simulated; April's loop is known by its help and runs nothing. What reads the queue for them
is answered truly: what the loop would take next, what it will not take and until when, and whether a worker is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helix_ddx.files import instant_of, second, stamp, time_text
from helix_ddx.flags import Flag, Kind, Refused, Verb, refused
from helix_ddx.store.events import add_inline, new_event
from helix_ddx.store.git import writing
from helix_ddx.store.holders import change_row, read_workers
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.lists import queue_of, say_ordered
from helix_ddx.verbs.status import active_work
from helix_tui.core.beads import readiness
from helix_tui.core.beads.readiness import Queue, pick_order
from helix_tui.core.beads.record import Bead

_SIMULATION = "helix_ddx.simulator.verb:run"
_NOT_RUN = "verbs.work:run_nothing"

JSON = Flag("json", "bool", "the result object on stdout")
_ONCE = Flag("once", "bool", "one bead, then stop")
_PROJECT = Flag("project", about="the project's folder")
_NO_REVIEW = Flag("no-review", "bool", "skip the review")

_OWN = (
    Flag("folder", about="the project's folder, as -C DIR", short="C", hidden=True),
    Flag("pace", "float", "seconds that a step takes; 0 is at once", hidden=True),
    Flag("plan", about="a JSON file with the act of each bead", hidden=True),
)
_ABOUT_OWN = "\n\nBeside DDx's flags: -C DIR, --pace SECONDS (0 is at once), --plan FILE (acts by bead id, as JSON)."

_KINDS = {
    "waiting_dependencies": "dependency",
    "blocked_external": "blocked-status",
    "epic_container": "epic-only",
    "not_eligible": "not-execution-eligible",
    "superseded": "superseded",
    "retry_cooldown": "retry-cooldown",
}

_FIELDS = ("work-retry-after", "work-last-status", "work-last-detail")


def _passed_over(kind: Kind, names: str) -> tuple[Flag, ...]:
    """Flags of DDx that the simulation does not use: parsed, checked and ignored."""
    return tuple(Flag(name, kind, "read and ignored by the simulation") for name in names.split())


_ROUTE = _passed_over("string", "effort from harness model provider")

_HEAD_ATTEMPT = (
    *_ROUTE,
    *_passed_over("string", "attempt-backend profile reason review-tier"),
    *_passed_over("int", "max-power min-power"),
    *_passed_over("bool", "allow-non-default-branch no-review-i-know-what-im-doing"),
    *_passed_over("duration", "attempt-wall-clock preclaim-timeout request-timeout route-resolution-timeout"),
    *(_PROJECT, _NO_REVIEW, *_OWN),
)

_HEAD_LOOP = (
    *_HEAD_ATTEMPT,
    *_passed_over("int", "claim-rate-window preclaim-warn-threshold"),
    *_passed_over("float", "claim-rate-threshold max-bead-cost max-cost max-recovery-cost"),
    *_passed_over("bool", "ignore-cooldown no-self-refresh no-tracker-sync self-refresh tracker-sync"),
    *_passed_over("duration", "rate-limit-max-wait"),
    Flag("local", "bool", hidden=True),
    Flag("watch", "bool", "wait for more when nothing is ready"),
    Flag("idle-interval", "duration", "how long to wait with --watch", default="30s"),
    Flag("label-filter", about="only beads with this label"),
    *(_ONCE, JSON),
)

LOOP_VERBS = (
    Verb(("work",), f"Drain the queue, simulated{_ABOUT_OWN}", _SIMULATION, flags=_HEAD_LOOP),
    Verb(
        ("work", "plan"),
        "What the loop would take next",
        "verbs.work:plan",
        flags=(JSON, Flag("limit", "int", "at most N, 0 for all", default="10")),
    ),
    Verb(("work", "status"), "Live workers of this project", "verbs.work:status", flags=(JSON,)),
    Verb(("work", "focus"), "What the loop will not take, and why", "verbs.work:focus", flags=(JSON,)),
    Verb(
        ("work", "clear-cooldowns"),
        "End the pause of many beads",
        "verbs.work:clear_for_work",
        flags=(
            Flag("all", "bool", "of every bead that has one"),
            Flag("status", about="of those whose last status is this"),
            Flag("dry-run", "bool", "only count them"),
        ),
    ),
    refused("work", "analyze"),
    refused("work", "metrics"),
    Verb(
        ("try",),
        f"Run one bead, simulated{_ABOUT_OWN}",
        _SIMULATION,
        "<bead-id>",
        1,
        1,
        (*_HEAD_ATTEMPT, *_passed_over("bool", "force-claim")),
    ),
)


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
    order = pick_order(readiness.HEAD)
    found = []
    for bead in sorted((bead for bead in beads.values() if bead.status == "proposed"), key=order):
        row = TrackerRow.to_read(bead)
        proposal = {
            "reason": row.text("needs-human-reason") or row.text("needs-human-summary"),
            "suggested_action": row.text("needs-human-suggested-action"),
        }
        found.append({"id": bead.id, "title": bead.title} | {name: text for name, text in proposal.items() if text})
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
    row = {name: record.get(source, "") for name, source in names.items()}
    return {name: text for name, text in row.items() if text or name == "worker_id"}


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
    # a lease alone is no proof that a process is at work
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
        row = {"bead_id": claim.bead_id, "attempt_id": claim.attempt_id, "phase": claim.phase, "message": claim.message}
        worker |= {name: text for name, text in row.items() if text}
        found.append(worker | {"last_activity_at": stamp(claim.at or 0)})
    return found


def show(call: VerbCall) -> None:
    """``bead cooldown show``."""
    row = call.store.read().shown(call.id)
    until, status, detail = (row.text(name) for name in _FIELDS)
    if call.given.on("json"):
        named = {"retry_after": until, "last_status": status, "last_detail": detail, "parked_until": until}
        say_ordered(call, {"bead_id": call.id} | {name: text for name, text in named.items() if text})
        return
    if not until:
        call.say(f"{call.id}: no cooldown set")
        return
    call.say(f"bead:        {call.id}")
    for label, text in (("retry_after", until), ("last_status", status), ("last_detail", detail)):
        if text:
            call.say(f"{label + ':':<13}{text}")


def clear(call: VerbCall) -> None:
    """``bead cooldown clear``."""
    with writing(call, f"cooldown clear {call.id}") as beads:
        cleared = any(name in beads.row(call.id) for name in _FIELDS)
        change_row(call, beads, call.id, lambda row: row.drop(*_FIELDS))
    call.say(f"Cleared cooldown on {call.id}" if cleared else f"{call.id}: no cooldown set")


def clear_many(call: VerbCall) -> None:
    """``bead clear-cooldown``: of every bead, or of those that failed in one way."""
    reason = call.given.text("reason")
    if not call.given.on("all") and not reason:
        raise Refused("requires --all or --reason <value>")
    ids = _clear(call, reason)
    call.say(f"{len(ids)} cooldowns cleared")
    for bead_id in ids:
        call.say(f"  {bead_id}")


def clear_for_work(call: VerbCall) -> None:
    """``work clear-cooldowns``: the same, and it can be tried first."""
    status = call.given.text("status")
    if not call.given.on("all") and not status:
        raise Refused("requires --all or --status <value>")
    if call.given.on("dry-run"):
        count = sum(_is_meant(bead, status) for bead in call.store.read().beads.values())
        call.say(f"would clear {count} cooldown(s)")
    else:
        call.say(f"cleared {len(_clear(call, status))} cooldown(s)")


def _is_meant(bead: Bead, status: str) -> bool:
    return bool(bead.work_retry_after) and (not status or bead.work_last_status == status)


def _clear(call: VerbCall, status: str) -> list[str]:
    """End the pause of every bead, or of those with one last status; their ids."""
    with call.store.change() as beads:
        ids = [bead.id for bead in beads.beads.values() if _is_meant(bead, status)]
        for bead_id in ids:
            row, now = beads.row(bead_id), call.clock()
            row.drop(*_FIELDS, "work-cooldown-base-rev")
            source = "ddx work clear-cooldowns"
            add_inline(row, new_event("cooldown-cleared", now, summary="operator-bulk-clear", source=source))
            row.put("updated_at", stamp(now))
            beads.put(row)
    return ids
