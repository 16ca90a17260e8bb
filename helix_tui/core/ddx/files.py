"""Read files that another program keeps rewriting, appending to, moving and deleting.

Nothing here raises for the state of the disk: a file that is gone, half-written or not JSON is a *problem*, kept with
its path, and reads as absent. Unchanged files are not read again. Fields of a JSON object are read one by one: one of a
wrong type counts as absent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ground.files import MAX_DOCUMENT, Stamp, open_file, read_bytes, settled, stamp_of
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NEVER, parse_instant

MAX_POLL = 8 << 20
"""Bytes of an append-only file that one poll reads."""

_HEAD = 256
_TAIL = 64


def _read_all(read: Callable[[int], bytes | None], limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while left > 0:
        part = read(min(left, 1 << 20))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def decode_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in ``raw``.

    Raises:
        ValueError: not JSON, or not an object.
    """
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(document, dict):
        raise ValueError(f"not an object but {type(document).__name__}")
    return document


class JsonCache:
    """JSON objects by path, decoded again only when the file's stamp changes.

    Attributes:
        problems: unreadable file to the reason; removed once the file is readable or gone.
    """

    def __init__(self, limit: int = MAX_DOCUMENT) -> None:
        self.problems: dict[Path, str] = {}
        self._limit = limit
        self._known: dict[str, tuple[Stamp, dict[str, Any] | None]] = {}
        self._looked_at: set[str] = set()

    def load(self, path: str | os.PathLike[str]) -> dict[str, Any] | None:
        """The object in a file; None where the file is absent or unreadable."""
        key = os.fspath(path)
        self._looked_at.add(key)
        stamp = stamp_of(key)
        if stamp is None:
            if self._known.pop(key, None) is not None:
                self.problems.pop(Path(key), None)
            return None
        known = self._known.get(key)
        # a stamp younger than a tick of the kernel's clock may hide a second write
        if known is not None and known[0] == stamp and settled(stamp):
            return known[1]
        document = self._decode(key, stamp[1])
        self._known[key] = (stamp, document)
        return document

    def stands(self) -> bool:
        """Whether every file that was loaded is unchanged."""
        return all(stamp_of(key) == stamp for key, (stamp, _) in self._known.items())

    def sweep(self) -> None:
        """Forget files that were not loaded since the last sweep, as they are gone."""
        for key in self._known.keys() - self._looked_at:
            del self._known[key]
            self.problems.pop(Path(key), None)
        self._looked_at.clear()

    def _decode(self, key: str, size: int) -> dict[str, Any] | None:
        path = Path(key)
        self.problems.pop(path, None)
        if size > self._limit:
            self.problems[path] = f"{size:,} bytes, over the size limit"
            return None
        raw = read_bytes(key, self._limit)
        if raw is None:
            return None
        try:
            return decode_object(raw)
        except ValueError as error:
            self.problems[path] = clean_line(f"half-written or no JSON: {error}", 200)
            return None


class LineTail:
    """New complete lines of an append-only file, poll by poll.

    An unterminated last line is kept back until its end. A file that shrank or begins differently was replaced: it is
    read from its start, and ``replaced`` is true for that poll.

    Attributes:
        replaced: the last poll found another file under the same path.
        skipped: lines left out because they were longer than a poll may read.
        behind: the last poll stopped at its cap; another poll will bring more.
    """

    def __init__(self, path: Path, *, start_at_last: int | None = None, cap: int = MAX_POLL) -> None:
        self.path = path
        self.replaced = False
        self.skipped = 0
        self.behind = False
        self._cap = cap
        self._window = start_at_last
        self._offset = 0
        self._head = b""
        self._tail = b""
        self._stamp: Stamp | None = None
        self._partial_first = False

    def poll(self) -> list[bytes]:
        """Complete lines added since the last poll, without newlines."""
        self.replaced = self.behind = False
        stamp = stamp_of(self.path)
        if stamp is None or (stamp == self._stamp and stamp[1] == self._offset and settled(stamp)):
            return []
        try:
            with open_file(self.path) as file:
                return self._take(file.fileno(), stamp)
        except OSError:
            return []

    def _take(self, fd: int, stamp: Stamp) -> list[bytes]:
        head = os.pread(fd, _HEAD, 0)
        # a replaced file may be longer than the old one: only its bytes show it
        if not head.startswith(self._head) or not self._is_behind_offset(fd):
            self.replaced = True
            self._offset, self._tail, self._partial_first, self._window = 0, b"", False, None
        if self._offset == 0 and self._window is not None and stamp[1] > self._window:
            self._offset = stamp[1] - self._window
            # the window may begin in the middle of a line
            self._partial_first = True
        self._window = None
        self._head = head
        self._stamp = stamp
        data = _read_all(_reader(fd, self._offset), self._cap)
        self.behind = len(data) == self._cap
        end = data.rfind(b"\n") + 1
        if end == 0:
            if self.behind:
                # a line longer than a poll is skipped in parts, and counted once
                self._advance(data)
                self.skipped += 0 if self._partial_first else 1
                self._partial_first = True
            return []
        self._advance(data[:end])
        lines = data[: end - 1].split(b"\n")
        if self._partial_first:
            self._partial_first = False
            del lines[0]
        return lines

    def _advance(self, taken: bytes) -> None:
        self._offset += len(taken)
        self._tail = (self._tail + taken[-_TAIL:])[-_TAIL:]

    def _is_behind_offset(self, fd: int) -> bool:
        """Whether the bytes read last are still before the offset."""
        return os.pread(fd, len(self._tail), self._offset - len(self._tail)) == self._tail


def _reader(fd: int, offset: int) -> Callable[[int], bytes]:
    at = offset

    def read(count: int) -> bytes:
        nonlocal at
        part = os.pread(fd, count, at)
        at += len(part)
        return part

    return read


def text(document: Mapping[str, Any] | None, key: str) -> str:
    """A text field, or ""."""
    value = document.get(key) if document is not None else None
    return value if isinstance(value, str) else ""


def word(document: Mapping[str, Any] | None, key: str) -> str:
    """A text field with few values in many documents (a status, a model), interned."""
    return sys.intern(text(document, key))


def instant(value: object) -> int | None:
    """An instant; None for an absent one and for Go's zero time."""
    found = parse_instant(value)
    return found if found is not None and found > NEVER else None


def whole(value: object, low: int = 0) -> int | None:
    """A whole number not below ``low``."""
    # a bool is a number to Python, and NaN is unequal to itself
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    # an absurd number counts as unknown: it would spoil every sum and share
    return int(value) if low <= value < 1e15 else None


def money(value: object) -> float | None:
    """A known cost, or None: DDx writes 0 or -1 for an unknown one (docs/formats/ddx.md §5)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e9 else None
