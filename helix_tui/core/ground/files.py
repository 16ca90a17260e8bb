"""The one door to files: whatever is read below a repository is opened here, what is written in `writes`.

A repository is data that somebody else wrote. `add_root` says where one begins; a path below it is opened component by
component, from a folder that was proved, and reaches regular files only. A link is read as its target where that lies
in the same work tree, else it counts as absent. A path below no root is the person's own: it is opened plainly, but
never waited for.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

StrPath = str | os.PathLike[str]

Stamp = tuple[int, int, int]
"""Identifies one state of a file: modification time, size, inode."""

Stamps = Mapping[str, Stamp | None]
"""The stamps of some files, by path; None for one that is gone."""

MAX_DOCUMENT = 16 << 20
"""Maximum bytes of a document; DDx's largest are about one megabyte."""

NAMES = (".helix", ".helix-logs")
"""The console's own folders in a project."""

SMALL_FILE = 1 << 20
_MAX_LINKS = 20
_MAX_FOLDERS = 32
# ten of the longest ticks that Linux has (10 ms, at 100 Hz)
_SETTLED_NS = 100_000_000

_LINK_ERRORS = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)
"""What systems answer where a link is not to be followed."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RefusedFileError(OSError):
    """A file or name that is not opened, though it may be there; `strerror` says why."""

    def __init__(self, path: StrPath, why: str) -> None:
        super().__init__(errno.EPERM, why, os.fspath(path))


# --- roots and names ----------------------------------------------------------------------------------------

_roots: dict[str, str] = {}
"""Folders that links must not leave: the path by which one is named to its real path."""


def add_root(folder: StrPath) -> None:
    """Open what is below this folder component by component from now on. It may itself be reached by links."""
    named = os.path.abspath(folder)
    real = os.path.realpath(named)
    _roots[named] = _roots[real] = real


def leads_down(name: str) -> bool:
    """Whether a name that a repository gives is a path below the folder to which it is relative."""
    return bool(name) and not name.startswith("/") and "\0" not in name and ".." not in name.split("/")


def below(root: Path, name: str) -> Path:
    """The path of a file that a repository names. Every function here refuses it unless the name leads down."""
    return root / name if leads_down(name) else root / ".." / name.lstrip("/")


def absolute(path: StrPath) -> str:
    """The absolute form of a path, links unresolved.

    Raises:
        RefusedFileError: it has ``..``: with links on the way nobody can say where that leads.
    """
    text = os.fspath(path)
    if ".." in text and ".." in text.split("/"):
        raise RefusedFileError(text, "a path with ..")
    return os.path.abspath(text)


def path_part(name: str) -> str:
    """An id, as the name of one file or folder.

    Raises:
        RefusedFileError: it is empty, begins with a dot, or has a slash or a control character.
    """
    if not name or name[0] == "." or "/" in name or not name.isprintable() or len(os.fsencode(name)) > 200:
        raise RefusedFileError(name, "this id cannot be the name of a file")
    return name


def root_of(path: str) -> str | None:
    """The nearest root that a path is below or at; for a path of our own folders the folder that holds them."""
    folder, own = path, None
    while folder:
        if folder in _roots:
            return folder
        folder, _, name = folder.rpartition("/")
        if name in NAMES:
            own = folder
    return own


# --- folders ------------------------------------------------------------------------------------------------


class OpenFolder:
    """A folder that is open, and closed with its last user.

    Attributes:
        path: its real path; below a root it is the way by which it was opened.
    """

    __slots__ = ("number", "path", "status")

    def __init__(self, number: int, path: str) -> None:
        self.number, self.path = number, path
        self.status = os.fstat(number)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)

    def is_at(self, path: str) -> bool:
        """Whether a path still leads to this folder."""
        try:
            return os.path.samestat(os.stat(path), self.status)
        except OSError:
            return False


_folders: dict[str, OpenFolder] = {}
"""The folders used last, by path; each was proved when it was opened."""


def open_folder(path: str, links: int = 0) -> OpenFolder:
    """Open a folder by its absolute path.

    Raises:
        OSError: it cannot be opened, is no folder, or is a link to outside.
    """
    root = root_of(path)
    if root is None:
        return OpenFolder(os.open(path, FOLDER_FLAGS), path)
    steps: list[str] = []
    while (folder := _known(path)) is None and path != root:
        path, _, name = path.rpartition("/")
        steps.append(name)
    if folder is None:
        real = _real_root(root)
        folder = _remember(root, OpenFolder(os.open(real, FOLDER_FLAGS | os.O_NOFOLLOW), real))
    for name in reversed(steps):
        path = f"{path}/{name}"
        try:
            number = os.open(name, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder.number)
        except OSError as error:
            if error.errno not in _LINK_ERRORS:
                raise
            folder = open_folder(_target(folder, name, links), links + 1)
        else:
            folder = OpenFolder(number, f"{folder.path}/{name}")
        _remember(path, folder)
    return folder


def _known(path: str) -> OpenFolder | None:
    folder = _folders.get(path)
    return folder if folder is not None and folder.is_at(path) else None


def _remember(path: str, folder: OpenFolder) -> OpenFolder:
    if len(_folders) >= _MAX_FOLDERS:
        # a folder in use stays open: its user holds it
        _folders.clear()
    _folders[path] = folder
    return folder


def _real_root(root: str) -> str:
    return _roots.get(root) or os.path.realpath(root)


def _target(folder: OpenFolder, name: str, links: int) -> str:
    """The real path to which a link below a root leads.

    Raises:
        OSError: it leads out of the work tree, into git's folder, or through too many links.
    """
    link = os.path.join(folder.path, name)
    target = os.path.normpath(os.path.join(folder.path, os.readlink(name, dir_fd=folder.number)))
    if links >= _MAX_LINKS:
        raise RefusedFileError(link, "a link with too many links behind it")
    if ".git" in target.split("/") and ".git" not in folder.path.split("/"):
        raise RefusedFileError(link, "a link into git's folder")
    for named, real in tuple(_roots.items()):
        # only roots that hold the link itself: one project's link into another is one to outside
        if _within(folder.path, real) and _within(target, named):
            return real + target[len(named) :]
    raise RefusedFileError(link, "a link to outside the repository")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


# --- reading ------------------------------------------------------------------------------------------------


def _open(path: StrPath, links: int = 0) -> int:
    text = absolute(path)
    root = root_of(text)
    if root is None or root == text:
        descriptor = os.open(text, _READ)
    else:
        folder, name = open_folder(os.path.dirname(text), links), os.path.basename(text)
        try:
            descriptor = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder.number)
        except OSError as error:
            if error.errno not in _LINK_ERRORS:
                raise
            return _open(_target(folder, name, links), links + 1)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RefusedFileError(text, "not a regular file")
    return descriptor


def open_file(path: StrPath, *, follow: bool = True) -> io.BufferedReader:
    """Open a regular file to read it. Who reads it sets a limit to the bytes.

    Args:
        follow: read a link inside the work tree as its target; below a root no other is read in any case.

    Raises:
        OSError: it cannot be opened, is no regular file, or is a link to outside.
        ValueError: not a path.
    """
    return open(_open(path, 0 if follow else _MAX_LINKS), "rb")


def read_status(path: StrPath, links: int = 0) -> os.stat_result:
    """What is known of a file or folder.

    Raises:
        OSError: there is none, or it is a link to outside.
        ValueError: not a path.
    """
    text = absolute(path)
    root = root_of(text)
    if root is None or root == text:
        return os.stat(text)
    folder, name = open_folder(os.path.dirname(text), links), os.path.basename(text)
    status = os.stat(name, dir_fd=folder.number, follow_symlinks=False)
    return read_status(_target(folder, name, links), links + 1) if stat.S_ISLNK(status.st_mode) else status


def status_of(path: StrPath) -> os.stat_result | None:
    """What is known of a file or folder; None if there is none, or it is a link to outside."""
    try:
        return read_status(path)
    except (OSError, ValueError):
        return None


def is_folder(path: StrPath) -> bool:
    """Whether a path leads to a folder."""
    status = status_of(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_file(path: StrPath) -> bool:
    """Whether a path leads to a regular file."""
    return stamp_of(path) is not None


def stamp_of(path: StrPath) -> Stamp | None:
    """The stamp of a regular file, or None if there is none."""
    status = status_of(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _settled(mtime_ns: int) -> bool:
    """Whether a later change must alter the stamp: the kernel's clock for it ticks only every few ms."""
    return abs(time.time_ns() - mtime_ns) > _SETTLED_NS


