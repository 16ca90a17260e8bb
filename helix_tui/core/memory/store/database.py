"""The database ``.helix/helix.db``: open any generation of it; the base of every operation.

Opening refuses a file that is another program's, newer or damaged, and migrates an older one without losing a row; a
file that may not be written is opened read-only. `Base` is one open database with an encoder or none, a clock and the
index. Counts are kept in the plugin's row for the newest revision, in the history for an older one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlite_utils import Database

from helix_tui.core.embedding.minilm import Encoder
from helix_tui.core.ground.process import run
from helix_tui.core.ground.processes.programs import NEUTRAL
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.core.ground.trust.own_folders import NotUsed
from helix_tui.core.memory.provenance import Teacher
from helix_tui.core.memory.records import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseForeign,
    DatabaseFull,
    DatabaseMissing,
    DatabaseNewer,
    DatabaseReadOnly,
    Memory,
    MemoryFault,
    Mode,
)
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store import schema as migration
from helix_tui.core.memory.store.index import MemoryIndex
from helix_tui.core.memory.store.schema import OUR_VERSION

BUSY_SECONDS = 10.0
"""How long a writer waits for another process by default."""

_OURS_OR_PLUGIN = {"memory", "insight", "exploration", "plan", "workspace", "session_log", "helix_meta"}
_NEEDS = {
    "memory": {"id", "name", "type", "trigger", "resolution"},
    "memory_edge": {"id", "from_name", "to_name", "rel_type"},
    "exploration": {"id", "objective", "data", "created_at"},
    "plan": {"id", "objective", "tasks", "created_at"},
    "workspace": {"id", "task_seq", "task_slug", "objective", "data", "created_at"},
}
"""Columns required in a table of the plugin; others are added."""
_CACHE_KIB = 4_096
_BETWEEN_TRIES_S = 0.02
_COPY_SECONDS = 60.0
_NO_ROOM = ("full", "disk I/O")
"""SQLite's messages for a full disk."""

_MOST_KEPT = 512

WINDOW_DAYS = 7.0
"""The default window for becoming systemic (docs/formats/memory.md §6)."""


def database_path(project: Project, env: Mapping[str, str] | None = None) -> Path:
    """The path of a project's memory: ``HELIX_DB_PATH`` as the plugin reads it, else ``.helix/helix.db``."""
    env = os.environ if env is None else env
    named = env.get("HELIX_DB_PATH", "")
    return Path(os.path.abspath(named)) if named else project.helix_dir / "helix.db"


def open_database(path: Path, *, read_only: bool = False, busy_seconds: float = BUSY_SECONDS) -> Database:
    """Open the database at ``path``, creating or migrating it if needed.

    With ``read_only`` the file is not modified: an older one is migrated in an in-memory copy.

    Raises:
        MemoryFault: a subclass names the problem.
    """
    with guarded(path):
        _refuse_strange_file(path, read_only=read_only)
        if read_only:
            return _open_for_reading(path, busy_seconds)
        _refuse_read_only(path)
        connection = _connect(path, busy_seconds)
        try:
            _prepare(connection, path, busy_seconds)
        except BaseException:  # ctrl+c too must not leave the file open; it is raised again
            connection.close()
            raise
        return _database(connection)


