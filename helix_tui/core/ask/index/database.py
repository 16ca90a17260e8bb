"""The SQLite file that holds the index of one tree: ``.helix/ask/index-<version>.db``.

Files, the words of their passages, names and paths (FTS5 over our own terms), definitions, commits and vectors. Written
in short transactions in WAL mode, so that two processes may index at once: the second one skips what is there. Each
version and each revision has its own file; others are removed a week after their last write. A file that SQLite cannot
read is replaced by one process at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from helix_tui.core.ask import tokens
from helix_tui.core.ask.corpus.reader import Pieces
from helix_tui.core.ask.records import Role
from helix_tui.core.ground.files import locked_folder
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.trust.own_folders import NotUsed
from helix_tui.core.ground.writes import DATABASE, remove

FORMAT = 8
"""Version number; increase it with any change of the tables, of the parsers' results or of the roles of paths."""
VERSION = f"{FORMAT}.{tokens.VERSION}"
FILE = f"index-{VERSION}.db"
MOST_CHUNKS = 1 << 12
"""Passages of one file, at most: the number of a passage is its file's times this, plus its place in it."""
_SHORT_ID = 6
"""Letters from which a part of an id may name it."""
MOST_VECTORS = 20_000
"""Vectors stored, at most: 16 MB."""
_LEFT_S = 7 * 86_400
_BUSY_S = 20.0
_PATIENT_MS = 200
"""How long a question waits to store vectors while another process writes."""
_CACHE_KIB = 32 << 10
_TERMS = "tokenize=\"ascii tokenchars '_'\""
"""Our terms are separated by blanks, and letters beyond ASCII are part of one."""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, oid TEXT NOT NULL, role TEXT NOT NULL,
  standing REAL NOT NULL, language TEXT NOT NULL, lines INTEGER NOT NULL, size INTEGER NOT NULL, refused TEXT NOT NULL,
  pieces BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS file_name ON file(name);
