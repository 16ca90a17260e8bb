"""Every change made from here: who, when, which commands, what was before and what after.

``.helix/journal.jsonl`` is append-only. A change stands in it twice: an *intent* before the first command
runs, an *outcome* after the last. Each is one line, written by one call and forced to disk, so that a process
that is killed in between leaves an intent without an outcome, which the next one recognises and settles by
looking at the tracker. Many processes append: each line gets the next number under a lock on the file itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import make_folder
from helix_tui.core.ground.project import Project, open_nonblocking
from helix_tui.core.ground.time import format_instant, parse_instant

VERSION = 1

MAX_LINE = 64 << 20
"""Bytes of one line that are read: a bulk change of ten thousand beads stays far below."""

MAX_ENTRIES = 10_000
"""Changes that are held, the newest: 3 KB each, 30 MB of so many. The file has all; one whose outcome is not
known is always held."""

Result = Literal["pending", "done", "partial", "failed", "not_done"]
"""How far a change came; ``pending``: nobody has said yet, ``not_done``: it ended before anything changed."""

Values = Mapping[str, Mapping[str, Any] | None]
"""Bead -> field -> value; a value None is an absent field, None for the fields a bead that did not exist."""

_NO_RECORD = (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a line that is no record of ours may end in."""

ACTING = ("done", "partial")
"""Results that have changed something."""

PASSING = "passing"
"""The kind of what a run writes for its own time and takes back itself: no step on a person's way back."""


class Who(Struct, frozen=True):
    """Who made a change."""

    kind: str
    """``human`` at the console, ``cli`` at the command line, ``agent`` for a program, ``loop`` for a run of ours."""
    user: str = ""
    pid: int = 0

    @property
    def name(self) -> str:
        """Who it was, in a word."""
        return "loop" if self.kind == "loop" else self.user or self.kind

    @property
    def person(self) -> bool:
        """Whether a person did it: what undo takes back."""
        return self.kind in ("human", "cli")


class JournalEntry(Struct, frozen=True):
    """One change, as the journal tells it."""

    id: str
    seq: int
    at: int
    who: Who
    kind: str
    """The operation's kind; ``undo`` and ``redo`` for taking back and doing again."""
    title: str
    steps: tuple[Mapping[str, Any], ...] = ()
    """Commands with what each was to change."""
    operations: tuple[Mapping[str, Any], ...] = ()
    """The operations behind the commands, for doing it again."""
    of: str = ""
    """The entry that this one takes back or does again."""
    before: Values = {}
    after: Values = {}
    inverse: tuple[tuple[str, ...], ...] = ()
    """The commands of the way back, as they were known at the end."""
    result: Result = "pending"
    undoable: bool = False
    why_not: str = ""
    traces: tuple[str, ...] = ()
    """What a taking back leaves behind."""
    error: str = ""
    ended_at: int | None = None
    recovered: bool = False
    """The outcome was found by looking, after the process that began it had died."""
    undone_by: str = ""
    """The entry that took this one back, if it still stands so."""
    undone_seq: int = 0

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands, each as its words."""
        return tuple(("ddx", *map(str, step.get("command", ()))) for step in self.steps)

    @property
    def plain(self) -> bool:
        """Neither a taking back nor a doing again."""
        return not self.of

    @property
    def turns(self) -> bool:
        """It made a change stand, or stand no longer; a taking back that came half-way left it standing."""
        return self.result in ACTING and not (self.kind == "undo" and self.result == "partial")

    @property
    def why_empty(self) -> str:
        """Why there is nothing to give back, of a change that no row shows; empty where one does."""
        return "" if self.before else self.why_not

    @property
    def standing(self) -> bool:
        """It changed something, and has not been undone."""
        return self.result in ACTING and not self.undone_by


class JournalHistory(Struct, frozen=True):
    """The journal as read at one time."""

    entries: tuple[JournalEntry, ...] = ()
    """Oldest first."""
    dropped: int = 0
    """Lines that are no record; a torn one is left by a full disk or a lost machine."""
    torn: bool = False
    """The last line has no end: somebody is writing it this moment, or never came to write the rest."""
    problem: str = ""
    """Why the journal cannot be read, in one sentence; the entries are then those of the last time."""
    left_out: int = 0
    """Older changes that stand in the file alone."""

    def get(self, entry_id: str) -> JournalEntry | None:
        """The entry with an id."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    @property
    def pending(self) -> tuple[JournalEntry, ...]:
        """Changes whose outcome is not known."""
        return tuple(entry for entry in self.entries if entry.result == "pending")

    def to_undo(self, me: Who | None = None) -> tuple[JournalEntry, ...]:
        """What can be taken back, newest first: people's changes for a person, its own for an agent; not what a
        run writes for its own time and takes back itself (`PASSING`).

        Args:
            me: who asks; None: everything, whoever made it.
        """
        return tuple(entry for entry in reversed(self._own(me)) if entry.standing)

    def to_redo(self, me: Who | None = None) -> tuple[JournalEntry, ...]:
        """What was taken back and may be done again, the last taken back first; a newer change ends that."""
        own = self._own(me)
        newest = max((entry.seq for entry in own if entry.standing), default=0)
        undone = [entry for entry in own if entry.undone_by and entry.undone_seq > newest]
        return tuple(sorted(undone, key=lambda entry: -entry.undone_seq))

    def _own(self, me: Who | None) -> list[JournalEntry]:
        return [entry for entry in self.entries if entry.plain and entry.kind != PASSING and _of(entry, me)]

    def root(self, entry: JournalEntry) -> JournalEntry:
        """The change that an entry did again; else the entry itself."""
        return (self.get(entry.of) or entry) if entry.kind == "redo" and entry.of else entry

    def turned(self) -> dict[str, int]:
        """Per plain entry the number of the record that last made it stand, or stand no longer."""
        return {entry.of or entry.id: entry.seq for entry in self.entries if entry.turns}

    def back_to(self, entry_id: str) -> tuple[JournalEntry, ...]:
        """Changes that stand otherwise now than right after an entry, the latest turn first.

        One that stands now is to be taken back, one that was taken back since is to be done again.

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
    """Whether an entry is what somebody's undo is about."""
    if me is None:
        return True
    return entry.who.person if me.person else (entry.who.kind, entry.who.user) == (me.kind, me.user)


