"""Write below a repository, and in the person's own folders, through the one door (see `files`).

What is written follows no link. `replace_file` writes by a new file and a rename; `open_own` opens in place, where a
file has one name only. Both are for this user only (0600).

`make_folder` makes ``.helix`` and ``.helix-logs`` in a project, and tells git to ignore them: ddx refuses to work
beside uncommitted changes, and ddx of April commits whatever is in the work tree, so these files must be invisible to
both (docs/decisions/0021). The patterns go into ``info/exclude`` of the git folder that all work trees share, so that
no file of the project changes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from helix_tui.core.ground.files import (
    NAMES,
    SMALL_FILE,
    OpenFolder,
    RefusedFileError,
    StrPath,
    absolute,
    add_root,
    locked_folder,
    names_in,
    open_file,
    open_folder,
    put,
    root_of,
    status_of,
    writable,
)
from helix_tui.core.ground.trust.own_folders import require_used
from helix_tui.core.ground.trust.work_tree import common_dir_above

HEADING = "# helix-tui keeps these for itself; prompts of a project may be committed"

PATTERNS = ("**/.helix/*", "!**/.helix/prompts/", "**/.helix-logs/")
"""What git ignores, as gitignore(5) patterns."""

DATABASE = ("", "-wal", "-shm", "-journal")
"""Endings of the files that SQLite opens for one database."""


def prove(path: StrPath, *, endings: tuple[str, ...] = ("",)) -> None:
    """Check that a file may be written in place: absent, or regular, with one name, of this user or its folder's owner.

    Args:
        endings: what is added to the name for each file to check; `DATABASE` for one that SQLite opens.

    Raises:
        RefusedFileError: one of them is something else, or a link is on the way.
        OSError: there is no such folder.
    """
    folder, name = writable(path)
    for ending in endings:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(name + ending, dir_fd=folder.number, follow_symlinks=False)
            _check_own(folder, name + ending, status)


def _check_own(folder: OpenFolder, name: str, status: os.stat_result) -> None:
    why = ""
    if not stat.S_ISREG(status.st_mode):
        why = "a link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
    elif status.st_nlink > 1:
        why = "a hard link: the same file has another name, so replace it by a copy"
    elif status.st_uid not in (os.geteuid(), folder.status.st_uid):
        why = "a file of another user"
    if why:
        raise RefusedFileError(os.path.join(folder.path, name), why)


def open_own(path: StrPath, flags: int) -> int:
    """A descriptor of one of our own files that is written in place (a log, a lock), created if it is missing.

    Raises:
        RefusedFileError: see `prove`.
        OSError: it cannot be opened.
    """
    make_folder(Path(path).parent)
    folder, name = writable(path)
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # emptied only when it is proved
        descriptor = os.open(name, flags & ~os.O_TRUNC, 0o600, dir_fd=folder.number)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise RefusedFileError(path, "a link") from None
        raise
    try:
        status = os.fstat(descriptor)
        _check_own(folder, name, status)
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
        # a program may inherit it
        os.set_blocking(descriptor, True)
    except BaseException:  # the descriptor is closed, and the exception raised again
        os.close(descriptor)
        raise
    return descriptor


def append_file(path: StrPath, data: bytes) -> None:
    """Append to one of our own files, creating it if it is missing.

    Raises:
        RefusedFileError: see `prove`.
        OSError: it cannot be written.
    """
    with open(open_own(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
        file.write(data)


def replace_file(path: StrPath, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically, creating its folder if it is missing.

    Raises:
        OSError: it cannot be written, or a link is on the way.
    """
    make_folder(Path(path).parent)
    put(path, data, mode)


def rename(path: StrPath, name: str) -> None:
    """Give a file another name in its folder, replacing what has that name.

    Raises:
        OSError: it cannot be renamed, or a link is on the way.
    """
    folder, old = writable(path)
    os.replace(old, name, src_dir_fd=folder.number, dst_dir_fd=folder.number)


