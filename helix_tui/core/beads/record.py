"""The bead record: one line of ``.ddx/beads.jsonl``, of either era.

Format: docs/formats/ddx.md §1. A line is decoded only as far as queue and list need; the record keeps the raw line, and
``document()`` decodes the rest when it is shown. Fields are read as DDx reads them, each by itself: one field of a
wrong type costs that field, not the bead.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from helix_tui.core.ground.errors import HelixError

if TYPE_CHECKING:
    Whole = int
else:
    Whole = int | float

_BLOCK = 64 << 10
"""Bytes searched for a newline at a time."""

_FOLDERS = ("/var/tmp",)
"""The preferred folder for a copy, on disk: the usual temporary folder is often in memory."""

TERMINAL = frozenset({"closed", "cancelled"})
"""Statuses that a bead does not leave by itself."""

STATUSES = frozenset({"open", "in_progress", "closed", "blocked", "proposed", "cancelled"})
"""Every status DDx knows; the last three came with the head era."""

_HEAD_STATUSES = frozenset({"blocked", "proposed", "cancelled"})

_DIGITS = re.compile(r"[+-]?[0-9]{1,40}")
"""A whole number; Python refuses to parse more than 4,300 digits."""

FOCUS_ON = "helix-focus"
"""Field that marks an epic as focused."""

FOCUS_MARK = "helix-focus-suppressed"
"""Field naming the epic whose focus holds a bead back."""

HELD = "helix-drift"
"""Field with the reason to keep workers from a bead until a person decides; drift was the first such reason."""

DRIFTED = "parent or document changed"
REFUSED = "a review refused its change"

INJECTED = "helix-injected:"
"""Prefix of the label of beads that HELIX added; the kind of bead follows."""


class FileBuffer:
    """The first ``size`` bytes of a file."""

    __slots__ = ("_fd", "_size")

    def __init__(self, fd: int, size: int) -> None:
        """Take over a descriptor; it is closed with the object."""
        self._fd = fd
        self._size = size

    def __del__(self) -> None:
        os.close(self._fd)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """A slice of the bytes; shorter if the file was truncated meanwhile.

        Raises:
            OSError: the file cannot be read.
        """
        start, stop, _ = part.indices(self._size)
        data = os.pread(self._fd, max(0, stop - start), start)
        # pread may return less than asked for, especially on a network disk
        while data and len(data) < stop - start:
            more = os.pread(self._fd, stop - start - len(data), start + len(data))
            if not more:
                break
            data += more
        return data

    def find(self, sub: bytes, start: int, end: int) -> int:
        """Offset of a byte between two offsets, or -1."""
        while start < end:
            block = self[start : min(start + _BLOCK, end)]
            place = block.find(sub)
            if place >= 0:
                return start + place
            if not block:
                break
            start += len(block)
        return -1


def copy_to_disk(data: memoryview) -> FileBuffer | None:
    """Copy bytes to an unnamed file that is removed with the object; None if the disk is full."""
    folder = next((folder for folder in _FOLDERS if os.access(folder, os.W_OK)), None)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(data)
            file.flush()
            return FileBuffer(os.dup(file.fileno()), len(data))
    except OSError:
        return None


Buffer = bytes | mmap.mmap | FileBuffer
"""What can hold raw lines: in one large buffer or a file, 3,000 of them cost no extra memory."""


class Dependency(Struct, frozen=True, gc=False):
    """One edge: its bead waits for ``depends_on_id``. DDx's queue ignores ``type``."""

    depends_on_id: str = ""
    type: str = ""


