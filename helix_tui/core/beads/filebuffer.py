"""The bytes of an open file, sliced like a bytes object and held by nobody: each slice is read anew."""

from __future__ import annotations

import os
import tempfile

_BLOCK = 64 << 10
"""Bytes in which a newline is looked for at once."""

_FOLDERS = ("/var/tmp",)
"""Where a copy goes first: on a disk. The usual folder for temporary files is often a part of memory."""


class FileBuffer:
    """The first ``size`` bytes of a file."""

    __slots__ = ("_fd", "_size")

    def __init__(self, fd: int, size: int) -> None:
        """Take a descriptor; it is closed with the object."""
        self._fd = fd
        self._size = size

    def __del__(self) -> None:
        os.close(self._fd)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Some of the bytes; fewer where the file was cut off meanwhile.

        Raises:
            OSError: the disk does not give them.
        """
        start, stop, _ = part.indices(self._size)
        data = os.pread(self._fd, max(0, stop - start), start)
        while data and len(data) < stop - start:
            more = os.pread(self._fd, stop - start - len(data), start + len(data))
            if not more:
                break
            data += more
        return data

    def find(self, sub: bytes, start: int, end: int) -> int:
        """Offset of a single byte between two offsets, or -1."""
        while start < end:
            block = self[start : min(start + _BLOCK, end)]
            place = block.find(sub)
            if place >= 0:
                return start + place
            if not block:
                break
            start += len(block)
        return -1


def copy_to_disk(data: memoryview) -> FileBuffer | None:
    """Bytes in a file without a name, gone with the object; None where there is no room for one."""
    folder = next((folder for folder in _FOLDERS if os.access(folder, os.W_OK)), None)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(data)
            file.flush()
            return FileBuffer(os.dup(file.fileno()), len(data))
    except OSError:
        return None