def remove(path: StrPath) -> None:
    """Remove a file, or a link itself, if it is there.

    Raises:
        OSError: it cannot be removed, or a link is on the way.
    """
    with contextlib.suppress(FileNotFoundError):
        folder, name = writable(path)
        os.unlink(name, dir_fd=folder.number)


def sync_folder(folder: StrPath) -> None:
    """Write a folder's names to disk: a new file can be lost in a crash until then.

    Raises:
        OSError: it cannot be written.
    """
    opened = open_folder(absolute(folder))
    os.fsync(opened.number)


# --- our own folders ----------------------------------------------------------------------------------------


def make_folder(folder: Path) -> Path:
    """Create a folder and its missing parents, without following a link below a root.

    Every first write below ``.helix`` or ``.helix-logs`` comes through here: they are for this user only, and hidden
    from git.

    Raises:
        NotUsed: it is in a folder that may not be used.
        OSError: the folder cannot be created, or a link is on the way.
    """
    require_used(folder)
    path = absolute(folder)
    root = root_of(path)
    if root is None:
        os.makedirs(path, 0o700, exist_ok=True)
        return folder
    os.makedirs(root, exist_ok=True)
    at, own = root, False
    for part in path[len(root) :].split("/")[1:]:
        at, own = f"{at}/{part}", own or part in NAMES
        parent, name = writable(at)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700 if own else 0o777, dir_fd=parent.number)
        if name in NAMES:
            writable(f"{at}/.gitignore")
            _close_to_others(open_folder(at))
            _hide(Path(at))
    writable(f"{path}/x")
    return folder


def _close_to_others(folder: OpenFolder) -> None:
    if folder.status.st_mode & 0o077 and folder.status.st_uid == os.geteuid():
        os.fchmod(folder.number, 0o700)


def _hide(own: Path) -> None:
    """Hide one of the console's folders from git; without a usable exclude file, by a ``.gitignore`` in it."""
    common_dir = common_dir_above(own.parent)
    if common_dir is not None:
        with contextlib.suppress(OSError):
            # the line says that a database was made after it: for one that is there already it is not added
            if "helix.db" not in names_in(own) or not _missing(common_dir / "info" / "exclude")[1]:
                exclude(common_dir)
                return
    if ".gitignore" not in names_in(own):
        put(own / ".gitignore", b"/*\n!/prompts/\n" if own.name == ".helix" else b"*\n", 0o600)


def exclude(common_dir: Path) -> bool:
    """Add the console's folders to a repository's ``info/exclude``; return whether anything was written.

    Existing lines stay. Concurrent processes add the patterns once. A reader sees the old file or the new one.

    Raises:
        OSError: it cannot be read or written, or is a link: its target may be anybody's.
    """
    add_root(common_dir)
    path = make_folder(common_dir / "info") / "exclude"
    prove(path)
    with locked_folder(path.parent):
        data, missing = _missing(path)
        if missing:
            gap = b"\n" if data and not data.endswith(b"\n") else b""
            status = status_of(path)
            mode = 0o644 if status is None else stat.S_IMODE(status.st_mode)
            put(path, data + gap + "\n".join([HEADING, *missing, ""]).encode(), mode)
    return bool(missing)


def _missing(path: Path) -> tuple[bytes, list[str]]:
    """The content of an exclude file, and the patterns that it does not have yet.

    Raises:
        OSError: it cannot be read, or is too large.
    """
    data = b""
    with contextlib.suppress(FileNotFoundError), open_file(path) as file:
        data = file.read(SMALL_FILE + 1)
    if len(data) > SMALL_FILE:
        raise OSError(f"{path} has more than {SMALL_FILE} bytes")
    lines = {line.strip() for line in data.decode("utf-8", "replace").split("\n")}
    return data, [pattern for pattern in PATTERNS if pattern not in lines]
