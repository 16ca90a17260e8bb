"""A small project with beads, attempts, reviews, memories, a run's log and commits, in real files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path

ATTEMPT = "20260801T101500-aaaa1111"
LATER = "20260802T101500-bbbb2222"


def bead(bead_id: str, title: str, **more: Any) -> dict[str, Any]:
    row = {"id": bead_id, "title": title, "status": "open", "priority": 1, "issue_type": "task"}
    return {**row, "created_at": "2026-07-01T10:00:00Z", "updated_at": "2026-07-02T10:00:00Z", **more}


def _event(kind: str, at: str, summary: str, body: str = "") -> dict[str, str]:
    return {"kind": kind, "created_at": at, "summary": summary, "body": body, "actor": "ddx", "source": "ddx"}


def _cost(attempt: str, at: str) -> dict[str, str]:
    body = {"attempt_id": attempt, "harness": "claude", "model": "sonnet", "total_tokens": 10, "exit_code": 0}
    return _event("cost", at, "tokens=10", json.dumps(body))


BEADS = (
    bead(
        "fy-1a2b",
        "Accept quoted commas in the timetable parser",
        description="PROBLEM\nThe parser splits a stop name at its comma.\n\nNON-SCOPE\nThe fares are left alone.",
        acceptance="1. `pytest tests/test_timetable.py` passes",
        events=[
            _cost(ATTEMPT, "2026-08-01T10:20:00Z"),
            _event("execute-bead", "2026-08-01T10:20:01Z", "execution_failed", "the agent hit a merge conflict"),
            _cost(LATER, "2026-08-02T10:20:00Z"),
            _event("review", "2026-08-02T10:21:00Z", "BLOCK", "the quoted comma has no test"),
            _event("execute-bead", "2026-08-02T10:22:00Z", "review_block", "pre-land review: no test of it"),
        ],
    ),
    bead("fy-3c4d", "Show fares in euro", description="Fares are shown without a currency.", status="closed"),
    bead("fy-5e6f", "Rename the command", description="NON-SCOPE\nDo not touch the parser."),
)


def make_work(root: Path) -> Project:
    """The project, under git, with one commit that names a bead."""
    (root / ".ddx").mkdir(parents=True)
    (root / "ferry").mkdir()
    (root / "ferry" / "timetable.py").write_text('def parse(line):\n    """Read a line of the timetable."""\n')
    (root / "README.md").write_text("# Ferry\n\nTimes of ferries.\n")
    write_beads(root, BEADS)
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "ferry", "README.md"], check=True)
    message = "Raise the lease limit to a minute [fy-3c4d]\n\nA slow disk let claims expire while tests ran."
    subprocess.run([*git, "commit", "-qm", message], check=True)
    project = find_project(root)
    with open_memory(database_path(project), teacher="person") as memory:
        memory.store("git lock left behind by a killed worker", "remove index.lock, then try again", "failure")
    logs = root / ".helix-logs"
    logs.mkdir()
    (logs / "helix-20260801.log").write_text("started\nstopped: the budget of tokens is reached\n")
    return project


def write_beads(root: Path, beads: tuple[dict[str, Any], ...]) -> None:
    (root / ".ddx" / "beads.jsonl").write_text("".join(json.dumps(one) + "\n" for one in beads))
