"""Reading ``.ddx/beads.jsonl``: tolerant line by line, and only what changed.

DDx replaces the file by rename, so a reader needs no lock (docs/formats/ddx.md §3); other programs may not
be so careful, so a read that raced with a write is done again. Duplicate ids fold as DDx folds them: the last
line of an id wins and takes that line's place in the order.
"""

from __future__ import annotations

import errno
import hashlib
import io
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.filebuffer import FileBuffer, copy_to_disk
from helix_tui.core.beads.lines import Found, Image, Unread, read_lines
from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.git import open_nonblocking

MAX_FILE = 1 << 30
"""Bytes of a tracker that are read at most; real ones are under 25 MB."""


_MAX_IN_MEMORY = 8 << 20
"""Bytes of lines that stay in memory: those of 1,000 beads."""


class DroppedLine(Struct, frozen=True):
    """A line that is no bead: shown and counted, never silently gone."""

    line: int
    """1-based line number in the file."""
    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


class Tracker(Struct, frozen=True):
    """One state of a tracker file."""

    path: Path
    beads: Mapping[str, Bead] = field(default_factory=lambda: MappingProxyType({}))
    """By id, in the order DDx sees them after folding."""
    dropped: tuple[DroppedLine, ...] = ()
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

    @property
    def unread(self) -> str:
        """Which lines are no beads, in one sentence; empty where all are."""
        if not self.dropped:
            return ""
        numbers = ", ".join(str(dropped.line) for dropped in self.dropped[:5])
        more = f" and {len(self.dropped) - 5} more" if len(self.dropped) > 5 else ""
        if len(self.dropped) == 1:
            return f"line {numbers} of {self.path.name} cannot be read: {self.dropped[0].reason}"
        return f"lines {numbers}{more} of {self.path.name} cannot be read"

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
        self._image: Image | None = None
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
            image = self._read_image()
            digested = _digest(self.path) if digest else ""
            if self._stat() == before and image.size == before[2]:
                break
        self._stamp, self._image = before, image
        return replace(_tracker(image, self.path), size=image.size, mtime_ns=before[0], digest=digested)

    def _read_image(self) -> Image:
        """The lines: all at once the first time and where most are new, else block by block."""
        with open(self.path, "rb", buffering=0, opener=open_nonblocking) as file:
            status = os.fstat(file.fileno())
            _insist_on_file(status.st_mode)
            size = status.st_size
            if size > MAX_FILE:
                raise OverflowError(f"{size >> 20} MB is more than the {MAX_FILE >> 20} MB limit")
            if self._image is None:
                return read_lines(*_fill(file, size))
            image = read_lines(FileBuffer(os.dup(file.fileno()), size), size, self._image)
            if image.unsettled:
                file.seek(0)
                image = read_lines(*_fill(file, size), self._image)
            return image

    def rest(self) -> None:
        """Give back what is not needed until somebody looks at a bead: a large tracker's lines go to a file.

        A reader that keeps a tracker for hours holds its raw lines for the few that are looked at. Where
        there is no room on the disk they stay in memory.
        """
        image = self._image
        if image is None or isinstance(image.base, FileBuffer) or len(image.base) < _MAX_IN_MEMORY:
            return
        with memoryview(image.base) as view, view[: image.size] as part:
            put_away = copy_to_disk(part)
        if put_away is not None:
            image.base_moved(put_away)


def read_tracker(path: Path, *, digest: bool = False) -> Tracker:
    """Read a tracker once; see `TrackerReader.read`."""
    return TrackerReader(path).read(digest=digest)


def parse_rows(data: bytes, path: Path = Path("-")) -> Tracker:
    """A tracker from bytes, for what does not come from a file (an archive in git, a test)."""
    return _tracker(read_lines(data, len(data)), path)


def _insist_on_file(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")


def _scratch(size: int) -> mmap.mmap:
    buffer = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            buffer.madvise(mmap.MADV_HUGEPAGE)  # a 21 MB tracker then costs 11 page faults instead of 5,000
        except OSError:
            return buffer  # a kernel without huge pages: slower, not wrong
    return buffer


def _fill(file: io.FileIO, size: int) -> tuple[mmap.mmap, int]:
    """The file's bytes in a buffer of their own, and how many there are."""
    buffer = _scratch(size + size // 16 + 65_536)
    filled = 0
    with memoryview(buffer) as view:
        while filled < len(view):
            count = file.readinto(view[filled : min(filled + (1 << 24), len(view))])
            if not count:
                break
            filled += count
    return buffer, filled


def _digest(path: Path) -> str:
    with open(path, "rb", opener=open_nonblocking) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tracker(image: Image, path: Path) -> Tracker:
    """Beads folded by id as DDx folds them, and what could not be read."""
    rows = [bead for bead in image.found if isinstance(bead, Bead)]
    beads = {bead.id: bead for bead in rows}
    folded: dict[str, tuple[int, ...]] = {}
    if len(beads) < len(rows):
        beads, folded = _fold(image.found)
    dropped = tuple(
        DroppedLine(number, line.reason, line.excerpt)
        for number, line in enumerate(image.found, 1)
        if isinstance(line, Unread)
    )
    return Tracker(
        path,
        beads=MappingProxyType(beads),
        dropped=dropped,
        folded=MappingProxyType(folded),
        rows=len(rows) + len(dropped),
    )


def _fold(found: Iterable[Found]) -> tuple[dict[str, Bead], dict[str, tuple[int, ...]]]:
    """Beads by id, the last line of each, at its place; and the ids that stand on several lines."""
    beads: dict[str, Bead] = {}
    lines: dict[str, tuple[int, ...]] = {}
    for number, bead in enumerate(found, 1):
        if isinstance(bead, Bead):
            beads.pop(bead.id, None)
            beads[bead.id] = bead
            lines[bead.id] = (*lines.get(bead.id, ()), number)
    return beads, {bead_id: numbers for bead_id, numbers in lines.items() if len(numbers) > 1}
