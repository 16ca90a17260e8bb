"""The same question over the same tree has the same answer: in another order, process or history."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ask.index import reading as build
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.records import Span
from tests.core.ask.test_index import FILES, make

MANY = FILES | {
    f"pkg/m{number}.py": f"def lease_{number % 7}(owner):\n    return renew(owner, {number % 5})\n"
    for number in range(60)
}
ASKED = ("how is a lease renewed", "lease_3", "renew owner lease table in pkg/m5.py")
_SCRIPT = """
import json, sys
from msgspec.structs import asdict
from pathlib import Path
from helix_tui.core.ask.index.index import RepositoryIndex
index = RepositoryIndex(Path(sys.argv[1]), None)
index.refresh()
found = [index.search(question, spans=30).spans for question in json.loads(sys.argv[2])]
print(json.dumps([[asdict(span) for span in spans] for spans in found]))
"""


def answers(index: RepositoryIndex) -> list[tuple[Span, ...]]:
    index.refresh()
    return [index.search(question, spans=30).spans for question in ASKED]


def test_two_processes_with_other_hash_seeds_print_the_same(tmp_path: Path) -> None:
    root = make(tmp_path / "r", MANY)
    printed = [
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(root), json.dumps(ASKED)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            timeout=120,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] != b""


def test_the_order_in_which_files_are_read_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r", MANY)
    before = answers(RepositoryIndex(root, None))
    usual = build.batches

    def shuffled(raws: Iterable[build.Raw]) -> Iterator[list[build.Raw]]:
        rows = list(raws)
        random.Random(3).shuffle(rows)
        for at in range(0, len(rows), 7):
            yield from usual(rows[at : at + 7])

    monkeypatch.setattr(build, "batches", shuffled)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert answers(RepositoryIndex(root, None)) == before


@pytest.mark.long
def test_an_index_that_grew_answers_like_one_made_at_once(tmp_path: Path) -> None:
    root = make(tmp_path / "r", FILES)
    grown = RepositoryIndex(root, tmp_path / "grown.db")
    grown.refresh()
    names = sorted(MANY)
    for at in range(0, len(names), 6):
        make(root, {name: MANY[name] for name in names[at : at + 6]} | {"churn.py": f"lease = {at}\n"})
        grown.refresh()
    assert answers(grown) == answers(RepositoryIndex(root, None))


def test_workers_read_what_this_process_would(tmp_path: Path) -> None:
    raws = [build.Raw(path, "1", text.encode()) for path, text in MANY.items() if text]
    alone = list(build.read_all(iter(raws), lambda: False, workers=1))
    pool = build._Workers()
    try:
        helped = pool.read(raws)
    finally:
        pool.close()
    assert helped == alone[0]
    assert any(one.pieces.definitions for one in helped)
