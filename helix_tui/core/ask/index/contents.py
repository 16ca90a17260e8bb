"""What an index holds: the files of one tree, read, written down and kept up to date."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from helix_tui.core.ask.corpus.git import TrackedFile
from helix_tui.core.ask.corpus.listing import Listing, Source
from helix_tui.core.ask.index.build import Raw, read_all, refused_blob
from helix_tui.core.ask.index.channels import commits, meaning
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.ranking import Ranking
from helix_tui.core.ask.index.store.database import Database
from helix_tui.core.ask.index.store.segment import Segment, SegmentBuilder, joined
from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.index.trees import may_hold_tree
from helix_tui.core.ask.parse.languages import language_of
from helix_tui.core.ask.parse.pieces import Pieces
from helix_tui.core.ask.records import Progress, Refreshed, Tree

_COMMIT_FILES = 1_000
_COMMIT_SECONDS = 4.0
_MOST_WAITING = 3_000
"""Files read that wait to be written, 15 KB each. To write them in more portions costs time for no sooner answer."""
SEEN_AGAIN = 1.4
"""How many times as many files as are seen must be read before they are seen: to look at all of them takes a
quarter of a second where they are many."""
_PIECES = 2_000
"""Files whose pieces are held: 5 KB each, 10 MB of so many; a question looks into 1,000 at most."""
_NOTHING = Pieces("", 0, 0, [], [], [], [])
_COMMITS_AT_ONCE = 500

Report = Callable[[Progress], None]


class Contents:
    """The files of one tree and what was read of them."""

    def __init__(
        self, root: Path, path: Path | None, revision: str | None = None, *, with_meaning: bool = True
    ) -> None:
        """Over a folder, kept in a file; in memory where ``path`` is None."""
        self.source = Source(root, revision)
        self._database = _open_database(path)
        self._lock = threading.RLock()
        self._files: list[tuple[str, str]] = []
        self._oids: dict[str, str] = {}
        self._skipped: list[tuple[str, str]] = []
        self._view = self._first_view()
        self._texts: dict[str, list[str]] = {}
        self._history = commits.CommitHistory((), {})
        self._tree_files: list[str] = []
        self._read_pieces: dict[str, Pieces] = {}
        self._tree: Tree | None = None
        self._origins: dict[tuple[str, str, str | None, int, int], list[str]] = {}
        """The commits of lines that were asked for, by file, its content, the commit stood on and the lines."""
        self._meanings = meaning.Meanings(lambda: self._database) if with_meaning else None
        self._rankings: dict[tuple[str | IndexQuery, bool], Ranking] = {}
        self.commit: str | None = None
        self.listed: int | None = None
        """Files that the repository has, searched or not; None before the first refresh."""

    def _first_view(self) -> IndexView:
        """A view of nothing yet."""
        try:
            return IndexView(self._database, [])
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            self._database.renew()
            return IndexView(self._database, [])

    def close(self) -> None:
        """Close the database, and end what reads files."""
        with self._lock:
            self.source.close()
            self._database.close()

    def empty_reason(self) -> str:
        """Why nothing of the repository can be asked, a sentence; empty where something can, and before a refresh."""
        with self._lock:
            if len(self._view) or self.listed is None:
                return ""
            if not self.listed:
                what = "no file is tracked by git yet" if self.source.git is not None else "there is no file in it"
                fix = ": `git add` the files to ask about" if self.source.git is not None else ""
                return f"Nothing is indexed: {what}{fix}."
            reasons = Counter(reason for _, reason in self._skipped)
            said = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
            unread = self.listed - len(self._skipped)
            parts = [said] if said else []
            parts += [f"{unread:,} cannot be read (permissions, or not checked out)"] if unread > 0 else []
            files = f"{self.listed:,} file" if self.listed == 1 else f"{self.listed:,} files"
            return f"Nothing is indexed: no searchable text in {files} ({'; '.join(parts)})."

    def notes(self) -> tuple[str, ...]:
        """What is not searched although somebody may look for it, a sentence each."""
        with self._lock:
            large = [path for path, reason in self._skipped if reason == "too large"]
        if not large:
            return ()
        more = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
        return (
            f"{large[0]}{more} {'are' if more else 'is'} too large to be searched (data over 1 MB, text over 8 MB)",
        )

    def refresh(self, progress: Report | None = None, *, stop: Callable[[], bool] = lambda: False) -> Refreshed:
        """Bring the index up to date: list, read what is new, and see the present tree from then on.

        A damaged index is made anew; one that cannot be written to goes on in memory.

        Raises:
            NothingToAsk, GitFailed: see `open_index`.
        """
        report = progress or (lambda _: None)
        try:
            return self._refresh(report, stop)
        except sqlite3.OperationalError as error:
            with self._lock:
                self._database.close()
                self._database = Database(None)
                self._view = self._first_view()
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
        self._tree_files = [entry.path for entry in listing.entries if may_hold_tree(entry.path)]
        parsed = self._read_new(listing, begun, report, stop)
        self._read_history(listing, begun, report)
        with self._lock:
            self.commit = listing.commit
            self._look_at(self._files)
            self._rankings.clear()
            stored = self._database.stored()
            refused = [
                (path, stored[key].refused) for path, key in self._files if key in stored and stored[key].refused
            ]
            self._skipped = sorted(listing.skipped + refused)
            self.listed = len(listing.entries) + len(listing.skipped)
        seconds = time.monotonic() - begun
        report(Progress("done", len(self._view), len(self._view), seconds))
        return Refreshed(
            len(self._view),
            parsed,
            len(self._skipped),
            seconds,
            self._database.rebuilt,
            (*listing.notes, *self.notes()),
        )

    def _read_new(self, listing: Listing, begun: float, report: Report, stop: Callable[[], bool]) -> int:
        known = self._database.stored().keys()
        files: list[tuple[str, str]] = []
        unread: list[TrackedFile] = []
        for entry in listing.entries:
            key = blob_key(entry.oid, entry.path)
            if entry.oid and key in known:
                files.append((entry.path, key))
                self._oids[entry.path] = entry.oid
            else:
                unread.append(entry)
        self._files = files
        if unread:
            return self._read(unread, listing, set(known), begun, report, stop)
        return 0

    def _read(
        self,
        unread: list[TrackedFile],
        listing: Listing,
        known: set[str],
        begun: float,
        report: Report,
        stop: Callable[[], bool],
    ) -> int:
        """Read files and write their segments, every few seconds so that questions see them."""
        large: list[tuple[str, str, int]] = []
        by_path = {entry.path: entry for entry in unread}
        twins: dict[str, list[str]] = {}
        for entry in unread:
            if entry.oid:
                twins.setdefault(blob_key(entry.oid, entry.path), []).append(entry.path)
        new = 0

        def raws() -> Iterable[Raw]:
            nonlocal new
            for entry, oid, data in self.source.read(by_path.values(), listing.oid_digits):
                key = blob_key(oid, entry.path)
                for path in {entry.path, *twins.get(key, ())}:
                    self._files.append((path, key))
                    self._oids[path] = oid
                if key in known:
                    continue
                known.add(key)
                new += 1
                if isinstance(data, int):
                    large.append((key, language_of(entry.path), data))
                else:
                    yield Raw(key, language_of(entry.path), data)

        waiting: list[Segment] = []
        last = time.monotonic()
        done = 0
        with self._database.writing_much():
            for segment in read_all(raws(), stop):
                waiting.append(segment)
                done += len(segment.blobs)
                now = time.monotonic()
                report(Progress("parse", min(done, len(unread)), len(unread), now - begun))
                read = sum(len(one.blobs) for one in waiting)
                due = now - last > _COMMIT_SECONDS or read > _COMMIT_FILES
                if read > _MOST_WAITING or (due and len(self._files) >= SEEN_AGAIN * len(self._view)):
                    self._write(waiting)
                    waiting, last = [], now
        if large:
            builder = SegmentBuilder()
            for key, language, size in large:
                builder.add(refused_blob(key, language, size, "too large"), [], "")
            waiting.append(builder.finish())
        if waiting:
            self._write(waiting)
        return new

    def _read_history(self, listing: Listing, begun: float, report: Report) -> None:
        """Read the messages of past commits that are not known yet."""
        git = self.source.git
        if git is None or listing.commit is None:
            self._history = commits.CommitHistory((), {})
            return
        shas = git.ancestors(listing.commit, commits.MOST_COMMITS)
        known = self._database.past_shas()
        unread = [sha for sha in shas if sha not in known]
        for at in range(0, len(unread), _COMMITS_AT_ONCE):
            report(Progress("history", at, len(unread), time.monotonic() - begun))
            batch = unread[at : at + _COMMITS_AT_ONCE]
            self._database.add_past(commits.packed(commit) for commit in git.commits(batch))
        self._history = commits.CommitHistory(shas, self._database.past())

    def _write(self, waiting: list[Segment]) -> None:
        with self._lock:
            self._database.add(joined(waiting))
            if len(self._files) >= SEEN_AGAIN * len(self._view):
                self._look_at(self._files)

    def _look_at(self, files: Sequence[tuple[str, str]]) -> None:
        self._view = IndexView(self._database, list(dict.fromkeys(files)), self._view)
        self._texts.clear()
        self._rankings.clear()
        self._read_pieces.clear()
        self._tree = None

    def pieces(self, file: str) -> Pieces:
        """What a file consists of; nothing where it is unknown."""
        at = self._view.position.get(file)
        if at is None:
            return _NOTHING
        found = self._read_pieces.get(file)
        if found is None:
            if len(self._read_pieces) > _PIECES:
                self._read_pieces.clear()
            found = self._read_pieces[file] = self._database.pieces(self._view.keys[at]) or _NOTHING
        return found


def blob_key(oid: str, path: str) -> str:
    """What the index keeps a content under: the same bytes in two languages are two things."""
    return f"{oid}:{language_of(path)}"


def _open_database(path: Path | None) -> Database:
    try:
        return Database(path)
    except (OSError, sqlite3.OperationalError):
        return Database(None)
