"""A SQLite connection to the project's memory store, for agents of HELIX's older plugins; run it to make the store."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from memory.core import value

__all__ = ["get_db", "init_db", "reset_db", "write_lock"]

_WAIT_S = 10.0
_lock = threading.RLock()
_connections: list[sqlite3.Connection] = []


def get_db() -> sqlite3.Connection:
    """The one connection of this process, to a store that exists.

    Raises:
        RuntimeError: helix-tui cannot tell or make the store; the message says why.
    """
    with _lock:
        if not _connections:
            connection = sqlite3.connect(_path(), timeout=_WAIT_S, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            _connections.append(connection)
        return _connections[0]


def init_db(db: sqlite3.Connection | None = None) -> None:
    """Make the store; one that exists is left as it is."""
    if db is None:
        get_db()


@contextmanager
def write_lock() -> Iterator[None]:
    """Let one thread write at a time; other processes wait for SQLite's own lock."""
    with _lock:
        yield


def reset_db() -> None:
    """Close the connection."""
    with _lock:
        while _connections:
            _connections.pop().close()


def _path() -> str:
    path = str(value("health", encodes=False)["path"])
    if not os.path.exists(path):
        # a store is made by its first change: pruning an empty one changes nothing else
        value("prune", encodes=False)
    return path


if __name__ == "__main__":
    init_db()
