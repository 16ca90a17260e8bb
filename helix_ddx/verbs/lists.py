"""``bead list``, ``ready``, ``blocked``, ``import`` and ``export``: many records at once, as DDx lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_ddx.files import ZERO_TIME, Number, instant_of, loads, plain, time_text
from helix_ddx.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.git import writing
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import Beads
from helix_ddx.store.workspace import VerbCall
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.readiness import Queue, Standing, classify
from helix_tui.core.beads.record import STATUSES, Bead, UnreadableLine

_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)

_WHERE = ("id", "title", "status", "issue_type", "owner", "parent", "description", "acceptance", "notes")
TOOLS = ("bd", "br")
TIMEOUT_S = 120
MAX_IMPORT = 1 << 30


def _zero_time() -> str:
    return ZERO_TIME


class _Edge(Struct, omit_defaults=True):
    issue_id: str = msgspec.field(default_factory=str)
    depends_on_id: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)
    created_at: str = ""
    created_by: str = ""
    metadata: str = ""


class _Blocker(Struct, omit_defaults=True):
    kind: str = msgspec.field(default_factory=str)
    next_eligible_at: str = ""
    unclosed_dep_ids: list[str] = []
    last_status: str = ""
    last_detail: str = ""
    reason: str = ""


class _Shown(Struct, omit_defaults=True):
    """A bead as a list shows it; a default made by a factory is written too, as Go does without omitempty."""

    id: str = msgspec.field(default_factory=str)
    title: str = msgspec.field(default_factory=str)
    status: str = msgspec.field(default_factory=str)
    priority: int = msgspec.field(default_factory=int)
    issue_type: str = msgspec.field(default_factory=str)
    schema_version: int | None = None
    owner: str = ""
    created_at: str = msgspec.field(default_factory=_zero_time)
    created_by: str = ""
    updated_at: str = msgspec.field(default_factory=_zero_time)
    labels: list[str] = []
    parent: str = ""
    description: str = ""
    acceptance: str = ""
    notes: str = ""
    dependencies: list[_Edge] = []
    blocker: _Blocker | None = None


_decode = msgspec.json.Decoder(_Shown).decode
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(_Shown) if field.name != "blocker"}


def _shown(bead: Bead) -> _Shown:
    try:
        shown = _decode(bead.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        shown = _by_field(bead)
    shown.status, shown.issue_type, shown.priority = bead.status, bead.issue_type, bead.priority
    shown.created_at = time_text(shown.created_at)
    shown.updated_at = time_text(shown.updated_at)
    shown.schema_version = shown.schema_version or 1
    shown.blocker = None
    return shown


def _by_field(bead: Bead) -> _Shown:
    """A record with a field of a wrong type: that field is empty, the others are not."""
    document = bead.document()
    values: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        try:
            values[field.name] = msgspec.convert(document[name], field.type)
        except (KeyError, msgspec.ValidationError):
            continue
    if "dependencies" not in values and isinstance(document.get("dependencies"), list):
        values["dependencies"] = [_edge(item) for item in document["dependencies"]]
    return _Shown(**values)


def _edge(item: Any) -> _Edge:
    """An edge as Go decodes it: what is not a text, or not an object at all, leaves its fields empty."""
    fields = item if isinstance(item, dict) else {}
    names = (field.name for field in msgspec.structs.fields(_Edge))
    return _Edge(**{name: fields[name] for name in names if isinstance(fields.get(name), str)})


def say_ordered(call: VerbCall, value: Any) -> None:
    """Make the answer a JSON document whose fields stand in the order they have."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=2)
    for plain_bytes, escaped in _ESCAPES:
        data = data.replace(plain_bytes, escaped)
    call.out.append(data + b"\n")


def _say_beads(call: VerbCall, beads: Iterable[Bead]) -> None:
    say_ordered(call, [_shown(bead) for bead in beads])


# --- list -----------------------------------------------------------------------------------------------


