"""Read what ddx's workers write: how the last one ended, what a running one does, and its evidence folder.

A loop of the command line records its end in ``.ddx/agent-logs/agent-loop-*.jsonl`` (``loop.operator_attention``,
``loop.end``), one that a server started in ``.ddx/workers/worker-*/`` (``status.json``, ``result.json`` and the end of
``worker.log``). A loop without an end is running or was killed: its claim shows which.

A worker's activity (last tool, phase, tokens, time of its last event) is mostly in the attempt's own transcripts.
Readiness checks, triage and reviews are separate model calls, with transcripts in ``.ddx/agent-logs``
(docs/formats/ddx.md §4.6).

A second worker of April is known only from its evidence folder: two workers overwrite each other in
``.ddx/run-state.json``, which is removed after an attempt's end although review and landing continue. The folders under
``.ddx/executions`` are named by their start, so only the few since a claim are read.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.from_logs import LoopEntry, parse_entry
from helix_tui.core.ddx.files import JsonCache, LineTail, decode_object, instant, text, whole
from helix_tui.core.ddx.names import STAMPED_NAME, began_at
from helix_tui.core.ddx.runs.transcript import Event, TranscriptTail, last_tool, read_event
from helix_tui.core.ground.files import Folder, Stamp, is_file, names_in, read_bytes, read_end, stamp_of
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant

_TAIL = 256 << 10
_QUIET = frozenset(
    (
        "binary_refresh",
        "context_cancelled",
        "drained",
        "goal_satisfied",
        "no_ready_work",
        "once",
        "once_complete",
        "sigint",
        "sigterm",
    )
)
"""Reasons for an end that need no action: done, asked to stop, or restarted."""


class WorkerEnding(Struct, frozen=True):
    """The end of a worker, in ddx's words, cleaned."""

    worker_id: str
    at: int
    """Instant in ns."""
    reason: str
    """ddx's reason: ``checkpoint_dirty``, ``routing_unavailable``, ``drained`` …; empty if it gives none."""
    message: str = ""
    bead_id: str = ""
    paths: tuple[str, ...] = ()
    """Files that ddx names, relative to the project."""

    @property
    def troubled(self) -> bool:
        """Whether its reason will stop the next worker too unless it is fixed."""
        return bool(self.reason) and self.reason not in _QUIET


def read_ending(ddx_dir: Path) -> WorkerEnding | None:
    """The newest end that any worker recorded, or None."""
    found = [each for each in (_loop_ending(ddx_dir), _server_ending(ddx_dir)) if each is not None]
    return max(found, key=lambda each: each.at, default=None)


def _names(folder: Path, prefix: str, most: int = 3) -> list[Path]:
    """The newest entries of a folder; their names end with a time."""
    names = [name for name in names_in(folder) if name.startswith(prefix)]
    return [folder / name for name in reversed(names[-most:])]


def _loop_ending(ddx_dir: Path) -> WorkerEnding | None:
    for path in _names(ddx_dir / "agent-logs", "agent-loop-"):
        lines = read_end(path, _TAIL).encode("utf-8", "surrogateescape").split(b"\n")
        entries = [entry for line in lines if (entry := parse_entry(line)) is not None]
        end = next((entry for entry in reversed(entries) if entry.type == "loop.end"), None)
        # a log without an end belongs to a running or killed loop: the log before it has the last end
        if end is not None and end.at is not None:
            return _from_entries(end, entries)
    return None


def _from_entries(end: LoopEntry, entries: list[LoopEntry]) -> WorkerEnding:
    reason = _word(end.text("exit_reason"))
    wanted = {"operator_attention": "loop.operator_attention", "routing_unavailable": "disruption_detected"}
    said = [entry for entry in entries if entry.type == wanted.get(reason, "loop.error")]
    last = said[-1] if said else None
    if last is None:
        return WorkerEnding(end.session_id, end.at or 0, reason)
    own = _word(last.text("reason")) if reason == "operator_attention" else ""
    message = last.text("message") or last.text("detail")
    paths = last.data.get("dirty_paths")
    return WorkerEnding(
        end.session_id,
        end.at or 0,
        own or reason,
        clean_line(message, 600),
        clean_line(last.bead_id, 120),
        tuple(clean_line(path, 300) for path in paths if isinstance(path, str)) if isinstance(paths, list) else (),
    )


def _server_ending(ddx_dir: Path) -> WorkerEnding | None:
    for folder in _names(ddx_dir / "workers", "worker-"):
        status = _object(folder / "status.json")
        at = instant(status.get("finished_at"))
        if at is None:
            continue
        result = _object(folder / "result.json")
        reason = _word(text(status, "status")) or _word(text(result, "stop_condition"))
        if result.get("operator_attention") is True:
            reason = "operator_attention"
        elif text(status, "state") in ("exited", "stopped") and not text(status, "error"):
            reason = _word(text(result, "stop_condition")) or ("drained" if whole(status.get("pid")) else reason)
        said = _said(read_end(folder / "worker.log", _TAIL))
        message = said.get("message") or text(result, "last_failure_detail") or text(status, "error") or ""
        paths = tuple(path for path in said.get("dirty paths", "").split(", ") if path)
        if reason == "operator_attention" and paths:
            reason = "checkpoint_dirty"
        return WorkerEnding(folder.name, at, reason, clean_line(message, 600), said.get("released bead", ""), paths)
    return None