def edits_of(history: JournalHistory) -> dict[str, list[tuple[int, int]]]:
    """Per bead, when each change from here that was no claim began and ended: no worker made those writes."""
    edits: dict[str, list[tuple[int, int]]] = {}
    for entry in history.entries:
        # a claim is what a worker does too: its time says that somebody took the bead
        if entry.kind != "claim":
            for bead_id in {*entry.before, *entry.after}:
                edits.setdefault(bead_id, []).append((entry.at, entry.ended_at or entry.at))
    return edits


class JournalError(HelixError, OSError):
    """The journal cannot be written; nothing may be changed that it cannot remember."""


class Journal:
    """The journal of one project. Not safe for several threads at once; safe for several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._entries: dict[str, JournalEntry] = {}
        self._dropped = self._left_out = 0
        self._history = JournalHistory()

    @classmethod
    def of(cls, project: Project) -> Journal:
        """The journal that belongs to a project."""
        return cls(project.helix_dir / "journal.jsonl")

    def read(self) -> JournalHistory:
        """The journal as it stands now; only what was appended since the last time is read.

        Raises:
            OSError: it is there and cannot be read.
        """
        known = (self._identity, self._offset)
        torn = False
        try:
            with open(self.path, "rb", opener=open_nonblocking) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
                identity = (status.st_dev, status.st_ino)
                # another file has the name, or this one was cut: it is read from its beginning
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
        """The same for somebody who only watches: what cannot be read is said in the history itself."""
        try:
            return self.read()
        except OSError as error:
            problem = f"{self.path.name} cannot be read: {error.strerror or error}"
            if self._history.problem != problem:
                self._history = replace(self._history, problem=problem)
                self._identity = None  # once it can be read again, it is read from its beginning
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
    ) -> str:
        """Write down what is about to be done; the id of the new entry.

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
    ) -> None:
        """Write down what came of it.

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
        }
        self._append(record)

    def _append(self, record: dict[str, Any]) -> str:
        """Append one line under the file's lock: number it, write it by one call, force it to disk."""
        try:
            fresh = not self.path.exists()
            make_folder(self.path.parent)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # numbered under the lock, by the last whole record: other processes append too
                seq, torn = _last(descriptor)
                seq += 1
                entry_id = str(record.get("id") or f"op-{seq}")
                line = msgspec.json.encode({"v": VERSION, "seq": seq, **record, "id": entry_id}) + b"\n"
                # a torn line is ended first, so that it spoils itself alone
                data = b"\n" + line if torn else line
                written = os.write(descriptor, data)
                # a full disk takes a part of it
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # a new file can be lost with the machine until its folder is on disk too
            if fresh:
                _sync_folder(self.path.parent)
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
        """Fold every whole line from here on into the entries."""
        while True:
            line: bytes = file.readline(MAX_LINE)
            if len(line) == MAX_LINE:
                self._dropped += 1
                self._offset += len(line)
                continue
            if not line.endswith(b"\n"):
                return  # somebody is writing it, or it was torn: then a later line ends it
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
            ended_at=parse_instant(record["at"]),
        )
        self._entries[entry.id] = entry
        if entry.of and entry.result in ACTING:
            self._link(entry)

    def _leave_out(self) -> None:
        """Hold the oldest change whose outcome is known no longer."""
        oldest = next((one.id for one in self._entries.values() if one.result != "pending"), None)
        if oldest is not None:
            del self._entries[oldest]
            self._left_out += 1

    def _link(self, entry: JournalEntry) -> None:
        """Let the entry that was taken back, or done again, know of it."""
        other = self._entries.get(entry.of)
        if other is None:
            return
        if entry.result == "partial" and entry.kind == "undo":
            # What was taken back is no longer ours; the rest still stands and can be taken back.
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
    )


def _values(record: dict[str, Any]) -> Values:
    if not all(fields is None or isinstance(fields, dict) for fields in record.values()):
        raise ValueError("values of a bead are neither fields nor null")
    return dict(record)


def _without(values: Values, gone: Values) -> Values:
    """Values but for the fields that are in ``gone``."""
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
    """The number of the last whole record, and whether a torn line stands at the end."""
    end = os.fstat(descriptor).st_size
    torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
    for line in _lines_backwards(descriptor, end):
        try:
            return int(msgspec.json.decode(line)["seq"]), torn
        except _NO_RECORD:
            continue
    return 0, torn


def _lines_backwards(descriptor: int, end: int, step: int = 1 << 16) -> Iterator[bytes]:
    """The lines of a file, the last first."""
    rest = b""
    while end > 0:
        start = max(0, end - step)
        chunk = os.pread(descriptor, end - start, start) + rest
        lines = chunk.split(b"\n")
        rest = lines[0]
        yield from (line for line in reversed(lines[1:]) if line)
        end = start
        # a line may have megabytes: longer steps keep joining it from costing the square of that
        step *= 2
    if rest:
        yield rest


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
