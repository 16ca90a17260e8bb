"""Opening files that somebody else owns: what is under a name may be anything by now."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def open_nonblocking(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: a FIFO put in the place of a file must not hang the reader."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_end(path: str | os.PathLike[str], limit: int) -> str:
    """The last ``limit`` bytes of a text file, from the beginning of a line on; "" where there is none."""
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    return text if size <= limit else text.partition("\n")[2]


def being_written(path: str | os.PathLike[str]) -> bool:
    """Whether a program that was given this file as its output, locked, still has it open."""
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False
    return False


def files_below(folder: Path) -> Iterator[tuple[Path, int]]:
    """The files of a folder and of those in it, in order, with their sizes; not what has gone meanwhile."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            try:
                yield path, path.lstat().st_size
            except OSError:
                continue
