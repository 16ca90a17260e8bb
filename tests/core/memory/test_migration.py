"""Databases of the published plugin, in its three generations: every row is kept, and it goes on working."""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path

import pytest

from helix_tui.core.embedding.minilm import MODEL_ID
from helix_tui.core.memory.memory_store import look_into
from helix_tui.core.memory.records import DatabaseMissing, DatabaseReadOnly
from helix_tui.core.memory.tasks.plans import Plans
from tests.core.memory.conftest import Opener, Plane

# What each generation's own code runs on opening (docs/formats/memory.md §2); names and types are facts.
FIRST = """
CREATE TABLE memory (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('failure', 'pattern')), trigger TEXT NOT NULL,
    resolution TEXT NOT NULL, embedding BLOB, helped INTEGER DEFAULT 0, failed INTEGER DEFAULT 0,
    created_at TEXT NOT NULL, last_used TEXT, source TEXT DEFAULT '');
CREATE TABLE memory_edge (id INTEGER PRIMARY KEY AUTOINCREMENT, from_name TEXT NOT NULL,
    to_name TEXT NOT NULL, rel_type TEXT NOT NULL, weight REAL DEFAULT 1.0, created_at TEXT NOT NULL,
    UNIQUE(from_name, to_name, rel_type));
CREATE TABLE exploration (id INTEGER PRIMARY KEY AUTOINCREMENT, objective TEXT NOT NULL,
    data TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE plan (id INTEGER PRIMARY KEY AUTOINCREMENT, objective TEXT NOT NULL, framework TEXT,
    idioms TEXT, tasks TEXT NOT NULL, status TEXT DEFAULT 'active', created_at TEXT NOT NULL);
CREATE TABLE workspace (id INTEGER PRIMARY KEY AUTOINCREMENT, plan_id INTEGER, task_seq TEXT NOT NULL,
    task_slug TEXT NOT NULL, objective TEXT NOT NULL, data TEXT NOT NULL, status TEXT DEFAULT 'active',
    delivered TEXT DEFAULT '', utilized TEXT DEFAULT '[]', created_at TEXT NOT NULL,
    FOREIGN KEY (plan_id) REFERENCES plan(id));
"""
SECOND = """
CREATE TABLE memory (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, type TEXT NOT NULL,
    trigger TEXT NOT NULL, resolution TEXT NOT NULL, helped REAL DEFAULT 0, failed REAL DEFAULT 0,
    embedding BLOB, source TEXT DEFAULT '', created_at TEXT NOT NULL, last_used TEXT, file_patterns TEXT);
CREATE INDEX idx_memory_type ON memory(type);
CREATE TABLE memory_edge (id INTEGER PRIMARY KEY AUTOINCREMENT, from_name TEXT NOT NULL,
    to_name TEXT NOT NULL, rel_type TEXT NOT NULL, weight REAL DEFAULT 1.0, created_at TEXT NOT NULL,
    UNIQUE(from_name, to_name, rel_type));
CREATE TABLE memory_file_pattern (memory_name TEXT NOT NULL, pattern TEXT NOT NULL,
    PRIMARY KEY (memory_name, pattern),
    FOREIGN KEY (memory_name) REFERENCES memory(name) ON DELETE CASCADE);
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
INSERT INTO schema_version VALUES (2, '2026-01-25 18:00:00');
"""
THIRD = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
INSERT INTO schema_version VALUES (13, '2026-03-01 10:00:00');
CREATE TABLE insight (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL,
    content TEXT NOT NULL, embedding BLOB, effectiveness REAL DEFAULT 0.5, use_count INTEGER DEFAULT 0,
    causal_hits INTEGER DEFAULT 0, created_at TEXT NOT NULL, last_used TEXT, last_feedback_at TEXT,
    recent_uses INTEGER DEFAULT 0, context_spread REAL, context_centroid BLOB, tags TEXT DEFAULT '[]');
