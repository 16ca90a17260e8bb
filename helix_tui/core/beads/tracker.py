"""Read the tracker file tolerantly, line by line and only where it changed; read its archive.

The archive is ``.ddx/beads-archive.jsonl`` (since May): finished beads that ddx has moved there, and that no longer
satisfy a dependency.
"""

from __future__ import annotations

import errno
import hashlib
import io
import mmap
import os
import stat
import threading
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead, Buffer, FileBuffer, UnreadableLine, copy_to_disk, decode_bead, move_line
from helix_tui.core.ground.files import open_file, read_status
from helix_tui.core.ground.text import clean_line

MAX_ROW = 16 << 20
"""Maximum bytes of one row: DDx's own scanner refuses longer ones."""

_BLOCK = 64 << 10
"""Bytes compared at a time: the copies fit the processor's cache."""

_FIRST_BLOCK = 4 << 10
"""Bytes compared first after a line that differs: if most lines differ, more would be wasted."""

_MAX_LOOSE = 4 << 20
"""Bytes of lines kept outside the large buffer; above this, the next reading is kept as a whole. A tracker of 3,000
beads is then copied once per some 250 changed rows.
"""

MAX_FILE = 1 << 30
"""Maximum bytes read of a tracker; real ones are under 25 MB."""

_MAX_IN_MEMORY = 8 << 20
"""Bytes of lines that stay in memory: those of 1,000 beads."""


class Unread(Struct, frozen=True):
    """A line that is not a bead."""

    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


Found = Bead | Unread | None
"""The content of a line; None if it is blank."""


class LineRun(Struct, frozen=True):
    """Lines of a state whose bytes are contiguous in one buffer."""

    first: int
    """Number of its first line, from 0; it extends to the start of the next run."""
    buffer: Buffer
    offset: int
    """Offset of the first line in the buffer."""


class Image(Struct):
    """One state of a file: where its lines begin, their content, and where their bytes are kept."""

    size: int
    starts: list[int] = []
    """Offset of every line in the file, and one more: where the next line would begin."""
    found: list[Found] = []
    runs: list[LineRun] = []
    base: Buffer = b""
    """The large buffer, which must not be modified."""
    loose: int = 0
    """Bytes kept outside it."""
    unsettled: bool = False
    """Whether the file should be read whole, because too much is new or outside the large buffer."""

    def adopt(self, buffer: Buffer) -> None:
        """Keep a buffer with the whole file and point all beads to their lines in it."""
        starts, size = self.starts, self.size
        for place, bead in enumerate(self.found):
            if isinstance(bead, Bead):
                move_line(bead, buffer, starts[place], min(starts[place + 1] - 1, size))
        self.runs, self.base, self.loose = [LineRun(0, buffer, 0)], buffer, 0

    def base_moved(self, buffer: Buffer) -> None:
        """Replace the large buffer by another one with the same bytes, and point all beads there."""
        for bead in self.found:
            if isinstance(bead, Bead) and bead.where[0] is self.base:
                move_line(bead, buffer, *bead.where[1:])
        self.runs = [LineRun(run.first, buffer, run.offset) if run.buffer is self.base else run for run in self.runs]
        self.base = buffer

    def take(self, at: int, value: Found, run: LineRun) -> None:
        """Add a line that begins at ``at`` and starts a new run."""
        self.starts.append(at)
        self.found.append(value)
        self._join(run, at)

    def take_same(self, at: int, last: Image, lines: range, run: LineRun) -> None:
        """Add lines of ``run`` in another state, the first of which begins at ``at`` here."""
        begin = last.starts[lines.start]
        offset = run.offset + begin - last.starts[run.first]
        first, shift = len(self.found), at - begin
        ahead = last.starts[lines.start : lines.stop]
        self.starts.extend([start + shift for start in ahead] if shift else ahead)
        self.found.extend(last.found[lines.start : lines.stop])
        if run.buffer is not last.base:
            self.loose += last.starts[lines.stop] - begin
        self._join(LineRun(first, run.buffer, offset), at)

    def _join(self, run: LineRun, at: int) -> None:
        if self.runs:
            before = self.runs[-1]
            # contiguous lines in one buffer are one run: an unchanged tracker has a single run
            if before.buffer is run.buffer and run.offset == before.offset + at - self.starts[before.first]:
                return
        self.runs.append(run)