def list_beads(call: VerbCall) -> None:
    """``bead list``, archived beads among them."""
    given = call.given
    where = dict(text.split("=", 1) for text in given.all("where") if "=" in text)
    found = [
        bead
        for bead in everything(call, call.store.read().beads).values()
        if _matches(bead, given.text("status"), given.text("label"), where)
    ]
    if given.on("json"):
        _say_beads(call, found)
    elif not found:
        call.say("No beads found.")
    for bead in () if given.on("json") else found:
        labels = f" [{','.join(bead.labels)}]" if bead.labels else ""
        call.say(f"{bead.id}  {bead.status:<12}  P{bead.priority}  {bead.title}{labels}")


def everything(call: VerbCall, active: Mapping[str, Bead]) -> dict[str, Bead]:
    """The tracker's beads, then those of the archive that it does not hold."""
    old = call.store.archived()
    return {**active, **{bead_id: bead for bead_id, bead in old.items() if bead_id not in active}}


def _matches(bead: Bead, status: str, label: str, where: Mapping[str, str]) -> bool:
    if (status and bead.status != status) or (label and label not in bead.labels):
        return False
    return not where or _fits(bead, where)


def _fits(bead: Bead, where: Mapping[str, str]) -> bool:
    """Compare fields as texts; of DDx's own fields only these can be asked for, any other reads as empty."""
    try:
        document = loads(bead.raw)
    except (ValueError, RecursionError):  # nested deeper than this decoder goes
        document = {}
    for name, wanted in where.items():
        name = "owner" if name == "assignee" else name
        value = document.get(name)
        if name in ("status", "issue_type"):
            actual = getattr(bead, name)
        elif name in _WHERE:
            actual = value if isinstance(value, str) and not isinstance(value, Number) else ""
        elif name in _FIELDS or name not in document:
            actual = ""
        else:
            actual = plain(value)
        if actual != wanted:
            return False
    return True


# --- ready ----------------------------------------------------------------------------------------------


def queue_of(call: VerbCall, beads: Mapping[str, Bead]) -> Queue:
    """The tracker classified by today's rule."""
    from helix_ddx.store.holders import claims_of

    return classify(beads, now=call.clock(), era="head", claims=claims_of(call))


def ready(call: VerbCall) -> None:
    """``bead ready``: what the loop would pick."""
    beads = call.store.read().beads
    queue = queue_of(call, beads)
    found = [beads[bead_id] for bead_id in queue.ready]
    if call.given.on("json"):
        _say_beads(call, found)
        return
    if not found:
        call.say("No ready beads.")
    for bead in found:
        call.say(f"{bead.id}  P{bead.priority}  {bead.title}")


def _by_age(bead: Bead) -> tuple[int, int, bytes]:
    return bead.priority, instant_of(bead.created_at), bead.id.encode()


def _reason(standing: Standing, kind: str) -> tuple[str, tuple[str, ...]] | None:
    return next(((reason.detail, reason.refs) for reason in standing.reasons if reason.kind == kind), None)


# --- blocked --------------------------------------------------------------------------------------------


def blocked(call: VerbCall) -> None:
    """``bead blocked``: what is blocked by its status."""
    beads = call.store.read().beads
    queue = queue_of(call, beads)
    entries = []
    for bead in sorted(beads.values(), key=_by_age):
        blocker = _head_blocker(queue, bead)
        if blocker is not None:
            entries.append((bead, blocker))
    if call.given.on("json"):
        shown = []
        for bead, blocker in entries:
            shown.append(_shown(bead))
            shown[-1].blocker = blocker
        say_ordered(call, shown)
        return
    if not entries:
        call.say("No externally blocked beads.")
    for bead, blocker in entries:
        call.say(f"{bead.id}  P{bead.priority}  {bead.title}  {_why(bead, blocker)}")


def _why(bead: Bead, blocker: _Blocker) -> str:
    if blocker.kind == "retry-cooldown":
        return f"retry-after: {blocker.next_eligible_at}"
    if blocker.kind == "dependency":
        return f"deps: {', '.join(edge.depends_on_id for edge in bead.dependencies)}"
    return f"{blocker.kind}: {blocker.reason}"


def _head_blocker(queue: Queue, bead: Bead) -> _Blocker | None:
    if bead.status != "blocked":
        return None
    found = _reason(queue.standing(bead.id), "blocked_external")
    return _Blocker(kind="blocked-status", reason=found[0] if found else "")


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
        if bead.events_attachment:
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
        if bead.status not in STATUSES:
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
