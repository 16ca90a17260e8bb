"""Follow an attempt's live transcripts, also after they are moved, and read them as events.

Each line is one readable event. Events of beads: ``core/ddx/attempts/sources/from_events.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.files import MAX_POLL, LineTail, decode_object
from helix_tui.core.ddx.runs.transcript_events import Event, read_event
from helix_tui.core.ground.files import Folder, below, read_bytes, stamp_of
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.time import NS

EMBEDDED = "embedded"
"""Folder of an evidence bundle that holds the transcripts."""


_NEAR_NS = 2 * NS


_Call = tuple[str, int | None]
"""A tool's name and when it was called."""

MOST_LINES = 50_000
"""Maximum number of lines and calls of one attempt kept for comparison, 0.2 KB each: ten times the longest transcript
seen. An older line is shown twice if its file is copied.
"""

_CAP = 16 << 20


def transcript_folders(
    ddx_dir: Path, attempt_id: str, worktree: Path | None, parents: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """Folders of an attempt's transcripts: where they are written, then where they end up."""
    above = [*(folder / ".ddx" for folder in (worktree, *parents) if folder is not None), ddx_dir]
    places = [below(folder / "executions", attempt_id) / EMBEDDED for folder in above]
    return tuple(dict.fromkeys(places))


class TranscriptTail:
    """The events of one attempt, each exactly once, however its files move.

    A copied, moved or renamed file repeats its lines; a line seen in another file, or in an earlier file at the same
    path, is not shown twice. A line that occurs twice in one file is.
    """

    def __init__(
        self, folders: Iterable[Path], files: Iterable[Path] = (), *, window: int | None = None, cap: int = MAX_POLL
    ) -> None:
        self._folders: dict[Path, Folder] = {}
        self._files: dict[Path, None] = {}
        self._tails: dict[Path, LineTail] = {}
        self._shown: Recent[int, int] = Recent(MOST_LINES)
        self._lives: dict[Path, Recent[int, int]] = {}
        self._window = window
        self._cap = cap
        self._calls: Recent[str, _Call] = Recent(MOST_LINES)
        self._last_calls: dict[Path, _Call] = {}
        self._work_at: deque[int] = deque(maxlen=MOST_LINES)
        self._last_at: dict[Path, int] = {}
        self._ended: set[Path] = set()
        """Files whose last line reported a session's end and tokens."""
        self.watch(folders, files)

    def watch(self, folders: Iterable[Path], files: Iterable[Path] = ()) -> None:
        """Follow these folders and files in addition."""
        for folder in folders:
            self._folders.setdefault(folder, Folder(folder))
        for file in files:
            self._files.setdefault(file)

    @property
    def path(self) -> Path | None:
        """The most detailed file: the newest stream of the agent itself, else the newest service log."""
        # a file is made before the first line is in it
        found = [path for path in self._find() if (stamp := stamp_of(path)) and stamp[1]]
        streams = [path for path in found if not _is_service_log(path)]
        best = streams or found
        return best[-1] if best else None

    @property
    def behind(self) -> bool:
        """Whether the last poll stopped at its cap so that there is more to read."""
        return any(tail.behind for tail in self._tails.values())

    @property
    def skipped(self) -> int:
        """Number of lines left out as too long for one poll; copies are not counted again."""
        by_name: dict[str, int] = {}
        for path, tail in self._tails.items():
            by_name[path.name] = max(by_name.get(path.name, 0), tail.skipped)
        return sum(by_name.values())

    def poll(self) -> list[Event]:
        """Events since the last poll, in the order in which they happened."""
        events: list[tuple[int, Event]] = []
        for path in self._find():
            for line in self._new_lines(path):
                event = self._finish(path, read_event(line))
                if event is None:
                    continue
                # a line without a time stays after the one before it
                at = event.at if event.at is not None else self._last_at.get(path, 0)
                self._last_at[path] = at
                events.append((at, event))
        events.sort(key=lambda pair: pair[0])
        return [event for _, event in events]

    def _find(self) -> list[Path]:
        """Files to read, agents' streams before service logs; of two with one name, the one being read."""
        by_name: dict[str, Path] = {}
        for folder in self._folders.values():
            for name in folder.names():
                if not name.endswith(".jsonl"):
                    continue
                path = folder.path / name
                # a copied file is followed where it was first read
                if name not in by_name or (path in self._tails and by_name[name] not in self._tails):
                    by_name[name] = path
        for file in self._files:
            if file.name not in by_name and stamp_of(file) is not None:
                by_name[file.name] = file
        # agents' streams first: a tool call in both must be known when the service log repeats it
        return sorted(by_name.values(), key=lambda path: (_is_service_log(path), _born(path), path.name))

    def _new_lines(self, path: Path) -> list[bytes]:
        tail = self._tails.get(path)
        if tail is None:
            tail = self._tails[path] = LineTail(path, start_at_last=self._window, cap=self._cap)
        lines = tail.poll()
        if tail.replaced or path not in self._lives:
            self._lives[path] = Recent(MOST_LINES)
        life = self._lives[path]
        return [line for line in lines if line and self._is_news(hash(line), life)]

    def _is_news(self, line: int, life: Recent[int, int]) -> bool:
        """Whether a file contains a line more often than it has been shown."""
        held = life[line] = life.get(line, 0) + 1
        if held <= self._shown.get(line, 0):
            return False
        self._shown[line] = held
        return True

    def _finish(self, path: Path, event: Event) -> Event | None:
        """Join a result to its call; drop a progress line that repeats another line."""
        if event.type == "progress" and event.phase == "done" and path in self._ended:
            return None
        if event.type in ("session.end", "final") and event.tokens is not None:
            self._ended.add(path)
        else:
            self._ended.discard(path)
        if event.type == "progress" and event.kind in ("tool", "result"):
            if self._was_shown(event):
                return None
        elif event.kind == "tool":
            self._remember(path, event)
        elif event.kind == "result" and not event.tool:
            call = self._calls.get(event.call_id) or self._last_calls.get(path)
            if call is not None:
                event = _joined(event, call)
        return event

    def _remember(self, path: Path, event: Event) -> None:
        call = (event.tool, event.at)
        if event.call_id:
            self._calls[event.call_id] = call
        self._last_calls[path] = call
        if event.at is not None:
            self._work_at.append(event.at)

    def _was_shown(self, event: Event) -> bool:
        if event.call_id:
            return event.call_id in self._calls
        if event.at is None:
            return False
        # a service log has a tool's end and duration, the agent's stream its start
        began = event.at - (event.duration_ms or 0) * 1_000_000
        return any(abs(began - at) <= _NEAR_NS for at in reversed(self._work_at))


def last_tool(events: Iterable[Event]) -> str:
    """The last tool used and its target, or ""."""
    last = ""
    for event in events:
        if event.kind == "tool" or (event.kind == "result" and event.tool and event.type == "progress"):
            last = event.summary if event.kind == "tool" else event.summary.partition(" out=")[0]
    return last


def phase(events: Iterable[Event]) -> str:
    """The agent's phase after the last of these events, in DDx's own words."""
    now = ""
    for event in events:
        now = event.phase or now
    return now


def _joined(result: Event, call: _Call) -> Event:
    tool, began = call
    took = result.duration_ms
    if took is None and result.at is not None and began is not None and result.at >= began:
        took = (result.at - began) // 1_000_000
    return replace(result, tool=tool, duration_ms=took)


def _is_service_log(path: Path) -> bool:
    return path.name.startswith("svc-")


def _born(path: Path) -> int:
    """The nanoseconds in a transcript's name, which order sessions."""
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 25 else 0


def attached_events(ddx_dir: Path, bead: Bead) -> list[dict[str, Any]]:
    """The events in a bead's attachment, in the order of the file; lines that are not events are skipped."""
    path = below(ddx_dir / "attachments", bead.events_attachment)
    events = []
    for line in (read_bytes(path, _CAP) or b"").split(b"\n"):
        try:
            event = decode_object(line)
        except ValueError:
            continue
        events.append(event)
    return events
