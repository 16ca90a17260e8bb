"""Read a repository with git: its files at a revision or in the work tree, their bytes, its past commits.

`core.ground.git` runs git itself. Paths are NUL-terminated, so that a newline or a quote in a name does no harm.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ground import log as logs
from helix_tui.core.ground.git import GitFailed, read_git
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.processes.start import PIPE, Process, start
from helix_tui.core.ground.trust.git_words import reading_git

TIMEOUT_S = 60.0
_CAP = 1 << 30
"""Maximum bytes of one answer: the names of all files, or the content of a batch of them."""

_BATCH_BYTES = 32 << 20
REGULAR = ("100644", "100755")


class TrackedFile(Struct, frozen=True):
    """A regular file that git tracks."""

    path: str
    oid: str
    """Git's id of the content; empty if the content in the work tree differs from the index."""


class Commit(Struct, frozen=True):
    """A past commit: its message and the files it changed."""

    sha: str
    subject: str
    body: str
    files: tuple[str, ...]


class Git:
    """One repository, read-only."""

    def __init__(self, root: Path, *, timeout: float = TIMEOUT_S) -> None:
        self.root = root
        self._timeout = timeout

    def is_repository(self) -> bool:
        """Whether this is a git repository."""
        return self._run("rev-parse", "--git-dir", check=False).rc == 0

    def is_bare(self) -> bool:
        """Whether there is no work tree to read."""
        return self._text("rev-parse", "--is-bare-repository") == "true"

    def commit_of(self, revision: str) -> str | None:
        """The commit that a revision names; None if there is none, as before the first commit."""
        # git would take it for an option
        if not revision or revision.startswith("-") or "\0" in revision:
            return None
        done = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
        return done.stdout.decode("ascii", "replace").strip() or None if done.rc == 0 else None

    def tracked(self) -> list[TrackedFile]:
        """The tracked regular files of the work tree, in order of path."""
        # for a modified file the id in the index is not that of the content read here
        changed = set(_split(self._run("ls-files", "-z", "--modified").stdout))
        entries = {}
        for record in _split(self._run("ls-files", "-z", "--stage").stdout):
            mode, oid, path = _staged(record)
            if mode in REGULAR:
                entries[path] = TrackedFile(path, "" if path in changed else oid)
        return [entries[path] for path in sorted(entries)]

    def tree(self, commit: str) -> list[TrackedFile]:
        """The regular files of a commit below our folder, in order of path."""
        entries = []
        for record in _split(self._run("ls-tree", "-r", "-z", commit).stdout):
            facts, _, path = record.partition("\t")
            mode, _, oid = facts.split(" ", 2)
            if mode in REGULAR:
                entries.append(TrackedFile(path, oid))
        return sorted(entries, key=lambda entry: entry.path)

    def sizes(self, oids: Sequence[str]) -> dict[str, int]:
        """Bytes of each blob; missing ones (in a partial clone) are absent."""
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        answer = self._run("cat-file", "--batch-check", "--buffer", stdin=asked).stdout
        rows = (line.split() for line in answer.decode("ascii", "replace").splitlines())
        return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}

    def blobs(self, oids: Sequence[str], *, cap: int) -> Iterator[tuple[str, bytes | int]]:
        """Each blob's bytes, or its size if that is over ``cap``; missing ones are left out."""
        sizes = self.sizes(oids)
        batch: list[str] = []
        room = _BATCH_BYTES
        for oid in oids:
            size = sizes.get(oid)
            if size is None:
                continue
            if size > cap:
                yield oid, size
                continue
            # git's whole answer to a batch is held in memory
            if size > room and batch:
                yield from self._batch(batch)
                batch, room = [], _BATCH_BYTES
            batch.append(oid)
            room -= size
        yield from self._batch(batch)

    def _batch(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        if not oids:
            return
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        data = self._run("cat-file", "--batch", "--buffer", stdin=asked).stdout
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            row = data[at:end].split()
            at = end + 1
            # for a missing blob git prints `<id> missing` and no content
            if len(row) == 3:
                size = int(row[2])
                yield row[0].decode("ascii"), data[at : at + size]
                at += size + 1

    def ancestors(self, commit: str, limit: int) -> list[str]:
        """The newest ancestors of a commit, itself first, without merges."""
        return self._text("rev-list", "--no-merges", f"--max-count={limit}", commit).split()

    def commits(self, shas: Iterable[str]) -> Iterator[Commit]:
        """Message and changed files of some commits, in the order asked."""
        asked = "".join(f"{sha}\n" for sha in shas).encode()
        if not asked:
            return
        log = self._run(
            # no diff driver, no textconv, as these run programs; each field ends with a mark, as a body has lines
            "log", "--stdin", "--no-walk=unsorted", "--no-renames", "--no-ext-diff", "--no-textconv",
            # paths are relative to our folder, which may be below git's root, as are those of the work tree
            "--name-only", "--relative", "-z", "--format=%x01%H%x02%s%x02%b%x02", stdin=asked,
        ).stdout  # fmt: skip
        for record in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
            fields = record.split("\x02", 3)
            if len(fields) == 4:
                files = tuple(path for path in fields[3].strip("\n\0").split("\0") if path.strip("\n"))
                yield Commit(fields[0], fields[1], fields[2], tuple(path.lstrip("\n") for path in files))

    def _text(self, *words: str) -> str:
        return self._run(*words).stdout.decode("utf-8", "replace").strip()

    def _run(self, *words: str, stdin: bytes = b"", check: bool = True) -> Finished:
        done = read_git(self.root, *words, timeout=self._timeout, cap=_CAP, given=stdin, check=check)
        if done.truncated:
            raise GitFailed(f"git {words[0]} prints over {_CAP >> 20} MiB: ask about a part of this repository")
        return done


class BlobReader:
    """Reads blobs one by one from one ``git cat-file --batch``, started with the first and again if it has ended.

    A process for each would take a hundred times as long. Not thread-safe.
    """

    def __init__(self, root: Path, *, timeout: float = TIMEOUT_S) -> None:
        self._argv, self._env = reading_git(root, "cat-file", "--batch")
        self._timeout = timeout
        self._git: Process | None = None
        self.close: Callable[[], object] = lambda: None
        """End the process; a later read starts another."""

    def read(self, oid: str, *, cap: int) -> bytes | None:
        """A blob's bytes; None if it is missing, longer than ``cap``, or git does not answer in time.

        Raises:
            GitFailed: git cannot be started.
        """
        git = self._git if self._git is not None and self._git.poll() is None else self._start()
        assert git.stdin is not None
        assert git.stdout is not None
        # reading a pipe has no time limit: only the end of the process ends it
        timer = threading.Timer(self._timeout, git.kill)
        timer.start()
        try:
            git.stdin.write(f"{oid}\n".encode())
            git.stdin.flush()
            row = git.stdout.readline().split()
            if len(row) != 3:
                return None
            size = int(row[2])
            if size > cap:
                self.close()  # rather than reading all of it
                return None
            data = git.stdout.read(size + 1)[:-1]
            return data if len(data) == size and row[1] == b"blob" else None
        except (OSError, ValueError) as error:
            logs.logger("ask").warning("git cat-file: %s", error)
            self.close()
            return None
        finally:
            timer.cancel()

    def _start(self) -> Process:
        self.close()
        try:
            git = start(self._argv, env=self._env, stdin=PIPE, stdout=PIPE)
        except FileNotFoundError as error:
            raise GitFailed("git is not installed here", "Install git.") from error
        except OSError as error:
            raise GitFailed(f"git cat-file cannot run: {error}") from error
        logs.logger("ask").info("%s: started as %d", logs.masked(self._argv), git.pid)
        self._git, self.close = git, weakref.finalize(self, _end, git)
        return git


def _end(process: Process) -> None:
    process.kill()
    with contextlib.suppress(OSError), process:  # input still pending
        pass


def _split(data: bytes) -> list[str]:
    return [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0") if part]


def _staged(record: str) -> tuple[str, str, str]:
    facts, _, path = record.partition("\t")
    mode, oid, _ = facts.split(" ", 2)
    return mode, oid, path
