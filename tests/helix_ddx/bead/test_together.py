"""Several writers at once, and writers that are killed in the middle: nothing promised is lost, no line torn.

The suite runs a small load. ``HELIX_LOAD=full pytest tests/helix_ddx/bead/test_together.py`` runs eight
processes with 200 commands each, every command a process of its own, and kills 200 writers.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ProjectFactory

pytestmark = pytest.mark.long

FULL = os.environ.get("HELIX_LOAD") == "full"
WORKER = Path(__file__).with_name("load_worker.py")
ROW: dict[str, Any] = {
    "created_at": "2026-04-01T00:00:00Z",
    "updated_at": "2026-04-01T00:00:00Z",
    "issue_type": "task",
}
ROW |= {"priority": 2, "status": "open", "kept": "1.50"}


def _project(project: ProjectFactory, weight: int) -> Path:
    """Six shared beads among others that make every write take its time; each has an oddly spelt number."""
    rows = [{**ROW, "id": f"demo-{number:08x}", "title": f"shared {number}"} for number in range(6)]
    rows += [
        {**ROW, "id": f"demo-f{number:07x}", "title": "weight", "description": "x" * 4_000} for number in range(weight)
    ]
    root = project()
    lines = [json.dumps(row, sort_keys=True, separators=(",", ":")).replace('"1.50"', "1.50") for row in rows]
    (root / ".ddx" / "beads.jsonl").write_text("".join(line + "\n" for line in lines))
    return root


def _start(root: Path, name: str, count: int, *more: str) -> subprocess.Popen[str]:
    argv = [
        sys.executable,
        str(WORKER),
        str(root),
        name,
        str(random.Random(name).random())[2:9],
        str(count),
    ]
    env = {**os.environ, "DDX_BEAD_LOCK_TIMEOUT": "60", "DDX_BEAD_PREFIX": "demo"}
    return subprocess.Popen([*argv, *more], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)


def _rows(root: Path) -> dict[str, dict[str, Any]]:
    """Every record; fails on a line that is none, on one that stands twice, and on a wrong order."""
    text = (root / ".ddx" / "beads.jsonl").read_text()
    assert text.endswith("\n")
    lines = text.splitlines()
    assert all('"kept":1.50' in line for line in lines if '"weight"' in line or '"shared' in line)
    rows = {row["id"]: row for row in map(json.loads, lines)}
    assert len(rows) == len(lines)
    assert list(rows) == sorted(rows)
    return rows


def _check(rows: dict[str, dict[str, Any]], promises: list[list[str]], root: Path) -> None:
    """What was promised last about anything holds."""
    for kind, *words in promises:
        if kind == "bead":
            assert rows[words[0]]["title"] == words[1]
        elif kind == "field":
            assert rows[words[0]][words[1]] == f"value {words[1]}"
        elif kind == "event":
            assert words[1] in [event["summary"] for event in rows[words[0]]["events"]]
        elif kind == "edge":
            assert words[1] in [edge["depends_on_id"] for edge in rows[words[0]]["dependencies"]]
        elif kind == "status":
            assert rows[words[0]]["status"] == words[1]


def test_writers_at_once_lose_nothing(project: ProjectFactory) -> None:
    root = _project(project, 20)
    workers, count, more = (8, 200, ("exec",)) if FULL else (4, 25, ())
    running = [_start(root, f"w{number}", count, *more) for number in range(workers)]
    told = [worker.communicate(timeout=900)[0] for worker in running]
    promises = [json.loads(line) for text in told for line in text.splitlines()]
    assert [worker.returncode for worker in running] == [0] * workers
    rows = _rows(root)
    _check(rows, promises, root)
    made = sum(promise[0] == "bead" for promise in promises)
    assert made > 0
    assert len(rows) == 26 + made
    assert not list((root / ".ddx").glob("*.tmp-*"))
    assert not (root / ".ddx" / "beads.lock").exists()


def test_killed_writers_leave_a_whole_tracker(project: ProjectFactory) -> None:
    root = _project(project, 300)
    ddx = root / ".ddx"
    chance = random.Random("head")
    promises: list[list[str]] = []
    for number in range(100 if FULL else 6):
        worker = _start(root, f"k{number}", 10_000)
        assert worker.stdout is not None
        promises.append(json.loads(worker.stdout.readline()))
        sign = chance.choice(["*.tmp-*", "beads.lock/*", "beads.lock"])
        after = chance.randrange(40)
        while worker.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # a folder that goes while it is looked into
                after -= any(ddx.glob(sign))
            if after < 0:
                break
        os.killpg(worker.pid, signal.SIGKILL)
        told = worker.communicate(timeout=60)[0].splitlines(keepends=True)
        promises += [json.loads(line) for line in told if line.endswith("\n")]
        _check(_rows(root), promises, root)
    last = _start(root, "last", 12)
    told = last.communicate(timeout=120)[0].splitlines()
    assert json.loads(told[-1]) == ["done"]
    _check(_rows(root), promises + [json.loads(line) for line in told], root)
    assert not (ddx / "beads.lock").exists()
    assert not list(ddx.glob("*.tmp-*"))
