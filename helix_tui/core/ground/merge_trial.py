"""Try merges outside a project: nothing of it is written, and none of its settings, hooks or filters apply.

A bare repository in a temporary folder borrows the project's objects. ``git merge-tree --write-tree`` (git 2.38) merges
two commits there without a work tree; what it makes goes with the folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType

from msgspec import Struct

from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.text import clean_line, counted

MAX_NAMED = 3
TRIAL_S = 10.0
"""Seconds that one merge may take."""

_WHO = ("-c", "user.name=helix-tui", "-c", "user.email=helix-tui@localhost")


class TriedMerge(Struct, frozen=True):
    """The result of a merge that was tried."""

    tree: str
    """Its tree; files with conflicts hold git's markers."""
    conflicts: tuple[str, ...] = ()
    """The files with conflicts."""


class MergeForecast(Struct, frozen=True):
    """Whether a change merges into the branch as it is now."""

    branch: str
    conflicts: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.conflicts:
            return f"merges cleanly into {self.branch}"
        names = ", ".join(clean_line(name, 120) for name in self.conflicts[:MAX_NAMED])
        rest = counted(len(self.conflicts) - MAX_NAMED, "more file")
        return f"conflicts with {self.branch} in {names}{f' and {rest}' if len(self.conflicts) > MAX_NAMED else ''}"


class MergeTrial:
    """A place to try merges of one project's commits; a context manager."""

    def __init__(self, root: Path) -> None:
        """Make the place.

        Raises:
            GitFailed: git cannot tell, or the project merges some files with programs of its own.
        """
        if ask_git(root, "config", "--get-regexp", r"^merge\..*\.driver$") is not None:
            raise GitFailed("this repository merges some files with a program of its own")
        asked = ("--path-format=absolute", "--show-object-format", "--git-path", "objects", "HEAD")
        kind, objects, self.head = read_git(root, "rev-parse", *asked).out.split("\n")[:3]
        self.branch = branch_of(root)
        self._folder = tempfile.TemporaryDirectory(prefix="helix-trial-")
        self._root = Path(self._folder.name)
        read_git(self._root, "init", "-q", "--bare", "--template=", f"--object-format={kind}")
        (self._root / "objects/info/alternates").write_text(f"{objects}\n")
        attributes = ask_git(self._root, "cat-file", "blob", f"{self.head}:.gitattributes")
        if attributes is not None:
            (self._root / "info").mkdir(exist_ok=True)
            (self._root / "info/attributes").write_bytes(attributes.stdout)

    def __enter__(self) -> MergeTrial:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._folder.cleanup()

    def merge(self, ours: str, theirs: str) -> TriedMerge:
        """Try to merge two commits.

        Raises:
            GitFailed: this git cannot try, or the commits cannot be merged at all.
        """
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
        done = read_git(self._root, *words, timeout=TRIAL_S, check=False)
        if done.rc not in (0, 1):
            raise GitFailed("this git cannot try a merge outside the work tree", "git 2.38 or later can.")
        tree, *names = done.out.rstrip("\0").split("\0")
        return TriedMerge(tree, tuple(names))

    def commit(self, tried: TriedMerge, ours: str, theirs: str) -> str:
        """A commit of a merge, on which the next one can be tried.

        Raises:
            GitFailed: git cannot write it.
        """
        words = ("commit-tree", tried.tree, "-p", ours, "-p", theirs, "-m", "trial")
        return read_git(self._root, *_WHO, *words).out.strip()

    def write_conflicts(self, tried: TriedMerge, folder: Path) -> None:
        """Write the files with conflicts below a folder.

        Raises:
            GitFailed: a file cannot be read, or its name leads out of the folder.
        """
        for name in tried.conflicts:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise GitFailed(f"{clean_line(name, 120)} is no name of a file in a work tree")
            blob = ask_git(self._root, "cat-file", "blob", f"{tried.tree}:{name}")
            if blob is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(blob.stdout)


def branch_of(root: Path) -> str:
    """The branch that is checked out, in a few words."""
    named = ask_git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return clean_line(named.out.strip(), 60) if named is not None else "the checked-out commit"


class MergeForecasts:
    """Whether changes merge into the branch as it is now: each pair of commits is tried once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tried: dict[tuple[str, str], MergeForecast | None] = {}

    def look(self, refs: Mapping[str, str]) -> dict[str, MergeForecast]:
        """The forecasts for named changes, each given by a ref or a commit; unknown ones are left out."""
        asked = "".join(f"{ref}^{{commit}}\n" for ref in ("HEAD", *refs.values()))
        words = ("cat-file", "--batch-check=%(objectname)")
        resolved = ask_git(self._root, *words, given=asked.encode()) if refs else None
        if resolved is None:
            return {}
        head, *commits = resolved.out.split("\n")[: len(refs) + 1]
        pairs = {name: (head, commit) for name, commit in zip(refs, commits, strict=False) if " " not in commit}
        self._tried = {pair: self._tried[pair] for pair in pairs.values() if pair in self._tried}
        if missing := [pair for pair in dict.fromkeys(pairs.values()) if pair not in self._tried]:
            self._try(missing)
        return {name: told for name, pair in pairs.items() if (told := self._tried[pair]) is not None}

    def _try(self, pairs: list[tuple[str, str]]) -> None:
        self._tried |= dict.fromkeys(pairs)
        # what cannot be tried stays unknown: the merge itself will show it
        with suppress(GitFailed, OSError), MergeTrial(self._root) as trial:
            for ours, theirs in pairs:
                with suppress(GitFailed):
                    self._tried[ours, theirs] = MergeForecast(trial.branch, trial.merge(ours, theirs).conflicts)
