"""What ``helix-tui doctor`` finds out about the memory: its database and its embedder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.util import find_spec

from helix_tui.cli.paint import counted
from helix_tui.cli.report.checks import DoctorCheck
from helix_tui.core.embedding import Loaded, load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.memory import DatabaseMissing, MemoryFault, database_path, open_memory
from helix_tui.core.memory.store.database import guarded


def examine_memory(project: Project) -> Iterator[DoctorCheck]:
    """The database and the embedder; nothing is changed or made."""
    loaded = load_encoder()
    yield _database(project, loaded)
    yield _embedder(loaded)


def _database(project: Project, loaded: Loaded) -> DoctorCheck:
    path = database_path(project)
    try:
        with guarded(path), open_memory(path, loaded, read_only=True, busy_seconds=2) as memory:
            health = memory.health()
            damage = memory.read("PRAGMA quick_check(1)")[0][0]
    except DatabaseMissing:
        return DoctorCheck("database", None, f"no {path}; the first memory that is stored makes it")
    except (MemoryFault, sqlite3.Error) as fault:
        fix = fault.advice if isinstance(fault, MemoryFault) else ""
        return DoctorCheck("database", False, str(fault), fix)
    detail = (
        f"{path}, {counted(health.total, 'memory', 'memories')}, {health.with_feedback} with feedback"
        f" ({health.with_verified_feedback} verified), {counted(health.injections, 'injection')}"
    )
    if damage != "ok":
        return DoctorCheck("database", False, f"{detail}; damaged: {damage}", "Put a backup in its place.")
    if health.without_vector:
        return DoctorCheck(
            "database",
            False,
            f"{detail}; {health.without_vector} without a vector of this model",
            "`helix-tui memory embed` makes them; until then they are found by words.",
        )
    return DoctorCheck("database", True, detail)


def _embedder(loaded: Loaded) -> DoctorCheck:
    have = "installed" if find_spec("sentence_transformers") else "not installed"
    detail = f"{loaded.detail}; sentence-transformers is {have}"
    if loaded.encoder is None:
        return DoctorCheck("embedder", None, f"{detail}; memory and ask search by words", loaded.fix)
    return DoctorCheck("embedder", True, detail)
