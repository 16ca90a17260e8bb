"""Reading ``.ddx/beads.jsonl``: tolerant line by line, and only what changed.

DDx replaces the file by rename, so a reader needs no lock (reference/ddx.md §3); other programs may not be so
careful, so a read that raced with a write is done again. Duplicate ids fold as DDx folds them: the last
line of an id wins and takes that line's place in the order.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from helix_tui.core.beads.record import Bead, Buffer, UnreadableLine, decode_bead, move_line
from helix_tui.core.opening import open_nonblocking
from helix_tui.core.text import clean_line

MAX_FILE = 1 << 30
"""Bytes of a tracker that are read at most; real ones are under 25 MB."""

MAX_ROW = 16 << 20
"""Bytes of one row: DDx's own scanner refuses a longer one."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line that is no bead: shown and counted, never silently gone."""

    line: int
    """1-based line number in the file."""
    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


@dataclass(frozen=True, slots=True)
class Tracker:
    """One state of a tracker file."""

    path: Path
    beads: Mapping[str, Bead] = field(default_factory=lambda: MappingProxyType({}))
    """By id, in the order DDx sees them after folding."""
    dropped: tuple[Dropped, ...] = ()
    folded: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Ids that stand on more than one line, with the line numbers; the last of them holds."""
    rows: int = 0
    """Non-blank lines read."""
    size: int = 0
    mtime_ns: int = 0
    missing: bool = False
    """There is no such file."""
    problem: str = ""
    """Why the file could not be read, in one sentence; beads are then those of the last good read."""
    digest: str = ""
    """SHA-256 of the file, where it was asked for."""

    def __contains__(self, bead_id: str) -> bool:
        return bead_id in self.beads

    def __iter__(self) -> Iterator[Bead]:
        return iter(self.beads.values())


class TrackerReader:
    """Reads one tracker again and again, decoding only rows whose bytes are new.

    Not safe for several threads at once: give each its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._buffer: mmap.mmap | None = None
        self._last: Tracker | None = None
        self._stamp: tuple[int, int, int] | None = None

    def read(self, *, digest: bool = False) -> Tracker:
        """The tracker as it stands now. Never raises for what lies in the file or for its absence.

        Returns the very same object as the last time when nothing changed.
        """
        try:
            stamp = self._stat()
            if self._last is not None and stamp == self._stamp and (not digest or self._last.digest):
                return self._last
            tracker = self._read_settled(digest)
        except FileNotFoundError:
            self._stamp = None
            tracker = Tracker(self.path, missing=True)
        except (OSError, OverflowError) as error:
            self._stamp = None
            last = self._last or Tracker(self.path)
            tracker = Tracker(
                self.path,
                beads=last.beads,
                dropped=last.dropped,
                folded=last.folded,
                rows=last.rows,
                problem=f"cannot read {self.path.name}: {getattr(error, 'strerror', None) or error}",
            )
        self._last = tracker
        return tracker

    def _stat(self) -> tuple[int, int, int]:
        status = os.stat(self.path)
        _insist_on_file(status.st_mode)
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _read_settled(self, digest: bool) -> Tracker:
        """Read until no write came between the first stat and the last, three times at most."""
        for _ in range(3):
            before = self._stat()
            size = self._fill()
            if self._stat() == before and size == before[2]:
                break
        self._stamp = before
        return self._parse(size, before[0], digest)

    def _fill(self) -> int:
        """Read the file into the scratch buffer, which is kept so that a reload touches no fresh memory."""
        with open(self.path, "rb", buffering=0, opener=open_nonblocking) as file:
            status = os.fstat(file.fileno())
            _insist_on_file(status.st_mode)
            size = status.st_size
            if size > MAX_FILE:
                raise OverflowError(f"{size >> 20} MB is more than the {MAX_FILE >> 20} MB that are read")
            if self._buffer is None or len(self._buffer) < size + 1:
                self._buffer = _scratch(size + size // 16 + 65_536)
            view = memoryview(self._buffer)
            filled = 0
            while filled < len(view):
                count = file.readinto(view[filled : min(filled + (1 << 24), len(view))])
                if not count:
                    break
                filled += count
            view.release()
            return filled

    def _parse(self, size: int, mtime_ns: int, digest: bool) -> Tracker:
        assert self._buffer is not None
        buffer = self._buffer
        known = tuple(self._last.beads.values()) if self._last else ()
        rows = list(_decode_rows(buffer, size, known))
        fresh = sum(row.size for row in rows if row.fresh)
        if fresh * 4 >= size:
            self._buffer = None  # mostly new: the beads keep this buffer, the next read takes another
            for row in rows:
                if row.bead is not None:
                    move_line(row.bead, buffer, row.start, row.start + row.size)
        tracker = _fold(rows, self.path)
        return Tracker(
            self.path,
            beads=tracker.beads,
            dropped=tracker.dropped,
            folded=tracker.folded,
            rows=tracker.rows,
            size=size,
            mtime_ns=mtime_ns,
            digest=_digest(buffer, size) if digest else "",
        )


def read_tracker(path: Path, *, digest: bool = False) -> Tracker:
    """Read a tracker once; see `TrackerReader.read`."""
    return TrackerReader(path).read(digest=digest)


def parse_rows(data: bytes, path: Path = Path("-")) -> Tracker:
    """A tracker from bytes, for what does not come from a file (an archive in git, a test)."""
    return _fold(list(_decode_rows(data, len(data), ())), path)


def _insist_on_file(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(mode) else "it is no regular file")


def _scratch(size: int) -> mmap.mmap:
    buffer = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            buffer.madvise(mmap.MADV_HUGEPAGE)  # a 21 MB tracker then costs 11 page faults instead of 5,000
        except OSError:
            return buffer  # a kernel without huge pages: slower, not wrong
    return buffer


def _digest(buffer: mmap.mmap, size: int) -> str:
    with memoryview(buffer) as view, view[:size] as part:
        return hashlib.sha256(part).hexdigest()


@dataclass(frozen=True, slots=True)
class _Row:
    """One non-blank line of a file: a bead, or the reason why it is none."""

    number: int
    start: int
    size: int
    fresh: bool
    bead: Bead | None
    reason: str = ""
    excerpt: str = ""


def _decode_rows(buffer: Buffer, size: int, known: tuple[Bead, ...]) -> Iterator[_Row]:
    """The rows of a file, split on ``\\n`` only as DDx does (str.splitlines would cut at U+2028 too).

    A line equal to a known bead's is not decoded again. Known beads stand in the same order as last time but
    for what was added, changed or removed, so the one expected next is the one after the last that matched.
    """
    places: dict[str, int] = {}
    start, number, expected, find = 0, 0, 0, buffer.find
    while start < size:
        end = find(b"\n", start, size)
        if end < 0:
            end = size
        number += 1
        line = buffer[start:end]
        if expected < len(known) and line == known[expected].raw:
            yield _Row(number, start, end - start, False, known[expected])
            expected += 1
        elif line and not line.isspace():
            row = _decode_row(number, start, line)
            if known and row.bead is not None:
                places = places or {bead.id: place for place, bead in enumerate(known)}
                place = places.get(row.bead.id)
                if place is not None:
                    expected = place + 1
                    if known[place].raw == line:
                        row = _Row(number, start, end - start, False, known[place])
            yield row
        start = end + 1


def _decode_row(number: int, start: int, line: bytes) -> _Row:
    try:
        if len(line) > MAX_ROW:
            raise UnreadableLine(f"{len(line) >> 20} MB, more than DDx reads of one line")
        return _Row(number, start, len(line), True, decode_bead(line))
    except UnreadableLine as error:
        excerpt = clean_line(line[:400].decode("utf-8", "replace"), 120)
        return _Row(number, start, len(line), True, None, clean_line(str(error), 160), excerpt)


def _fold(rows: list[_Row], path: Path) -> Tracker:
    beads: dict[str, Bead] = {}
    lines: dict[str, int] = {}
    folded: dict[str, tuple[int, ...]] = {}
    for row in rows:
        bead = row.bead
        if bead is None:
            continue
        if bead.id in beads:
            folded[bead.id] = (*folded.get(bead.id, (lines[bead.id],)), row.number)
            del beads[bead.id]  # the last line's place is the one that counts
        beads[bead.id] = bead
        lines[bead.id] = row.number
    return Tracker(
        path,
        beads=MappingProxyType(beads),
        dropped=tuple(Dropped(row.number, row.reason, row.excerpt) for row in rows if row.bead is None),
        folded=MappingProxyType(folded),
        rows=len(rows),
    )
