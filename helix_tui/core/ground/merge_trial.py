"""Try merges outside a project: nothing of it is written, and none of its settings, hooks or filters apply.

A bare repository in a temporary folder borrows the project's objects. ``git merge-tree --write-tree`` (git 2.38) merges
two commits there without a work tree; what it makes goes with the folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.text import clean_line, counted

MAX_NAMED = 3
TRIAL_S = 10.0
"""Seconds that one merge may take."""


class TriedMerge(Struct, frozen=True):
    """Whether a change merges into the branch as it is now."""

    branch: str
    head: str = ""
    """The commit of the branch."""
    conflicts: tuple[str, ...] = ()
    """The files with conflicts."""

    def __str__(self) -> str:
        names = ", ".join(clean_line(name, 120) for name in self.conflicts[:MAX_NAMED])
        rest = counted(len(self.conflicts) - MAX_NAMED, "more file")
        return f"conflicts with {self.branch} in {names}{f' and {rest}' if len(self.conflicts) > MAX_NAMED else ''}"


class MergeTrials:
    """Whether changes merge into the branch as it is now: each pair of commits is tried once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tried: dict[tuple[str, str], TriedMerge | None] = {}

    def look(self, refs: Mapping[str, str]) -> dict[str, TriedMerge]:
        """The merges of named changes, each given by a ref or a commit; what cannot be tried is left out."""
        asked = "".join(f"{ref}^{{commit}}\n" for ref in ("HEAD", *refs.values())).encode()
        words = ("cat-file", "--batch-check=%(objectname)")
        resolved = ask_git(self._root, *words, given=asked) if refs else None
        head, *commits = resolved.out.splitlines() if resolved is not None else ("",)
        pairs = {name: (head, commit) for name, commit in zip(refs, commits, strict=False) if " " not in commit}
        self._tried = {pair: self._tried[pair] for pair in pairs.values() if pair in self._tried}
        missing = set(pairs.values()) - self._tried.keys()
        self._tried |= dict.fromkeys(missing)
        if missing:
            with suppress(GitFailed, OSError), scratch(self._root) as place:
                for pair in missing:
                    self._tried[pair] = try_merge(self._root, place, *pair)
        return {name: tried for name, pair in pairs.items() if (tried := self._tried[pair]) is not None}


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A bare repository that borrows a project's objects.

    Raises:
        GitFailed: git cannot make it, or the project merges some files with programs of its own.
    """
    if ask_git(root, "config", "--get-regexp", r"^merge\..*\.driver$") is not None:
        raise GitFailed("this repository merges some files with a program of its own")
    asked = ("--path-format=absolute", "--show-object-format", "--git-path", "objects")
    kind, objects = read_git(root, "rev-parse", *asked).out.split("\n")[:2]
    with tempfile.TemporaryDirectory(prefix="helix-trial-") as folder:
        place = Path(folder)
        read_git(place, "init", "-q", "--bare", "--template=", f"--object-format={kind}")
        (place / "objects/info/alternates").write_text(f"{objects}\n")
        attributes = ask_git(root, "cat-file", "blob", "HEAD:.gitattributes")
        (place / "info").mkdir(exist_ok=True)
        (place / "info/attributes").write_bytes(attributes.stdout if attributes is not None else b"")
        yield place


def try_merge(root: Path, place: Path, ours: str, theirs: str, copies: Path | None = None) -> TriedMerge:
    """Try to merge two commits in a scratch repository.

    Args:
        copies: the folder in which the files with conflicts are written, with git's markers.

    Raises:
        GitFailed: this git cannot try, or the commits cannot be merged at all.
    """
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = read_git(place, *words, timeout=TRIAL_S, check=False)
    if done.rc not in (0, 1):
        raise GitFailed("this git cannot try a merge outside the work tree", "git 2.38 or later can.")
    tree, *names = done.out.rstrip("\0").split("\0")
    # a name that leads out of the folder is left out: git itself checks no such file out
    for name in names if copies is not None else ():
        blob = ask_git(place, "cat-file", "blob", f"{tree}:{name}")
        if blob is not None and copies is not None and ".." not in PurePosixPath(name).parts:
            copy = copies / name.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(blob.stdout)
    return TriedMerge(branch_of(root), ours, tuple(names))


def branch_of(root: Path) -> str:
    """The branch that is checked out, in a few words."""
    named = ask_git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return clean_line(named.out.strip(), 60) if named is not None else "the checked-out commit"
