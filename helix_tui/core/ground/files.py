"""Files and folders of ours: written so that nobody ever sees half of one, kept out of git's sight.

`replace_file` writes a file. `make_folder` makes ``.helix`` and ``.helix-logs`` in a project, and tells git to pass
over them: ddx refuses to work beside changes that nobody committed, and ddx of April commits whatever is in the work
tree, so what we write must be invisible to both (docs/decisions/0021). The place for that is ``info/exclude`` in the
git folder that all work trees of the repository share, so that no file of the project is changed by it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from helix_tui.core.ground.project import common_dir_above

NAMES = (".helix", ".helix-logs")
"""Our folders in a project."""

HEADING = "# helix-tui keeps these for itself; prompts of a project may be committed"

PATTERNS = ("**/.helix/*", "!**/.helix/prompts/", "**/.helix-logs/")
"""What git passes over, in the language of gitignore(5)."""

_MAX_EXCLUDE = 1 << 20


def make_folder(folder: Path) -> Path:
    """A folder of ours and its parents, made where they are missing; git does not see what gets into it.

    Every first write of ours below ``.helix`` or ``.helix-logs`` comes through here. A folder elsewhere is
    made and no more.

    Raises:
        OSError: the folder cannot be made.
    """
    own = next((each for each in (folder, *folder.parents) if each.name in NAMES), None)
    if own is not None:
        own.mkdir(parents=True, exist_ok=True)
        _hide(own)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def exclude(common_dir: Path) -> bool:
    """Enter our folders in a repository's ``info/exclude``; whether something had to be written.

    What is there stays; several processes at once enter them once; a reader sees the old file or the new one.

    Raises:
        OSError: it cannot be read or written.
    """
    # people link it to a file of their own: replacing the link would part the two
    path = Path(os.path.realpath(common_dir / "info" / "exclude"))
    if not _missing(path):
        return False
    path.parent.mkdir(exist_ok=True)
    # look again under the lock: another process may have written since
    with locked_folder(path.parent):
        missing = _missing(path)
        if missing:
            _append(path, missing)
    return bool(missing)


def _hide(own: Path) -> None:
    """Keep git from seeing a folder of ours; where there is no exclude file to use, by a file in it."""
    common_dir = common_dir_above(own.parent)
    if common_dir is not None:
        with contextlib.suppress(OSError):
            exclude(common_dir)
            return
    ignore = own / ".gitignore"
    if not ignore.exists():
        ignore.write_text("/*\n!/prompts/\n" if own.name == ".helix" else "*\n", encoding="utf-8")


def _missing(path: Path) -> list[str]:
    """Those of our patterns that an exclude file does not hold yet."""
    try:
        data = _read(path)
    except FileNotFoundError:
        return list(PATTERNS)
    have = {line.strip() for line in data.decode("utf-8", "replace").split("\n")}
    return [pattern for pattern in PATTERNS if pattern not in have]


def _append(path: Path, patterns: list[str]) -> None:
    try:
        data, mode = _read(path), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        data, mode = b"", 0o644
    gap = b"\n" if data and not data.endswith(b"\n") else b""
    _put(path, data + gap + "\n".join([HEADING, *patterns, ""]).encode(), mode)


def _read(path: Path) -> bytes:
    with open(path, "rb") as file:
        data = file.read(_MAX_EXCLUDE + 1)
    if len(data) > _MAX_EXCLUDE:
        raise OSError(f"{path} has more than {_MAX_EXCLUDE} bytes")
    return data


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold a folder alone among processes of ours; nothing is put into it for that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put new content into a file's place at once, in a folder that is made where it is missing."""
    make_folder(path.parent)
    _put(path, data, mode)


def _put(path: Path, data: bytes, mode: int) -> None:
    """Put new content into a file's place at once: a reader sees the old or the new, never half of it."""
    import tempfile  # slow to load, and not needed by what only reads

    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            # without it a power cut may leave the new name on an empty file
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:  # ctrl+c too must leave no half-written file behind; it is raised again
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
