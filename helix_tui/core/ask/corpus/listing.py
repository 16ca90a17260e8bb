"""The files of a question: of a revision, of a work tree, or of a plain folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from helix_tui.core.ask.corpus.content import MAX_BYTES, blob_id
from helix_tui.core.ask.corpus.git import Git, GitFailed, TrackedFile
from helix_tui.core.ask.corpus.roles import left_out
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.opening import open_nonblocking

MAX_FOLDER_FILES = 200_000


class NothingToAsk(HelixError):
    """There are no files to ask about. The message says why and what to do."""


@dataclass(slots=True)
class Listing:
    """Files in order of path, and what was left out."""

    entries: list[TrackedFile]
    commit: str | None
    """The commit that the files are of or stand on; None before the first one and without git."""
    oid_digits: int = 40
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Source:
    """Where files come from, at one revision or in the work tree (``revision`` None)."""

    def __init__(self, root: Path, revision: str | None) -> None:
        self.root = root
        self.git: Git | None = Git(root)
        if not root.is_dir():
            raise NothingToAsk(f"{root} is not a folder: name one with -C")
        if not self.git.is_repository():
            self.git = None
            if revision is not None:
                raise NothingToAsk(f"{root} is not a git repository, so it has no revision {revision}: ask without one")
        self.revision = revision
        if self.git is not None and revision is None and self.git.is_bare():
            self.revision = "HEAD"

    def list(self) -> Listing:
        """The files as they are now.

        Raises:
            NothingToAsk: the revision does not exist.
            GitFailed: git would not answer.
        """
        if self.git is None:
            entries, notes = _walk(self.root)
            return _sift(Listing(entries, None, notes=notes))
        if self.revision is None:
            entries = self.git.tracked()
            return _sift(Listing(entries, self.git.commit_of("HEAD"), _digits(entries)))
        commit = self.git.commit_of(self.revision)
        if commit is None:
            raise NothingToAsk(f"{self.root} has no revision {self.revision}: `git log --oneline` shows what there is")
        entries = self.git.tree(commit)
        return _sift(Listing(entries, commit, _digits(entries)))

    def read(self, entries: Iterable[TrackedFile], digits: int) -> Iterator[tuple[TrackedFile, str, bytes | int]]:
        """(entry, blob id, bytes) of each file, the size in place of the bytes where it is too large.

        A file that cannot be read (gone, no permission, not checked out) is left out.
        """
        if self.git is not None and self.revision is not None:
            by_oid: dict[str, TrackedFile] = {}
            for entry in entries:
                by_oid.setdefault(entry.oid, entry)
            for oid, blob in self.git.blobs(list(by_oid), cap=MAX_BYTES):
                yield by_oid[oid], oid, blob
            return
        for entry in entries:
            data = read_file(self.root, entry.path)
            if isinstance(data, int):
                yield entry, entry.oid or f"large-{data}", data
            elif data is not None:
                yield entry, blob_id(data, digits), data

    def text(self, path: str, oid: str) -> bytes | None:
        """The bytes of one file of the listing; None where it cannot be read."""
        if self.git is not None and self.revision is not None:
            blob = next(self.git.blobs([oid], cap=MAX_BYTES), (oid, None))[1]
            return blob if isinstance(blob, bytes) else None
        data = read_file(self.root, path)
        return data if isinstance(data, bytes) else None


def read_file(root: Path, path: str) -> bytes | int | None:
    """The bytes of a regular file below a folder, its size where it is too large, None where it cannot be
    read.

    A symbolic link is not followed: it may lead out of the repository, or in a circle.
    """
    name = os.path.join(root, path)
    try:
        facts = os.lstat(name)
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_size > MAX_BYTES:
            return facts.st_size
        with open(name, "rb", opener=open_nonblocking) as file:
            return file.read(MAX_BYTES)
    except (OSError, ValueError):
        return None


def _sift(listing: Listing) -> Listing:
    """Leave out by path what no question is about."""
    kept = []
    for entry in listing.entries:
        reason = left_out(entry.path)
        if reason is None:
            kept.append(entry)
        else:
            listing.skipped.append((entry.path, reason))
    listing.entries = kept
    return listing


def _digits(entries: list[TrackedFile]) -> int:
    return next((len(entry.oid) for entry in entries if entry.oid), 40)


def _walk(root: Path) -> tuple[list[TrackedFile], list[str]]:
    """The files below a folder that is no repository; links and hidden folders are not entered."""
    found: list[TrackedFile] = []
    notes = [f"{root} is not a git repository: every file below it was read, and there is no history"]
    for folder, folders, files in os.walk(root, onerror=None, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and left_out(f"{name}/x") is None)
        place = os.path.relpath(folder, root)
        found += [TrackedFile(name if place == "." else f"{place}/{name}", "") for name in files]
        if len(found) > MAX_FOLDER_FILES:
            notes.append(f"only the first {MAX_FOLDER_FILES:,} files were read")
            break
    return sorted(found[:MAX_FOLDER_FILES], key=lambda entry: entry.path), notes


__all__ = ["GitFailed", "Listing", "NothingToAsk", "Source", "read_file"]
