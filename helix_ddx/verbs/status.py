"""``bead show`` and ``status``, ``metrics``, ``evidence``, ``needs-human``, ``operator-attention``, ``human resolve``.

One bead with every field it has; how many beads there are of what kind, who is at work at head, what attempts cost
(``.ddx/executions/*/result.json``), what a person has to decide, and the events of a bead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_ddx.files import Ordered, clock_text, instant_of, loads, plain, second, second_text, stamp
from helix_ddx.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.git import writing
from helix_ddx.store.holders import ActiveWork, change_row, read_lease, read_leases, read_run_records, read_workers
from helix_ddx.store.places import KNOWN, TrackerRow
from helix_ddx.store.tracker import Beads, transition
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.close import close_by_hand, note
from helix_ddx.verbs.create_update import edge
from helix_ddx.verbs.lists import everything, queue_of, say_ordered
from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.files import names_in, read_bytes
from helix_tui.core.ground.time import parse_instant

_ORDER = ("project_root", "worker_id", "bead_id", "attempt_id", "owner", "phase", "source", "last_activity_at")

STUCK = frozenset({"route_resolution_timeout", "progress_watchdog", "consecutive_wedge"})
"""Reasons for which a stuck worker releases a claim."""

_META = ("reason", "since", "source", "suggested-action", "summary")
MAX_RESULT = 8 << 20

_CLAIM_LABELS = (
    ("claimed-at", "Claimed", "started_at"),
    ("claimed-machine", "Machine", "machine"),
    ("claimed-session", "Session", "session"),
    ("claimed-worktree", "Worktree", "worktree"),
)

_TOLD = frozenset({"session_id", "closing_commit_sha", "claimed-pid", *(label[0] for label in _CLAIM_LABELS)})


def status(call: VerbCall) -> None:
    """``bead status``."""
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
    counts |= {"dependency_waiting": states["waiting_dependencies"], "external_blocked": states["blocked_external"]}
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
    """Active workers, from fresh leases, worker files and run records."""
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
        # of two signs of one bead the fresher counts, and the other fills its gaps
        elif holder.at > known[0]:
            found[key] = holder.at, known[1] | record
        else:
            found[key] = known[0], record | known[1]
    records = [record for _, record in sorted(found.values(), key=lambda pair: (-pair[0], str(pair[1])))]
    ids = sorted({record["bead_id"] for record in records if "bead_id" in record})
    ordered = [{name: record[name] for name in _ORDER if name in record} for record in records]
    return {"count": len(records), "bead_ids": ids, "records": ordered}


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


def needs_human(call: VerbCall) -> None:
    """``bead needs-human``: proposed beads in queue order."""
    beads = call.store.read().beads.values()
    found = sorted((bead for bead in beads if bead.status == "proposed"), key=_queue_order)
    rows = [_human_row(bead) for bead in found]
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("No operator-attention beads.")
    for row in rows:
        detail = row.get("summary") or row.get("reason") or row.get("suggested_action") or ""
        call.say(f"{row['id']}  P{row['priority']}  {row['title']}{f'  {detail}' if detail else ''}")


def _queue_order(bead: Bead) -> tuple[int, bool, int, int, bytes]:
    rank = bead.queue_rank
    return bead.priority, rank is None, rank or 0, instant_of(bead.created_at), bead.id.encode()


def _human_row(bead: Bead) -> dict[str, Any]:
    row = TrackerRow.to_read(bead)
    shown: dict[str, Any] = {"id": bead.id, "priority": bead.priority, "title": bead.title}
    shown |= {
        name.replace("-", "_"): row.text(f"needs-human-{name}") for name in _META if row.text(f"needs-human-{name}")
    }
    return shown | ({"labels": list(bead.labels)} if bead.labels else {})


def released(call: VerbCall) -> None:
    """``bead operator-attention``: claims that a stuck worker released, oldest first."""
    beads = call.store.read()
    rows: list[dict[str, Any]] = []
    for bead in beads.beads.values():
        # most rows have none, and then nothing of them is decoded
        if b"operator_attention" not in bead.raw and not bead.events_attachment:
            continue
        rows += [
            _release_row(bead.id, event)
            for event in history.events_of(TrackerRow.to_read(bead), call.workspace.ddx)
            if event.get("kind") == "operator_attention" and event.get("summary") in STUCK
        ]
    rows.sort(key=lambda row: row.get("created_at", ""))
    if call.given.on("json"):
        say_ordered(call, rows)
        return
    if not rows:
        call.say("No wedge/timeout lease releases.")
    for row in rows:
        attempt, last = row.get("attempt_id") or "-", row.get("last_activity_at") or "-"
        call.say(
            f"{row['bead_id']}  attempt={attempt}  last_activity_at={last}  {row['reason']}  {row.get('diagnosis', '')}"
        )


def _release_row(bead_id: str, event: history.Event) -> dict[str, Any]:
    try:
        body = loads(str(event.get("body", "")))
    except (ValueError, RecursionError):
        body = None
    texts = {name: text for name, text in body.items() if isinstance(text, str)} if isinstance(body, dict) else {}
    created = parse_instant(event.get("created_at"))
    row = {
        "bead_id": texts.get("bead_id") or bead_id,
        "attempt_id": texts.get("attempt_id", ""),
        "last_activity_at": texts.get("last_activity_at", ""),
        "reason": str(event.get("summary", "")),
        "diagnosis": texts.get("diagnosis", ""),
        "created_at": second(created) if created is not None else "",
    }
    return {name: text for name, text in row.items() if text or name in ("bead_id", "reason")}


def resolve(call: VerbCall) -> None:
    """``bead human resolve``: what a person decided about a proposed bead."""
    action, why = call.given.text("action").strip(), call.given.text("note").strip()
    if not why:
        raise Refused("--note is required")
    children = list(dict.fromkeys(child.strip() for child in call.given.all("children") if child.strip()))
    if action not in ("retry", "split", "obsolete", "defer"):
        raise Refused(f'unknown --action "{action}" (valid: retry, split, obsolete, defer)')
    if action == "split" and not children:
        raise Refused("--children is required when --action split")
    with writing(call, f"human resolve {call.id}") as beads:
        beads.bead(call.id)
        if action == "split":
            _wait_for(call, beads, children)
        if action in ("retry", "split"):
            change_row(call, beads, call.id, _accept)
        body = f"{why}\nchildren: {', '.join(children)}" if action == "split" else why
        source, actor = "ddx bead human resolve", call.assignee()
        summary, now = f"action={action}", call.clock()
        said = history.new_event("needs_human_resolved", now, summary=summary, body=body, actor=actor, source=source)
        note(call, beads, call.id, said)
        if action == "obsolete":
            close_by_hand(call, beads, call.id)


def _accept(row: TrackerRow) -> None:
    transition(row, "open")
    labels = [item for item in row.items("labels") if loads(item) != "needs_human"]
    row.put_list("labels", labels)
    row.drop(*(f"needs-human-{name}" for name in _META))


def _wait_for(call: VerbCall, beads: Beads, children: list[str]) -> None:
    """Let a split bead wait for its parts."""
    for child in children:
        if child == call.id:
            raise Refused(f"split child cannot be the parent bead: {child}")
        if child not in beads.beads:
            raise Refused(f"split child {child}: bead: not found: {child}")
    new = [child for child in children if child not in beads.bead(call.id).depends_on]

    def change(row: TrackerRow) -> None:
        added = [edge(call.id, child, call.clock()) for child in new]
        row.put_list("dependencies", row.items("dependencies") + added)

    change_row(call, beads, call.id, change)


class Attempts(Struct):
    """Totals of the attempts on one bead."""

    count: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0

    def totals(self) -> dict[str, Any]:
        """The four figures as DDx prints them; a whole number has no point."""
        average = self.duration_ms / self.count if self.count else 0.0
        return Ordered(
            attempt_count=self.count,
            total_tokens=self.tokens,
            total_cost_usd=_bare(self.cost_usd),
            avg_duration_ms=_bare(average),
        )


NO_ATTEMPT = Attempts()


class _Result(Struct):
    bead_id: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0


_decode = msgspec.json.Decoder(_Result).decode


def attempts_by_bead(ddx: Path) -> dict[str, Attempts]:
    """Every attempt that left a readable result."""
    found: dict[str, Attempts] = {}
    for name in names_in(ddx / "executions"):
        try:
            result = _decode(read_bytes(ddx / "executions" / name / "result.json", MAX_RESULT) or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if result.bead_id:
            attempts = found.setdefault(result.bead_id, Attempts())
            attempts.count += 1
            attempts.tokens += result.tokens
            attempts.cost_usd += result.cost_usd
            attempts.duration_ms += result.duration_ms
    return found


def metrics(call: VerbCall) -> None:
    """``bead metrics``: one row a bead that was attempted."""
    found = attempts_by_bead(call.workspace.ddx)
    beads = call.store.read().beads
    titles = {bead_id: beads[bead_id].title if bead_id in beads else "" for bead_id in sorted(found)}
    if call.given.on("json"):
        rows = []
        for bead_id, title in titles.items():
            named = {"bead_id": bead_id} | ({"title": title} if title else {})
            rows.append(named | found[bead_id].totals())
        say_ordered(call, rows)
        return
    call.say(_row("BEAD_ID", "ATTEMPTS", "TOTAL_TOKENS", "TOTAL_COST_USD", "AVG_DURATION_MS", "TITLE"))
    for bead_id, title in titles.items():
        one = found[bead_id]
        average = f"{one.duration_ms / one.count:.1f}"
        call.say(_row(bead_id, str(one.count), str(one.tokens), f"{one.cost_usd:.4f}", average, title))


def _row(bead_id: str, count: str, tokens: str, cost: str, average: str, title: str) -> str:
    return f"{bead_id:<20}  {count:>8}  {tokens:>12}  {cost:>12}  {average:>14}  {title}"


def _bare(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def add(call: VerbCall) -> None:
    """``bead evidence add``."""
    given = call.given
    event = history.new_event(
        given.text("kind") or "summary",
        call.clock(),
        summary=given.text("summary"),
        body=given.text("body"),
        actor=given.text("actor") or call.assignee(),
        source=given.text("source") or "ddx bead evidence add",
    )
    with call.store.change() as beads:
        note(call, beads, call.id, event)


def list_events(call: VerbCall) -> None:
    """``bead evidence list``: oldest first."""
    row = call.store.read().shown(call.id)
    events = history.events_of(row, call.workspace.ddx)
    if call.given.on("json"):
        say_ordered(call, [history.shown(event) for event in events])
        return
    for event in events:
        call.say(f"{second_text(event.get('created_at'))}  {event.get('kind', '')}  {event.get('summary', '')}")


def show(call: VerbCall) -> None:
    """``bead show``."""
    beads = call.store.read()
    row = _stored_row(call, beads)
    lease = read_lease(call, call.id)
    if call.given.on("json"):
        call.say_json(_document(call, row, lease))
    else:
        _tell(call, row, lease)


def _stored_row(call: VerbCall, beads: Beads) -> TrackerRow:
    if call.id not in beads.beads and call.id in call.store.archived():
        return TrackerRow.to_read(call.store.archived()[call.id])
    return beads.shown(call.id)


def _document(call: VerbCall, row: TrackerRow, lease: dict[str, Any] | None) -> dict[str, Any]:
    history.move_in(row, call.workspace.ddx)
    document = {}
    for name, raw in row.fields.items():
        try:
            document[name] = loads(raw)
        except (ValueError, RecursionError) as error:
            raise Refused(f"bead: {call.id}: {name} cannot be read: {error}") from None
    document["metrics"] = attempts_by_bead(call.workspace.ddx).get(call.id, NO_ATTEMPT).totals()
    if lease is not None:
        _merge_lease(document, row, lease)
    return document


def _merge_lease(document: dict[str, Any], row: TrackerRow, lease: dict[str, Any]) -> None:
    """What a lease says shows as if the record said it; what the record itself says comes first."""
    held = {
        "claimed-at": second_text(lease["started_at"]) if lease.get("started_at") else None,
        "claimed-pid": lease.get("pid"),
        "claimed-machine": lease.get("machine"),
        "claimed-session": lease.get("session"),
        "claimed-worktree": lease.get("worktree"),
    }
    if not row.text("owner").strip() and lease.get("owner"):
        document["owner"] = lease["owner"]
    for name, value in held.items():
        if value and name not in document:
            document[name] = value


def _tell(call: VerbCall, row: TrackerRow, lease: dict[str, Any] | None) -> None:
    bead = row.bead()
    call.say(f"ID:       {bead.id}")
    call.say(f"Title:    {bead.title}")
    call.say(f"Type:     {bead.issue_type}")
    call.say(f"Status:   {bead.status}")
    call.say(f"Priority: {bead.priority}")
    owner = bead.owner.strip() or str((lease or {}).get("owner") or "")
    rows = (
        ("Labels", ", ".join(bead.labels)),
        ("Owner", owner),
        ("Parent", bead.parent),
        ("Deps", ", ".join(edge.depends_on_id for edge in bead.dependencies)),
        ("Desc", row.text("description")),
        ("Accept", row.text("acceptance")),
    )
    for label, text in rows:
        if text:
            call.say(f"{label + ':':<10}{text}")
    call.say(f"Created:  {clock_text(bead.created_at)}")
    call.say(f"Updated:  {clock_text(bead.updated_at)}")
    own = KNOWN | {"schema_version"}
    extra = [name for name in sorted(row.fields) if name not in own]
    if extra:  # DDx looks at a lease only for a record that has fields of somebody else's
        _print_claim(call, row, lease or {})
    for name in extra:
        if name not in _TOLD:
            call.say(f"{name}: {plain(loads(row.fields[name]))}")


def _print_claim(call: VerbCall, row: TrackerRow, lease: dict[str, Any]) -> None:
    for name, label in (("session_id", "Session"), ("closing_commit_sha", "Commit")):
        if row.value(name):
            call.say(f"{label + ':':<10}{plain(row.value(name))}")
    for name, label, lease_name in _CLAIM_LABELS:
        if name in row:
            call.say(f"{label + ':':<10}{plain(row.value(name))}")
        elif lease.get(lease_name):
            text = str(lease[lease_name])
            call.say(f"{label + ':':<10}{second_text(text) if lease_name == 'started_at' else text}")