CREATE TABLE insight_edges (src_id INTEGER NOT NULL, dst_id INTEGER NOT NULL, weight REAL NOT NULL,
    relation TEXT NOT NULL DEFAULT 'similar', created_at TEXT NOT NULL,
    PRIMARY KEY (src_id, dst_id, relation));
CREATE TABLE session_log (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
    agent_type TEXT NOT NULL, task_id TEXT, outcome TEXT, summary TEXT, transcript_hash TEXT,
    created_at TEXT NOT NULL);
"""
OLD_VECTOR = struct.pack("<384f", *([0.5] * 384))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".helix" / "helix.db"


def _make(path: Path, script: str, *rows: tuple[str, tuple[object, ...]]) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.executescript(script)
    for sql, values in rows:
        connection.execute(sql, values)
    connection.commit()
    connection.close()


def _all(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


INSERT = (
    "INSERT INTO memory (name, type, trigger, resolution, embedding, helped, failed, created_at, last_used,"
    " source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ROWS = (
    (INSERT, ("import-loop", "failure", "Import loop in src/auth.py", "Split it", OLD_VECTOR, 3, 1,
              "2026-01-20T10:00:00.123456", "2026-01-22T11:00:00", "ws-1")),
    (INSERT, ("use-depends", "pattern", "FastAPI auth wanted", "Use Depends()", None, 0, 0,
              "2026-01-21T10:00:00", None, "")),
    ("INSERT INTO memory_edge (from_name, to_name, rel_type, weight, created_at) VALUES (?, ?, ?, ?, ?)",
     ("use-depends", "import-loop", "solves", 1.5, "2026-01-21T10:00:00")),
)  # fmt: skip


@pytest.mark.parametrize("script", [FIRST, SECOND])
def test_rows_counts_and_edges_are_kept(opener: Opener, path: Path, script: str, plane: Plane) -> None:
    _make(path, script, *ROWS)
    before = _all(path, "SELECT id, name, type, trigger, resolution, embedding, helped, failed FROM memory")
    memory = opener(plane)
    assert _all(path, "SELECT id, name, type, trigger, resolution, embedding, helped, failed FROM memory") == before
    found = memory.get("import-loop")
    assert found is not None
    assert (found.helped, found.failed, found.effectiveness) == (3, 1, 0.75)
    assert found.verified_helped == 0
    assert [edge.weight for edge in memory.edges("import-loop")] == [1.5]
    assert _all(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("script", [FIRST, SECOND, THIRD])
def test_a_copy_is_put_beside_before_anything_is_changed(opener: Opener, path: Path, script: str) -> None:
    _make(path, script, *(ROWS if script != THIRD else ()))
    tables = _all(path, "SELECT name, sql FROM sqlite_master ORDER BY name")
    opener()
    copies = list(path.parent.glob("*.bak"))
    assert len(copies) == 1
    assert _all(copies[0], "SELECT name, sql FROM sqlite_master ORDER BY name") == tables
    opener()
    assert len(list(path.parent.glob("*.bak"))) == 1


def test_a_first_generation_database_takes_systemic_memories_from_then_on(
    opener: Opener, path: Path, plane: Plane
) -> None:
    _make(path, FIRST, *ROWS)
    memory = opener(plane)
    assert memory.store("Something systemic is the matter", "Redesign it", "systemic").status == "added"
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(INSERT, ("x", "nonsense", "t", "r", None, 0, 0, "2026-01-01", None, ""))
    connection.close()


def test_opening_an_unknown_type_keeps_it(opener: Opener, path: Path) -> None:
    values = (
        "a-decision",
        "decision",
        "Which database to use",
        "SQLite",
        None,
        2,
        0,
        "2026-01-26T10:00:00",
        None,
        "",
    )
    _make(path, SECOND, *ROWS, (INSERT, values))
    memory = opener()
    assert [each.type for each in memory.list()] == ["decision", "pattern", "failure"]
    assert memory.health().by_type["decision"].helped == 2


def test_files_that_the_plugin_listed_are_matched(opener: Opener, path: Path, plane: Plane) -> None:
    _make(path, SECOND, *ROWS)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memory SET file_patterns = '[\"lib/tides.py\"]' WHERE name = 'use-depends'")
    connection.commit()
    connection.close()
    memory = opener(plane)
    for _ in range(2):
        found = memory.recall("anything", files=["lib/tides.py"], gate=0.9).found
        assert [hit.memory.name for hit in found] == ["use-depends"]
        known = found[0].memory
        merged = memory.store(f"{known.trigger}.", known.resolution, known.type)  # another wording of it
        assert (merged.status, merged.name) == ("merged", "use-depends")


def test_insights_become_memories_with_their_counts_and_stay_insights(opener: Opener, path: Path, plane: Plane) -> None:
    columns = "name, content, effectiveness, use_count, created_at, tags"
    insert = f"INSERT INTO insight ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
    _make(
        path,
        THIRD,
        (insert, ("loop", "Import loop in auth -> Split it", 0.75, 4, "2026-03-01T10:00:00", '["failure"]')),
        (insert, ("plain", "When deploying on Fridays, wait", 0.5, 0, "2026-03-02T10:00:00", "[]")),
        ("INSERT INTO insight_edges VALUES (1, 2, 0.7, 'similar', '2026-03-02')", ()),
    )
    memory = opener(plane)
    loop, plain = memory.get("loop"), memory.get("plain")
    assert loop is not None
    assert plain is not None
    assert (loop.trigger, loop.resolution, loop.type) == ("Import loop in auth", "Split it", "failure")
    assert (loop.helped, loop.failed) == (3, 1)
    assert (plain.resolution, plain.helped + plain.failed) == ("When deploying on Fridays, wait", 0)
    assert [(edge.rel_type, edge.weight) for edge in memory.edges("loop")] == [("similar", 0.7)]
    assert len(_all(path, "SELECT * FROM insight")) == 2
    memory.remove(["plain"])
    memory.close()
    connection = sqlite3.connect(path)
    connection.execute(insert, ("late", "Had by the plugin later -> So", 1.0, 2, "2026-03-03T10:00:00", "[]"))
    connection.commit()
    connection.close()
    again = opener(plane)
    assert {each.name: each.helped for each in again.list()} == {"late": 2, "loop": 3}
    assert len(list(path.parent.glob("*.bak"))) == 1


def test_no_release_of_the_plugin_will_drop_what_we_keep(opener: Opener, path: Path) -> None:
    # Its migrations run for versions above max(schema_version); the one that drops `memory` is its ninth.
    _make(path, FIRST, *ROWS)
    opener()
    newest = _all(path, "SELECT max(version) FROM schema_version")[0][0]
    assert isinstance(newest, int)
    assert newest >= 9


def test_what_was_stored_without_an_encoder_gets_the_plugins_vector_too(opener: Opener, path: Path) -> None:
    name = opener(None).store("Written while nothing could encode", "Do it so").name
    # the plugin recalls only rows that have one
    held = f"SELECT length(embedding) FROM memory WHERE name = '{name}'"
    assert _all(path, held) == [(None,)]
    assert opener(Plane("another-model")).embed() == 1
    assert _all(path, held) == [(None,)]
    assert opener(Plane(MODEL_ID)).embed() == 1
    assert _all(path, held) == [(1536,)]


def test_the_plugins_own_statements_still_work(opener: Opener, path: Path) -> None:
    encoder = Plane(MODEL_ID)
    _make(path, FIRST, *ROWS)
    memory = opener(encoder)
    name = memory.store("Our own failure to keep", "Do it so").name
    row = _all(path, f"SELECT embedding, helped, created_at FROM memory WHERE name = '{name}'")[0]
    assert isinstance(row[0], bytes)
    assert len(row[0]) == 1536
    assert row[2] == "2026-06-01T12:00:00Z"
    connection = sqlite3.connect(path)
    connection.execute(INSERT, ("from-plugin", "failure", "Written by the plugin", "so", OLD_VECTOR, 0, 0,
                                "2026-06-01T11:00:00", None, ""))  # fmt: skip
    connection.execute("UPDATE memory SET helped = helped + 1 WHERE name = 'import-loop'")
    connection.execute("DELETE FROM memory WHERE name = 'use-depends'")
    connection.commit()
    connection.close()
    names = {hit.memory.name: hit for hit in memory.recall("Written by the plugin so", limit=10).found}
    assert names["from-plugin"].similarity == pytest.approx(1, abs=1e-5)
    assert names["import-loop"].memory.helped == 4
    assert "use-depends" not in names
    assert memory.store("Written by the plugin", "so").status == "added", "what an agent's program wrote waits, apart"
    memory.set_accepted(["from-plugin"])
    assert memory.store("Written by the plugin", "another way").status == "revised"
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT resolution, helped FROM memory WHERE name = 'from-plugin'").fetchone()
    connection.close()
    assert row == ("another way", 0)


def test_unlabelled_vectors_are_never_compared(opener: Opener, path: Path, plane: Plane) -> None:
    _make(path, FIRST, *ROWS)
    memory = opener(plane, read_only=True)
    found = memory.recall("Import loop")
    assert all(hit.similarity is None for hit in found.found)
    assert "without a vector" in found.detail
    assert found.found[0].memory.name == "import-loop"


def test_reading_only_leaves_an_old_database_as_it_is(opener: Opener, path: Path) -> None:
    _make(path, FIRST, *ROWS)
    before = path.read_bytes()
    memory = opener(read_only=True)
    assert len(memory.list()) == 2
    memory.close()
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.bak"))
    path.unlink()
    with pytest.raises(DatabaseMissing):
        opener(read_only=True)


def test_times_without_a_zone_are_local_and_spoilt_ones_are_unknown(opener: Opener, path: Path) -> None:
    _make(path, FIRST, *ROWS)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memory SET created_at = 'yesterday', last_used = NULL WHERE id = 2")
    connection.commit()
    connection.close()
    memory = opener()
    spoilt = memory.get(2)
    assert spoilt is not None
    assert spoilt.created_at is None
    recalled = {hit.memory.name: hit.recency for hit in memory.recall("anything").found}
    assert recalled["use-depends"] == 0.5
    assert 0 <= recalled["import-loop"] <= 1


def test_an_edge_that_stands_there_twice_is_joined_when_it_is_opened(opener: Opener, path: Path) -> None:
    script = FIRST.replace(",\n    UNIQUE(from_name, to_name, rel_type)", "")
    _make(path, script, *ROWS, ROWS[2])
    memory = opener()
    assert [(edge.from_name, edge.to_name, edge.weight) for edge in memory.edges()] == [
        ("use-depends", "import-loop", 3.0)
    ]
    assert len(memory.list()) == 2


@pytest.mark.parametrize(
    ("left_out", "instead"),
    [
        (", source TEXT DEFAULT ''", ""),
        ("embedding BLOB, ", ""),
        ("last_used TEXT, ", ""),
        (" weight REAL DEFAULT 1.0,", ""),
        (",\n    UNIQUE(from_name, to_name, rel_type)", ""),
        ("idioms TEXT, ", ""),
        ("plan_id INTEGER, ", ""),
    ],
)
def test_what_a_table_of_the_plugin_lacks_is_added(
    opener: Opener, path: Path, plane: Plane, left_out: str, instead: str
) -> None:
    script = FIRST.replace(",\n    FOREIGN KEY (plan_id) REFERENCES plan(id)", "")
    assert left_out in script
    known = "INSERT INTO memory (name, type, trigger, resolution, created_at) VALUES (?, ?, ?, ?, ?)"
    row = ("import-loop", "failure", "Import loop in src/auth.py", "Split it", "2026-01-20T10:00:00")
    _make(path, script.replace(left_out, instead), (known, row))
    memory = opener(plane)
    new = memory.store("Our own failure to keep", "Do it so").name
    for _ in range(2):
        memory.relate(new, "import-loop", "causes")
    assert [edge.weight for edge in memory.edges(new, "causes")] == [2]
    plans = Plans(memory)
    assert (plans.plans(), plans.workspaces(), len(memory.list())) == ([], [], 2)
    assert len(list(path.parent.glob("*.bak"))) == 1


OURS = "injection memory_extra memory_change settlement memory_words memory_key memory_edge plan helix_meta"


@pytest.mark.parametrize("table", OURS.split())
def test_a_table_that_somebody_has_dropped_is_made_again(opener: Opener, path: Path, plane: Plane, table: str) -> None:
    memory = opener(plane)
    name = memory.store("Import loop in src/auth.py", "Split it").name
    memory.close()
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TABLE {table}")
    connection.close()
    memory = opener(plane)
    assert memory.inject("Import loop", files=["src/auth.py"], attempt="a").shown[0].name == name
    assert memory.recall("parsing of ImportLoop src/auth.py").found[0].keyword > 0
    assert memory.feedback(attempt="a", utilized=[name], verified="passed").helped == (name,)
    assert memory.health().total == 1


def test_insights_that_a_hand_has_spoilt_are_kept(opener: Opener, path: Path, plane: Plane) -> None:
    insert = "INSERT INTO insight (name, content, effectiveness, use_count, tags, created_at) VALUES (?,?,?,?,?,?)"
    _make(
        path,
        THIRD,
        (insert, ("a", "", None, None, "no json", "then")),
        (insert, ("b", "text", 9e999, -3, "{}", "then")),
        (insert, ("c", b"\xff\0", "abc", "xyz", None, "then")),
    )
    memory = opener(plane)
    counts = [(each.name, each.helped, each.failed) for each in memory.list()]
    assert counts == [("c", 0, 0), ("b", 0, 0), ("a", 0, 0)]
    assert memory.recall("text").found


@pytest.mark.parametrize("spoilt", [b"", b"\0", b"\0" * 1024, b"\0\0\xc0\x7f" * 384])
def test_a_spoilt_vector_spoils_no_other(opener: Opener, path: Path, plane: Plane, spoilt: bytes) -> None:
    memory = opener(plane)
    for text in ("The first of all failures", "The second of all failures", "The third of all failures"):
        memory.store(text, "do it otherwise", "pattern")
    with memory.write() as db:
        for table in ("memory_vector", "memory_trigger_vector"):
            db.execute(f"UPDATE {table} SET vector = ? WHERE memory_id = 1", [spoilt])
    memory.close()
    memory = opener(plane)
    query = "The third of all failures do it otherwise"
    assert memory.recall(query, limit=1).found[0].memory.id == 3
    assert memory.store("The second of all failures", "x", "pattern").id == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("log", [False, True])
def test_what_may_not_be_written_is_read(opener: Opener, path: Path, plane: Plane, log: bool) -> None:
    memory = opener(plane)
    memory.store("Import loop in src/auth.py", "Split it")
    kept = {each: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
    memory.close()
    if log:
        for file, content in kept.items():
            file.write_bytes(content)
    path.parent.chmod(0o555)
    try:
        with look_into(path, plane) as looked:
            assert looked.read_only
            assert len(looked.recall("Import loop").found) == 1
            assert looked.inject("Import loop in src/auth.py", attempt="a").text
            with pytest.raises(DatabaseReadOnly):
                looked.store("Another failure to keep", "so")
    finally:
        path.parent.chmod(0o755)


def test_without_permission_it_is_opened_for_reading(
    opener: Opener, path: Path, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener(plane).store("Import loop in src/auth.py", "Split it")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DatabaseReadOnly, match="no permission"):
        opener(plane)
    with look_into(path, plane) as looked:
        assert (looked.read_only, len(looked.list())) == (True, 1)