def read_lines(buffer: Buffer, size: int, last: Image | None = None) -> Image:
    """The lines of the first ``size`` bytes, split on ``\\n`` only, as DDx does (str.splitlines would also split
    at U+2028). A bead whose line is unchanged from ``last`` is the same object.

    A buffer in memory may become the image's ``base``; a file never does, as others may change it.
    """
    image = Image(size) if last is None else Image(size, base=last.base)
    memory = _Memory(last)
    at = fresh = 0
    while at < size:
        same, run = memory.alike(buffer, at, size)
        if same and run is not None and last is not None:
            image.take_same(at, last, same, run)
            at += last.starts[same.stop] - last.starts[same.start]
            continue
        end = buffer.find(b"\n", at, size)
        end = size if end < 0 else end
        fresh += _take_line(image, buffer, at, end, memory)
        at = end + 1
    image.starts.append(at)
    if fresh * 4 >= size or image.loose > _MAX_LOOSE:
        image.unsettled = isinstance(buffer, FileBuffer)
        if not image.unsettled:
            image.adopt(buffer)
    return image


def _take_line(image: Image, buffer: Buffer, at: int, end: int, memory: _Memory) -> int:
    """Decode the line from ``at`` to ``end``; return how many of its bytes are new."""
    if memory.empty:  # everything is new: no line needs its own copy
        line = buffer[at:end]
        value = _decode(line) if line and not line.isspace() else None
        if isinstance(value, Bead):
            move_line(value, buffer, at, end)
        image.take(at, value, LineRun(len(image.found), buffer, at))
        return end + 1 - at
    chunk = buffer[at : min(end + 1, image.size)]
    line = chunk[: end - at]
    value = _decode(line) if line and not line.isspace() else None
    known = memory.recall(value, line) if isinstance(value, Bead) else None
    value = known or value
    if isinstance(value, Bead):
        move_line(value, chunk, 0, len(line))
    image.loose += len(chunk)
    image.take(at, value, LineRun(len(image.found), chunk, 0))
    return 0 if known is not None else len(chunk)


class _Memory:
    """The older state, and the position reached in it."""

    def __init__(self, last: Image | None) -> None:
        self._last = last
        self._next = 0
        self._places: dict[str, int] = {}

    @property
    def empty(self) -> bool:
        """Whether there is no older state."""
        return self._last is None

    def alike(self, buffer: Buffer, at: int, size: int) -> tuple[range, LineRun | None]:
        """The whole lines of the older state found at ``at``, and their run."""
        last, first = self._last, self._next
        if last is None or first >= len(last.found):
            return range(0), None
        number = bisect_right(last.runs, first, key=_first_line) - 1
        run = last.runs[number]
        stop = last.runs[number + 1].first if number + 1 < len(last.runs) else len(last.found)
        begin, shift = last.starts[first], run.offset - last.starts[run.first]
        limit = min(last.starts[stop], last.size)
        end = begin + shared_length(buffer, at, size, run.buffer, begin + shift, limit + shift)
        # only whole lines: the first that differs is read anew
        self._next = bisect_right(last.starts, end, lo=first, hi=stop + 1) - 1
        return range(first, self._next), run

    def recall(self, bead: Bead, line: bytes) -> Bead | None:
        """The older bead of the same id, if its line is unchanged; the line after it is expected next."""
        last, place = self._last, self._place(bead.id)
        if last is None or place is None:
            return None
        self._next = place + 1
        old = last.found[place]
        return old if isinstance(old, Bead) and old.raw == line else None

    def _place(self, bead_id: str) -> int | None:
        """The position of a bead in the older state; mostly the expected one."""
        if self._last is None:
            return None
        found = self._last.found
        expected = found[self._next] if self._next < len(found) else None
        if isinstance(expected, Bead) and expected.id == bead_id:
            return self._next
        if not self._places:
            self._places = {old.id: place for place, old in enumerate(found) if isinstance(old, Bead)}
        return self._places.get(bead_id)


