"""Whether ``.helix`` and ``.helix-logs`` of a project may be used (docs/security.md).

A folder that a repository brings must not decide what the console believes, nor where it writes. One that is a link,
that git tracks, or that belongs to another user is not used: a path at which nothing can be takes its place, so that
readers find nothing there and writers are refused with the reason. The person may allow the last two.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

from helix_tui.core.ground import person
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import Stamp, names_in, read_bytes, stamp_of
from helix_tui.core.ground.text import clean_line

_MAX_INDEX = 512 << 20
_OBJECT_ID_BYTES = (20, 32)

_tracked: dict[Path, tuple[list[Stamp | None], list[str]]] = {}
"""A git folder -> the stamps of its indexes, and the paths in them that may be in folders of ours."""

_refused: dict[Path, NotUsed] = {}
"""A path at which nothing can be -> why it takes the place of a folder."""


class NotUsed(HelixError, OSError):
    """Something in a repository is not used: the reason, and what to do."""


def own_folder(root: Path, name: str, git_dir: Path | None) -> Path:
    """The folder of this name in a project; a path at which nothing can be if the folder may not be used."""
    refusal = why_unused(root, name, git_dir)
    if refusal is None:
        return root / name
    person.note(f"{refusal.message}. {refusal.advice}")
    nowhere = Path(os.devnull).joinpath(*root.absolute().parts[1:], name)
    _refused[nowhere] = refusal
    return nowhere


def require_used(path: Path) -> None:
    """Refuse a path in a folder that may not be used.

    Raises:
        NotUsed: `own_folder` gave another path in place of the folder.
    """
    for folder in (path, *path.parents) if _refused else ():
        if folder in _refused:
            raise _refused[folder]


def why_unused(root: Path, name: str, git_dir: Path | None) -> NotUsed | None:
    """Why a folder of ours may not be used, and what to do; None if it may."""
    folder = root / name
    try:
        status = os.lstat(folder)
    except OSError:
        status = None
    without = "the console works without memory and journal, and changes nothing"
    if status is not None and not stat.S_ISDIR(status.st_mode):
        what = "a link" if stat.S_ISLNK(status.st_mode) else "not a folder"
        return NotUsed(f"{clean_line(str(folder), 300)} is {what}: {without}", "Replace it by a folder.")
    brought = git_dir is not None and is_tracked(root, name, git_dir)
    foreign = status is not None and status.st_uid != os.geteuid()
    if not (brought or foreign) or person.allows(person.Allowed("folder", os.path.realpath(root), name)):
        return None
    what = "is tracked by git" if brought else "belongs to another user"
    return NotUsed(
        f"{clean_line(str(folder), 300)} {what}: {without}", "`helix-tui trust` allows it, if you know who wrote it."
    )


def is_tracked(root: Path, name: str, git_dir: Path) -> bool:
    """Whether git's index has anything of one of our folders but prompts, which are text for agents.

    The index is read without running git (docs/decisions/0021).
    """
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    inner = f"/{(root / name).relative_to(top)}".lower()
    return any(
        path == inner or (path.startswith(f"{inner}/") and not path.startswith(f"{inner}/prompts/"))
        for path in _paths_of_ours(git_dir)
    )


def _paths_of_ours(git_dir: Path) -> list[str]:
    """The paths in git's index that may be in folders of ours, below ``/`` and in lower case."""
    # a split index keeps most paths in other files
    indexes = [git_dir / name for name in names_in(git_dir) if name == "index" or name.startswith("sharedindex.")]
    stamps = [stamp_of(path) for path in indexes]
    if git_dir not in _tracked or _tracked[git_dir][0] != stamps:
        _tracked[git_dir] = stamps, [path for index in indexes for path in _listed(index)]
    return _tracked[git_dir][1]


def _listed(index: Path) -> list[str]:
    """The same of one file; a damaged one lists nothing, and git itself does not read it."""
    data = read_bytes(index, _MAX_INDEX) or b""
    # version 4 leaves out what a path shares with the one before it; the others have every path in full
    if data[7:8] != b"\4" and b".helix" not in data.lower():
        return []
    for id_bytes in _OBJECT_ID_BYTES:
        try:
            paths = _index_paths(data, id_bytes)
        except (ValueError, IndexError, struct.error):
            continue
        return [text for path in paths if "/.helix" in (text := f"/{os.fsdecode(path).lower()}")]
    return []


def _index_paths(data: bytes, id_bytes: int) -> list[bytes]:
    """All paths of an index (gitformat-index(5)).

    Raises:
        ValueError, IndexError, struct.error: damaged, or its object ids have another length.
    """
    version, count = struct.unpack_from(">II", data, 4)
    begin, paths = 12, [b""]
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", data, begin + 40 + id_bytes)
        at = begin + 42 + id_bytes + (2 if flags & 0x4000 else 0)
        dropped = len(paths[-1])
        if version == 4:
            dropped, at = _offset(data, at)
        end = data.index(0, at)
        path = paths[-1][: len(paths[-1]) - dropped] + data[at:end]
        if flags & 0xFFF != min(len(path), 0xFFF):
            raise ValueError("not the length of the path")
        paths.append(path)
        # entries of the other versions are padded to 8 bytes, with at least one NUL
        begin = end + 1 if version == 4 else end + 8 - (end - begin) % 8
    return paths


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number in git's offset encoding, and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1
