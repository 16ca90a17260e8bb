"""The lines of a tracker file, read again and again: only those whose bytes are new are decoded.

Two states of a file mostly differ in a few lines. What they share is found by comparing memory in blocks;
a line that differs is decoded by itself, and its id says where in the older state the comparing goes on. Of
a state only what its beads point into is kept: one large buffer, and beside it the lines that came later.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec import Struct, field

from helix_tui.core.beads.filebuffer import FileBuffer
from helix_tui.core.beads.record import Bead, Buffer, UnreadableLine, decode_bead, move_line
from helix_tui.core.ground.text import clean_line

MAX_ROW = 16 << 20
"""Bytes of one row: DDx's own scanner refuses a longer one."""

_BLOCK = 64 << 10
"""Bytes compared at once: what is copied for it stays in the processor's cache."""

_FIRST_BLOCK = 4 << 10
"""Bytes compared first after a line that differs; where nearly all differ, more would be for nothing."""


class Unread(Struct, frozen=True):
    """A line that is no bead."""

    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


Found = Bead | Unread | None
"""What stands on a line; None: it is blank."""


_MAX_LOOSE = 4 << 20
"""Bytes of lines that lie beside the large buffer; when there are more, the next reading is kept whole. A
tracker of 3,000 beads is then copied once for some 250 rows that have changed."""


class LineRun(Struct, frozen=True):
    """Lines of a state whose bytes lie one after the other in one buffer."""

    first: int
    """Number of its first line, from 0; it goes on to where the next run begins."""
    buffer: Buffer
    offset: int
    """Where in the buffer the first line begins."""


class Image(Struct):
    """One state of a file: where its lines begin, what stands on each, and where their bytes are kept."""

    size: int
    starts: list[int] = field(default_factory=list)
    """Offset of every line in the file, and one more: where the next line would begin."""
    found: list[Found] = field(default_factory=list)
    runs: list[LineRun] = field(default_factory=list)
    base: Buffer = b""
    """The large buffer: it may not be written to again."""
    loose: int = 0
    """Bytes that are kept beside it."""
    unsettled: bool = False
    """So much is new, or lies beside the large buffer, that the file should be read whole: what it was read
    from cannot be kept."""

    def adopt(self, buffer: Buffer) -> None:
        """Keep a buffer that holds the whole file: all beads find their lines there from now on."""
        starts, size = self.starts, self.size
        for place, bead in enumerate(self.found):
            if isinstance(bead, Bead):
                move_line(bead, buffer, starts[place], min(starts[place + 1] - 1, size))
        self.runs, self.base, self.loose = [LineRun(0, buffer, 0)], buffer, 0

    def base_moved(self, buffer: Buffer) -> None:
        """The same bytes as in the large buffer lie in another one: what points into it points there now."""
        for bead in self.found:
            if isinstance(bead, Bead) and bead.where[0] is self.base:
                move_line(bead, buffer, *bead.where[1:])
        self.runs = [LineRun(run.first, buffer, run.offset) if run.buffer is self.base else run for run in self.runs]
        self.base = buffer

    def take(self, at: int, value: Found, run: LineRun) -> None:
        """Add a line that begins at ``at`` and whose bytes begin a run of their own."""
        self.starts.append(at)
        self.found.append(value)
        self._join(run, at)

    def take_same(self, at: int, last: Image, lines: range, run: LineRun) -> None:
        """Add lines of another state, the first of which begins at ``at`` here; they lie in ``run`` there."""
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
            if before.buffer is run.buffer and run.offset == before.offset + at - self.starts[before.first]:
                return
        self.runs.append(run)


def read_lines(buffer: Buffer, size: int, last: Image | None = None) -> Image:
    """The lines of the first ``size`` bytes, split on ``\\n`` only, as DDx does (str.splitlines would cut at
    U+2028 too). A bead whose line stands in ``last`` byte for byte is that bead, the very same object.

    A buffer in memory may become the image's ``base``; a file belongs to somebody else and never does.
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
    """Decode the line from ``at`` to ``end``; how many of its bytes are new."""
    if memory.empty:  # everything is new: no line needs a copy of its own
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
    """The older state, and how far it has been gone through."""

    def __init__(self, last: Image | None) -> None:
        self._last = last
        self._next = 0
        self._places: dict[str, int] = {}

    @property
    def empty(self) -> bool:
        """Whether there is no older state."""
        return self._last is None

    def alike(self, buffer: Buffer, at: int, size: int) -> tuple[range, LineRun | None]:
        """Which whole lines of the older state stand at ``at``, and the run that they belong to."""
        last, first = self._last, self._next
        if last is None or first >= len(last.found):
            return range(0), None
        number = bisect_right(last.runs, first, key=_first_line) - 1
        run = last.runs[number]
        stop = last.runs[number + 1].first if number + 1 < len(last.runs) else len(last.found)
        begin, shift = last.starts[first], run.offset - last.starts[run.first]
        limit = min(last.starts[stop], last.size)
        end = begin + shared_length(buffer, at, size, run.buffer, begin + shift, limit + shift)
        self._next = bisect_right(last.starts, end, lo=first, hi=stop + 1) - 1
        return range(first, self._next), run

    def recall(self, bead: Bead, line: bytes) -> Bead | None:
        """The older bead of the same id, if its line is the same; what follows it is expected next."""
        last, place = self._last, self._place(bead.id)
        if last is None or place is None:
            return None
        self._next = place + 1
        old = last.found[place]
        return old if isinstance(old, Bead) and old.raw == line else None

    def _place(self, bead_id: str) -> int | None:
        """Where the older state has a bead; mostly it is the one expected next."""
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
    """How many bytes are the same in ``one`` from ``at`` and ``other`` from ``begin`` on."""
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
    """Length of the common beginning of two different texts of one length, by halving."""
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
