"""Many processes at once, and one that is killed: no row twice, none lost, nothing half written."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from helix_tui.core.memory.memory_store import open_memory
from tests.core.memory.conftest import Opener, Plane

ROOT = Path(__file__).resolve().parents[3]
STORE = """
import sys
from pathlib import Path
from helix_tui.core.memory.memory_store import open_memory
from tests.core.memory.conftest import Plane
who = sys.argv[2]
with open_memory(Path(sys.argv[1]), Plane() if who != "words" else None, busy_seconds=60, teacher="person") as memory:
    for number in range(int(sys.argv[3])):
        stored = memory.store(f"The same failure number {number} of all", "resolve it the one way")
        assert stored.status in ("added", "merged"), stored
"""
FOREVER = """
import sys
from pathlib import Path
from helix_tui.core.memory.memory_store import open_memory
from tests.core.memory.conftest import Plane
with open_memory(Path(sys.argv[1]), Plane(), teacher="person") as memory:
    number = 0
    while True:
        name = memory.store(f"Failure number {number} in the endless test", "resolve it").name
        memory.feedback([name], [name], "passed", attempt=f"a-{number}")
        number += 1
        if number == 5:
            print("going", flush=True)
"""


def _start(script: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.long
def test_processes_that_store_the_same_leave_each_once(tmp_path: Path) -> None:
    path = tmp_path / ".helix" / "helix.db"
    running = [_start(STORE, str(path), str(number), "10") for number in range(4)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
    with open_memory(path, Plane(), teacher="person") as memory:
        every = memory.list()
    assert len(every) == 10
    assert {(each.seen, each.type) for each in every} == {(1, "failure")}


@pytest.mark.long
def test_a_process_killed_while_writing_leaves_a_whole_database(tmp_path: Path) -> None:
    path = tmp_path / "helix.db"
    for _ in range(2):
        process = _start(FOREVER, str(path))
        assert process.stdout is not None
        assert process.stdout.readline() == b"going\n"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    with open_memory(path, Plane(), teacher="person") as memory:
        for outcome in memory.outcomes():
            found = memory.get(outcome.name)
            assert found is not None
            assert found.helped == 1


def test_what_one_process_writes_another_recalls_at_once(opener: Opener, plane: Plane, tmp_path: Path) -> None:
    one, other = opener(plane), opener(plane)
    assert one.recall("a new kind of failure").signal == "NO_PRIOR_MEMORY"
    other.store("a new kind of failure", "a new way out")
    found = one.recall("a new kind of failure a new way out").found
    assert found[0].similarity is not None
    assert found[0].similarity > 0.99
    other.feedback([found[0].memory.name], [], "passed")
    assert one.recall("a new kind of failure").found[0].memory.failed == 1
    other.remove([found[0].memory.name])
    assert one.recall("a new kind of failure").signal == "NO_PRIOR_MEMORY"
    assert one.store("a new kind of failure", "once more").status == "added"
