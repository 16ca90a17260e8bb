"""The journal of every change made by the console: who, when, which commands, values before and after.

``.helix/journal.jsonl`` is append-only. A change is recorded twice: an *intent* before the first command runs, an
*outcome* after the last. Each is one line, written by one call and forced to disk, so that a process killed in between
leaves an intent without an outcome, which the next process settles by reading the tracker. Many processes append: each
line gets the next number under a lock on the file itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_file, open_file
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import format_instant, parse_instant
from helix_tui.core.ground.writes import open_own, sync_folder

VERSION = 1

MAX_LINE = 64 << 20
"""Maximum bytes read of one line: a bulk change of ten thousand beads is far below."""

MAX_FILE = 256 << 20
"""Maximum bytes of a journal: some 80,000 changes."""

MAX_ENTRIES = 10_000
"""Maximum number of changes kept in memory, the newest: 3 KB each, 30 MB in all. The file has all; changes with an
unknown outcome are always kept.
"""

Result = Literal["pending", "done", "partial", "failed", "not_done"]
"""How far a change got; ``pending``: not recorded yet, ``not_done``: it ended before anything changed."""

Values = Mapping[str, Mapping[str, Any] | None]
"""Bead -> field -> value; a value None is an absent field, None in place of the fields: the bead did not exist."""

_NO_RECORD = (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions raised by reading a line that is not a journal record."""

ACTING = ("done", "partial")
"""Results of changes that took effect."""

PASSING = "passing"
"""The kind of a change that a run makes temporarily and reverts itself; not a step of a person's undo."""


class Rewrite(Struct, frozen=True):
    """A field that ddx changed in the same way in rows that no command named."""

    field: str
    before: Any
    """Its value before; None: absent."""
    after: Any
    beads: tuple[str, ...] = ()


class Who(Struct, frozen=True):
    """Who made a change."""

    kind: str
    """``human`` at the console, ``cli`` at the command line, ``agent`` for a program, ``loop`` for a HELIX run."""
    user: str = ""
    pid: int = 0

    @property
    def name(self) -> str:
        """The author in one word."""
        return "loop" if self.kind == "loop" else self.user or self.kind

    @property
    def person(self) -> bool:
        """Whether it was a person, whose changes undo reverts."""
        return self.kind in ("human", "cli")


