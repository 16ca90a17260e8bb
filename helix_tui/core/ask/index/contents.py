"""The contents of an index: the files of one tree and its commits, read, stored and kept up to date."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from helix_tui.core.ask.corpus.git import TrackedFile
from helix_tui.core.ask.corpus.listing import Listing, Source, decode, split_lines
from helix_tui.core.ask.corpus.reader import Pieces
from helix_tui.core.ask.index.channels import Found
from helix_tui.core.ask.index.database import Database, PastRow, stored
from helix_tui.core.ask.index.reading import Raw, read_all, read_record
from helix_tui.core.ask.question import Question
from helix_tui.core.ask.records import Document, Progress, Refreshed, Tree
from helix_tui.core.ask.tokens import count_terms
from helix_tui.core.ground.text import counted

MOST_COMMITS = 4_000
"""Commits whose messages are read, the newest."""
_COMMITS_AT_ONCE = 500
_RECORDS_AT_ONCE = 200
_PIECES = 2_000
_TEXTS = 500
"""Files whose parts, and whose lines, are in memory."""
_NOTHING = Pieces("", 0, 0, [], [], [])

Report = Callable[[Progress], None]

_TREE_FILE = re.compile(r"(?:^|/)(?:[^/]*[-_.])?(?:tree|dag)[^/]*\.json$", re.IGNORECASE)


class Contents:
    """The files of one tree. One thread may ask while another refreshes."""

    def __init__(self, root: Path, path: Path | None, revision: str | None = None) -> None:
        """The contents of a folder, stored in a file, or in memory if ``path`` is None."""
        self.source = Source(root, revision)
        self._database = _open_database(path)
        self._lock = threading.RLock()
        self._skipped: list[tuple[str, str]] = []
        self._texts: dict[str, list[str]] = {}
        self._pieces: dict[str, Pieces] = {}
        self._searches: dict[Question, Found] = {}
        self._trees: list[Tree] | None = None
        self._version: tuple[int, int] | None = None
        """The state of the database for which the caches hold."""
        self.commit: str | None = None
        self.listed: int | None = None
        """Number of files in the repository, searched or not; None before the first refresh."""
        self.is_whole = False
        """Whether all of it has been read once."""

    def begin_with(self, path: Path) -> None:
        """Copy all of another index, to be brought up to date from there; nothing where that cannot be opened."""
        try:
            other = Database(path)
        except (OSError, sqlite3.Error):
            return
        try:
            self._database.begin_with(other)
        finally:
            other.close()

    def close(self) -> None:
        """Close the database, and stop the processes that read files."""
        with self._lock:
            self.source.close()
            self._database.close()

    def documents(self) -> list[Document]:
        """Every searchable file, in order of path."""
        with self._lock:
            rows = self._database.files("role <> 'record'")
        return [Document(row.path, row.role, row.language, row.lines, row.size, row.oid) for row in rows]

    def empty_reason(self) -> str:
        """Why the repository cannot be searched, in a sentence; empty if it can, and before a refresh."""
        with self._lock:
            if self.listed is None or self._database.count():
                return ""
            if not self.listed:
                what = "no file is tracked by git yet" if self.source.git is not None else "there is no file here"
                fix = ": `git add` the files to ask about" if self.source.git is not None else ""
                return f"Nothing is indexed: {what}{fix}."
            reasons = Counter(reason for _, reason in self._skipped)
            said = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
            unread = self.listed - len(self._skipped)
            parts = [said] if said else []
            parts += [f"{unread:,} cannot be read (permissions, or not checked out)"] if unread > 0 else []
            files = f"{self.listed:,} file" if self.listed == 1 else f"{self.listed:,} files"
            return f"Nothing is indexed: no searchable text in {files} ({'; '.join(parts)})."

    def partial(self) -> str:
        """That only a part of the repository is read so far, in a sentence; empty once all of it has been."""
        if self.is_whole:
            return ""
        return f"answered from a part of the repository: {counted(self._database.count(), 'file')} read so far"

    def notes(self) -> tuple[str, ...]:
        """What is not searched although it may be expected, one sentence each."""
        with self._lock:
            large = [path for path, reason in self._skipped if reason == "too large"]
        if not large:
            return ()
        more = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
        return (
            f"{large[0]}{more} {'are' if more else 'is'} too large to be searched (data over 1 MB, text over 8 MB)",
        )

    def skipped(self) -> list[tuple[str, str]]:
        """(path, reason) of every tracked file that is not searched."""
        return list(self._skipped)

    # -- refreshing --------------------------------------------------------------------------------

    def refresh(self, progress: Report | None = None, *, stop: Callable[[], bool] = lambda: False) -> Refreshed:
        """Update the index: list the files, drop those that are gone, read new ones.

        A damaged index is rebuilt; one that cannot be written continues in memory.

        Raises:
            NothingToAsk, GitFailed: see `open_index`.
        """
        report = progress or (lambda _: None)
        try:
            return self._refresh(report, stop)
        # before its parent class: a file that cannot be written is not damaged
        except sqlite3.OperationalError as error:
            with self._lock:
                self._database.close()
                self._database = Database(None)
            done = self._refresh(report, stop)
            return replace(done, notes=(*done.notes, f"the index is kept in memory only: {error}"))
        except sqlite3.DatabaseError:
            with self._lock:
                self._database.renew()
            return self._refresh(report, stop)

    def _refresh(self, report: Report, stop: Callable[[], bool]) -> Refreshed:
        begun = time.monotonic()
        report(Progress("list", 0, 0, 0.0))
        listing = self.source.list()
        with self._lock:
            known = self._database.known()
            self._database.drop(sorted(known.keys() - {entry.path for entry in listing.entries}))
        unread = [entry for entry in listing.entries if not entry.oid or known.get(entry.path) != entry.oid]
        parsed = self._read(unread, listing, known, begun, report, stop) if unread else 0
        self._read_history(listing, begun, report)
        with self._lock:
            self.commit = listing.commit
            self._skipped = sorted([*listing.skipped, *self._database.refused()])
            self.listed = len(listing.entries) + len(listing.skipped)
            files = self._database.count()
            self.is_whole = not stop()
        seconds = time.monotonic() - begun
        report(Progress("done", files, files, seconds))
        notes = (*listing.notes, *self.notes())
        return Refreshed(files, parsed, len(self._skipped), seconds, self._database.rebuilt, notes)

    def _read(
        self,
        unread: list[TrackedFile],
        listing: Listing,
        known: dict[str, str],
        begun: float,
        report: Report,
        stop: Callable[[], bool],
    ) -> int:
        """Read files and store them batch by batch, so that questions see them soon."""
        missing = {entry.path for entry in unread}

        def raws() -> Iterator[Raw]:
            for entry, oid, data in self.source.read(unread, listing.oid_digits):
                missing.discard(entry.path)
                # a file that git has no id for may still be as it was read
                if known.get(entry.path) != oid:
                    yield Raw(stored(entry.path), oid, data)

        new = 0
        for batch in read_all(raws(), stop):
            with self._lock:
                self._database.take(batch)
            new += len(batch)
            report(Progress("parse", min(new, len(unread)), len(unread), time.monotonic() - begun))
        if not stop():
            with self._lock:
                # what cannot be read any more is not searched either
                self._database.drop(sorted(missing & known.keys()))
        return new

    def _read_history(self, listing: Listing, begun: float, report: Report) -> None:
        """Read the messages of past commits that are not in the index yet."""
        git = self.source.git
        if git is None or listing.commit is None:
            return
        with self._lock:
            known = self._database.past_shas()
        wanted = git.ancestors(listing.commit, MOST_COMMITS)
        unread = [sha for sha in wanted if sha not in known]
        with self._lock:
            self._database.add_past((), gone=known.difference(wanted))
        for at in range(0, len(unread), _COMMITS_AT_ONCE):
            report(Progress("history", at, len(unread), time.monotonic() - begun))
            read = [
                PastRow(
                    commit.sha, commit.subject, commit.body, commit.files, _terms(f"{commit.subject}\n{commit.body}")
                )
                for commit in git.commits(unread[at : at + _COMMITS_AT_ONCE])
            ]
            with self._lock:
                self._database.add_past(read)

    def take_records(self, digests: Mapping[str, str], text_of: Callable[[str], str]) -> None:
        """Bring the records up to date.

        Args:
            digests: each record's path (``bead:ddx-1234``) with a digest of its text.
            text_of: returns the text of one, as Markdown.
        """
        with self._lock:
            known = self._database.known(records=True)
            self._database.drop(sorted(known.keys() - digests.keys()))
            new = [path for path in sorted(digests) if known.get(path) != digests[path]]
            for at in range(0, len(new), _RECORDS_AT_ONCE):
                batch = [read_record(path, digests[path], text_of(path)) for path in new[at : at + _RECORDS_AT_ONCE]]
                self._database.take(batch)

    # -- looking things up -------------------------------------------------------------------------

    def _fresh(self) -> None:
        """Drop what is cached of an earlier state of the database."""
        version = self._database.version()
        if version != self._version:
            self._version = version
            self._texts.clear()
            self._pieces.clear()
            self._searches.clear()
            self._trees = None

    def pieces(self, file: str) -> Pieces:
        """The parts of a file; empty if it is unknown."""
        with self._lock:
            self._fresh()
            found = self._pieces.get(file)
            if found is None:
                if len(self._pieces) > _PIECES:
                    self._pieces.clear()
                found = self._pieces[file] = self._database.pieces(file) or _NOTHING
        return found

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]:
        """Lines of a file at the revision, counted from 1, both ends included; empty if the file is unknown."""
        with self._lock:
            self._fresh()
            lines = self._texts.get(file)
            if lines is None:
                if len(self._texts) > _TEXTS:
                    self._texts.clear()
                lines = self._texts[file] = split_lines(self._text_of(file))
        return lines[max(0, start - 1) : end]

    def _text_of(self, file: str) -> str:
        """The text of a file at the revision; empty if the file is not searched."""
        row = next(iter(self._database.at([file])), None)
        if row is not None and row.role == "record":
            return self._database.record_text(file) or ""
        data = None if row is None else self.source.text(file, row.oid)
        return "" if data is None else decode(data)


def _open_database(path: Path | None) -> Database:
    try:
        return Database(path)
    except (OSError, sqlite3.OperationalError):
        return Database(None)


def _terms(text: str) -> str:
    return " ".join(count_terms(text).elements())


def may_hold_tree(path: str) -> bool:
    """Whether a file's name suggests a tree: ``*-tree.json``, ``dag*.json``."""
    return _TREE_FILE.search(path) is not None
