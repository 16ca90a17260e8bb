"""Opening databases: whose they are, what is done to them, what is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.records import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseForeign,
    DatabaseMissing,
    DatabaseNewer,
    MemoryFault,
)
from helix_tui.core.memory.store.database import open_database, writing


def test_a_new_database_is_made_with_its_folder_in_wal_mode(tmp_path: Path) -> None:
    database = open_database(tmp_path / ".helix" / "helix.db")
    assert database.journal_mode == "wal"
    assert {"memory", "memory_edge", "exploration", "plan", "workspace"} <= set(database.table_names())
    database.close()
    assert not list((tmp_path / ".helix").glob("*.bak"))


def test_reading_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing, match="no memory here"):
        open_database(tmp_path / ".helix" / "helix.db", read_only=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "helix.db"
    path.write_bytes(content)
    with pytest.raises(DatabaseCorrupt) as caught:
        open_database(path)
    assert caught.value.advice
    assert path.read_bytes() == content


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "helix.db").touch()
    with open_database(tmp_path / "helix.db") as database:
        assert "memory" in database.table_names()


@pytest.mark.parametrize(
    "script", ["CREATE TABLE bookmarks (id INTEGER)", "CREATE TABLE memory (id INTEGER, text TEXT)"]
)
def test_a_database_of_something_else_is_refused_untouched(tmp_path: Path, script: str) -> None:
    path = tmp_path / "helix.db"
    connection = sqlite3.connect(path)
    connection.execute(script)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseForeign):
        open_database(path)
    assert path.read_bytes() == before


def test_a_database_of_a_later_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "helix.db"
    with open_database(path) as database, writing(database):
        database.execute("UPDATE helix_meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(DatabaseNewer, match="99"):
        open_database(path)


def test_a_writer_that_does_not_let_go_is_named(tmp_path: Path) -> None:
    path = tmp_path / "helix.db"
    with (
        open_database(path) as other,
        open_database(path, busy_seconds=0.05) as database,
        writing(other),
        pytest.raises(sqlite3.OperationalError, match="locked"),
        writing(database),
    ):
        pass
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER helix_memory_added")
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseBusy):
        open_database(path, busy_seconds=0.05)
    connection.close()


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "helix.db").mkdir()
    with pytest.raises(MemoryFault):
        open_database(tmp_path / "helix.db")


def test_damage_inside_is_named_and_the_rest_left(tmp_path: Path) -> None:
    path = tmp_path / "helix.db"
    with open_memory(path, teacher="person") as memory:
        memory.store_many([(f"Failure number {number} of many", "x" * 900, "failure", "") for number in range(60)])
    whole = bytearray(path.read_bytes())
    for page in range(20, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(whole)
    with pytest.raises(DatabaseCorrupt) as caught, open_memory(path, teacher="person") as memory:
        memory.list()
    assert caught.value.advice
    assert path.read_bytes() == whole
