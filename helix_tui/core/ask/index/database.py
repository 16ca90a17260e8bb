"""The SQLite file that holds the segments: ``.helix/ask/index-<version>.db``.

Written in transactions, in WAL mode, so that two processes may index at once: the second finds the first one's blobs
and skips its own. Each version has its own file, so that versions do not disturb each other; files of other versions
are removed a week after their last write. A file that SQLite cannot read is replaced by one process at a time; a
process that waited checks again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from helix_tui.core.ask import tokens
from helix_tui.core.ask.corpus.reader import Pieces
from helix_tui.core.ask.index.segment import NAME, Segment, shifted
from helix_tui.core.ground.files import locked_folder
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.trust.own_folders import NotUsed
from helix_tui.core.ground.writes import DATABASE, remove

FORMAT = 7
"""Version number; increase it with any change of the tables or of the parsers' results."""
VERSION = f"{FORMAT}.{tokens.VERSION}"
FILE = f"index-{VERSION}.db"
_LEFT_S = 7 * 86_400
"""Seconds without a write after which the file of another version is considered abandoned."""
_KINDS = ("index", "records")
"""Prefixes of the index files: for the repository's files, and for its records."""
_BUSY_MS = 20_000
_MAX_VALUE_BYTES = 1_000_000_000
"""SQLite's own limit: a segment of a large repository is one value."""
MOST_MEANINGS = 20_000
"""Maximum vectors stored, 16 MB: each long question may add thirty passages that no other one needs."""
_PATIENT_MS = 200
"""How long a question waits for another process to finish writing."""
_MANY = 24
"""Number of segments at which the small ones are merged: a question reads a term from each of 24 in a tenth of a
millisecond, and merging costs a tenth of reading the repository."""
_CACHE_KIB = 32 << 10
"""SQLite's page cache while it writes; posting lists arrive in order of term, which is scattered over the file."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segment(
  id INTEGER PRIMARY KEY AUTOINCREMENT, blobs INTEGER NOT NULL,
  chunks BLOB NOT NULL, lengths BLOB NOT NULL, names BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS blob(
  key TEXT PRIMARY KEY, segment INTEGER NOT NULL, position INTEGER NOT NULL, refused TEXT NOT NULL,
  language TEXT NOT NULL, lines INTEGER NOT NULL, size INTEGER NOT NULL, pieces BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS posting(
  term TEXT NOT NULL, segment INTEGER NOT NULL, list BLOB NOT NULL, PRIMARY KEY(term, segment)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS symbol(
  folded TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(folded, name, key)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS spelling USING fts5(folded, tokenize='trigram', detail='none', content='');
CREATE TABLE IF NOT EXISTS spelt(number INTEGER PRIMARY KEY, folded TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS past(
  sha TEXT PRIMARY KEY, subject TEXT NOT NULL, terms BLOB NOT NULL, files BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meaning(key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS path_words(key TEXT PRIMARY KEY, packed BLOB NOT NULL);
"""


class StoredBlob(Struct, frozen=True):
    """The position of a blob's chunks, without its parts."""

    segment: int
    position: int
    refused: str
    language: str
    lines: int
    size: int


class StoredSegment(Struct, frozen=True):
    """A segment without its postings."""

    id: int
    blobs: int
    chunks: bytes
    lengths: bytes
    names: bytes


