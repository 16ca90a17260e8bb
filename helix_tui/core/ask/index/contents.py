"""The contents of an index: the files of one tree, read into segments, stored and kept up to date. Many files are read
in batches by workers (one process per thread); if a worker dies or hangs, its batch is read without grammars.
"""

from __future__ import annotations

import gc
import os
import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.corpus.git import TrackedFile
from helix_tui.core.ask.corpus.languages import language_of
from helix_tui.core.ask.corpus.listing import Listing, Source, unfit
from helix_tui.core.ask.corpus.reader import Pieces, bodies, names, read_pieces
from helix_tui.core.ask.index import channels
from helix_tui.core.ask.index.database import Database
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.ranking import Ranking
from helix_tui.core.ask.index.segment import Blob, Segment, SegmentBuilder, WordsSaid, joined
from helix_tui.core.ask.index.view import MOST_COMMITS, CommitHistory, IndexView, packed
from helix_tui.core.ask.records import Progress, Refreshed, Tree
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.processes.programs import NEUTRAL, python_argv
from helix_tui.core.ground.processes.start import PIPE, Process, start

BATCH_BYTES = 2 << 20
BATCH_FILES = 400
FIRST_BATCHES = 6
LATER = 3
"""How many times larger batches after the first are: a small first batch can be searched early, and fewer segments
are written faster."""
BATCH_TIMEOUT_S = 120.0
_HEADER = 8


class Raw(Struct, frozen=True, array_like=True):
    """One content to read."""

    key: str
    language: str
    data: bytes


def read_batch(batch: Sequence[Raw], *, with_grammar: bool = True, said: WordsSaid | None = None) -> Segment:
    """A segment of some contents; ``said`` has the words of earlier batches."""
    builder = SegmentBuilder(said)
    for raw in batch:
        refused = unfit(raw.data, raw.language)
        if refused is not None:
            builder.add(refused_blob(raw.key, raw.language, len(raw.data), refused), [], "")
            continue
        pieces, lines = read_pieces(raw.data, raw.language, with_grammar=with_grammar)
        builder.add(Blob.of(raw.key, pieces), bodies(pieces, lines), names(pieces))
    return builder.finish()


def refused_blob(key: str, language: str, size: int, reason: str) -> Blob:
    """A blob that is known but not searched."""
    return Blob.of(key, Pieces(language, 0, size, [], [], [], []), reason)


def batches(raws: Iterable[Raw]) -> Iterator[list[Raw]]:
    """Contents in batches of a size that a worker reads in about a second, the later ones in three."""
    batch: list[Raw] = []
    size = number = 0
    for raw in raws:
        times = 1 if number < FIRST_BATCHES else LATER
        if batch and (size + len(raw.data) > BATCH_BYTES * times or len(batch) >= BATCH_FILES * times):
            yield batch
            batch, size, number = [], 0, number + 1
        batch.append(raw)
        size += len(raw.data)
    if batch:
        yield batch


def read_all(raws: Iterable[Raw], stop: Callable[[], bool], *, workers: int | None = None) -> Iterator[Segment]:
    """Segments of all contents, each as soon as it is ready; order may vary and does not matter."""
    # one batch is read here: a worker is started only if there is a second one
    source = batches(raws)
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    count = workers if workers is not None else min(os.cpu_count() or 1, 4)
    if second is None or count < 2:
        yield read_batch(first)
        for batch in filter(None, (second,)):
            yield read_batch(batch)
        for batch in source:
            if stop():
                return
            yield read_batch(batch)
        return
    yield from _read_in_workers(_chain(first, second, source), count, stop)


def _chain(first: list[Raw], second: list[Raw], rest: Iterator[list[Raw]]) -> Iterator[list[Raw]]:
    yield first
    yield second
    yield from rest


def _read_in_workers(source: Iterator[list[Raw]], count: int, stop: Callable[[], bool]) -> Iterator[Segment]:
    pool = _Workers()
    with ThreadPoolExecutor(count, thread_name_prefix="ask-read") as threads:
        running: set[Future[Segment]] = set()
        try:
            for batch in source:
                if stop():
                    return
                running.add(threads.submit(pool.read, batch))
                # one more batch than workers is queued, so that none is idle while the next is prepared
                if len(running) > count:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            for future in running:
                yield future.result()
        finally:
            pool.close()


