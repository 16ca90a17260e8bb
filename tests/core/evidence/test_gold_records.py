"""Questions about the records of the demo project, judged by what is cited (tests/data/ask/records.jsonl)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.demo.workspace import build_demo
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.session import ask
from helix_tui.core.beads.readiness import classify
from helix_tui.core.evidence.sources import RecordRows, WorkReader
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path

pytestmark = pytest.mark.long

NOW = 1_793_500_000 * NS
GOLD = [
    json.loads(line) for line in (Path(__file__).parents[2] / "data/ask/records.jsonl").read_text("utf-8").splitlines()
]
"""``cites``: the records that answer, alternatives parted by a bar, a commit by its subject."""
LEAST = 0.7
"""Share of the questions with a record that answers among their evidence."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepositoryIndex]:
    root = tmp_path_factory.mktemp("gold") / "ferry"
    build_demo(root, now=NOW)
    (root / ".helix-logs").mkdir()
    (root / ".helix-logs/helix-20261030.log").write_text("started\nstopped: the budget of tokens is reached\n")
    project = find_project(root)
    with open_memory(database_path(project), teacher="person") as memory:
        memory.store("stale lock left behind by a killed worker", "remove index.lock, then try again", "failure")
        memory.store("windows paths have backslashes in the data folder", "split paths with pathlib", "failure")
    found = RepositoryIndex(root, None)
    found.refresh()
    work = WorkReader(project, lambda tracker: (classify(tracker.beads, now=NOW, era="head"), {}))
    RecordRows(work).refresh(found)
    yield found
    found.close()


def test_questions_about_records_have_them_among_their_evidence(index: RepositoryIndex) -> None:
    missed = [row["question"] for row in GOLD if row["cites"] and not _is_there(index, row)]
    assert len(missed) <= (1 - LEAST) * len(GOLD), missed


def _is_there(index: RepositoryIndex, row: dict[str, Any]) -> bool:
    kept = [one.entry.span for one in ask(index, row["question"]).compaction.kept]
    names = {span.file for span in kept} | {f"commit:{span.header}" for span in kept if span.file.startswith("commit:")}
    return any(names & set(gold.split("|")) for gold in row["cites"])
