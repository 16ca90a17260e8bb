"""Writing a file of ours so that nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from helix_tui.core.ground.project import make_folder


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put new content into a file's place at once: a reader sees the old or the new, never half of it."""
    make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
