"""Doctor's checks of the memory: the database and the encoder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.util import find_spec

from helix_tui.cli.call import DoctorCheck
from helix_tui.core.embedding.minilm import Loaded, load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import counted
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.records import DatabaseMissing, MemoryFault
from helix_tui.core.memory.store.database import database_path, guarded


def examine_memory(project: Project) -> Iterator[DoctorCheck]:
    """Check the database and the embedder; nothing is changed or created."""
    loaded = load_encoder()
    yield _database(project, loaded)
    yield _embedder(loaded)


def _database(project: Project, loaded: Loaded) -> DoctorCheck:
    path = database_path(project)
    try:
        with guarded(path), open_memory(path, loaded, read_only=True, busy_seconds=2) as memory:
            health = memory.health()
            # one fault is enough
            damage = memory.read("PRAGMA quick_check(1)")[0][0]
    except DatabaseMissing:
        return DoctorCheck("database", None, f"no {path}; storing the first memory creates it")
    except (MemoryFault, sqlite3.Error) as fault:
        fix = fault.advice if isinstance(fault, MemoryFault) else ""
        return DoctorCheck("database", False, str(fault), fix)
    detail = (
        f"{path}, {counted(health.total, 'memory', 'memories')}, {health.with_feedback} with feedback"
        f" ({health.with_verified_feedback} verified), {counted(health.injections, 'injection')}"
    )
    if damage != "ok":
        return DoctorCheck("database", False, f"{detail}; damaged: {damage}", "Replace it with a backup.")
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