def settled(stamp: Stamp | None) -> bool:
    """Whether a change of the file after this stamp must alter the stamp."""
    return stamp is None or _settled(stamp[0])


def read_bytes(path: StrPath, limit: int = MAX_DOCUMENT) -> bytes | None:
    """The first ``limit`` bytes of a regular file, or None if it cannot be read."""
    try:
        with open_file(path) as file:
            # as large as the file: a reader makes room for all that it is told to read
            return file.read(min(limit, os.fstat(file.fileno()).st_size))
    except (OSError, ValueError):
        return None


def text_of(path: StrPath, limit: int = SMALL_FILE) -> str:
    """A small text file, at most ``limit`` bytes of it; "" if it cannot be read."""
    return (read_bytes(path, limit) or b"").decode("utf-8", "replace")


def read_last(path: StrPath, limit: int) -> bytes:
    """The last ``limit`` bytes of a file, starting at a line break; b"" if it cannot be read."""
    try:
        with open_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            data = file.read(limit)
    except (OSError, ValueError):
        return b""
    return data if size <= limit else data.partition(b"\n")[2]


def read_end(path: StrPath, limit: int) -> str:
    """The same of a text file."""
    return read_last(path, limit).decode("utf-8", "replace")


def is_locked(path: StrPath) -> bool | None:
    """Whether a process holds a lock on this file, as one does that has it as its output; None without a file."""
    try:
        # shared, so that two that ask at once do not take each other for the holder
        with open_file(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return None
    return False


def entries(folder: StrPath) -> list[tuple[str, bool]]:
    """The names in a folder, sorted, each with whether it is itself a folder, which a link is not.

    Raises:
        OSError: the folder cannot be listed, or is a link to outside.
    """
    # a descriptor of its own: one that is shared has one position for all who list it
    opened = open_folder(absolute(folder))
    number = os.open(".", FOLDER_FLAGS, dir_fd=opened.number)
    try:
        with os.scandir(number) as scan:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan)
    finally:
        os.close(number)


