"""Nothing but SQLite opens a database: closing any descriptor of a file gives up the process's locks on it.

https://www.sqlite.org/howtocorrupt.html, 2.2: the lost lock lets another process end the write-ahead log that
this one still writes to.
"""

from __future__ import annotations

import ast
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ask.index.database import Database as AskDatabase
from helix_tui.core.memory.store.database import open_database, writing
from tests.sources import nodes_of

PACKAGE = Path(__file__).resolve().parents[3] / "helix_tui"

OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0.2, isolation_level=None)
connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
try:
    connection.execute("PRAGMA journal_mode = DELETE")
except sqlite3.OperationalError:
    pass
print(connection.execute("PRAGMA journal_mode").fetchone()[0])
connection.close()
"""
"""Another program that wants the database for itself: it may only where nobody else has it open."""


def _other_process_gets(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def _look(path: Path) -> None:
    open_database(path).close()


def _look_only(path: Path) -> None:
    open_database(path, read_only=True).close()


@pytest.mark.parametrize("look", [_look, _look_only])
def test_a_second_look_leaves_the_locks_of_the_first(tmp_path: Path, look: Callable[[Path], None]) -> None:
    path = tmp_path / "helix.db"
    with open_database(path) as database:
        with writing(database):
            database.execute("INSERT INTO helix_meta(key, value) VALUES('a', '1')")
        look(path)
        assert _other_process_gets(path) == "wal"  # somebody else has it open: the log may not be ended
        with writing(database):
            database.execute("INSERT INTO helix_meta(key, value) VALUES('b', '2')")
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert _other_process_gets(path) == "delete"  # and now nobody has


def test_the_other_process_does_break_in_where_the_file_was_opened(tmp_path: Path) -> None:
    """That the test above can fail: this is what opening and closing the file does."""
    path = tmp_path / "helix.db"
    with open_database(path) as database:
        database.execute("SELECT count(*) FROM memory").fetchone()
        os.close(os.open(path, os.O_RDONLY))
        assert _other_process_gets(path) == "delete"


def test_the_index_of_ask_keeps_its_locks_while_it_is_opened_twice(tmp_path: Path) -> None:
    path = tmp_path / "ask" / "index.db"
    first = AskDatabase(path)
    AskDatabase(path).close()
    assert first.count() == 0
    assert _other_process_gets(path) == "wal"
    first.close()


def test_a_log_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    """The copy of a database and its log is made by another process, and holds what the log holds."""
    from helix_tui.core.memory.store.database import _copy_from_outside

    path, copy = tmp_path / "helix.db", tmp_path / "copy"
    copy.mkdir()
    with open_database(path) as database:
        with writing(database):
            database.execute("INSERT INTO helix_meta(key, value) VALUES('a', '1')")
        _copy_from_outside((path, path.with_name("helix.db-wal")), copy)
        assert _other_process_gets(path) == "wal"
    found = sqlite3.connect(copy / "helix.db")
    assert found.execute("SELECT value FROM helix_meta WHERE key = 'a'").fetchone() == ("1",)
    found.close()
    with pytest.raises(OSError, match="nowhere"):
        _copy_from_outside((tmp_path / "nowhere",), copy)


OPENERS = {
    "open",
    "read_bytes",
    "read_text",
    "write_bytes",
    "write_text",
    "touch",
    "copyfile",
    "copy",
    "copy2",
}
HOMES = ("core/memory", "core/ask/index/store")
"""The rooms whose files are databases."""


def _calls(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            yield node.lineno, ast.unparse(function) if name in OPENERS else ""


def test_no_code_beside_sqlite_opens_a_database() -> None:
    allowed = {
        ("core/memory/store/database.py", "os.open"),  # makes the empty file that a backup is written into
        ("core/memory/tasks/task_check.py", "read_bytes"),  # the sources that an agent's task names
    }
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for home in HOMES
        for path in (PACKAGE / home).rglob("*.py")
        for _, name in _calls(path)
        if name and name not in {"self._open", "open_database"}
    }
    assert found <= allowed
    named = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        for line, text in enumerate(path.read_text().splitlines(), 1)
        if ("helix.db" in text or "database_path(" in text or "index.db" in text)
        and any(f"{opener}(" in text for opener in OPENERS)
    ]
    assert not named