def _first_line(run: LineRun) -> int:
    return run.first


def shared_length(one: Buffer, at: int, size: int, other: Buffer, begin: int, other_size: int) -> int:
    """The number of equal bytes in ``one`` from ``at`` and ``other`` from ``begin``."""
    most = min(size - at, other_size - begin)
    done, block = 0, _FIRST_BLOCK
    while done < most:
        length = min(block, most - done)
        ours = one[at + done : at + done + length]
        theirs = other[begin + done : begin + done + length]
        if ours != theirs:
            return done + _shared(ours, theirs)
        done += length
        block = min(block * 2, _BLOCK)
    return done


def _shared(one: bytes, other: bytes) -> int:
    """Length of the common prefix of two different texts of equal length, by bisection."""
    low, high = 0, len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _decode(line: bytes) -> Bead | Unread:
    try:
        if len(line) > MAX_ROW:
            raise UnreadableLine(f"{len(line) >> 20} MB, more than DDx reads of one line")
        return decode_bead(line)
    except UnreadableLine as error:
        excerpt = clean_line(line[:400].decode("utf-8", "replace"), 120)
        return Unread(clean_line(str(error), 160), excerpt)


class DroppedLine(Struct, frozen=True):
    """A line that is not a bead: shown and counted, never dropped silently."""

    line: int
    """1-based line number in the file."""
    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


class Tracker(Struct, frozen=True):
    """One state of a tracker file."""

    path: Path
    beads: Mapping[str, Bead] = field(default_factory=lambda: MappingProxyType({}))
    """Beads by id, in DDx's order after folding."""
    dropped: tuple[DroppedLine, ...] = ()
    folded: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Ids on more than one line, with the line numbers; the last one counts."""
    rows: int = 0
    """Non-blank lines read."""
    size: int = 0
    mtime_ns: int = 0
    missing: bool = False
    """Whether the file is missing."""
    problem: str = ""
    """Why the file could not be read, in one sentence; beads are then those of the last good read."""
    digest: str = ""
    """SHA-256 of the file, if requested."""

    @property
    def unread(self) -> str:
        """Which lines are not beads, in one sentence; empty if all are."""
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
    """Reads one tracker repeatedly, decoding only rows whose bytes are new.

    Not thread-safe: give each thread its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._image: Image | None = None
        self._last: Tracker | None = None
        self._stamp: tuple[int, int, int] | None = None

    def read(self, *, digest: bool = False) -> Tracker:
        """The current tracker. Never raises for the file's content or absence.

        Returns the same object as last time if nothing changed.
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

    def stands(self) -> bool:
        """Whether the file is unchanged since it was last read."""
        try:
            return self._stat() == self._stamp
        except OSError:
            return self._stamp is None

    def _stat(self) -> tuple[int, int, int]:
        status = read_status(self.path)
        _insist_on_file(status.st_mode)
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _read_settled(self, digest: bool) -> Tracker:
        """Read until the stat before and after agree, at most three times."""
        # if it never settles, the earlier stamp is kept, and the next check reads again
        for _ in range(3):
            before = self._stat()
            image = self._read_image()
            digested = _digest(image, self.path) if digest else ""
            if self._stat() == before and image.size == before[2]:
                break
        self._stamp, self._image = before, image
        return replace(_tracker(image, self.path), size=image.size, mtime_ns=before[0], digest=digested)

    def _read_image(self) -> Image:
        """Read the lines: all at once the first time and if most are new, else block by block."""
        with open_file(self.path) as file:
            size = os.fstat(file.fileno()).st_size
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
        """Free memory that is not needed until a bead is opened: a large tracker's lines go to a file.

        A reader that runs for hours keeps all raw lines for the few that are opened. If the disk is full they stay in
        memory.
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


