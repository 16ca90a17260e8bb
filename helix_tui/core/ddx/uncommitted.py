"""What nobody has committed, and which of it ddx would not work beside.

Releases since May begin no attempt while the work tree has changes that are no bookkeeping of theirs (they
end with ``checkpoint_dirty`` and exit code 0); April commits whatever is there before the next attempt. The
rules for what counts are those of ``preDispatchCheckpointIgnoredPath`` and ``…AllowedPath`` in ddx of May and
August together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from helix_tui.core.ddx.dialect import BOOKKEEPING
from helix_tui.core.ground.process import run

_FOLDERS = tuple(path for path in BOOKKEEPING if path.endswith("/"))
_LOCKS = (".ddx/.git-tracker.lock.", ".ddx/beads.lock.")
_SKILLS = (".crush/skills/", ".claude/skills/", ".agents/skills/")
_CAP = 4 << 20


def is_bookkeeping(path: str) -> bool:
    """Whether ddx takes a change of this file, named from the root on with ``/``, for its own."""
    return (
        path in BOOKKEEPING
        or path.startswith((*_FOLDERS, ".ddx/beads.jsonl.tmp-"))
        or (path.startswith(_LOCKS) and path.endswith(".lock"))
    )


def uncommitted(root: Path, paths: Iterable[str] = (), *, timeout: float = 20.0) -> tuple[str, ...] | None:
    """Files that are changed, staged or unknown to git, in git's order; None where git does not answer.

    Args:
        root: the work tree.
        paths: look at these alone.
        timeout: seconds that git may take.
    """
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--")
    raw = _git(root, (*words, *(paths or (".",))), timeout)
    if raw is None:
        return None
    records = [record for record in raw.split("\0") if len(record) > 3]
    return tuple(dict.fromkeys(record[3:] for record in records))


def implementation_changes(root: Path) -> tuple[str, ...] | None:
    """What ddx since May would refuse to begin beside; None where git does not answer."""
    found = uncommitted(root)
    if found is None:
        return None
    return tuple(path for path in found if not is_bookkeeping(path) and not _unfolded_skill(root, path))


def tracked(root: Path, paths: Sequence[str], *, timeout: float = 20.0) -> tuple[str, ...]:
    """Those files below some paths that git tracks."""
    raw = _git(root, ("ls-files", "-z", "--", *paths), timeout)
    return tuple(path for path in (raw or "").split("\0") if path)


def _unfolded_skill(root: Path, path: str) -> bool:
    """A skill that git knows as a link and some tool has put there as a folder: ddx passes over it."""
    if not path.startswith(_SKILLS):
        return False
    link = "/".join(path.split("/")[:3])
    staged = _git(root, ("ls-files", "--stage", "--", link), 20.0) or ""
    return staged.startswith("120000") and (root / link).is_dir()


def _git(root: Path, words: Sequence[str], timeout: float) -> str | None:
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    argv = ("git", "-C", os.fspath(root), *words)
    try:
        done = run(argv, env=env, timeout=timeout, cap=_CAP, stop_at_cap=True)
    except OSError:
        return None
    return None if done.rc != 0 and not done.truncated else done.stdout.decode("utf-8", "surrogateescape")