class Bead(Struct, frozen=True, gc=False):
    """The fields of a bead that queue and list need; absent ones have DDx's zero values."""

    id: str = ""
    title: str = ""
    status: str = "open"
    priority: Whole = 0
    issue_type: str = "task"
    schema_version: int | None = None
    owner: str = ""
    parent: str = ""
    labels: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    execution_eligible: bool | None = msgspec.field(default=None, name="execution-eligible")
    superseded_by: str = msgspec.field(default="", name="superseded-by")
    raw_rank: int | float | str | None = msgspec.field(default=None, name="queue-rank")
    raw_rank_alias: int | float | str | None = msgspec.field(default=None, name="queue_rank")
    work_retry_after: str = msgspec.field(default="", name="work-retry-after")
    work_last_status: str = msgspec.field(default="", name="work-last-status")
    work_base_rev: str = msgspec.field(default="", name="work-cooldown-base-rev")
    work_heartbeat_at: str = msgspec.field(default="", name="work-heartbeat-at")
    loop_retry_after: str = msgspec.field(default="", name="execute-loop-retry-after")
    loop_last_status: str = msgspec.field(default="", name="execute-loop-last-status")
    loop_heartbeat_at: str = msgspec.field(default="", name="execute-loop-heartbeat-at")
    claimed_at: str = msgspec.field(default="", name="claimed-at")
    claimed_pid: str | int | None = msgspec.field(default=None, name="claimed-pid")
    claimed_machine: str = msgspec.field(default="", name="claimed-machine")
    blocker_reason: str = msgspec.field(default="", name="lifecycle-external-blocker-reason")
    skip_reason: str = msgspec.field(default="", name="execution-skip-reason")
    review_blocked_at: str = msgspec.field(default="", name="preserved-review-blocked-at")
    review_blocked_attempt: str = msgspec.field(default="", name="preserved-review-blocked-attempt")
    review_unblocked_at: str = msgspec.field(default="", name="preserved-review-unblocked-at")
    review_unblocked_attempt: str = msgspec.field(default="", name="preserved-review-unblocked-attempt")
    spec_id: str = msgspec.field(default="", name="spec-id")
    events_attachment: str = ""
    focus_since: str = msgspec.field(default="", name=FOCUS_ON)
    """When the console's epic focus was set on this bead; `focus` interprets its absence."""
    focus_epic: str = msgspec.field(default="", name=FOCUS_MARK)
    """The epic whose focus keeps workers from this bead."""
    where: Any = msgspec.field(default=(b"", 0, 0), name=" where")
    """(buffer, start, end) of the line; overwrites a field of that name in the record."""

    @property
    def raw(self) -> bytes:
        """The line as it is in the file, without its newline."""
        buffer, start, end = self.where
        line: bytes = buffer[start:end]
        return line

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Ids this bead waits for, in the record's order, without duplicates."""
        return tuple(dict.fromkeys(edge.depends_on_id for edge in self.dependencies if edge.depends_on_id))

    @property
    def queue_rank(self) -> int | None:
        """The operator's rank inside a priority, or None; a text or a whole float counts, as in DDx."""
        for raw in (self.raw_rank, self.raw_rank_alias):
            whole = isinstance(raw, int) or (isinstance(raw, float) and raw.is_integer())
            if whole or (isinstance(raw, str) and _DIGITS.fullmatch(raw.strip())):
                rank = int(raw)  # type: ignore[arg-type]
                if _is_int64(rank):
                    return rank
        return None

    @property
    def pid(self) -> int | None:
        """Process id in a row claim; the record has it as a string or a number."""
        raw = self.claimed_pid
        if isinstance(raw, int):
            return raw
        return int(raw) if raw and raw.isdecimal() and len(raw) < 20 else None

    @property
    def injected(self) -> str:
        """The kind of bead that HELIX added; empty for other beads."""
        label = next((label for label in self.labels if label.startswith(INJECTED)), "")
        return label.removeprefix(INJECTED)

    @property
    def has_head_keys(self) -> bool:
        """Whether it has a key that only DDx since mid-May 2026 writes."""
        return self.schema_version is not None or self.raw_rank is not None or self.has_work_keys

    @property
    def has_work_keys(self) -> bool:
        """Whether it has worker keys with the names that replaced ``execute-loop-…``."""
        return bool(self.work_retry_after or self.work_last_status or self.work_heartbeat_at or self.work_base_rev)

    @property
    def has_april_keys(self) -> bool:
        """Whether it has worker keys with April's names."""
        return bool(self.loop_retry_after or self.loop_last_status or self.loop_heartbeat_at or self.claimed_at)

    @property
    def era(self) -> str | None:
        """``head`` or ``april`` if the record itself shows it, else None.

        Both kinds of key in one row mean an April row that a later DDx has updated: head.
        """
        if self.has_head_keys or self.events_attachment or self.status in _HEAD_STATUSES:
            return "head"
        return "april" if self.has_april_keys else None

    def document(self) -> dict[str, Any]:
        """Every field of the line, known or not."""
        try:
            document = _decode_leniently(self.raw)
        except UnreadableLine:  # nested deeper than this decoder supports
            return {}
        return document if isinstance(document, dict) else {}


