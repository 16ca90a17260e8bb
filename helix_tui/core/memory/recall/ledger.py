"""How many memories each attempt was given, by the ledger: what Insights counts attempts by.

It is read beside whoever writes, without opening the store: nothing is brought up to date or made.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from helix_tui.core.ground.project import Project
from helix_tui.core.memory.store.database import database_path

_GIVEN = (
    "SELECT attempt, count(DISTINCT memory_id) FROM injection"
    " JOIN injection_memory ON injection_id = injection.id WHERE attempt <> '' GROUP BY attempt"
)


def memories_given(project: Project) -> dict[str, int]:
    """Attempt -> different memories that it was shown; none where there is no ledger or it cannot be read."""
    path = database_path(project)
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as database:
            return {str(attempt): int(count) for attempt, count in database.execute(_GIVEN)}
    except sqlite3.Error:  # no file, no such tables yet, in use or damaged: Memory and doctor say which
        return {}