def _said(log: str) -> dict[str, str]:
    """The fields under the last ``operator attention:`` of a worker's log."""
    _, found, block = log.rpartition("\noperator attention:\n")
    said: dict[str, str] = {}
    for line in block.split("\n") if found else ():
        key, colon, value = line.strip().partition(": ")
        if not line.startswith("  "):
            break
        if colon and key in ("released bead", "project root", "dirty paths", "reason", "retry after"):
            said[key] = clean_line(value, 600)
        else:
            said.setdefault("message", clean_line(line.strip(), 600))
    return said


def _object(path: Path) -> Mapping[str, Any]:
    try:
        return decode_object(read_bytes(path) or b"")
    except ValueError:
        return {}


def _word(reason: str) -> str:
    """A reason as ddx's newer records write it: ``OperatorAttention`` is ``operator_attention``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", reason.strip()).replace("-", "_")
    return clean_line(spaced.lower(), 80)


WINDOW = 64 << 10
_LOOK_AT = 12
_REMEMBERED = 48
_SEARCH = 512 << 10


class Doing(Struct):
    """The state of a set of transcripts after its last poll."""

    tail: TranscriptTail
    last_tool: str = ""
    last_event_at: int | None = None
    phase: str = ""
    message: str = ""
    tokens_by_session: dict[int, int] = {}
    _session: int = 0

    @property
    def tokens(self) -> int | None:
        """Tokens of all sessions so far; None if no line has any."""
        return sum(self.tokens_by_session.values()) or None

    def poll(self) -> None:
        """Read what was written since the last poll."""
        self.take(self.tail.poll())

    def take(self, events: Iterable[Event]) -> None:
        """Update the state with events."""
        for event in events:
            if event.at is not None and (self.last_event_at is None or event.at > self.last_event_at):
                self.last_event_at = event.at
            if event.type == "session.start":
                self._session += 1
            if event.tokens:
                # a line has its session's total so far: add up sessions, not lines
                self.tokens_by_session[self._session] = event.tokens
            self.last_tool = last_tool((event,)) or self.last_tool
            self.phase = event.phase or self.phase
            self.message = event.summary or self.message


class Session(Struct):
    """One model call outside attempts: a readiness check, a triage, a review."""

    path: Path
    tail: LineTail
    born: int
    text: bytes | None = None
    stamp: Stamp | None = None
    role: str = ""
    prompt: str = ""
    ended: bool = False
    last_event_at: int | None = None
    message: str = ""

    def poll(self) -> None:
        """Read what was written since the last poll."""
        for line in self.tail.poll():
            event = read_event(line)
            self.role = event.role or self.role
            self.message = event.summary or self.message
            self.last_event_at = event.at or self.last_event_at
            if event.type == "session.start":
                self.prompt = event.detail[:200]
            if event.type in ("session.end", "final"):
                self.ended = True

    @property
    def phase(self) -> str:
        """DDx's phase for this session: readiness, triage or review."""
        if self.role == "reviewer" or self.prompt.startswith("<bead-review>"):
            return "review"
        if self.prompt.startswith("MODE: "):
            mode = self.prompt[6:].split(maxsplit=1)[0]
            return "readiness" if mode == "intake" else mode
        return "readiness" if self.role == "lifecycle" else self.role

    def mentions(self, bead_id: str) -> bool:
        """Whether the session mentions this bead."""
        wanted = bead_id.encode()
        if self.text is None or wanted not in self.text:
            stamp = stamp_of(self.path)
            # search a log again only if it has grown
            if self.text is None or stamp != self.stamp:
                self.text, self.stamp = read_bytes(self.path, _SEARCH) or b"", stamp
        return wanted in self.text


