"""Write the console's own files atomically and hide its folders from git.

`replace_file` writes a file. `make_folder` makes ``.helix`` and ``.helix-logs`` in a project, and tells git to ignore
them: ddx refuses to work beside uncommitted changes, and ddx of April commits whatever is in the work tree, so these
files must be invisible to both (docs/decisions/0021). The patterns go into ``info/exclude`` of the git folder that all
work trees share, so that no file of the project changes.
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
"""The console's own folders in a project."""

HEADING = "# helix-tui keeps these for itself; prompts of a project may be committed"

PATTERNS = ("**/.helix/*", "!**/.helix/prompts/", "**/.helix-logs/")
"""What git ignores, as gitignore(5) patterns."""

_MAX_EXCLUDE = 1 << 20


def make_folder(folder: Path) -> Path:
    """Create one of the console's own folders and its missing parents, hidden from git.

    Every first write below ``.helix`` or ``.helix-logs`` comes through here. A folder elsewhere is only created.

    Raises:
        OSError: the folder cannot be created.
    """
    own = next((each for each in (folder, *folder.parents) if each.name in NAMES), None)
    if own is not None:
        own.mkdir(parents=True, exist_ok=True)
        _hide(own)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def exclude(common_dir: Path) -> bool:
    """Add the console's folders to a repository's ``info/exclude``; return whether anything was written.

    Existing lines stay. Concurrent processes add the patterns once. A reader sees the old file or the new one.

    Raises:
        OSError: it cannot be read or written.
    """
    # it may be a symlink to the user's own file: replacing the link would separate the two
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
    """Hide one of the console's folders from git; without a usable exclude file, by a ``.gitignore`` in it."""
    common_dir = common_dir_above(own.parent)
    if common_dir is not None:
        with contextlib.suppress(OSError):
            exclude(common_dir)
            return
    ignore = own / ".gitignore"
    if not ignore.exists():
        ignore.write_text("/*\n!/prompts/\n" if own.name == ".helix" else "*\n", encoding="utf-8")


def _missing(path: Path) -> list[str]:
    """The patterns that an exclude file does not contain yet."""
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
    """Lock a folder against other processes of the console, without creating a lock file."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace a file atomically, creating its folder if it is missing."""
    make_folder(path.parent)
    _put(path, data, mode)


def _put(path: Path, data: bytes, mode: int) -> None:
    """Replace a file atomically: a reader sees the old or the new content, never half of it."""
    import tempfile  # slow to import, and not needed for reading

    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            # without it a power cut may leave the new name on an empty file
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:  # on ctrl+c too, leave no half-written file behind; the exception is raised again
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