def _insist_on_file(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")


def _scratch(size: int) -> mmap.mmap:
    buffer = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            buffer.madvise(mmap.MADV_HUGEPAGE)  # with huge pages a 21 MB tracker costs 11 page faults instead of 5,000
        except OSError:
            return buffer  # a kernel without huge pages: slower, not wrong
    return buffer


def _fill(file: io.BufferedReader, size: int) -> tuple[mmap.mmap, int]:
    """The file's bytes in a buffer, and their number."""
    # with room for rows appended while it is read
    buffer = _scratch(size + size // 16 + 65_536)
    filled = 0
    with memoryview(buffer) as view:
        while filled < len(view):
            count = file.readinto(view[filled : min(filled + (1 << 24), len(view))])
            if not count:
                break
            filled += count
    return buffer, filled


def _digest(image: Image, path: Path) -> str:
    if not isinstance(image.base, FileBuffer) and len(image.runs) == 1:  # the whole file lies in one buffer
        with memoryview(image.base) as view, view[: image.size] as part:
            return hashlib.sha256(part).hexdigest()
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tracker(image: Image, path: Path) -> Tracker:
    """Make a tracker: beads folded by id as DDx does, and unreadable lines."""
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
    """Beads by id, each from its last line and in that line's place; and the ids on several lines."""
    beads: dict[str, Bead] = {}
    lines: dict[str, tuple[int, ...]] = {}
    for number, bead in enumerate(found, 1):
        if isinstance(bead, Bead):
            # DDx puts a bead where its last line is
            beads.pop(bead.id, None)
            beads[bead.id] = bead
            lines[bead.id] = (*lines.get(bead.id, ()), number)
    return beads, {bead_id: numbers for bead_id, numbers in lines.items() if len(numbers) > 1}


class Archived(Struct, frozen=True):
    """One bead of the archive."""

    bead_id: str
    title: str
    status: str
    day: str
    """The day, as ddx writes it, on which it was closed, else archived, else last changed; else empty."""

    @property
    def words(self) -> str:
        """Its final status, in words."""
        return f"{self.status} on {self.day} and archived" if self.day else f"{self.status} and archived"


class _Reader:
    """One archive, read again when it changes; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._reader = TrackerReader(path)
        self._lock = threading.Lock()

    def read(self) -> Tracker:
        with self._lock:
            archive = self._reader.read()
            self._reader.rest()
            return archive


@lru_cache(maxsize=4)
def _reader(path: Path) -> _Reader:
    return _Reader(path)


def read_archive(path: Path) -> Tracker:
    """The current archive: its beads and unreadable lines; ``missing`` if there is no file.

    The same object as last time while the file is unchanged.
    """
    return _reader(path).read()


def only_archived(archive: Tracker, held: Collection[str]) -> dict[str, Bead]:
    """Beads that exist only in the archive, by id; ``held`` are the tracker's ids."""
    return {bead_id: bead for bead_id, bead in archive.beads.items() if bead_id not in held}


def find_archived(path: Path, ids: Collection[str]) -> dict[str, Archived]:
    """The archived ones among some beads; the last row of an id counts."""
    if not ids:
        return {}
    beads = read_archive(path).beads
    return {bead_id: describe(beads[bead_id]) for bead_id in ids if bead_id in beads}


def describe(bead: Bead) -> Archived:
    """The final status of an archived bead, with cleaned text."""
    row = bead.document()
    instants = (row.get(name) for name in ("closed_at", "archived_at", "updated_at"))
    day = next((clean_line(at, 40)[:10] for at in instants if isinstance(at, str) and at), "")
    return Archived(bead.id, clean_line(bead.title, 300), clean_line(bead.status, 40), day)