class JournalEntry(Struct, frozen=True):
    """One change in the journal."""

    id: str
    seq: int
    at: int
    who: Who
    kind: str
    """The operation's kind; ``undo`` and ``redo`` for those."""
    title: str
    steps: tuple[Mapping[str, Any], ...] = ()
    """Commands with the intended change of each."""
    operations: tuple[Mapping[str, Any], ...] = ()
    """The operations behind the commands, for redo."""
    of: str = ""
    """The entry that this one undoes or redoes."""
    before: Values = {}
    after: Values = {}
    inverse: tuple[tuple[str, ...], ...] = ()
    """The commands that would undo it, as known at its end."""
    result: Result = "pending"
    undoable: bool = False
    why_not: str = ""
    traces: tuple[str, ...] = ()
    """What an undo leaves behind."""
    error: str = ""
    ended_at: int | None = None
    recovered: bool = False
    """Whether the outcome was found from the rows, after the process had died."""
    rewritten: tuple[Rewrite, ...] = ()
    """What its write did to rows that its commands do not name; while pending, what it may do."""
    undone_by: str = ""
    """The entry that undid this one, if that is still in effect."""
    undone_seq: int = 0

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands, each as its arguments."""
        return tuple(("ddx", *map(str, step.get("command", ()))) for step in self.steps)

    @property
    def plain(self) -> bool:
        """Whether it is neither an undo nor a redo."""
        return not self.of

    @property
    def turns(self) -> bool:
        """Whether it applied or undid a change; a partial undo leaves the change applied."""
        return self.result in ACTING and not (self.kind == "undo" and self.result == "partial")

    @property
    def why_empty(self) -> str:
        """Why a change that shows in no row cannot be undone; empty if a row shows it."""
        return "" if self.before else self.why_not

    @property
    def standing(self) -> bool:
        """Whether it changed something and has not been undone."""
        return self.result in ACTING and not self.undone_by


class JournalHistory(Struct, frozen=True):
    """The journal at one time."""

    entries: tuple[JournalEntry, ...] = ()
    """The entries, oldest first."""
    dropped: int = 0
    """Number of lines that are not records; a full disk or a crash leaves a torn line."""
    torn: bool = False
    """Whether the last line is incomplete: it is being written, or was never finished."""
    problem: str = ""
    """Why the journal cannot be read, in one sentence; the entries are then those read last."""
    left_out: int = 0
    """Number of older changes that are only in the file."""

    def get(self, entry_id: str) -> JournalEntry | None:
        """The entry with an id."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    @property
    def pending(self) -> tuple[JournalEntry, ...]:
        """Changes with an unknown outcome."""
        return tuple(entry for entry in self.entries if entry.result == "pending")

    def to_undo(self, me: Who | None = None) -> tuple[JournalEntry, ...]:
        """Changes that can be undone, newest first: people's changes for a person, its own for an agent; without the
        temporary changes of a run (`PASSING`).

        Args:
            me: the author; None for changes of all authors.
        """
        return tuple(entry for entry in reversed(self._own(me)) if entry.standing)

    def to_redo(self, me: Who | None = None) -> tuple[JournalEntry, ...]:
        """Undone changes that can be redone, the last undone first; a newer change ends the list."""
        own = self._own(me)
        newest = max((entry.seq for entry in own if entry.standing), default=0)
        undone = [entry for entry in own if entry.undone_by and entry.undone_seq > newest]
        return tuple(sorted(undone, key=lambda entry: -entry.undone_seq))

    def _own(self, me: Who | None) -> list[JournalEntry]:
        return [entry for entry in self.entries if entry.plain and entry.kind != PASSING and _of(entry, me)]

    def root(self, entry: JournalEntry) -> JournalEntry:
        """The change that an entry redid; else the entry itself."""
        return (self.get(entry.of) or entry) if entry.kind == "redo" and entry.of else entry

    def turned(self) -> dict[str, int]:
        """Plain entry to the number of the record that last applied or undid it."""
        return {entry.of or entry.id: entry.seq for entry in self.entries if entry.turns}

    def back_to(self, entry_id: str) -> tuple[JournalEntry, ...]:
        """Changes whose state differs from that right after an entry, the latest first.

        Those now applied are to be undone, those undone since are to be redone.

        Raises:
            KeyError: there is no such entry.
        """
        chosen = self.get(entry_id)
        if chosen is None:
            raise KeyError(entry_id)
        stood: set[str] = set()
        turned = self.turned()
        for entry in self.entries:
            if entry.seq <= chosen.seq and entry.turns:
                (stood.discard if entry.kind == "undo" else stood.add)(entry.of or entry.id)
        found = [
            entry
            for entry in self.entries
            if entry.plain and entry.id in turned and entry.standing != (entry.id in stood)
        ]
        return tuple(sorted(found, key=lambda entry: -turned[entry.id]))


def _of(entry: JournalEntry, me: Who | None) -> bool:
    """Whether an entry belongs to the undo list of an author."""
    if me is None:
        return True
    return entry.who.person if me.person else (entry.who.kind, entry.who.user) == (me.kind, me.user)


def edits_of(history: JournalHistory) -> dict[str, list[tuple[int, int]]]:
    """Bead to the start and end of each change made here, except claims: those writes are not a worker's."""
    edits: dict[str, list[tuple[int, int]]] = {}
    for entry in history.entries:
        # a claim counts like a worker's: its time is when the bead was taken
        if entry.kind != "claim":
            for bead_id in {*entry.before, *entry.after}:
                edits.setdefault(bead_id, []).append((entry.at, entry.ended_at or entry.at))
    return edits


class JournalError(HelixError, OSError):
    """The journal cannot be written, so nothing may be changed."""