def names_in(folder: StrPath) -> list[str]:
    """The names in a folder, sorted; none where it cannot be listed."""
    try:
        return [name for name, _ in entries(folder)]
    except (OSError, ValueError):
        return []


def walk(folder: StrPath) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder from this one down, with the names of its folders and of everything else, sorted; through no link.

    As with os.walk, a caller that removes names of folders is not led into them.
    """
    todo = [os.fspath(folder)]
    while todo:
        path = todo.pop()
        try:
            listed = entries(path)
        except (OSError, ValueError):
            continue
        folders = [name for name, is_dir in listed if is_dir]
        yield path, folders, [name for name, is_dir in listed if not is_dir]
        todo += [os.path.join(path, name) for name in reversed(folders)]


def files_below(folder: StrPath) -> Iterator[tuple[Path, int]]:
    """The regular files below a folder, sorted, with their sizes; files that vanish meanwhile are skipped."""
    for parent, _, names in walk(folder):
        for name in names:
            path = Path(parent, name)
            stamp = stamp_of(path)
            if stamp is not None:
                yield path, stamp[1]


class Folder:
    """The names in a folder, listed again only when the folder changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._names: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Names in the folder, sorted; the same object as long as they are unchanged; empty if the folder is absent."""
        stamp = self._now()
        if stamp is None:
            self._stamp, self._names = None, ()
        elif stamp != self._stamp or not _settled(stamp[0]):
            names = tuple(names_in(self.path))
            # the same object as long as nothing changed: callers detect changes by identity
            if names != self._names:
                self._names = names
            self._stamp = stamp
        return self._names

    def stands(self) -> bool:
        """Whether the folder is unchanged since its names were last read."""
        return self._now() == self._stamp

    def _now(self) -> tuple[int, int] | None:
        status = status_of(self.path)
        return None if status is None else (status.st_mtime_ns, status.st_ino)


# --- writing (see `writes`) ------------------------------------------------------------------------------------


def writable(path: StrPath) -> tuple[OpenFolder, str]:
    """The folder of a file that is to be written, reached without a link, and the file's name in it.

    Raises:
        OSError: there is no such folder, or a link is on the way.
    """
    text = absolute(path)
    folder, name = open_folder(os.path.dirname(text)), os.path.basename(text)
    root = root_of(text)
    if root is not None and folder.path != _real_root(root) + os.path.dirname(text)[len(root) :]:
        raise RefusedFileError(text, "a link on the way to it, and what is written follows none")
    return folder, name


def put(path: StrPath, data: bytes, mode: int) -> None:
    """Replace a file atomically: a reader sees the old or the new content, never half of it.

    Raises:
        OSError: there is no such folder, it cannot be written, or a link is on the way.
    """
    folder, name = writable(path)
    draft = f".{name[:200]}.{os.urandom(6).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder.number)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            # without it a power cut may leave the new name on an empty file
            os.fsync(descriptor)
        os.replace(draft, name, src_dir_fd=folder.number, dst_dir_fd=folder.number)
    except BaseException:  # on ctrl+c too, leave no half-written file behind; the exception is raised again
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=folder.number)
        raise


@contextlib.contextmanager
def locked_folder(folder: StrPath) -> Iterator[None]:
    """Lock a folder against other processes of the console, without creating a lock file."""
    opened = open_folder(absolute(folder))
    descriptor = os.open(".", FOLDER_FLAGS, dir_fd=opened.number)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
