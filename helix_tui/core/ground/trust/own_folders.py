"""Whether ``.helix`` and ``.helix-logs`` of a project may be used (docs/security.md).

A folder that a repository brings must not decide what the console believes, nor where it writes. One that is a link,
that git tracks, or that belongs to another user is not used: a path at which nothing can be takes its place, so that
readers find nothing there and writers are refused with the reason. The person may allow the last two.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import Stamp, names_in, read_bytes, stamp_of
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.git_words import reading_git

_MAX_INDEX = 512 << 20
_PATIENCE_S = 10.0

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
    """Whether git's index has anything of one of our folders but prompts, which are text for agents."""
    # a split index keeps most paths in other files
    indexes = [git_dir / file for file in names_in(git_dir) if file == "index" or file.startswith("sharedindex.")]
    return _is_in_index(root, name, tuple((path, stamp_of(path)) for path in indexes))


@lru_cache(maxsize=64)
def _is_in_index(root: Path, name: str, indexes: tuple[tuple[Path, Stamp | None], ...]) -> bool:
    """The answer for one state of the index; git is asked only where the bytes of a file may name the folder."""
    contents = [(read_bytes(path, _MAX_INDEX) or b"").lower() for path, _ in indexes]
    # version 4 leaves out what a path shares with the one before it; the others have every path in full
    if not any(b".helix" in content or content[7:8] == b"\4" for content in contents):
        return False
    from helix_tui.core.ground.processes.start import PIPE, TimeoutExpired, start  # most repositories need none

    words, env = reading_git(root, "ls-files", "-z", "--", f":(icase){name}", f":(icase,exclude){name}/prompts/*")
    try:
        with start(words, env=env, stdout=PIPE) as git:
            try:
                return bool(git.communicate(timeout=_PATIENCE_S)[0])
            except TimeoutExpired:
                git.kill()
                return True
    except OSError:
        return False
