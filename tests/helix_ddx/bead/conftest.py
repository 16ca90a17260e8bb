"""A project and somebody who gives commands in it, in this process, as helix-ddx would run them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.program import main as track
from tests.conftest import ProjectFactory, Row


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    rc: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The complaint without the usage block."""
        return next((line[7:] for line in self.err.split("\n") if line.startswith("Error: ")), "")

    @property
    def json(self) -> Any:
        """The answer as a document."""
        return json.loads(self.out)


@dataclass
class Desk:
    """One project, and the way to give commands there."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *words: str) -> Answer:
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with self.monkeypatch.context() as patch:
            patch.chdir(self.root)
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = track(["bead", *words])
        out.flush()
        data = out.buffer
        assert isinstance(data, io.BytesIO)
        return Answer(code, data.getvalue().decode(), err.getvalue())

    def must(self, *words: str) -> str:
        """A command that succeeds; its output without the last newline."""
        answer = self(*words)
        assert answer.rc == 0, answer.err
        return answer.out.rstrip("\n")

    @property
    def tracker(self) -> Path:
        """The tracker file."""
        return self.root / ".ddx" / "beads.jsonl"

    def rows(self) -> dict[str, dict[str, Any]]:
        """Every record by id."""
        return {row["id"]: row for row in map(json.loads, self.tracker.read_text().splitlines())}


MakeDesk = Callable[..., Desk]


@pytest.fixture
def desk(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> MakeDesk:
    """Make a desk: ``desk(*rows)``; rows get what every record has."""
    monkeypatch.setenv("DDX_AGENT_NAME", "tester")
    monkeypatch.setenv("DDX_MACHINE_ID", "vm")

    def make(*rows: Row, git: bool = False) -> Desk:
        return Desk(project([_whole(row) for row in rows], git=git), monkeypatch)

    return make


def _whole(row: Row) -> Row:
    if isinstance(row, (str, bytes)):
        return row
    stamp = "2026-04-01T00:00:00Z"
    usual = {"title": f"bead {row['id']}", "status": "open", "priority": 2, "issue_type": "task"}
    return {**usual, "created_at": stamp, "updated_at": stamp, **row}
