"""What running work does, by its transcripts: last tool, phase, tokens, time of its last event.

Readiness checks, triage and reviews are separate model calls, with transcripts in ``.ddx/agent-logs``
(docs/formats/ddx.md §4.6).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ddx.files import LineTail
from helix_tui.core.ddx.runs.transcript import TranscriptTail, last_tool
from helix_tui.core.ddx.runs.transcript_events import Event, read_event
from helix_tui.core.ground.files import Folder, Stamp, read_bytes, stamp_of
from helix_tui.core.ground.time import NS

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
