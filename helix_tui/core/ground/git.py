"""What git's own files say, read without running git: its folders, refs, configuration.

Source of the formats: gitrepository-layout(5), git-config(1).

Opening files that somebody else owns: what is under a name may be anything by now.
"""

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


_SMALL_FILE = 1 << 20


def git_dir_of(dot_git: Path) -> Path | None:
    """The git folder that a ``.git`` folder or file stands for; None where it is neither."""
    if dot_git.is_dir():
        return dot_git if (dot_git / "HEAD").exists() else None
    line = first_line(dot_git)
    if not line.startswith("gitdir: "):
        return None
    git_dir = Path(os.path.abspath(dot_git.parent / line[8:].strip()))
    return git_dir if git_dir.is_dir() else None


def common_dir_of(git_dir: Path) -> Path:
    """The git folder that all work trees of a repository share."""
    shared = first_line(git_dir / "commondir")
    return Path(os.path.abspath(git_dir / shared)) if shared else git_dir


def common_dir_above(folder: Path) -> Path | None:
    """The shared git folder of the repository that a folder is in; None outside of one."""
    for each in (folder, *folder.parents):
        git_dir = git_dir_of(each / ".git")
        if git_dir is not None:
            return common_dir_of(git_dir)
    return None


def configured(common_dir: Path, section: str, key: str) -> str:
    """A plain value of a repository's own configuration; "" where it is not set.

    Args:
        section: as git writes its heading, without brackets: ``ddx``, ``remote "origin"``.
        key: compared as git does, without regard to case.
    """
    inside, found = False, ""
    heading = f"[{section}]".replace(" ", "")
    for line in text_of(common_dir / "config").split("\n"):
        line = line.strip()
        if line.startswith("["):
            inside = line.replace(" ", "") == heading
        elif inside and line.partition("=")[0].strip().lower() == key.lower():
            found = line.partition("=")[2].strip().strip('"')
    return found


def origin_url(common_dir: Path) -> str:
    """The address of the remote ``origin``; "" where there is none."""
    return configured(common_dir, 'remote "origin"', "url")


def packed_ref(packed: Path, name: str) -> str | None:
    """The commit of a ref in ``packed-refs``."""
    wanted = f" {name}"
    for line in text_of(packed, limit=64 << 20).split("\n"):
        if line.endswith(wanted) and line[:1] not in "#^":
            return line[: -len(wanted)]
    return None


def first_line(path: Path) -> str:
    """The first line of a small text file, stripped; "" where it cannot be read."""
    return text_of(path).partition("\n")[0].strip()


def text_of(path: Path, limit: int = _SMALL_FILE) -> str:
    """A small text file, at most ``limit`` bytes of it; "" where it cannot be read."""
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            return (file.read(limit) or b"").decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