CREATE VIRTUAL TABLE IF NOT EXISTS passage USING fts5(terms, {_TERMS});
CREATE VIRTUAL TABLE IF NOT EXISTS names USING fts5(terms, {_TERMS});
CREATE VIRTUAL TABLE IF NOT EXISTS place USING fts5(terms, {_TERMS});
CREATE VIRTUAL TABLE IF NOT EXISTS message USING fts5(terms, {_TERMS});
CREATE VIRTUAL TABLE IF NOT EXISTS work USING fts5(terms, {_TERMS});
CREATE VIRTUAL TABLE IF NOT EXISTS passage_words USING fts5vocab(passage, 'row');
CREATE VIRTUAL TABLE IF NOT EXISTS work_words USING fts5vocab(work, 'row');
CREATE VIRTUAL TABLE IF NOT EXISTS message_words USING fts5vocab(message, 'row');
CREATE TABLE IF NOT EXISTS record(path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS symbol(
  folded TEXT NOT NULL, name TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY(folded, name, file)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS symbol_file ON symbol(file);
CREATE VIRTUAL TABLE IF NOT EXISTS spelling USING fts5(folded, tokenize='trigram', detail='none', content='');
CREATE TABLE IF NOT EXISTS spelt(number INTEGER PRIMARY KEY, folded TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS past(
  id INTEGER PRIMARY KEY, sha TEXT NOT NULL UNIQUE, subject TEXT NOT NULL, body TEXT NOT NULL,
  files TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vector(key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""

Field = Literal["passage", "names", "place", "message", "work"]
"""What is searched by words: passages of files, the names of their definitions, their paths, the messages of commits,
and passages of records."""


_ODD = {0xDC80 + byte: 0xF780 + byte for byte in range(0x80)}
_ODD_BACK = {private: byte for byte, private in _ODD.items()}


def stored(text: str) -> str:
    """A text as SQLite and a worker can hold it: a byte of a path that is no UTF-8 becomes a letter of private use."""
    return text if text.isascii() else text.translate(_ODD).encode("utf-8", "replace").decode()


def named(path: str) -> str:
    """A stored path as the file system names it."""
    return path if path.isascii() else path.translate(_ODD_BACK)


class Hit(Struct, frozen=True):
    """A passage that matches by its words."""

    file: int
    chunk: int
    score: float


class FileRow(Struct, frozen=True):
    """A searchable file of the index."""

    id: int
    path: str
    role: Role
    standing: float
    """Its weight among files of its role, above 0 and at most 1."""
    language: str
    lines: int
    size: int
    oid: str


class ReadFile(Struct, frozen=True, array_like=True):
    """One file as it is stored: its parts, and the terms of its passages and names."""

    path: str
    oid: str
    pieces: Pieces
    passages: list[str]
    names: str
    place: str = ""
    role: Role = "source"
    standing: float = 1.0
    refused: str = ""
    """Why it is not searched, or ""."""
    text: str = ""
    """Of a record, the text; files are read again from the tree."""


class PastRow(Struct, frozen=True):
    """A commit: ``terms`` are those of its message, given to be stored."""

    sha: str
    subject: str
    body: str
    files: Sequence[str]
    terms: str = ""
    id: int = 0


class Database:
    """One connection, used by one thread at a time."""

    def __init__(self, path: Path | None) -> None:
        """Open or create the file; None keeps the index in memory.

        Raises:
            sqlite3.Error: the file cannot be opened or is not an index.
        """
        self.path = path
        self.rebuilt = False
        self._one_writer = threading.Lock()
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
        connection = connect(self.path, timeout=_BUSY_S)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # in WAL mode a power failure can lose the last writes, not the file; lost contents are read again
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
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

    def begin_with(self, other: Database) -> None:
        """Copy all of another index, to be brought up to date from there."""
        other._connection.backup(self._connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading -----------------------------------------------------------------------------------

    def version(self) -> tuple[int, int]:
        """Changes with every write, of this connection or another."""
        (theirs,) = self._connection.execute("PRAGMA data_version").fetchone()
        return theirs, self._connection.total_changes

    def known(self, *, records: bool = False) -> dict[str, str]:
        """path -> git's id of the content, of every file that was read, searched or not; or of the records."""
        same = "=" if records else "<>"
        rows = self._connection.execute(f"SELECT path, oid FROM file WHERE role {same} 'record'")
        return {named(path): oid for path, oid in rows}

    def refused(self) -> list[tuple[str, str]]:
        """(path, reason) of each file that is not searched, in order of path."""
        rows = self._connection.execute("SELECT path, refused FROM file WHERE refused <> '' ORDER BY path")
        return [(named(path), why) for path, why in rows]

    def count(self) -> int:
        """The number of searchable files."""
        query = "SELECT count(*) FROM file WHERE refused = '' AND role <> 'record'"
        (number,) = self._connection.execute(query).fetchone()
        return int(number)

    def files(self, where: str = "", values: Sequence[Any] = ()) -> list[FileRow]:
        """The searchable files, those that fit a condition over the columns, in order of path."""
        rows = self._connection.execute(
            "SELECT id, path, role, standing, language, lines, size, oid FROM file"
            f" WHERE refused = ''{f' AND ({where})' if where else ''} ORDER BY path",
            values,
        )
        return [FileRow(row[0], named(row[1]), *row[2:]) for row in rows]

    def by_id(self, ids: Collection[int]) -> dict[int, FileRow]:
        """Some files by their number."""
        rows = self.files("id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(ids)),))
        return {row.id: row for row in rows}

    def at(self, paths: Collection[str]) -> list[FileRow]:
        """Some searchable files by their path."""
        return self.files("path IN (SELECT value FROM json_each(?))", (json.dumps(sorted(map(stored, paths))),))

    def pieces(self, path: str) -> Pieces | None:
        """The parts of a file."""
        row = self._connection.execute("SELECT pieces FROM file WHERE path = ?", (stored(path),)).fetchone()
        return None if row is None else _pieces.decode(row[0])

    def passages_with(self, terms: Iterable[str], field: Field = "passage") -> dict[str, int]:
        """term -> the number of passages that have it, without those in none."""
        query = f"SELECT term, doc FROM {field}_words WHERE term = ?"
        rows = (self._connection.execute(query, (term,)).fetchone() for term in terms)
        return {row[0]: row[1] for row in rows if row is not None}

    def passages(self, field: Field = "passage") -> int:
        """The number of passages."""
        (number,) = self._connection.execute(f"SELECT count(*) FROM {field}_docsize").fetchone()
        return int(number)

    def records(self, word: str) -> list[FileRow]:
        """The record that an id names, or a part of one that only one record has at its beginning or end."""
        exact = self.at([f"{kind}:{word}" for kind in ("bead", "memory", "run", "queue")])
        if exact or len(word) < _SHORT_ID:
            return exact
        # of the beads alone, which stand together in the order of paths
        found = self.files(
            "path > 'bead:' AND path < 'bead;' AND (instr(path, ?) = 1 OR substr(path, -length(?)) = ?)",
            (f"bead:{word}", f"-{word}", f"-{word}"),
        )
        return found if len(found) == 1 else []

    def record_text(self, path: str) -> str | None:
        """The text of a record."""
        row = self._connection.execute("SELECT text FROM record WHERE path = ?", (stored(path),)).fetchone()
        return None if row is None else str(row[0])

    def matching(
        self, field: Field, terms: Iterable[str], most: int, *, every: bool = False
    ) -> list[tuple[int, float]]:
        """(number, BM25 score) of the rows with any of some terms, or with every one, the best first."""
        asked = (" AND " if every else " OR ").join(f'"{term}"' for term in terms)
        if not asked:
            return []
        query = f"SELECT rowid, -rank FROM {field} WHERE {field} MATCH ? ORDER BY rank LIMIT ?"
        return self._connection.execute(query, (asked, most)).fetchall()

    def hits(self, field: Field, terms: Iterable[str], most: int, *, every: bool = False) -> list[Hit]:
        """The same, of a table of passages."""
        rows = self.matching(field, terms, most, every=every)
        return [Hit(*divmod(number, MOST_CHUNKS), score) for number, score in rows]

    def defining(self, names: Collection[str]) -> list[tuple[str, str, int]]:
        """(folded, name, file) of the definitions whose names are some in any case."""
        query = "SELECT folded, name, file FROM symbol WHERE folded IN (SELECT value FROM json_each(?))"
        return self._connection.execute(query, (json.dumps(sorted({name.lower() for name in names})),)).fetchall()

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

    def past(self, ids: Collection[int] | None = None) -> list[PastRow]:
        """Some commits by their number, or all."""
        where = "" if ids is None else " WHERE id IN (SELECT value FROM json_each(?))"
        values = () if ids is None else (json.dumps(sorted(ids)),)
        rows = self._connection.execute(f"SELECT sha, subject, body, files, id FROM past{where}", values)
        return [PastRow(row[0], row[1], row[2], tuple(json.loads(row[3])), id=row[4]) for row in rows]

    def past_shas(self) -> set[str]:
        """The commits read so far."""
        return {row[0] for row in self._connection.execute("SELECT sha FROM past")}

    def vectors(self, keys: Sequence[str]) -> dict[str, bytes]:
        """key -> vector of the texts that are already embedded."""
        query = "SELECT key, vector FROM vector WHERE key IN (SELECT value FROM json_each(?))"
        return dict(self._connection.execute(query, (json.dumps(list(keys)),)))

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._one_writer:
            # lock for writing at once: a later attempt fails if another process wrote in between
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:  # even ctrl+c must not leave a transaction open; it is raised again
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def take(self, files: Sequence[ReadFile]) -> None:
        """Store files in place of what was stored under their paths; one that another process stored is skipped."""
        with self._writing() as connection:
            paths = json.dumps([file.path for file in files])
            held = dict(
                connection.execute(
                    "SELECT path, oid FROM file WHERE path IN (SELECT value FROM json_each(?))", (paths,)
                ).fetchall()
            )
            new = [file for file in files if held.get(file.path) != file.oid]
            _forget(connection, [one.path for one in new if one.path in held])
            for one in new:
                _store(connection, one)
            _spell(connection, {name.lower() for one in new for name in _defined(one)})

    def drop(self, paths: Sequence[str]) -> None:
        """Remove files."""
        if paths:
            with self._writing() as connection:
                _forget(connection, list(map(stored, paths)))

    def add_past(self, commits: Iterable[PastRow], gone: Collection[str] = ()) -> None:
        """Store commits, and remove those that are no ancestors any more."""
        with self._writing() as connection:
            for (number,) in connection.execute(
                "SELECT id FROM past WHERE sha IN (SELECT value FROM json_each(?))", (json.dumps(sorted(gone)),)
            ).fetchall():
                connection.execute("DELETE FROM past WHERE id = ?", (number,))
                connection.execute("DELETE FROM message WHERE rowid = ?", (number,))
            for commit in commits:
                row = (commit.sha, stored(commit.subject), stored(commit.body), json.dumps(list(commit.files)))
                done = connection.execute(
                    "INSERT OR IGNORE INTO past(sha, subject, body, files) VALUES(?, ?, ?, ?)", row
                )
                if done.rowcount:
                    connection.execute("INSERT INTO message(rowid, terms) VALUES(?, ?)", (done.lastrowid, commit.terms))

    def keep_vectors(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Store vectors, unless the file is busy or cannot be written: then they are computed again when needed."""
        self._connection.execute(f"PRAGMA busy_timeout={_PATIENT_MS}")
        try:
            with contextlib.suppress(sqlite3.OperationalError), self._writing() as connection:
                (kept,) = connection.execute("SELECT count(*) FROM vector").fetchone()
                if kept + len(rows) > MOST_VECTORS:
                    # it is unknown which will be needed again
                    connection.execute("DELETE FROM vector")
                connection.executemany("INSERT OR IGNORE INTO vector VALUES(?, ?)", rows)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={int(_BUSY_S * 1000)}")


def _store(connection: sqlite3.Connection, one: ReadFile) -> None:
    pieces = one.pieces
    row = (
        one.path, one.path.rpartition("/")[2].lower(), one.oid, one.role, one.standing, pieces.language, pieces.lines,
        pieces.size, one.refused, _pack(pieces),
    )  # fmt: skip
    number = connection.execute(
        "INSERT INTO file(path, name, oid, role, standing, language, lines, size, refused, pieces)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    ).lastrowid
    if one.refused or number is None:
        return
    is_record = one.role == "record"
    connection.executemany(
        f"INSERT INTO {'work' if is_record else 'passage'}(rowid, terms) VALUES(?, ?)",
        ((number * MOST_CHUNKS + at, terms) for at, terms in enumerate(one.passages[:MOST_CHUNKS])),
    )
    if is_record:
        connection.execute("INSERT OR REPLACE INTO record VALUES(?, ?)", (one.path, one.text))
        return
    connection.execute("INSERT INTO names(rowid, terms) VALUES(?, ?)", (number, one.names))
    connection.execute("INSERT INTO place(rowid, terms) VALUES(?, ?)", (number, one.place))
    connection.executemany(
        "INSERT OR IGNORE INTO symbol VALUES(?, ?, ?)", ((name.lower(), name, number) for name in _defined(one))
    )


def _forget(connection: sqlite3.Connection, paths: Sequence[str]) -> None:
    query = "SELECT id FROM file WHERE path IN (SELECT value FROM json_each(?))"
    for (number,) in connection.execute(query, (json.dumps(list(paths)),)).fetchall():
        first = number * MOST_CHUNKS
        for table in ("passage", "work"):
            connection.execute(f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?", (first, first + MOST_CHUNKS - 1))
        for table in ("names", "place"):
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (number,))
        connection.execute("DELETE FROM symbol WHERE file = ?", (number,))
        connection.execute("DELETE FROM file WHERE id = ?", (number,))
    connection.execute("DELETE FROM record WHERE path IN (SELECT value FROM json_each(?))", (json.dumps(list(paths)),))


def _defined(one: ReadFile) -> list[str]:
    return sorted({defined.name for defined in one.pieces.definitions})


def _spell(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    """Store new names under their trigrams; those that no file defines any more do no harm."""
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM spelt").fetchone()
    connection.executemany("INSERT OR IGNORE INTO spelt(folded) VALUES(?)", ((name,) for name in sorted(names)))
    connection.execute("INSERT INTO spelling(rowid, folded) SELECT number, folded FROM spelt WHERE number > ?", (last,))


_pack = msgspec.msgpack.Encoder().encode
_pieces = msgspec.msgpack.Decoder(Pieces)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove_left(path: Path) -> None:
    """Remove index files of other versions and revisions that were not written for a long time."""
    for other in (one for kind in ("index", "records") for one in path.parent.glob(f"{kind}*.db")):
        files = [other.with_name(other.name + ending) for ending in ("", "-wal", "-shm")]
        newest = 0.0
        for file in files:
            with contextlib.suppress(OSError):
                newest = max(newest, os.stat(file).st_mtime)
        if other.name != path.name and 0 < newest < time.time() - _LEFT_S:
            for file in files:
                with contextlib.suppress(OSError):
                    file.unlink()
