"""The lines of a tracker file, read again and again: only those whose bytes are new are decoded.

Two states of a file mostly differ in a few lines. What they share is found by comparing memory in blocks;
a line that differs is decoded by itself, and its id says where in the older state the comparing goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from helix_tui.core.beads.record import Bead, Buffer, UnreadableLine, decode_bead, move_line
from helix_tui.core.text import clean_line

MAX_ROW = 16 << 20
"""Bytes of one row: DDx's own scanner refuses a longer one."""

_BLOCK = 64 << 10
"""Bytes compared at once: what is copied for it stays in the processor's cache."""

_FIRST_BLOCK = 4 << 10
"""Bytes compared first after a line that differs; where nearly all differ, more would be for nothing."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that is no bead."""

    reason: str
    excerpt: str
    """The beginning of the line, cleaned."""


Found = Bead | Unread | None
"""What stands on a line; None: it is blank."""


@dataclass(slots=True)
class Image:
    """One state of a file: its bytes, where its lines begin, and what stands on each."""

    buffer: Buffer
    size: int
    starts: list[int] = field(default_factory=list)
    """Offset of every line, and one more: where the next line would begin."""
    found: list[Found] = field(default_factory=list)
    adopted: bool = False
    """The beads keep the buffer for their raw lines: it may not be written to again."""


def read_lines(buffer: Buffer, size: int, last: Image | None = None) -> Image:
    """The lines of the first ``size`` bytes, split on ``\\n`` only, as DDx does (str.splitlines would cut at
    U+2028 too). A bead whose line stands in ``last`` byte for byte is that bead, the very same object."""
    image = Image(buffer, size)
    starts, found = image.starts, image.found
    fresh: list[int] = []
    memory = _Memory(last)
    at = 0
    while at < size:
        same, shift = memory.alike(buffer, at, size)
        if same:
            assert last is not None
            ahead = last.starts[same.start : same.stop]
            starts.extend([start + shift for start in ahead] if shift else ahead)
            found.extend(last.found[same.start : same.stop])
            at = last.starts[same.stop] + shift
            continue
        end = buffer.find(b"\n", at, size)
        end = size if end < 0 else end
        line = buffer[at:end]
        value = _decode(line) if line and not line.isspace() else None
        if isinstance(value, Bead):
            known = memory.recall(value, line)
            if known is None:
                fresh.append(len(found))
            else:
                value = known
        starts.append(at)
        found.append(value)
        at = end + 1
    starts.append(at)
    _adopt(image, fresh)
    return image


def _adopt(image: Image, fresh: list[int]) -> None:
    """Where most is new, the fresh beads find their lines in the buffer instead of keeping copies."""
    starts = image.starts
    if sum(starts[place + 1] - starts[place] for place in fresh) * 4 < image.size or not fresh:
        return
    image.adopted = True
    for place in fresh:
        bead = image.found[place]
        assert isinstance(bead, Bead)
        move_line(bead, image.buffer, starts[place], starts[place + 1] - 1)


class _Memory:
    """The older state, and how far it has been gone through."""

    def __init__(self, last: Image | None) -> None:
        self._last = last
        self._next = 0
        self._places: dict[str, int] = {}

    def alike(self, buffer: Buffer, at: int, size: int) -> tuple[range, int]:
        """Which whole lines of the older state stand at ``at``, and by how many bytes they have moved."""
        last, first = self._last, self._next
        if last is None or first >= len(last.found):
            return range(0), 0
        begin = last.starts[first]
        end = begin + shared_length(buffer, at, size, last.buffer, begin, last.size)
        self._next = bisect_right(last.starts, end, lo=first) - 1
        return range(first, self._next), at - begin

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
