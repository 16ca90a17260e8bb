"""A file of safetensors, mapped: a tensor costs memory where it is read, and the system may take it back.

Format: eight bytes little-endian with the length of a JSON header, the header (name → dtype, shape and
data_offsets behind it), the data (https://huggingface.co/docs/safetensors).
"""

from __future__ import annotations

import math
import mmap
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

_MAX_HEADER = 16 << 20
"""Bytes of a header: this model's has 11,000."""


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class MappedTensors:
    """The float32 tensors of one file."""

    def __init__(self, path: Path) -> None:
        """Map a file; nothing but its header is read.

        Raises:
            OSError: it cannot be opened.
            ValueError: it is no file of safetensors, or is cut off.
        """
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._map[:8], "little")
        if not 0 < length <= min(_MAX_HEADER, len(self._map) - 8):
            raise ValueError("no header of safetensors")
        try:
            header = msgspec.json.decode(self._map[8 : 8 + length], type=dict[str, msgspec.Raw])
            header.pop("__metadata__", None)
            self._entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items()}
        except msgspec.DecodeError as error:
            raise ValueError(f"no header of safetensors: {error}") from error
        self._start = 8 + length

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """One tensor, a read-only view of the file.

        Raises:
            KeyError: there is none of that name.
            ValueError: it is not of float32, or lies outside the file.
        """
        entry = self._entries[name]
        begin, end = entry.data_offsets
        size = math.prod(entry.shape)
        if entry.dtype != "F32" or end - begin != size * 4 or not 0 <= begin <= end <= len(self._map) - self._start:
            raise ValueError(f"{name} is not a tensor of float32")
        flat = np.frombuffer(self._map, "<f4", size, self._start + begin)
        return flat.reshape(entry.shape)

    def release(self, name: str = "") -> None:
        """Give back the memory of what was read of all tensors or of one; what is read again comes from the
        system's cache."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        begin, end = 0, len(self._map)
        if name:
            begin, end = (self._start + offset for offset in self._entries[name].data_offsets)
        begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < end:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)