class Database:
    """One connection. A second thread needs its own."""

    def __init__(self, path: Path | None) -> None:
        """Open or create the file; None keeps the index in memory.

        Raises:
            sqlite3.Error: the file cannot be opened or is not an index.
        """
        self.path = path
        self.rebuilt = False
        self._stored: tuple[int, dict[str, StoredBlob]] | None = None
        """The last result of `stored`, with the version of the file."""
        self._one_writer = threading.Lock()
        """A question may store vectors while another thread adds past commits."""
        self._opened: tuple[int, int] | None = None
        """The identity of the connected file."""
        try:
            self._connection = self._open()
        except sqlite3.OperationalError:
            raise
        except (NotUsed, sqlite3.DatabaseError):
            self._connection = self._replace()
        if path is not None:
            _remove_left(path)

    def _open(self) -> sqlite3.Connection:
        connection = connect(self.path, timeout=_BUSY_MS / 1000, max_value=_MAX_VALUE_BYTES)
        # SQLite's own `lower` changes only ASCII; names are stored as Python folds them
        connection.create_function("folded", 1, str.lower, deterministic=True)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # in WAL mode a power failure can lose the last writes, not the file; lost contents are read again
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_SCHEMA)
            found = connection.execute("SELECT value FROM meta WHERE name='version'").fetchone()
            if found is None:
                # two processes may create the file at once
                connection.execute("INSERT OR IGNORE INTO meta VALUES('version', ?)", (VERSION,))
            elif found[0] != VERSION:
                raise sqlite3.DatabaseError(f"index of version {found[0]}")
        except sqlite3.Error:
            connection.close()
            raise
        self._opened = None if self.path is None else _identity(self.path)
        self._stored = None
        return connection

    def _replace(self, *, damaged: bool = False) -> sqlite3.Connection:
        """Replace an unreadable file with an empty one, unless another process has just done so.

        Args:
            damaged: whether the file can be opened, but is damaged inside.
        """
        assert self.path is not None
        self.rebuilt = True
        with locked_folder(self.path.parent):
            # the file is different: the previous holder of the lock has replaced it
            if not damaged or _identity(self.path) != self._opened:
                with contextlib.suppress(NotUsed, sqlite3.DatabaseError):
                    return self._open()
            # an old log beside a new file would be replayed into it, and one without its file is refused: it goes first
            for ending in reversed(DATABASE):
                remove(self.path.with_name(self.path.name + ending))
            return self._open()

    def renew(self) -> None:
        """Discard a damaged file and start empty."""
        self._connection.close()
        self.rebuilt = True
        self._connection = self._open() if self.path is None else self._replace(damaged=True)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading -----------------------------------------------------------------------------------

    def stored(self) -> dict[str, StoredBlob]:
        """Every blob by its key; read again if this or another connection has written since."""
        # `data_version` changes with writes of other connections; our own writes clear `_stored`
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if self._stored is None or self._stored[0] != version:
            rows = self._connection.execute("SELECT key, segment, position, refused, language, lines, size FROM blob")
            self._stored = version, {row[0]: StoredBlob(*row[1:]) for row in rows}
        return self._stored[1]

    def segments(self) -> list[StoredSegment]:
        """The segments in order of their number."""
        rows = self._connection.execute("SELECT id, blobs, chunks, lengths, names FROM segment ORDER BY id")
        return [StoredSegment(*row) for row in rows]

    def postings(self, term: str) -> list[tuple[int, bytes]]:
        """(segment, packed list) of a term."""
        query = "SELECT segment, list FROM posting WHERE term = ? ORDER BY segment"
        return self._connection.execute(query, (term,)).fetchall()

    def pieces(self, key: str) -> Pieces | None:
        """The parts of a blob."""
        row = self._connection.execute("SELECT pieces FROM blob WHERE key = ?", (key,)).fetchone()
        return None if row is None else _pieces.decode(row[0])

    def keys_defining(self, name: str, *, any_case: bool = False) -> list[tuple[str, str]]:
        """(name, blob key) of every blob that defines a name."""
        query = "SELECT name, key FROM symbol WHERE folded = ?" + ("" if any_case else " AND name = ?")
        values = (name.lower(),) if any_case else (name.lower(), name)
        return self._connection.execute(query, values).fetchall()

    def keys_defining_any(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """(name, blob key) of every blob that defines any of some names."""
        query = (
            "SELECT symbol.name, symbol.key FROM json_each(?) AS asked"
            " JOIN symbol ON symbol.folded = folded(asked.value) AND symbol.name = asked.value"
        )
        return self._connection.execute(query, (json.dumps(names),)).fetchall()

    def names_like(self, folded: str, limit: int = 60) -> list[str]:
        """Defined names in lower case that share trigrams with a word."""
        grams = sorted({folded[at : at + 3] for at in range(len(folded) - 2) if folded[at : at + 3].isalnum()})
        if not grams:
            return []
        query = (
            "SELECT folded FROM spelt WHERE number IN"
            " (SELECT rowid FROM spelling WHERE spelling MATCH ? ORDER BY rank LIMIT ?)"
        )
        asked = " OR ".join(f'"{gram}"' for gram in grams)
        return [row[0] for row in self._connection.execute(query, (asked, limit))]

    def past(self) -> dict[str, tuple[str, bytes, bytes]]:
        """sha -> (subject, packed terms, packed files) of every commit read so far."""
        return {row[0]: row[1:] for row in self._connection.execute("SELECT sha, subject, terms, files FROM past")}

    def past_shas(self) -> set[str]:
        """The commits read so far."""
        return {row[0] for row in self._connection.execute("SELECT sha FROM past")}

    def meanings(self, keys: Sequence[str]) -> dict[str, bytes]:
        """key -> vector of the keys that are already embedded."""
        marks = ",".join("?" * len(keys))
        return dict(self._connection.execute(f"SELECT key, vector FROM meaning WHERE key IN ({marks})", keys))

    def path_words(self, key: str) -> bytes | None:
        """The packed words of a set of paths, if they are those that were stored last."""
        found = self._connection.execute("SELECT packed FROM path_words WHERE key=?", (key,)).fetchone()
        return None if found is None else bytes(found[0])

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing_much(self) -> Iterator[None]:
        """Cache more pages during large writes, and release them afterwards."""
        (usual,) = self._connection.execute("PRAGMA cache_size").fetchone()
        self._connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute(f"PRAGMA cache_size={usual}")
                self._connection.execute("PRAGMA shrink_memory")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._one_writer:
            self._stored = None
            # lock for writing at once: a later attempt fails if another process wrote in between
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:  # even ctrl+c must not leave a transaction open; it is raised again
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._stored = None

    def add(self, segment: Segment) -> None:
        """Write a segment. A blob that another process wrote meanwhile is not written again."""
        with self._writing() as connection:
            row = (len(segment.blobs), segment.chunks, segment.lengths, segment.names)
            number = connection.execute(
                "INSERT INTO segment(blobs, chunks, lengths, names) VALUES(?, ?, ?, ?)", row
            ).lastrowid
            connection.executemany(
                "INSERT OR IGNORE INTO blob VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (blob.key, number, at, blob.refused, blob.language, blob.lines, blob.size, blob.pieces)
                    for at, blob in enumerate(segment.blobs)
                ),
            )  # fmt: skip
            connection.executemany(
                "INSERT OR IGNORE INTO symbol VALUES(?, ?, ?)",
                ((name.lower(), name, blob.key) for blob in segment.blobs for name in blob.defined),
            )
            _spell(connection, segment)
            connection.executemany(
                "INSERT INTO posting VALUES(?, ?, ?)",
                # in the order of the table's key, so that its pages are filled sequentially
                ((term, number, packed) for term, packed in segment.postings()),
            )
        self._merge_small()

    def _merge_small(self) -> None:
        """Merge the small segments when there are many, as a question reads each of them."""
        with self._writing() as connection:
            sizes = connection.execute("SELECT id, length(lengths) FROM segment ORDER BY id").fetchall()
            if len(sizes) <= _MANY:
                return
            # the large ones are not merged: writing them again for every few small ones would cost the most
            limit = max(sum(size for _, size in sizes) // 3, max(size for _, size in sizes) // 2)
            small = [number for number, size in sizes if size < limit]
            if len(small) > 1:
                _merge(connection, small)

    def add_past(self, rows: Iterable[tuple[str, str, bytes, bytes]]) -> None:
        """Write commits: (sha, subject, packed terms, packed files)."""
        with self._writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO past VALUES(?, ?, ?, ?)", rows)

    def keep_meanings(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Write vectors, unless the file is busy or cannot be written: then they are computed again when needed."""

        def write(connection: sqlite3.Connection) -> None:
            (kept,) = connection.execute("SELECT count(*) FROM meaning").fetchone()
            if kept + len(rows) > MOST_MEANINGS:
                # it is unknown which will be needed again; those are computed again one by one
                connection.execute("DELETE FROM meaning")
            connection.executemany("INSERT OR IGNORE INTO meaning VALUES(?, ?)", rows)

        if rows:
            self._write_if_free(write)

    def keep_path_words(self, key: str, packed: bytes) -> None:
        """Write the words of a set of paths, or something else about them (``DIGEST:what``), in place of all that was
        stored about other paths, unless the file cannot be written now.
        """
        digest = key.partition(":")[0]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM path_words WHERE key=? OR substr(key, 1, ?)<>?", (key, len(digest), digest))
            connection.execute("INSERT INTO path_words VALUES(?, ?)", (key, packed))

        self._write_if_free(write)

    def _write_if_free(self, write: Callable[[sqlite3.Connection], None]) -> None:
        """Write what can be computed again; not if the file is busy or cannot be written."""
        self._connection.execute(f"PRAGMA busy_timeout={_PATIENT_MS}")
        try:
            with contextlib.suppress(sqlite3.OperationalError), self._writing() as connection:
                write(connection)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")


def _spell(connection: sqlite3.Connection, segment: Segment) -> None:
    """Store the new names of a segment under their trigrams."""
    names = sorted({name.lower() for blob in segment.blobs for name in blob.defined})
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM spelt").fetchone()
    connection.executemany("INSERT OR IGNORE INTO spelt(folded) VALUES(?)", ((name,) for name in names))
    connection.execute("INSERT INTO spelling(rowid, folded) SELECT number, folded FROM spelt WHERE number > ?", (last,))


def _merge(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    marks = ",".join("?" * len(numbers))
    parts = connection.execute(
        f"SELECT id, blobs, chunks, lengths, names FROM segment WHERE id IN ({marks}) ORDER BY id", numbers
    ).fetchall()
    chunk_base, blob_base, chunks_before, blobs_before = {}, {}, 0, 0
    for number, blobs, _, lengths, _ in parts:
        chunk_base[number], blob_base[number] = chunks_before, blobs_before
        chunks_before += len(lengths) // 4
        blobs_before += blobs
    columns = (b"".join(part[at] for part in parts) for at in (2, 3, 4))
    merged = connection.execute(
        "INSERT INTO segment(blobs, chunks, lengths, names) VALUES(?, ?, ?, ?)", (blobs_before, *columns)
    ).lastrowid
    rows = connection.execute(
        f"SELECT term, segment, list FROM posting WHERE segment IN ({marks}) ORDER BY term, segment", numbers
    ).fetchall()
    connection.execute(f"DELETE FROM posting WHERE segment IN ({marks})", numbers)
    connection.executemany("INSERT INTO posting VALUES(?, ?, ?)", _merged_rows(rows, merged, chunk_base, blob_base))
    for number in numbers:
        connection.execute(
            "UPDATE blob SET segment = ?, position = position + ? WHERE segment = ?",
            (merged, blob_base[number], number),
        )
    connection.execute(f"DELETE FROM segment WHERE id IN ({marks})", numbers)


def _merged_rows(
    rows: Sequence[tuple[str, int, bytes]], merged: int | None, chunk_base: dict[int, int], blob_base: dict[int, int]
) -> Iterator[tuple[str, int | None, bytes]]:
    lists: list[tuple[int, bytes]] = []
    for at, (term, number, data) in enumerate(rows):
        lists.append(((blob_base if term.startswith(NAME) else chunk_base)[number], data))
        if at + 1 == len(rows) or rows[at + 1][0] != term:
            yield term, merged, shifted(lists)
            lists = []


_pieces = msgspec.msgpack.Decoder(Pieces)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove_left(path: Path) -> None:
    """Remove files of the same kind and other versions that were not written for a long time."""
    kind = next((kind for kind in _KINDS if path.name.startswith(kind)), None)
    for other in path.parent.glob(f"{kind}*.db") if kind is not None else ():
        if other.name == path.name:
            continue
        newest = 0.0
        files = [other.with_name(other.name + ending) for ending in ("", "-wal", "-shm")]
        for file in files:
            with contextlib.suppress(OSError):
                newest = max(newest, os.stat(file).st_mtime)
        if 0 < newest < time.time() - _LEFT_S:
            for file in files:
                with contextlib.suppress(OSError):
                    file.unlink()