def hold_reason(bead: Bead) -> str:
    """Why HELIX keeps workers from a bead until a person decides; else ""."""
    # most rows have no mark: check the raw bytes without decoding
    return str(bead.document().get(HELD) or "") if f'"{HELD}"'.encode() in bead.raw else ""


class UnreadableLine(HelixError, ValueError):
    """A line that is not a bead record; the message says why in a few words."""


_decode_row = msgspec.json.Decoder(Bead).decode
_force = msgspec.structs.force_setattr


def move_line(bead: Bead, buffer: Buffer, start: int, end: int) -> None:
    """Point a bead to its line in another buffer; the bytes there must be the same."""
    _force(bead, "where", (buffer, start, end))


# The type of each field, by its name in the file, for lenient decoding.
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Bead) if field.name != "where"}


def decode_bead(line: bytes) -> Bead:
    """Decode one line.

    Raises:
        UnreadableLine: not JSON, not an object, or without an id. Anything else is tolerated: a field of the wrong type
            gets its zero value, an invalid character becomes U+FFFD.
    """
    try:
        bead = _decode_row(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        bead = _decode_by_field(line)
    # Go reads an absent field as an empty string
    if not bead.status or not bead.issue_type:
        bead = msgspec.structs.replace(bead, status=bead.status or "open", issue_type=bead.issue_type or "task")
    # Go would not decode a larger number and leaves 0
    if not _is_int64(bead.priority):
        bead = msgspec.structs.replace(bead, priority=0)
    if not bead.id:
        raise UnreadableLine("no id")
    _force(bead, "where", (line, 0, len(line)))
    return bead


def _is_int64(number: int) -> bool:
    """Whether Go would decode it as an int."""
    # not isinstance: true and false are ints in Python
    return number.__class__ is int and -(1 << 63) <= number < 1 << 63


def _decode_leniently(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8", "replace"), parse_constant=_refuse_constant)
    except RecursionError:
        raise UnreadableLine("nested too deeply") from None
    except ValueError as error:
        # read to its end, or to the beginning of a text that never ends
        whole = not isinstance(error, json.JSONDecodeError) or error.pos < len(error.doc.rstrip())
        reason = "no JSON" if whole and "Unterminated" not in str(error) else "cut off"
        raise UnreadableLine(f"{reason}: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _decode_by_field(line: bytes) -> Bead:
    document = _decode_leniently(line)
    if not isinstance(document, dict):
        raise UnreadableLine(f"not an object but {type(document).__name__}")
    values: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        if name not in document:
            continue
        value = document[name]
        if name == "labels":
            values["labels"] = _texts(value)
        elif name == "dependencies":
            values["dependencies"] = _edges(value)
        else:
            try:
                values[field.name] = msgspec.convert(_without_surrogates(value), field.type)
            except msgspec.ValidationError:
                continue
    return Bead(**values)


def _without_surrogates(value: Any) -> Any:
    # JSON can contain a lone surrogate, which neither UTF-8 nor a terminal can
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(_without_surrogates(item) for item in value if isinstance(item, str))


def _edges(value: Any) -> tuple[Dependency, ...]:
    """Every element is an edge, as in DDx: one that names no bead keeps its bead waiting."""
    edges = []
    for item in value if isinstance(value, list) else ():
        fields = item if isinstance(item, dict) else {}
        target, kind = (fields.get(name) for name in ("depends_on_id", "type"))
        target = _without_surrogates(target) if isinstance(target, str) else ""
        edges.append(Dependency(target, kind if isinstance(kind, str) else ""))
    return tuple(edges)
