"""The tables of ``.helix/helix.db``, and the migration from any generation of the plugin's database.

Helix v1's tables are as the plugin creates them; ours are beside them and kept in sync by triggers, even when the
plugin writes (docs/formats/memory.md §1, §2). The migration runs inside the caller's transaction.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.sqlite import plain
from helix_tui.core.ground.time import format_instant
from helix_tui.core.memory.records import TYPES
from helix_tui.core.memory.store.rows import number, teach

SEED_TABLES = """
CREATE TABLE IF NOT EXISTS memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('failure', 'pattern', 'systemic')),
    trigger TEXT NOT NULL,
    resolution TEXT NOT NULL,
    embedding BLOB,
    helped INTEGER DEFAULT 0,
    failed INTEGER DEFAULT 0,
    created_at TEXT NOT NULL,
    last_used TEXT,
    source TEXT DEFAULT ''
);
CREATE TABLE IF NOT EXISTS memory_edge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    from_name TEXT NOT NULL,
    to_name TEXT NOT NULL,
    rel_type TEXT NOT NULL,
    weight REAL DEFAULT 1.0,
    created_at TEXT NOT NULL,
    UNIQUE(from_name, to_name, rel_type)
);
CREATE TABLE IF NOT EXISTS exploration (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    objective TEXT NOT NULL,
    data TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS plan (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    objective TEXT NOT NULL,
    framework TEXT,
    idioms TEXT,
    tasks TEXT NOT NULL,
    status TEXT DEFAULT 'active',
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS workspace (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    plan_id INTEGER,
    task_seq TEXT NOT NULL,
    task_slug TEXT NOT NULL,
    objective TEXT NOT NULL,
    data TEXT NOT NULL,
    status TEXT DEFAULT 'active',
    delivered TEXT DEFAULT '',
    utilized TEXT DEFAULT '[]',
    created_at TEXT NOT NULL,
    FOREIGN KEY (plan_id) REFERENCES plan(id)
);
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS helix_edge_to ON memory_edge(to_name);
"""

ADDABLE: dict[str, dict[str, str]] = {
    "memory": {
        "embedding": "embedding BLOB",
        "helped": "helped INTEGER DEFAULT 0",
        "failed": "failed INTEGER DEFAULT 0",
        "created_at": "created_at TEXT",
        "last_used": "last_used TEXT",
        "source": "source TEXT DEFAULT ''",
    },
    "memory_edge": {"weight": "weight REAL DEFAULT 1.0", "created_at": "created_at TEXT"},
    "plan": {"framework": "framework TEXT", "idioms": "idioms TEXT", "status": "status TEXT DEFAULT 'active'"},
    "workspace": {
        "plan_id": "plan_id INTEGER",
        "status": "status TEXT DEFAULT 'active'",
        "delivered": "delivered TEXT DEFAULT ''",
        "utilized": "utilized TEXT DEFAULT '[]'",
    },
    "memory_extra": {
        "revision": "revision INTEGER NOT NULL DEFAULT 1",
        "lift_passed": "lift_passed REAL NOT NULL DEFAULT 0",
        "teacher": "teacher TEXT NOT NULL DEFAULT ''",
        "accepted": "accepted INTEGER NOT NULL DEFAULT 0",
        "taught": "taught TEXT NOT NULL DEFAULT ''",
    },
    "memory_revision": {
        "lift_passed": "lift_passed REAL NOT NULL DEFAULT 0",
        "teacher": "teacher TEXT NOT NULL DEFAULT 'import'",
        "accepted": "accepted INTEGER NOT NULL DEFAULT 1",
    },
    "proposal": {"teacher": "teacher TEXT NOT NULL DEFAULT ''"},
    "injection": {"scope": "scope TEXT NOT NULL DEFAULT 'task'"},
    "injection_memory": {"revision": "revision INTEGER NOT NULL DEFAULT 1"},
    "outcome": {"revision": "revision INTEGER NOT NULL DEFAULT 1", "passed": "passed REAL"},
}
"""Columns that a table of the plugin or of an earlier release may lack: column -> its definition."""

PLUGIN_VERSION = 9
"""The value written to the plugin's ``schema_version``: from this number on none of its releases runs the migrations
that drop ``memory``, ``memory_edge``, ``exploration``, ``plan`` and ``workspace`` (docs/formats/memory.md §2).
"""

OUR_VERSION = 1
"""Version of the tables below, kept in ``helix_meta``."""

OUR_TABLES = """
CREATE TABLE IF NOT EXISTS helix_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS memory_change (
    memory_id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX IF NOT EXISTS memory_change_seq ON memory_change(seq);
CREATE INDEX IF NOT EXISTS helix_memory_figures ON memory(type, helped, failed, last_used, created_at);
CREATE TABLE IF NOT EXISTS memory_extra (
    memory_id INTEGER PRIMARY KEY,
    verified_helped REAL NOT NULL DEFAULT 0,
    verified_failed REAL NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL DEFAULT 1,
    shown INTEGER NOT NULL DEFAULT 0,
    lift_trials REAL NOT NULL DEFAULT 0,
    lift_residual REAL NOT NULL DEFAULT 0,
    lift_injected INTEGER NOT NULL DEFAULT 0,
    lift_used INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 1,
    lift_passed REAL NOT NULL DEFAULT 0,
    teacher TEXT NOT NULL DEFAULT '',
    accepted INTEGER NOT NULL DEFAULT 0,
    taught TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS memory_revision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL,
    former_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    trigger TEXT NOT NULL,
    resolution TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    created_at TEXT,
    last_used TEXT,
    helped REAL NOT NULL DEFAULT 0,
    failed REAL NOT NULL DEFAULT 0,
    verified_helped REAL NOT NULL DEFAULT 0,
    verified_failed REAL NOT NULL DEFAULT 0,
    shown INTEGER NOT NULL DEFAULT 0,
    lift_trials REAL NOT NULL DEFAULT 0,
    lift_residual REAL NOT NULL DEFAULT 0,
    lift_injected INTEGER NOT NULL DEFAULT 0,
    lift_used INTEGER NOT NULL DEFAULT 0,
    replaced_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    lift_passed REAL NOT NULL DEFAULT 0,
    teacher TEXT NOT NULL DEFAULT 'import',
    accepted INTEGER NOT NULL DEFAULT 1,
    UNIQUE(former_id, number)
);
CREATE INDEX IF NOT EXISTS memory_revision_owner ON memory_revision(memory_id);
CREATE INDEX IF NOT EXISTS memory_revision_name ON memory_revision(name);
CREATE TABLE IF NOT EXISTS memory_mark (
    memory_id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL,
    rules TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS memory_occurrence (
    memory_id INTEGER NOT NULL,
    mark TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (memory_id, mark)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS memory_vector (
    memory_id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_vector_model ON memory_vector(model);
CREATE TABLE IF NOT EXISTS memory_trigger_vector (
    memory_id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_trigger_vector_model ON memory_trigger_vector(model);
CREATE TABLE IF NOT EXISTS memory_path (
    last TEXT NOT NULL,
    path TEXT NOT NULL,
    memory_id INTEGER NOT NULL,
    PRIMARY KEY (last, path, memory_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_path_owner ON memory_path(memory_id);
CREATE TABLE IF NOT EXISTS memory_key (
    memory_id INTEGER PRIMARY KEY,
    key TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_key_key ON memory_key(key);
CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING fts5(words, tokenize = "unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE IF NOT EXISTS memory_vocabulary USING fts5vocab(memory_words, row);
CREATE TABLE IF NOT EXISTS memory_variant (
    memory_id INTEGER NOT NULL,
    at TEXT NOT NULL,
    trigger TEXT NOT NULL,
    resolution TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS memory_variant_owner ON memory_variant(memory_id);
CREATE TABLE IF NOT EXISTS injection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    attempt TEXT NOT NULL DEFAULT '',
    bead TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    objective TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL,
    ranker TEXT NOT NULL,
    scope TEXT NOT NULL DEFAULT 'task'
);
CREATE TABLE IF NOT EXISTS agent_task (
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    agent TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS injection_attempt ON injection(attempt);
CREATE INDEX IF NOT EXISTS injection_bead ON injection(bead);
CREATE TABLE IF NOT EXISTS injection_memory (
    injection_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    memory_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    score REAL NOT NULL,
    relevance REAL NOT NULL,
    label TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (injection_id, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS injection_memory_owner ON injection_memory(memory_id);
CREATE TABLE IF NOT EXISTS claim (
    attempt TEXT NOT NULL,
    name TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (attempt, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settlement (
    attempt TEXT PRIMARY KEY,
    verdict TEXT,
    at TEXT NOT NULL,
    bead TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS outcome (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    attempt TEXT NOT NULL,
    memory_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    at TEXT NOT NULL,
    verdict TEXT,
    claimed INTEGER NOT NULL,
    helped REAL NOT NULL,
    failed REAL NOT NULL,
    bead TEXT NOT NULL DEFAULT '',
    trial REAL NOT NULL DEFAULT 0,
    residual REAL NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 1,
    passed REAL
);
CREATE INDEX IF NOT EXISTS outcome_attempt ON outcome(attempt);
CREATE INDEX IF NOT EXISTS outcome_owner ON outcome(memory_id);
CREATE TABLE IF NOT EXISTS approach (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL,
    approach TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS approach_task ON approach(task);
CREATE TABLE IF NOT EXISTS proposal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    attempt TEXT NOT NULL,
    bead TEXT NOT NULL DEFAULT '',
    type TEXT NOT NULL,
    trigger TEXT NOT NULL,
    resolution TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'open',
    at TEXT NOT NULL,
    memory TEXT NOT NULL DEFAULT '',
    teacher TEXT NOT NULL DEFAULT '',
    UNIQUE(attempt, type)
);
CREATE TABLE IF NOT EXISTS memory_deed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    way_back TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS task_kind (
    kind TEXT PRIMARY KEY,
    tried INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0
);
"""

_NEXT = "(SELECT coalesce(max(seq), 0) + 1 FROM memory_change)"

_CHANGED = f"""INSERT INTO memory_change(memory_id, seq, gone) VALUES (new.id, {_NEXT}, 0)
    ON CONFLICT(memory_id) DO UPDATE SET seq = excluded.seq, gone = 0;"""

OUR_TRIGGERS = f"""
CREATE TRIGGER IF NOT EXISTS helix_memory_added AFTER INSERT ON memory BEGIN
    {_CHANGED}
END;
CREATE TRIGGER IF NOT EXISTS helix_memory_changed AFTER UPDATE ON memory BEGIN
    {_CHANGED}
END;
CREATE TRIGGER IF NOT EXISTS helix_memory_removed AFTER DELETE ON memory BEGIN
    INSERT INTO memory_change(memory_id, seq, gone) VALUES (old.id, {_NEXT}, 1)
        ON CONFLICT(memory_id) DO UPDATE SET seq = excluded.seq, gone = 1;
    DELETE FROM memory_extra WHERE memory_id = old.id;
    DELETE FROM memory_vector WHERE memory_id = old.id;
    DELETE FROM memory_trigger_vector WHERE memory_id = old.id;
    DELETE FROM memory_path WHERE memory_id = old.id;
    DELETE FROM memory_key WHERE memory_id = old.id;
    DELETE FROM memory_variant WHERE memory_id = old.id;
    DELETE FROM memory_words WHERE rowid = old.id;
END;
CREATE TRIGGER IF NOT EXISTS helix_memory_history_removed AFTER DELETE ON memory BEGIN
    DELETE FROM memory_revision WHERE memory_id = old.id;
    DELETE FROM memory_occurrence WHERE memory_id = old.id;
END;
CREATE TRIGGER IF NOT EXISTS helix_memory_mark_removed AFTER DELETE ON memory BEGIN
    DELETE FROM memory_mark WHERE memory_id = old.id;
END;
"""

NEXT_SEQ = _NEXT
"""SQL for the next number of ``memory_change``."""


_CHECK = re.compile(r"CHECK\s*\(\s*\"?type\"?\s+IN\s*\(([^)]*)\)\s*\)", re.IGNORECASE)
_WIDE = f"CHECK (type IN ({', '.join(repr(name) for name in TYPES)}))"
_OBJECTS = frozenset(
    re.findall(
        r"CREATE (?:VIRTUAL TABLE|TABLE|UNIQUE INDEX|INDEX|TRIGGER) IF NOT EXISTS (\w+)",
        SEED_TABLES + OUR_TABLES + OUR_TRIGGERS,
    )
)
_WORDS = {"memory_words", "memory_path", "memory_key"}
_PASSED = """UPDATE memory_extra SET lift_passed = coalesce((SELECT sum(CASE verdict WHEN 'passed' THEN 1
WHEN 'partial' THEN 0.3 ELSE 0 END) FROM outcome WHERE outcome.memory_id = memory_extra.memory_id), 0)"""
"""A sum missing in earlier releases: the passed verified tasks in which a memory was shown."""
_EDGE = ("from_name", "to_name", "rel_type")
_ARROW = " -> "
_MAX_TRIGGER = 200


def tables(connection: sqlite3.Connection) -> set[str]:
    """Names of the tables, without SQLite's own."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {name for (name,) in rows}


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Names of a table's columns; empty if there is no such table."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def our_version(connection: sqlite3.Connection) -> int:
    """The version of our tables, 0 if they do not exist."""
    return _noted(connection, "version")


def needed(connection: sqlite3.Connection) -> bool:
    """Whether the database must be migrated, or the plugin has new insights."""
    return reshaping(connection) or _newest_insight(connection) > _insights_taken(connection)


def reshaping(connection: sqlite3.Connection) -> bool:
    """Whether tables or columns are missing, because of an older release, the plugin or manual edits."""
    return bool(
        our_version(connection) < OUR_VERSION
        or _OBJECTS - _objects(connection)
        or any(columns(connection, table) and _lacking(connection, table) for table in ADDABLE)
        or not _once(connection)
        or _narrow_check(connection)
    )


def bring_up_to_date(connection: sqlite3.Connection, now: int) -> None:
    """Add what is missing and import the plugin's data; the caller holds the write transaction."""
    if _narrow_check(connection):
        _widen_check(connection)
    # checked before they are created: new tables are empty
    indexed = _objects(connection) >= _WORDS
    known = columns(connection, "memory_extra")
    # columns first: indexes below name them
    for table in ADDABLE:
        if columns(connection, table):
            for column in _lacking(connection, table):
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    for statement in _statements(SEED_TABLES + OUR_TABLES + OUR_TRIGGERS):
        connection.execute(statement)
    if not _once(connection):
        _join_edges(connection)
        connection.execute(f"CREATE UNIQUE INDEX helix_edge_once ON memory_edge({', '.join(_EDGE)})")
    if known and "lift_passed" not in known:
        connection.execute(_PASSED)
    if not indexed:
        connection.execute("DELETE FROM memory_key")  # index memories without a key again
    connection.execute(
        "INSERT OR IGNORE INTO schema_version (version, applied_at) VALUES (?, ?)",
        (PLUGIN_VERSION, format_instant(now)),
    )
    newest = _newest_insight(connection)
    if newest > _insights_taken(connection):
        _take_over_insights(connection, now)
        _note(connection, "insights", newest)
    if "teacher" not in known:
        # once: what a program that names no teacher stores from now on is an agent's
        _adopt(connection)
    connection.execute(
        # memories stored before our triggers existed need a number too, or no index would read them
        f"INSERT INTO memory_change (memory_id, seq) SELECT id, {NEXT_SEQ} + row_number() OVER (ORDER BY id) "
        "FROM memory WHERE id NOT IN (SELECT memory_id FROM memory_change WHERE NOT gone) "
        "ON CONFLICT(memory_id) DO UPDATE SET seq = excluded.seq, gone = 0"
    )
    _note(connection, "version", OUR_VERSION)


def _adopt(connection: sqlite3.Connection) -> None:
    """Make imports of the memories that were there before memories said who taught them."""
    for (memory_id,) in connection.execute("SELECT id FROM memory").fetchall():
        teach(connection, memory_id, "import", accepted=True)
    connection.execute("UPDATE proposal SET teacher = 'attempt'")


def _objects(connection: sqlite3.Connection) -> set[str]:
    """Names of all tables, indexes and triggers."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def _lacking(connection: sqlite3.Connection, table: str) -> list[str]:
    """Definitions of the columns that a table lacks and that can be added."""
    have = columns(connection, table)
    return [definition for name, definition in ADDABLE[table].items() if name not in have]


def _once(connection: sqlite3.Connection) -> bool:
    """Whether the table of edges, if any, has no duplicates."""
    for index in connection.execute("PRAGMA index_list(memory_edge)").fetchall():
        keys = {row[2] for row in connection.execute(f'PRAGMA index_info("{index[1]}")')}
        if index[2] and keys == set(_EDGE):
            return True
    return not columns(connection, "memory_edge")


def _join_edges(connection: sqlite3.Connection) -> None:
    """Keep the oldest row of each edge, with the summed weights, as if related again."""
    by = ", ".join(_EDGE)
    twice = connection.execute(
        f"SELECT sum(coalesce(weight, 1.0)), min(rowid) FROM memory_edge GROUP BY {by} HAVING count(*) > 1"
    ).fetchall()
    connection.executemany("UPDATE memory_edge SET weight = ? WHERE rowid = ?", twice)
    connection.execute(f"DELETE FROM memory_edge WHERE rowid NOT IN (SELECT min(rowid) FROM memory_edge GROUP BY {by})")


def _noted(connection: sqlite3.Connection, key: str) -> int:
    if not columns(connection, "helix_meta"):
        return 0
    row = connection.execute("SELECT value FROM helix_meta WHERE key = ?", (key,)).fetchone()
    return int(row[0]) if row and str(row[0]).isdecimal() else 0


def _note(connection: sqlite3.Connection, key: str, value: int) -> None:
    connection.execute(
        "INSERT INTO helix_meta (key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        (key, str(value)),
    )


def _newest_insight(connection: sqlite3.Connection) -> int:
    if "id" not in columns(connection, "insight"):
        return 0
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM insight").fetchone()[0])


def _insights_taken(connection: sqlite3.Connection) -> int:
    """The last insight imported as a memory: one removed here must not come back."""
    return _noted(connection, "insights")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger's body is one of them."""
    collected = ""
    for line in script.splitlines(keepends=True):
        collected += line
        if sqlite3.complete_statement(collected):
            yield collected
            collected = ""


TRIGGERS = frozenset(plain(statement) for statement in _statements(OUR_TRIGGERS))
"""The only triggers that a database may have."""


def _narrow_check(connection: sqlite3.Connection) -> str:
    """The table's statement if its CHECK excludes one of the types, else ""."""
    row = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'memory'").fetchone()
    found = _CHECK.search(row[0]) if row and row[0] else None
    return row[0] if found and any(repr(name) not in found[1] for name in TYPES) else ""


def _widen_check(connection: sqlite3.Connection) -> None:
    wide = _CHECK.sub(_WIDE, _narrow_check(connection), count=1)
    # SQLite cannot alter a CHECK; a copy of the table would lose others' triggers and indexes
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'memory'", (wide,))
        # makes every other connection read the schema again
        connection.execute(f"PRAGMA schema_version = {version + 1}")
    finally:
        connection.execute("PRAGMA writable_schema = OFF")


def _take_over_insights(connection: sqlite3.Connection, now: int) -> None:
    """Make memories of insights that have none yet: ``effectiveness`` and ``use_count`` become the two counts.

    ``content`` was "trigger -> resolution" when the plugin made it from a memory; the type is then a tag. The table
    itself is not changed.
    """
    have = columns(connection, "insight")
    if not {"id", "name", "content", "effectiveness", "use_count", "created_at"} <= have:
        return
    taken = {row[0] for row in connection.execute("SELECT name FROM memory")}
    optional = ", ".join(name if name in have else "NULL" for name in ("last_used", "tags"))
    rows = connection.execute(
        f"SELECT name, content, effectiveness, use_count, created_at, {optional} FROM insight WHERE id > ? ORDER BY id",
        (_insights_taken(connection),),
    ).fetchall()
    names = {}
    for name, content, effectiveness, uses, created_at, last_used, tags in rows:
        # a memory of that name exists: imported before, or stored independently
        if name in taken:
            continue
        content = str(content or name)
        trigger, arrow, resolution = content.partition(_ARROW)
        # not made from a memory: all of it is the resolution, its beginning the trigger
        if not (arrow and trigger.strip() and resolution.strip()):
            trigger, resolution = content[:_MAX_TRIGGER], content
        share = min(1.0, number(effectiveness)) if isinstance(effectiveness, int | float) else 0.5
        total = number(uses)
        connection.execute(
            "INSERT INTO memory (name, type, trigger, resolution, helped, failed, created_at, last_used,"
            " source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'insight')",
            (
                name,
                _type_of(tags),
                trigger.strip(),
                resolution.strip(),
                _whole(share * total),
                _whole(total - share * total),
                created_at or format_instant(now),
                last_used,
            ),
        )
        names[name] = True
    _take_over_insight_edges(connection, set(names), now)


def _take_over_insight_edges(connection: sqlite3.Connection, added: set[str], now: int) -> None:
    if not {"src_id", "dst_id", "weight", "relation"} <= columns(connection, "insight_edges"):
        return
    rows = connection.execute(
        "SELECT a.name, b.name, e.relation, e.weight FROM insight_edges e "
        "JOIN insight a ON a.id = e.src_id JOIN insight b ON b.id = e.dst_id"
    ).fetchall()
    connection.executemany(
        "INSERT OR IGNORE INTO memory_edge (from_name, to_name, rel_type, weight, created_at) VALUES (?, ?, ?, ?, ?)",
        [(*row, format_instant(now)) for row in rows if row[0] in added or row[1] in added],
    )


def _type_of(tags: object) -> str:
    found = decode_json(tags) if isinstance(tags, str) else []
    known = [tag for tag in found if isinstance(tag, str) and tag in TYPES] if isinstance(found, list) else []
    return known[0] if known else "pattern"


def _whole(value: float) -> float:
    """A count without floating-point noise: 0.75 · 4 is 3."""
    return round(value) if abs(value - round(value)) < 1e-9 else value
