"""Questions about the records of the demo project, judged by what is cited (tests/data/ask/records.jsonl)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.demo.workspace import build_demo
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.document import document_of
from helix_tui.core.ask.sessions.history import IndexLibrary
from helix_tui.core.ask.sessions.session import ask
from helix_tui.core.beads.readiness import classify
from helix_tui.core.evidence.sources import ProjectRecords, WorkReader
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path

pytestmark = pytest.mark.long

NOW = 1_793_500_000 * NS
GOLD = [
    json.loads(line) for line in (Path(__file__).parents[2] / "data/ask/records.jsonl").read_text("utf-8").splitlines()
]
"""``cites``: what must be cited, alternatives parted by a bar, a commit by its subject; ``only``: and nothing else;
``says``: patterns of the answer; ``missed``: not answered rightly yet. Without a gold source it is *not found*."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexLibrary]:
    root = tmp_path_factory.mktemp("gold") / "ferry"
    build_demo(root, now=NOW)
    (root / ".helix-logs").mkdir()
    (root / ".helix-logs/helix-20261030.log").write_text("started\nstopped: the budget of tokens is reached\n")
    project = find_project(root)
    with open_memory(database_path(project)) as memory:
        memory.store("stale lock left behind by a killed worker", "remove index.lock, then try again", "failure")
        memory.store("windows paths have backslashes in the data folder", "split paths with pathlib", "failure")
    index = RepositoryIndex(root, None, with_meaning=False)
    index.refresh()
    records = ProjectRecords(
        project,
        WorkReader(project, lambda tracker: (classify(tracker.beads, now=NOW, era="head"), {})),
        in_memory=True,
    )
    yield IndexLibrary(index, records)
    records.close()
    index.close()


@pytest.mark.parametrize("row", GOLD, ids=[row["question"] for row in GOLD])
def test_a_question_about_records_is_answered_from_them(library: IndexLibrary, row: dict[str, Any]) -> None:
    document = document_of(ask(library, row["question"]))
    assert _is_right(document, row) != row.get("missed", False)


def _is_right(document: dict[str, Any], row: dict[str, Any]) -> bool:
    cited = document["citations"]
    files = {one["file"] for one in cited}
    names = files | {f"commit:{one['header']}" for one in cited if one["file"].startswith("commit:")}
    wanted = [set(gold.split("|")) for gold in row["cites"]]
    if not wanted:
        return document["tier"] == "not found" or not cited
    return (
        all(gold & names for gold in wanted)
        and (not row["only"] or files <= set().union(*wanted))
        and all(re.search(words, document["answer"], re.IGNORECASE) for words in row.get("says", ()))
    )