def empty_database() -> Database:
    """An in-memory database, for a memory that does not exist."""
    database = _database(_connect(None, BUSY_SECONDS))
    with writing(database):
        migration.bring_up_to_date(database.conn, now_ns())
    return database


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system into a :class:`MemoryFault` with advice."""
    try:
        yield
    except NotUsed as error:
        raise DatabaseForeign(error.message, error.advice) from error
    except sqlite3.DatabaseError as error:
        raise _fault(path, error) from error
    except UnicodeEncodeError as error:
        raise MemoryFault("the text is not UTF-8", "Name it as `memory list` does.") from error
    except OSError as error:
        raise DatabaseReadOnly(
            f"{path}: {error.strerror or error}", "Look at the folder's permissions and the disk's free space."
        ) from error


@contextmanager
def writing(database: Database) -> Iterator[Database]:
    """An immediate write transaction: values read in it are still valid when written."""
    connection = database.conn
    # inside another one: the outer one ends it, so that all is written or nothing
    if connection.in_transaction:
        yield database
        return
    connection.execute("BEGIN IMMEDIATE")
    # our own triggers, the only ones here, keep an index of words, which SQLite calls unsafe
    connection.execute("PRAGMA trusted_schema = ON")
    try:
        yield database
    except BaseException:  # ctrl+c too must not leave a transaction open; it is raised again
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("COMMIT")


def _fault(path: Path, error: sqlite3.DatabaseError) -> MemoryFault:
    said = str(error)
    if "locked" in said or "busy" in said:
        return DatabaseBusy(
            f"{path} is in use: another process has been writing for too long",
            "Try again; `lsof` on the file shows who has it.",
        )
    if "readonly" in said or "unable to open" in said:
        return DatabaseReadOnly(f"{path} cannot be written: {said}", "Look at its permissions and its folder's.")
    if "interrupted" in said:
        return DatabaseCorrupt(
            f"{path} is damaged: reading it does not end", "Nothing was changed. Put a backup in its place."
        )
    if "not a database" in said:
        return DatabaseCorrupt(
            f"{path} is not an SQLite database", "Nothing was changed. Move it away or put a backup in its place."
        )
    if any(sign in said for sign in ("malformed", "corrupt", "vtable constructor failed")):
        return DatabaseCorrupt(
            f"{path} is damaged: {said}",
            "Nothing was changed. Move it away and put a backup in its place, or save what is readable with "
            "`sqlite3 helix.db .recover`.",
        )
    if any(sign in said for sign in _NO_ROOM):
        return DatabaseFull(f"{path} cannot be written: {said}", "Free disk space; nothing was half written.")
    return MemoryFault(
        f"{path} refuses it: {said}",
        "Nothing was changed. A constraint or trigger of somebody else's in it may be the cause: "
        "`sqlite3 helix.db .schema` shows them.",
    )


def _refuse_strange_file(path: Path, *, read_only: bool) -> None:
    if not path.exists():
        if read_only:
            raise DatabaseMissing(f"no memory here: there is no {path}", "`helix-tui memory store` creates one.")
        return
    if not path.is_file():
        raise DatabaseForeign(f"{path} is not a file", "Move it away.")


def _refuse_read_only(path: Path) -> None:
    """Raise at once what SQLite would only report at the first change."""
    for each in (path, path.parent):
        if each.exists() and not os.access(each, os.W_OK):
            if os.statvfs(each).f_flag & os.ST_RDONLY:
                raise DatabaseReadOnly(
                    f"{path} cannot be written: its disk is read-only",
                    "Mount the disk for writing, then try again; memories can still be read.",
                )
            raise DatabaseReadOnly(
                f"{path} cannot be written: no permission for {each.name}", "Look at its permissions and its folder's."
            )


def _connect(path: Path | None, busy_seconds: float, how: str = "mode=rwc", first: str = "") -> sqlite3.Connection:
    # any thread: the store's lock admits one at a time
    connection = connect(path, timeout=busy_seconds, how=how, triggers=migration.TRIGGERS, first=first)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _database(connection: sqlite3.Connection) -> Database:
    # otherwise every installed plugin of sqlite-utils would prepare the connection
    return Database(connection, execute_plugins=False)


def _open_for_reading(path: Path, busy_seconds: float) -> Database:
    connection = _readable(path, busy_seconds)
    try:
        _refuse_strangers(connection, path)
        if migration.needed(connection):
            with closing(connection):
                copy = _connect(None, busy_seconds)
                connection.backup(copy)
            with writing(_database(copy)):
                migration.bring_up_to_date(copy, now_ns())
            connection = copy
        connection.execute("PRAGMA query_only = ON")
    except BaseException:  # ctrl+c too must not leave the file open; it is raised again
        connection.close()
        raise
    return _database(connection)


def _readable(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection that cannot write. In WAL mode SQLite needs files beside the database even to read: if it cannot
    create them (no permission, disk full), the database is read unchanged, or with its log from a copy; if there is no
    room for that either, in exclusive mode.
    """
    try:
        return _connect(path, busy_seconds, "mode=ro")
    except sqlite3.OperationalError as error:
        if not any(sign in str(error) for sign in ("readonly", "unable to open", *_NO_ROOM)):
            raise
    log = path.with_name(f"{path.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return _connect(path, busy_seconds, "immutable=1")
    try:
        return _copied(path, log, busy_seconds)
    except OSError:
        # then the index of the log is kept in memory instead of a file
        return _connect(path, busy_seconds, "mode=rw", "PRAGMA locking_mode = EXCLUSIVE")


def _copied(path: Path, log: Path, busy_seconds: float) -> sqlite3.Connection:
    with tempfile.TemporaryDirectory() as folder:
        _copy_from_outside((path, log), Path(folder))
        copy = _connect(None, busy_seconds)
        with closing(_connect(Path(folder, path.name), busy_seconds)) as source:
            source.backup(copy)
    return copy


def _copy_from_outside(files: Iterable[Path], folder: Path) -> None:
    """Copy files of a database by another process.

    Closing any descriptor of a file releases every POSIX lock of this process on it, including those of all its
    connections (sqlite.org/howtocorrupt.html, 2.2): nothing in this program opens a database but SQLite.

    Raises:
        OSError: they cannot be copied.
    """
    command = ["cp", "--", *map(str, files), str(folder)]
    done = run(command, cwd=NEUTRAL, timeout=_COPY_SECONDS)
    if done.rc or done.timed_out:
        raise OSError(done.err.strip()[:300] or "cp failed")


def _prepare(connection: sqlite3.Connection, path: Path, busy_seconds: float) -> None:
    _refuse_strangers(connection, path)
    _use_wal(connection, busy_seconds)
    # with WAL a power cut may lose the last transactions, but damages nothing
    connection.execute("PRAGMA synchronous = NORMAL")
    if not migration.needed(connection):
        return
    with writing(_database(connection)):
        if migration.needed(connection):  # another process may have been faster
            _refuse_strangers(connection, path)
            # importing insights changes no existing row
            if migration.tables(connection) and migration.reshaping(connection):
                _back_up(path)
            migration.bring_up_to_date(connection, now_ns())


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to WAL; SQLite does not wait by itself while another process does the same to a new file."""
    until = time.monotonic() + busy_seconds
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_BETWEEN_TRIES_S)


def _refuse_strangers(connection: sqlite3.Connection, path: Path) -> None:
    tables = migration.tables(connection)
    # an empty file is a new database
    if tables and not tables & _OURS_OR_PLUGIN:
        raise DatabaseForeign(
            f"{path} is a database of something else (it has {', '.join(sorted(tables)[:4])})",
            "Nothing was changed. Move it away, or name another file with HELIX_DB_PATH.",
        )
    for table in sorted(tables & _NEEDS.keys()):
        if lacking := _NEEDS[table] - migration.columns(connection, table):
            what = f"a table {table} without {', '.join(sorted(lacking))}"
            raise DatabaseForeign(
                f"{path} has {what}: neither the plugin's nor ours",
                "Nothing was changed. Move it away, or name another file with HELIX_DB_PATH.",
            )
    version = migration.our_version(connection)
    if version > OUR_VERSION:
        raise DatabaseNewer(
            f"{path} was written by a newer helix-tui (version {version}, this one knows {OUR_VERSION})",
            "Nothing was changed. Update helix-tui.",
        )


def _back_up(path: Path) -> None:
    """Copy the file to an unused name beside it, before anything is migrated."""
    stamp = format_instant(now_ns()).replace(":", "").replace("-", "")
    names = (f"{path.name}.{stamp}{f'-{number}' if number else ''}.bak" for number in count())
    copy = next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))
    # a separate connection sees the state before the open transaction
    with closing(_connect(path, BUSY_SECONDS)) as source, closing(_connect(copy, BUSY_SECONDS)) as target:
        source.backup(target)


def window_days(env: Mapping[str, str] | None = None) -> float:
    """The window from HELIX_SYSTEMIC_DAYS, or the default if that is not a number of days."""
    text = (os.environ if env is None else env).get("HELIX_SYSTEMIC_DAYS", "")
    try:
        days = float(text) if text else WINDOW_DAYS
    except ValueError:
        return WINDOW_DAYS
    return days if 0 < days < 100_000 else WINDOW_DAYS


Vector = NDArray[np.float32]


class Base(Struct):
    """One open memory."""

    path: Path
    database: Database
    encoder: Encoder | None
    detail: str
    """The encoder in use, or why there is none."""
    clock: Callable[[], int]
    read_only: bool
    index: MemoryIndex
    window_days: float = WINDOW_DAYS
    """Days within which three occurrences make a failure systemic (docs/decisions/0013)."""
    teacher: Teacher = "agent"
    """Who whatever is stored here is taught by."""
    _encoded: dict[str, Vector] = {}

    @property
    def mode(self) -> Mode:
        """How texts are compared: ``semantic`` or ``keyword``."""
        return "keyword" if self.encoder is None else "semantic"

    @property
    def model(self) -> str:
        """The model of the vectors that can be compared; empty for none."""
        return "" if self.encoder is None else self.encoder.model_id

    def now(self) -> int:
        """The instant to judge by, nanoseconds."""
        return self.clock()

    def now_seconds(self) -> float:
        """The instant to judge by, seconds."""
        return self.clock() / NS

    def encode(self, texts: Sequence[str]) -> list[Vector] | None:
        """A unit vector for each text, None without an encoder; the latest texts are cached."""
        if self.encoder is None:
            return None
        new = [text for text in dict.fromkeys(texts) if text not in self._encoded]
        if new:
            # keep only what this call needs: it is read below
            if len(self._encoded) + len(new) > _MOST_KEPT:
                known = {text: self._encoded[text] for text in texts if text in self._encoded}
                self._encoded = known
            self._encoded |= zip(new, self.encoder.encode(new), strict=True)
        return [self._encoded[text] for text in texts]

    @contextmanager
    def reading(self) -> Iterator[MemoryIndex]:
        """The index at one state of the database, fixed inside the block."""
        connection = self.database.conn
        nested = connection.in_transaction
        if not nested:
            connection.execute("BEGIN")
        try:
            self.index.refresh(self.database)
            yield self.index
        finally:
            if not nested and connection.in_transaction:
                connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[MemoryIndex]:
        """The index inside one write transaction: no other process can write until it ends."""
        try:
            with writing(self.database):
                self.index.refresh(self.database)
                yield self.index
        except BaseException:  # a ctrl+c rolls the transaction back as well; it is raised again
            self.index.forget()  # it may have read what is now rolled back
            raise


def is_newest(base: Base, memory_id: int, revision: int) -> bool:
    """Whether this is the newest revision of an existing memory."""
    row = base.database.execute(
        "SELECT coalesce(e.revision, 1) FROM memory m LEFT JOIN memory_extra e ON e.memory_id = m.id WHERE m.id = ?",
        [memory_id],
    ).fetchone()
    return row is not None and row[0] == revision


def credit(base: Base, memory: Memory, *, helped: float, failed: float, used_at: str | None) -> None:
    """Add to a revision's two counts, not below 0; ``used_at`` is the time of use, if any."""
    values = (whole(helped), whole(failed), used_at)
    connection = base.database.conn
    changes = (
        # manual edits or the plugin may have left NULL, or less than is subtracted now
        " SET helped = max(0, coalesce(helped, 0) + ?), failed = max(0, coalesce(failed, 0) + ?),"
        " last_used = coalesce(?, last_used)"
    )
    if is_newest(base, memory.id, memory.revision):
        connection.execute(f"UPDATE memory{changes} WHERE id = ?", (*values, memory.id))
    else:
        connection.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?", (*values, memory.id, memory.revision)
        )


