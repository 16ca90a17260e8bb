"""``bead show``: one bead with every field it has, its events and who holds it."""

from __future__ import annotations

from typing import Any

from helix_ddx.base.files import clock_text, loads, plain, second_text
from helix_ddx.base.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.holders import read_lease
from helix_ddx.store.places import KNOWN, TrackerRow
from helix_ddx.store.tracker import Beads
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.status import NO_ATTEMPT, attempts_by_bead

_CLAIM_LABELS = (
    ("claimed-at", "Claimed", "started_at"),
    ("claimed-machine", "Machine", "machine"),
    ("claimed-session", "Session", "session"),
    ("claimed-worktree", "Worktree", "worktree"),
)
_TOLD = frozenset({"session_id", "closing_commit_sha", "claimed-pid", *(label[0] for label in _CLAIM_LABELS)})


def show(call: VerbCall) -> None:
    """``bead show``."""
    beads = call.store.read()
    row = _row(call, beads)
    lease = read_lease(call, call.id)
    if call.given.on("json"):
        call.say_json(_document(call, row, lease))
    else:
        _tell(call, row, lease)


def _row(call: VerbCall, beads: Beads) -> TrackerRow:
    if call.id not in beads.beads and call.id in call.store.archived():
        return TrackerRow.to_read(call.store.archived()[call.id])
    return beads.shown(call.id)


def _document(call: VerbCall, row: TrackerRow, lease: dict[str, Any] | None) -> dict[str, Any]:
    if call.head:
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
    own = KNOWN | {"schema_version"} if call.head else KNOWN
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
