"""The tracker file ``.ddx/beads.jsonl``, read as it is, or changed under DDx's lock and replaced as a whole.

Rules: docs/formats/ddx.md §1 (record) and §3 (locking).

`BeadStore` is for people's commands. A record that nobody touched keeps its exact bytes. A file with a line that is no
record is read with a warning, and never written: DDx itself would drop the line and keep a copy; whoever has no ddx
shall not lose it to us.

`Store` is for the simulation, whose watchers hear of every write. Rows keep every field they have, sorted by name as
Go's maps are; lines that are no records are kept at the end.

The rules of the lifecycle say which status may follow which, and what else has to hold of a record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from helix_ddx.files import Disk, go_json, stamp
from helix_ddx.flags import Refused
from helix_ddx.store.lock import FolderLock, held
from helix_ddx.store.lock import LockTimeout as LockTimeout
from helix_ddx.store.lock import process_lives as process_lives
from helix_ddx.store.places import TrackerRow
from helix_tui.core.beads.record import STATUSES, Bead, UnreadableLine
from helix_tui.core.beads.tracker import DroppedLine, Tracker, read_tracker
from helix_tui.core.ground.time import now_ns
from helix_tui.core.ground.writes import make_folder

_STEPS = {
    "proposed": ("open", "cancelled"),
    "open": ("in_progress", "blocked", "proposed", "cancelled"),
    "in_progress": ("open", "closed", "blocked", "proposed"),
    "blocked": ("open", "proposed", "cancelled"),
}


class Beads(Struct):
    """One state of the tracker, and what a command changes in it."""

    tracker: Tracker
    beads: dict[str, Bead] = {}
    changed: bool = False
    after: list[Callable[[], None]] = []
    """Actions to run once the file is in place."""
    fresh: set[str] = field(default_factory=set)
    """Ids of this command's own new records."""

    def __post_init__(self) -> None:
        self.beads = dict(self.tracker.beads)

    def bead(self, bead_id: str) -> Bead:
        """One bead.

        Raises:
            Refused: the tracker holds no such bead.
        """
        found = self.beads.get(bead_id)
        if found is None:
            raise Refused(f"bead: not found: {bead_id}")
        return found

    def row(self, bead_id: str) -> TrackerRow:
        """One record, to be changed and put back.

        Raises:
            Refused: there is no such bead, or its line cannot be taken apart.
        """
        try:
            return self._current(TrackerRow.of(self.bead(bead_id).raw))
        except UnreadableLine as problem:
            raise Refused(f"bead: {bead_id}: {problem}; nothing was written") from None

    def shown(self, bead_id: str) -> TrackerRow:
        """One record, only to be read.

        Raises:
            Refused: there is no such bead.
        """
        return self._current(TrackerRow.to_read(self.bead(bead_id)))

    def put(self, row: TrackerRow, *, new: bool = False) -> Bead:
        """Take a record in."""
        bead = row.bead()
        if new:
            self.fresh.add(bead.id)
        self.beads[bead.id] = bead
        self.changed = True
        return bead

    def content(self) -> bytes:
        """The whole file: records sorted by id."""
        lines = [self.line(self.beads[bead_id]) for bead_id in sorted(self.beads)]
        return b"".join(line + b"\n" for line in lines)

    def line(self, bead: Bead) -> bytes:
        """A record's line. Head writes a new record with version 0, and 1 whenever it is written again."""
        raw = bead.raw
        if bead.schema_version == 0 and bead.id not in self.fresh:
            return self._current(TrackerRow.of(raw)).line()
        return raw

    def _current(self, row: TrackerRow) -> TrackerRow:
        if row.fields.get("schema_version") == b"0":
            row.fields["schema_version"] = b"1"
        return row