def discredit(base: Base, memory_id: int, revision: int, last_used: str | None) -> None:
    """Subtract one helped from a revision and restore its last use."""
    changes = " SET helped = max(0, helped - 1), last_used = ?"
    if is_newest(base, memory_id, revision):
        base.database.conn.execute(f"UPDATE memory{changes} WHERE id = ?", (last_used, memory_id))
    else:
        base.database.conn.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?", (last_used, memory_id, revision)
        )


def add_evidence(
    base: Base,
    memory: Memory,
    *,
    helped: float,
    failed: float,
    trial: float,
    residual: float,
    injected: int,
    used: int,
    passed: float,
) -> None:
    """Add a verified outcome to a revision."""
    values = (helped, failed, trial, residual, injected, used, passed)
    changes = (
        " SET verified_helped = verified_helped + ?, verified_failed = verified_failed + ?,"
        " lift_trials = lift_trials + ?, lift_residual = lift_residual + ?,"
        " lift_injected = lift_injected + ?, lift_used = lift_used + ?, lift_passed = lift_passed + ?"
    )
    connection = base.database.conn
    if is_newest(base, memory.id, memory.revision):
        connection.execute("INSERT OR IGNORE INTO memory_extra (memory_id) VALUES (?)", (memory.id,))
        connection.execute(f"UPDATE memory_extra{changes} WHERE memory_id = ?", (*values, memory.id))
        rows.bump(connection, [memory.id])
    else:
        connection.execute(
            f"UPDATE memory_revision{changes} WHERE former_id = ? AND number = ?", (*values, memory.id, memory.revision)
        )


def whole(value: float) -> int | float:
    """Keep whole counts as integers in the plugin's columns."""
    return int(value) if value == int(value) else value