class Sessions:
    """The model calls under ``.ddx/agent-logs`` that belong to running work."""

    def __init__(self, ddx_dir: Path) -> None:
        self._folder = Folder(ddx_dir / "agent-logs")
        self._known: dict[str, Session] = {}
        self._names: tuple[str, ...] = ()
        self._by_birth: list[tuple[int, str]] = []

    def look(self) -> None:
        """See which logs there are; once for all runs."""
        # listed once per look: a project may have ten thousand logs
        names = self._folder.names()
        if names is not self._names:
            self._take(names)

    def of(self, bead_id: str | None, since: int | None, *, alone: bool) -> Session | None:
        """The newest session since a claim that mentions its bead.

        One that names no bead (April's reviewer) counts if only one worker is running.
        """
        if since is None:
            return None
        for session in self._since(since):
            session.poll()
            if bead_id is None or session.mentions(bead_id):
                return session
            if alone and session.text is not None and b"bead" not in session.text:
                return session
        return None

    def _since(self, since: int) -> list[Session]:
        first = bisect.bisect_left(self._by_birth, (since - NS, ""))
        young = self._by_birth[first:][-_LOOK_AT:]
        found = []
        for born, name in reversed(young):
            session = self._known.get(name)
            if session is None:
                path = self._folder.path / name
                session = self._known[name] = Session(path, LineTail(path), born)
                self._forget_oldest()
            found.append(session)
        # Of a pair the service log has more: role, bead, end.
        return sorted(found, key=lambda one: (-(one.born // NS), not one.path.name.startswith("svc-")))

    def _take(self, names: tuple[str, ...]) -> None:
        """Sort the logs by birth; a project may have ten thousand, and usually one is new."""
        new = set(names).difference(self._names)
        gone = len(self._names) + len(new) > len(names)
        self._names = names
        births = ((born, name) for name in (names if gone else new) if (born := _born(name)) is not None)
        if gone or len(new) > _LOOK_AT:
            self._by_birth = sorted(births if gone else [*self._by_birth, *births])
        else:
            for birth in births:
                bisect.insort(self._by_birth, birth)

    def _forget_oldest(self) -> None:
        while len(self._known) > _REMEMBERED:
            del self._known[min(self._known, key=lambda name: self._known[name].born)]


def _born(name: str) -> int | None:
    """The nanoseconds in a session log's name; None for a loop's log and for anything else."""
    if not name.endswith(".jsonl") or name.startswith("agent-loop-"):
        return None
    digits = name.removesuffix(".jsonl").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and 18 <= len(digits) <= 20 else None


_NEWEST = 24
_REVIEW = re.compile(rb'\s*<bead-review>\s*<bead id="([^"\n]{1,200})"')

_About = tuple[str, bool, int]
"""The bead of a folder, whether it is a review, and when it began."""

_NOW = 1 << 62
"""Start assumed for a review that has written only its prompt: now."""


class Bundle(Struct, frozen=True):
    """An evidence folder of a bead's current claim."""

    attempt_id: str
    folder: Path
    started_at: int
    finished: bool
    """Whether its result is written, so that only review or landing continues."""
    reviewing: bool = False
    """Whether a review of the same bead has begun since and has no verdict yet."""


class Bundles:
    """The evidence folders of a project, read only as far as running work needs."""

    def __init__(self, ddx_dir: Path, documents: JsonCache) -> None:
        self._folder = Folder(ddx_dir / "executions")
        self._documents = documents
        self._about: dict[str, _About] = {}

    def of(self, bead_id: str, since: int | None) -> Bundle | None:
        """The newest attempt of a bead that began with or after its claim.

        If the claim's start is unknown, the newest of all, if unfinished.
        """
        found: Bundle | None = None
        for name in self._young(since):
            about = self._about_what(name)
            # a name has whole seconds: an attempt may seem to begin up to one second before its claim
            if about is None or about[0] != bead_id or (since is not None and about[2] < since - NS):
                continue
            folder = self._folder.path / name
            finished = is_file(folder / "result.json")
            if not about[1]:
                found = Bundle(name, folder, began_at(name) or 0, finished)
            elif found is not None:
                found = replace(found, reviewing=not finished)
        return None if since is None and found is not None and found.finished else found

    def _young(self, since: int | None) -> list[str]:
        """Names that may belong to a claim of that time, oldest first: the adjacent ones and the newest."""
        names = self._folder.names()
        # forget folders that ddx has archived: a console runs for days
        if len(self._about) > len(names):
            self._about = {name: about for name, about in self._about.items() if name in set(names)}
        # names sort by time, so those of a claim are adjacent however many follow
        newest = max(0, len(names) - _NEWEST)
        first = newest if since is None else bisect.bisect_left(names, _stamp(since - NS))
        young = (*names[first : min(first + _NEWEST, newest)], *names[newest:])
        return [name for name in young if STAMPED_NAME.match(name)]

    def _about_what(self, name: str) -> _About | None:
        """The bead and kind of a folder; None until its files show it."""
        known = self._about.get(name)
        if known is not None:
            return known
        folder = self._folder.path / name
        manifest = self._documents.load(folder / "manifest.json")
        if manifest is None:
            match = _REVIEW.match(read_bytes(folder / "prompt.md", 1024) or b"")
            if match is None:
                return None
            # not cached: its manifest, with the verdict, is still to come
            return (match[1].decode("utf-8", "replace"), True, _NOW)
        bead_id = manifest.get("bead_id")
        if not isinstance(bead_id, str):
            return None
        # the record takes precedence over the name: a replayed run keeps its attempts' ids
        began = parse_instant(manifest.get("created_at")) or began_at(name) or 0
        about = self._about[name] = (bead_id, "verdict" in manifest, began)
        return about


def _stamp(instant: int) -> str:
    # a record may contain any year, and datetime ends with 9999
    seconds = max(0, min(instant // NS, 253_402_300_799))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%S")