class BeadStore:
    """The tracker of one project.

    Args:
        ddx: DDx's folder.
        warn: called for lines that are not records.
    """

    def __init__(self, ddx: Path, *, warn: Callable[[str], None], clock: Callable[[], int] = now_ns) -> None:
        self.ddx = ddx
        self.path = ddx / "beads.jsonl"
        self.warn = warn
        self.clock = clock
        self._archive: Mapping[str, Bead] | None = None

    def read(self) -> Beads:
        """The tracker as it stands.

        Raises:
            Refused: it cannot be read, or holds no record at all among its lines.
        """
        tracker = read_tracker(self.path)
        if tracker.problem:
            raise Refused(f"bead: read {self.path}: {tracker.problem}")
        for dropped in tracker.dropped:
            self.warn(f"bead: read line {dropped.line}: {dropped.reason}; the line is left as it is")
        if tracker.dropped and not tracker.beads:
            count = len(tracker.dropped)
            raise Refused(f"bead: read {self.path}: {count} malformed record(s), 0 valid")
        return Beads(tracker)

    def archived(self) -> Mapping[str, Bead]:
        """Closed beads that head moved out of the tracker."""
        if self._archive is None:
            path = self.ddx / "beads-archive.jsonl"
            self._archive = read_tracker(path).beads
        return self._archive

    @contextmanager
    def change(self) -> Iterator[Beads]:
        """Lock, read, let the caller change, write. An exception inside writes nothing.

        Raises:
            Refused: somebody else holds the lock, or the file holds lines that are no records.
        """
        lock = FolderLock(self.ddx / "beads.lock", clock=self.clock, guard=True)
        with held(lock):
            tracker = read_tracker(self.path)
            if tracker.problem:
                raise Refused(f"bead: read {self.path}: {tracker.problem}")
            # rewriting the file would lose those lines
            if tracker.dropped:
                raise Refused(_unreadable(self.path, tracker.dropped[0], len(tracker.dropped)))
            beads = Beads(tracker)
            yield beads
            if beads.changed:
                write_whole(self.path, beads.content())
            try:
                # leases and attachments only once the tracker itself says so
                for follow_up in beads.after:
                    follow_up()
            except OSError as error:
                raise Refused(f"bead: the tracker was written, but then: {error}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place, see it on disk, and rename it there: readers never see half of it.

    Raises:
        Refused: it cannot be written; the old file is unchanged.
    """
    beside = path.with_name(f"{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        make_folder(path.parent)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.rename(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise Refused(f"bead: write {path}: {error.strerror or error}") from None


def _unreadable(path: Path, first: DroppedLine, count: int) -> str:
    more = f" (and {count - 1} more lines)" if count > 1 else ""
    return (
        f"bead: {path} line {first.line}{more} is not a record: {first.reason}; nothing was written. "
        f"Correct or remove it first; ddx itself would drop it and keep a copy in {path.name}.bak"
    )


Row = dict[str, Any]


class Store:
    """The beads of one project.

    Args:
        ddx: the project's ``.ddx`` folder.
        disk: the writer; its watchers hear of every write.
    """

    def __init__(self, ddx: Path, disk: Disk | None = None, clock: Callable[[], int] = now_ns) -> None:
        self.path = ddx / "beads.jsonl"
        self.lock_folder = ddx / "beads.lock"
        self.disk = disk or Disk(durable=True)
        self.lock = FolderLock(self.lock_folder, disk=self.disk, clock=clock)

    def read(self) -> dict[str, Row]:
        """Every record by id; the last line of an id wins."""
        return self._parse()[0]

    @contextmanager
    def change(self) -> Iterator[dict[str, Row]]:
        """Lock, read, let the caller change the rows, write. An exception inside writes nothing."""
        with self.locked():
            rows, unread = self._parse()
            yield rows
            self._write(rows, unread)

    def write_new(self, rows: list[Row], unread: tuple[str, ...] = ()) -> None:
        """The first content of a tracker that does not exist yet."""
        self._write({row["id"]: row for row in rows}, list(unread))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold ``beads.lock``.

        Raises:
            LockTimeout: it was held by a living process for the whole of ``DDX_BEAD_LOCK_TIMEOUT``.
        """
        with self.lock.held():
            yield

    def _parse(self) -> tuple[dict[str, Row], list[str]]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {}, []
        rows: dict[str, Row] = {}
        unread: list[str] = []
        for line in raw.decode("utf-8", "replace").split("\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]:
                rows[row["id"]] = row
            else:
                unread.append(line)
        return rows, unread

    def _write(self, rows: dict[str, Row], unread: list[str]) -> None:
        # what is no record goes to the end instead of being lost
        lines = [go_json(dict(sorted(rows[bead_id].items()))) for bead_id in sorted(rows)]
        self.disk.replace(self.path, "".join(line + "\n" for line in [*lines, *unread]))


def event(kind: str, summary: str, body: str, at: int, *, actor: str, source: str) -> dict[str, str]:
    """One entry of a bead's history; its keys are sorted in the file (docs/formats/ddx.md §1)."""
    return {
        "actor": actor,
        "body": body[:65_535],
        "created_at": stamp(at),
        "kind": kind,
        "source": source,
        "summary": summary[:65_535],
    }


class StatusChange(Struct, frozen=True):
    """Facts about a change of status beyond the two statuses."""

    manual_close: bool = False
    manual_reopen: bool = False
    blocker_reason: str = ""


NOTHING_MORE = StatusChange()
"""No fact beyond the two statuses."""


def check_row(row: TrackerRow) -> Bead:
    """What holds of every record that is written.

    Raises:
        Refused: it has no title, or an impossible priority, status or dependency.
    """
    bead = row.bead()
    if not bead.title.strip():
        raise Refused("bead: title is required")
    if not 0 <= bead.priority <= 4:
        raise Refused(f"bead: priority must be 0-4, got {bead.priority}")
    if bead.status not in STATUSES:
        raise Refused(f"bead: invalid status: {bead.status}")
    if bead.id in bead.depends_on:
        raise Refused("bead: cannot depend on self")
    return bead


def transition(row: TrackerRow, to: str, step: StatusChange = NOTHING_MORE) -> None:
    """Set a status as head allows it, with what a change of status cleans up.

    Raises:
        Refused: that step does not exist, or lacks what it needs.
    """
    status = row.text("status") or "open"
    problem = _objection(status, to, step)
    if problem:
        raise Refused(f"bead: lifecycle transition {status} -> {to} rejected: {problem}")
    row.put("status", to)
    if to == "blocked":
        if step.blocker_reason.strip():
            row.put("lifecycle-external-blocker-reason", step.blocker_reason.strip())
    else:
        row.drop("lifecycle-external-blocker-reason", "lifecycle-cross-repo-blocker-ref", "lifecycle-local-blocker-ref")
    if to == "open" and status in ("proposed", "blocked"):
        row.drop("work-consecutive-wedges")


def _objection(status: str, to: str, step: StatusChange) -> str:
    for word in (status, to):
        if word not in STATUSES:
            return f'invalid_status: "{word}"'
    if status == to:
        return ""
    if to == "closed" and step.manual_close and status in _STEPS:
        return ""
    if (status, to) == ("closed", "open") and step.manual_reopen:
        return ""
    if status not in _STEPS:
        return f"transition_from_terminal: {status} -> {to}"
    if to == "proposed":
        return f"transition_requires_operator: {status} -> {to}"
    if to == "blocked" and not step.blocker_reason.strip():
        return f"transition_requires_external_blocker: {status} -> {to}"
    return "" if to in _STEPS[status] else f"transition_unsupported: {status} -> {to}"