class _Workers:
    """One worker per thread, started on first use."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[Process] = []

    def read(self, batch: list[Raw]) -> Segment:
        """Read a batch in a worker; if that dies or hangs, read it here without grammars."""
        worker = getattr(self._local, "worker", None)
        if worker is None or worker.poll() is not None:
            worker = self._local.worker = self._start()
        if worker is None:
            return read_batch(batch)
        timer = threading.Timer(BATCH_TIMEOUT_S, worker.kill)
        timer.start()
        try:
            _send(worker, _encoder.encode(batch))
            return _segments.decode(_receive(worker))
        except (OSError, EOFError, msgspec.DecodeError):
            worker.kill()
            self._local.worker = None
            # grammars are C code, the one part that can crash or hang on a file
            return read_batch(batch, with_grammar=False)
        finally:
            timer.cancel()

    def _start(self) -> Process | None:
        argv = python_argv("helix_tui.core.ask.index.contents")
        try:
            worker = start(argv, cwd=NEUTRAL, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            logs.logger("ask").warning("%s: does not start: %s", logs.masked(argv), error)
            return None
        self._all.append(worker)
        logs.logger("ask").info("%s: started as %d", logs.masked(argv), worker.pid)
        return worker

    def close(self) -> None:
        """End every worker."""
        for worker in self._all:
            worker.kill()
            with worker:
                pass


def _send(worker: Process, data: bytes) -> None:
    assert worker.stdin is not None
    worker.stdin.write(len(data).to_bytes(_HEADER, "big"))
    worker.stdin.write(data)
    worker.stdin.flush()


def _receive(worker: Process) -> bytes:
    assert worker.stdout is not None
    size = int.from_bytes(_exactly(worker.stdout.read(_HEADER), _HEADER), "big")
    return _exactly(worker.stdout.read(size), size)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise EOFError("the worker ended")
    return data


def serve() -> None:
    """Run a worker: read batches from standard input, write segments to standard output."""
    # a batch creates no reference cycles; garbage collection took a twelfth of the time
    gc.disable()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.msgpack.Decoder(list[Raw])
    said = WordsSaid()
    while True:
        header = source.read(_HEADER)
        if len(header) < _HEADER:
            return
        said.forget()
        data = _encoder.encode(read_batch(decoder.decode(source.read(int.from_bytes(header, "big"))), said=said))
        sink.write(len(data).to_bytes(_HEADER, "big"))
        sink.write(data)
        sink.flush()


_encoder = msgspec.msgpack.Encoder()
_segments = msgspec.msgpack.Decoder(Segment)


if __name__ == "__main__":
    serve()


_COMMIT_FILES = 1_000
_COMMIT_SECONDS = 4.0
_MOST_WAITING = 3_000
"""Maximum files read but not yet written, 5 KB each. Smaller portions cost time without earlier answers."""
SEEN_AGAIN = 1.4
"""The growth in files read after which the view is updated: with many files an update takes a quarter of a second."""
_PIECES = 2_000
"""Maximum files whose pieces are in memory: 5 KB each, 10 MB in all; a question reads at most 1,000."""
_NOTHING = Pieces("", 0, 0, [], [], [], [])
_COMMITS_AT_ONCE = 500

Report = Callable[[Progress], None]


class Contents:
    """The files of one tree, and their parsed contents."""

    def __init__(
        self, root: Path, path: Path | None, revision: str | None = None, *, with_meaning: bool = True
    ) -> None:
        """The contents of a folder, stored in a file, or in memory if ``path`` is None."""
        self.source = Source(root, revision)
        self._database = _open_database(path)
        self._lock = threading.RLock()
        self._files: list[tuple[str, str]] = []
        self._oids: dict[str, str] = {}
        self._skipped: list[tuple[str, str]] = []
        self._view = self._first_view()
        self._texts: dict[str, list[str]] = {}
        self._history = CommitHistory((), {})
        self._tree_files: list[str] = []
        self._read_pieces: dict[str, Pieces] = {}
        self._tree: Tree | None = None
        self._origins: dict[tuple[str, str, str | None, int, int], list[str]] = {}
        """The commits of lines, by file, content, base commit and lines."""
        self._meanings = channels.Meanings(lambda: self._database) if with_meaning else None
        self._rankings: dict[tuple[str | IndexQuery, bool], Ranking] = {}
        self.commit: str | None = None
        self.listed: int | None = None
        """Number of files in the repository, searched or not; None before the first refresh."""

    def _first_view(self) -> IndexView:
        """The first view, without files."""
        try:
            return IndexView(self._database, [])
        # busy or not writable: a DatabaseError by class, but not damaged
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            self._database.renew()
            return IndexView(self._database, [])

    def close(self) -> None:
        """Close the database, and stop the processes that read files."""
        with self._lock:
            self.source.close()
            self._database.close()

    def empty_reason(self) -> str:
        """Why the repository cannot be searched, in a sentence; empty if it can, and before a refresh."""
        with self._lock:
            if len(self._view) or self.listed is None:
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

    def refresh(self, progress: Report | None = None, *, stop: Callable[[], bool] = lambda: False) -> Refreshed:
        """Update the index: list the files, read new ones, and use the current tree from then on.

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
            # history counts in a ranking, and may change without a change of files
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
                # one reading serves all files with this content; `_look_at` handles duplicate entries
                for path in {entry.path, *twins.get(key, ())}:
                    self._files.append((path, key))
                    self._oids[path] = oid
                if key in known:
                    continue
                known.add(key)
                new += 1
                if isinstance(data, int):
                    # stored as refused, so that the next refresh skips it
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
                # files still being read do not count: each small portion writes every frequent term once more
                grown = len(self._view) + read >= SEEN_AGAIN * len(self._view)
                if read > _MOST_WAITING or (due and grown):
                    self._write(waiting)
                    if grown:
                        self._look_again()
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
        """Read the messages of past commits that are not in the index yet."""
        git = self.source.git
        if git is None or listing.commit is None:
            self._history = CommitHistory((), {})
            return
        shas = git.ancestors(listing.commit, MOST_COMMITS)
        known = self._database.past_shas()
        unread = [sha for sha in shas if sha not in known]
        for at in range(0, len(unread), _COMMITS_AT_ONCE):
            report(Progress("history", at, len(unread), time.monotonic() - begun))
            batch = unread[at : at + _COMMITS_AT_ONCE]
            self._database.add_past(packed(commit) for commit in git.commits(batch))
        self._history = CommitHistory(shas, self._database.past())

    def _write(self, waiting: list[Segment]) -> None:
        with self._lock:
            self._database.add(joined(waiting))

    def _look_again(self) -> None:
        """Locate the same files in the current segments."""
        with self._lock:
            self._look_at(self._files)

    def _look_at(self, files: Sequence[tuple[str, str]]) -> None:
        # cached results depend on the old view; the new one takes over only those that depend on paths alone
        self._view = IndexView(self._database, list(dict.fromkeys(files)), self._view)
        self._texts.clear()
        self._rankings.clear()
        self._read_pieces.clear()
        self._tree = None

    def pieces(self, file: str) -> Pieces:
        """The parts of a file; empty if it is unknown."""
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
    """The index key of a content: the same bytes in two languages have two keys."""
    return f"{oid}:{language_of(path)}"


def _open_database(path: Path | None) -> Database:
    try:
        return Database(path)
    except (OSError, sqlite3.OperationalError):
        return Database(None)


def may_hold_tree(path: str) -> bool:
    """Whether a file's name suggests a tree: ``*-tree.json``, ``dag*.json``."""
    return _TREE_FILE.search(path) is not None


_TREE_FILE = re.compile(r"(?:^|/)(?:[^/]*[-_.])?(?:tree|dag)[^/]*\.json$", re.IGNORECASE)
