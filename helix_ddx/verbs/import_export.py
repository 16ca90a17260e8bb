"""``bead import`` and ``bead export``: whole records from and to other places, nothing left out."""

from __future__ import annotations

from pathlib import Path

import msgspec

from helix_ddx.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.git import writing
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import APRIL_STATUSES, Beads
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.lists import everything
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.record import STATUSES, UnreadableLine

TOOLS = ("bd", "br")
TIMEOUT_S = 120
MAX_IMPORT = 1 << 30


def init(call: VerbCall) -> None:
    """``bead init``: an empty tracker, and what an older HELIX kept in a file of its own."""
    path = call.store.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise Refused(f"bead: init file: {error}") from None
    call.say(f"Initialized bead storage at {path}")
    older = call.here / ".helix" / "issues.jsonl"
    if older.exists() and not call.store.read().beads:
        try:
            count = merge_file(call, older)
        except Refused as problem:
            call.warn(f"Warning: migration from .helix/issues.jsonl failed: {problem}")
            return
        if count:
            call.say(f"Migrated {count} beads from .helix/issues.jsonl")


def export(call: VerbCall) -> None:
    """``bead export``: full records; head adds archived ones and puts events back into their beads."""
    beads = call.store.read()
    lines = []
    for bead in everything(call, beads.beads).values():
        line = beads.line(bead)
        if call.head and bead.events_attachment:
            row = TrackerRow.of(line)
            history.move_in(row, call.workspace.ddx)
            line = row.line()
        lines.append(line + b"\n")
    if call.given.on("stdout") or not call.given.words:
        call.out += lines
        return
    path = call.here / call.id
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Refused(f"bead: export create: open {call.id}: {reason}") from None


def import_beads(call: VerbCall) -> None:
    """``bead import``: beads that are not there yet; those that are stay as they are."""
    source = call.given.text("from", "auto") or "auto"
    path = Path(call.id) if call.given.words else None
    if source in TOOLS:
        count = _from_tool(call, source)
    elif source == "jsonl":
        if path is None:
            raise Refused("bead: read : open : no such file or directory")
        count = merge_file(call, path)
    elif source == "auto":
        count = _from_anywhere(call, path)
    else:
        raise Refused(f"bead: unknown import source: {source}")
    call.say(f"Imported {count} beads")


def _from_anywhere(call: VerbCall, path: Path | None) -> int:
    for tool in TOOLS:
        try:
            count = _from_tool(call, tool)
        # the tool is not installed, or keeps nothing here
        except Refused:
            continue
        if count:
            return count
    usual = (Path(".beads/issues.jsonl"), Path(".helix/issues.jsonl"))
    return merge_file(call, path or next((each for each in usual if (call.here / each).exists()), usual[0]))


def _from_tool(call: VerbCall, tool: str) -> int:
    from helix_ddx.files import OtherError, ask  # only where another tool is asked

    try:
        code, out, _ = ask([tool, "list", "--json"], call.here, timeout=TIMEOUT_S)
    except OtherError as problem:
        raise Refused(f"bead: {tool} list --json: {problem}") from None
    if code:
        raise Refused(f"bead: {tool} list --json: exit status {code}")
    return _merge(call, out)


def merge_file(call: VerbCall, path: Path) -> int:
    """Take over the beads of a file, named from here, one a line or as a JSON array; how many were new."""
    try:
        with open(call.here / path, "rb") as file:
            data = file.read(MAX_IMPORT)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Refused(f"bead: read {path}: open {path}: {reason}") from None
    return _merge(call, data)


def _merge(call: VerbCall, data: bytes) -> int:
    rows, unread = _rows(data.strip())
    if unread and not rows:
        raise Refused(f"bead: import failed: {unread} malformed record(s), 0 valid")
    if unread:
        call.warn(f"bead: import: skipped {unread} malformed record(s)")
    if not rows:
        return 0
    with writing(call, f"import {len(rows)} beads") as beads:
        return _add(call, beads, rows)


def _rows(data: bytes) -> tuple[list[TrackerRow], int]:
    if data.startswith(b"["):
        try:
            records = [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(f"bead: import parse: {error}") from None
    else:
        records = [line for line in data.split(b"\n") if line.strip()]
    rows, unread = [], 0
    for record in records:
        try:
            row = TrackerRow.of(record)
            row.bead()
            rows.append(row)
        except UnreadableLine:
            unread += 1
    return rows, unread


def _add(call: VerbCall, beads: Beads, rows: list[TrackerRow]) -> int:
    """Add what is new; an impossible status or priority is put right, as DDx does."""
    incoming = {row.text("id") for row in rows}
    count = 0
    for row in rows:
        bead = row.bead()
        if bead.id in beads.beads:
            continue
        if bead.status not in (STATUSES if call.head else APRIL_STATUSES):
            row.put("status", "open")
        if not 0 <= bead.priority <= 4:
            row.put("priority", min(max(bead.priority, 0), 4))
        for target in bead.depends_on:
            if target not in beads.beads and target not in incoming:
                call.warn(f"bead: import: {bead.id} has dangling dep {target} (skipped)")
        beads.put(row)
        count += 1
    # one that was there before is no reason to refuse
    circles = [circle for circle in _circles(beads) if incoming & set(circle)]
    if circles:
        raise Refused(f"bead: import would create circular dependency involving {circles[0][0]}")
    return count


def _circles(beads: Beads) -> tuple[tuple[str, ...], ...]:
    return Graph(beads.beads).cycles