class Journal:
    """The journal of one project. Not thread-safe; safe for several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._entries: dict[str, JournalEntry] = {}
        self._dropped = self._left_out = 0
        self._history = JournalHistory()

    @classmethod
    def of(cls, project: Project) -> Journal:
        """The journal of a project."""
        return cls(project.helix_dir / "journal.jsonl")

    def read(self) -> JournalHistory:
        """The current journal; reads only what was appended since the last call.

        Raises:
            OSError: it exists and cannot be read.
        """
        known = (self._identity, self._offset)
        torn = False
        try:
            with open_file(self.path) as file:
                status = _check_size(file.fileno())
                identity = (status.st_dev, status.st_ino)
                # the file was replaced or truncated: read it from its start
                if identity != self._identity or status.st_size < self._offset:
                    self._forget(identity)
                file.seek(self._offset)
                self._take(file)
                torn = self._offset < status.st_size
        except FileNotFoundError:
            self._forget(None)
        if (self._identity, self._offset) != known or torn != self._history.torn:
            entries = tuple(self._entries.values())
            self._history = JournalHistory(entries, self._dropped, torn, left_out=self._left_out)
        return self._history

    def look(self) -> JournalHistory:
        """Like `read`, but a read error is reported in the history."""
        try:
            return self.read()
        except OSError as error:
            problem = f"{self.path.name} cannot be read: {error.strerror or error}"
            if self._history.problem != problem:
                self._history = replace(self._history, problem=problem)
                self._identity = None  # once it is readable again, read it from its start
            return self._history

    def begin(
        self,
        *,
        at: int,
        who: Who,
        kind: str,
        title: str,
        steps: Iterable[Mapping[str, Any]],
        operations: Iterable[Mapping[str, Any]],
        before: Values,
        of: str = "",
        rewrites: Iterable[Rewrite] = (),
    ) -> str:
        """Record an intended change; return the id of the new entry.

        Raises:
            JournalError: it cannot be written.
        """
        record = {
            "record": "intent",
            "at": _stamp(at),
            "who": {"kind": who.kind, "user": who.user, "pid": who.pid},
            "kind": kind,
            "title": title,
            "of": of,
            "steps": list(steps),
            "operations": list(operations),
            "before": before,
            "rewrites": list(rewrites),
        }
        return self._append(record)

    def finish(
        self,
        entry_id: str,
        *,
        at: int,
        result: Result,
        before: Values,
        after: Values,
        inverse: Iterable[Iterable[str]] = (),
        undoable: bool = False,
        why_not: str = "",
        traces: Iterable[str] = (),
        error: str = "",
        recovered: bool = False,
        rewritten: Iterable[Rewrite] = (),
    ) -> None:
        """Record the outcome of a change.

        Raises:
            JournalError: it cannot be written.
        """
        record = {
            "record": "outcome",
            "id": entry_id,
            "at": _stamp(at),
            "result": result,
            "before": before,
            "after": after,
            "inverse": [list(words) for words in inverse],
            "undoable": undoable,
            "why_not": why_not,
            "traces": list(traces),
            "error": error,
            "recovered": recovered,
            "rewritten": list(rewritten),
        }
        self._append(record)

    def _append(self, record: dict[str, Any]) -> str:
        """Append one numbered line under the file's lock, with one write, and sync it to disk."""
        try:
            fresh = not is_file(self.path)
            descriptor = open_own(self.path, os.O_RDWR | os.O_APPEND)
            try:
                _check_size(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # numbered under the lock, by the last whole record: other processes append too
                seq, torn = _last(descriptor)
                seq += 1
                entry_id = str(record.get("id") or f"op-{seq}")
                line = msgspec.json.encode({"v": VERSION, "seq": seq, **record, "id": entry_id}) + b"\n"
                # end a torn line first, so that it does not spoil the next
                data = b"\n" + line if torn else line
                written = os.write(descriptor, data)
                # a full disk may accept a part of it
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # a new file can be lost in a crash until its folder is synced too
            if fresh:
                sync_folder(self.path.parent)
        except OSError as error:
            raise JournalError(
                f"the journal cannot be written: {error.strerror}: {self.path}",
                "Free space or repair the folder, then retry.",
            ) from None
        return entry_id

    def _forget(self, identity: tuple[int, int] | None) -> None:
        self._identity = identity
        self._offset = self._dropped = self._left_out = 0
        self._entries = {}

    def _take(self, file: Any) -> None:
        """Add every complete line from here on to the entries."""
        while True:
            line: bytes = file.readline(MAX_LINE)
            if len(line) == MAX_LINE:
                self._dropped += 1
                self._offset += len(line)
                continue
            if not line.endswith(b"\n"):
                return  # it is being written, or is torn: then a later line ends it
            self._offset += len(line)
            if line.isspace():
                continue
            try:
                self._fold(msgspec.json.decode(line))
            except _NO_RECORD:
                self._dropped += 1

    def _fold(self, record: dict[str, Any]) -> None:
        if record["record"] == "intent":
            entry = _entry(record)
            self._entries[entry.id] = entry
            if len(self._entries) > MAX_ENTRIES:
                self._leave_out()
            return
        entry = self._entries[record["id"]]
        entry = replace(
            entry,
            result=record["result"],
            before=_values(record["before"]),
            after=_values(record["after"]),
            inverse=tuple(tuple(map(str, words)) for words in record["inverse"]),
            undoable=bool(record["undoable"]),
            why_not=str(record["why_not"]),
            traces=tuple(map(str, record["traces"])),
            error=str(record["error"]),
            recovered=bool(record["recovered"]),
            rewritten=_rewrites(record.get("rewritten")),
            ended_at=parse_instant(record["at"]),
        )
        self._entries[entry.id] = entry
        if entry.of and entry.result in ACTING:
            self._link(entry)

    def _leave_out(self) -> None:
        """Drop the oldest change with a known outcome."""
        oldest = next((entry.id for entry in self._entries.values() if entry.result != "pending"), None)
        if oldest is not None:
            del self._entries[oldest]
            self._left_out += 1

    def _link(self, entry: JournalEntry) -> None:
        """Link the entry that was undone or redone to this one."""
        other = self._entries.get(entry.of)
        if other is None:
            return
        if entry.result == "partial" and entry.kind == "undo":
            # What was undone is no longer ours; the rest is still applied and can be undone.
            other = replace(other, before=_without(other.before, entry.after), after=_without(other.after, entry.after))
        elif entry.kind == "redo":
            other = replace(
                other, undone_by="", undone_seq=0, before=entry.before, after=entry.after, result=entry.result
            )
        else:
            other = replace(other, undone_by=entry.id, undone_seq=entry.seq)
        self._entries[other.id] = other


def _entry(record: dict[str, Any]) -> JournalEntry:
    who = record["who"]
    at = parse_instant(record["at"])
    if at is None:
        raise ValueError("no time")
    return JournalEntry(
        id=str(record["id"]),
        seq=int(record["seq"]),
        at=at,
        who=Who(str(who["kind"]), str(who.get("user", "")), int(who.get("pid", 0))),
        kind=str(record["kind"]),
        title=str(record["title"]),
        steps=tuple(
            step for step in record["steps"] if isinstance(step, dict) and isinstance(step.get("command", []), list)
        ),
        operations=tuple(operation for operation in record.get("operations", ()) if isinstance(operation, dict)),
        of=str(record.get("of", "")),
        before=_values(record["before"]),
        rewritten=_rewrites(record.get("rewrites")),
    )


def _rewrites(record: Any) -> tuple[Rewrite, ...]:
    return msgspec.convert(record or (), tuple[Rewrite, ...])


def _values(record: dict[str, Any]) -> Values:
    if not all(fields is None or isinstance(fields, dict) for fields in record.values()):
        raise ValueError("values of a bead are neither fields nor null")
    return dict(record)


def _without(values: Values, gone: Values) -> Values:
    """Values without the fields in ``gone``."""
    left: dict[str, Mapping[str, Any] | None] = {}
    for bead_id, fields in values.items():
        taken = gone.get(bead_id) or {}
        if fields is None:
            if bead_id not in gone:
                left[bead_id] = None
            continue
        kept = {name: value for name, value in fields.items() if name not in taken}
        if kept:
            left[bead_id] = kept
    return left


def _stamp(at: int) -> str:
    whole = format_instant(at)
    return f"{whole[:-1]}.{at % 1_000_000_000:09d}Z"


def _last(descriptor: int) -> tuple[int, bool]:
    """The number of the last complete record, and whether the file ends in a torn line."""
    end = os.fstat(descriptor).st_size
    torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
    for line in _lines_backwards(descriptor, end):
        try:
            return int(msgspec.json.decode(line)["seq"]), torn
        except _NO_RECORD:
            continue
    return 0, torn


def _lines_backwards(descriptor: int, end: int, step: int = 1 << 16) -> Iterator[bytes]:
    """The lines of a file in reverse."""
    rest = b""
    while end > 0:
        start = max(0, end - step)
        chunk = os.pread(descriptor, end - start, start) + rest
        lines = chunk.split(b"\n")
        rest = lines[0]
        yield from (line for line in reversed(lines[1:]) if line)
        end = start
        # a line may have megabytes: growing steps keep joining it from being quadratic
        step *= 2
    if rest:
        yield rest


def _check_size(descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if status.st_size > MAX_FILE:
        raise OSError(errno.EFBIG, f"it has more than {MAX_FILE >> 20} MB")
    return status
