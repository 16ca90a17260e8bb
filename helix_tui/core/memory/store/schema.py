"""The tables of ``.helix/helix.db``: helix v1's as they stand, and ours beside them.

The published plugin knows the first group, in three generations (docs/formats/memory.md §2). Ours hang
on ``memory.id`` and are kept in step by triggers, so they stay true when the plugin writes; nothing in a
trigger needs more than SQLite with FTS5. ``memory_change`` gives every change of a memory, by whatever
process, the next number: a reader asks for what is newer than what it has.
"""

from __future__ import annotations

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
    "plan": {
        "framework": "framework TEXT",
        "idioms": "idioms TEXT",
        "status": "status TEXT DEFAULT 'active'",
    },
    "workspace": {
        "plan_id": "plan_id INTEGER",
        "status": "status TEXT DEFAULT 'active'",
        "delivered": "delivered TEXT DEFAULT ''",
        "utilized": "utilized TEXT DEFAULT '[]'",
    },
    "memory_extra": {
        "revision": "revision INTEGER NOT NULL DEFAULT 1",
        "lift_passed": "lift_passed REAL NOT NULL DEFAULT 0",
    },
    "memory_revision": {"lift_passed": "lift_passed REAL NOT NULL DEFAULT 0"},
    "injection": {"scope": "scope TEXT NOT NULL DEFAULT 'task'"},
    "injection_memory": {"revision": "revision INTEGER NOT NULL DEFAULT 1"},
    "outcome": {"revision": "revision INTEGER NOT NULL DEFAULT 1", "passed": "passed REAL"},
}
"""Columns that a table of the plugin, or of an earlier release of ours, may lack: column -> its definition
where it is added."""

PLUGIN_VERSION = 9
"""What we enter in the plugin's ``schema_version``: from this number on none of its releases runs the
migrations that drop ``memory``, ``memory_edge``, ``exploration``, ``plan`` and ``workspace``
(docs/formats/memory.md §2)."""

OUR_VERSION = 1
"""Of the tables below; kept in ``helix_meta``."""

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
    lift_passed REAL NOT NULL DEFAULT 0
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
