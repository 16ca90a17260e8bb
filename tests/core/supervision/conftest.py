"""Small worlds to curate: rows of an era in a project, and a curator whose ddx is the embedded tracker."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.readiness import Queue, classify
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import Executable, find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import parse_now
from tests.conftest import ProjectFactory
from tests.double import write_ddx
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")


def row(bead_id: str, *waits_on: str, era: Any = "head", **fields: Any) -> dict[str, Any]:
    """A bead as ddx writes it."""
    whole: dict[str, Any] = {
        "id": bead_id,
        "title": f"Title of {bead_id}",
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "created_at": "2026-08-01T00:00:00Z",
        "updated_at": "2026-08-01T00:00:00Z",
    }
    if era == "head":
        whole["schema_version"] = 1
    if waits_on:
        whole["dependencies"] = [
            {
                "issue_id": bead_id,
                "depends_on_id": other,
                "type": "blocks",
                "created_at": "2026-08-01T00:00:00Z",
            }
            for other in waits_on
        ]
    whole.update({name.replace("__", "-"): value for name, value in fields.items()})
    return whole


def queue_of(rows: Iterable[Mapping[str, Any]], era: str = "auto") -> Queue:
    """A judged queue of rows."""
    data = "\n".join(json.dumps(each) for each in rows).encode()
    return classify(parse_rows(data).beads, now=NOW, era=era)  # type: ignore[arg-type]


def settled(each: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what an undo may leave: times, history, the order of its edges."""
    kept = {name: value for name, value in each.items() if name not in ("updated_at", "events", "schema_version")}
    if "dependencies" in kept:
        kept["dependencies"] = sorted((edge["depends_on_id"], edge["type"]) for edge in kept["dependencies"])
    return kept


@dataclass
class World:
    """One project with a curator."""

    root: Path
    curator: Curator

    @property
    def tracker(self) -> Path:
        return self.root / ".ddx" / "beads.jsonl"

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows as they stand in the file."""
        lines = self.tracker.read_text(encoding="utf-8").split("\n")
        return {found["id"]: found for found in (json.loads(line) for line in lines if line)}

    def settled(self) -> dict[str, dict[str, Any]]:
        """The rows without what an undo may leave."""
        return {bead_id: settled(each) for bead_id, each in self.rows().items()}

    def rewrite(self, bead_id: str, **fields: Any) -> None:
        """Somebody else changes a row."""
        rows = self.rows()
        for name, value in fields.items():
            name = name.replace("__", "-")
            if value is None:
                rows[bead_id].pop(name, None)
            else:
                rows[bead_id][name] = value
        self.write(rows.values())

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put rows in the file's place."""
        other = self.tracker.with_suffix(".new")
        other.write_text("".join(go_line(each) for each in sorted(rows, key=lambda each: str(each["id"]))))
        other.replace(self.tracker)

    def again(self, **options: Any) -> Curator:
        """Another process's curator of the same project."""
        return make_curator(self.root, **options)


def go_line(each: Mapping[str, Any]) -> str:
    """A row as a line, in ddx's order."""
    return json.dumps(dict(sorted(each.items())), separators=(",", ":")) + "\n"


def make_curator(root: Path, *, program: Path | None = None, **options: Any) -> Curator:
    """A curator whose ddx is the embedded tracker, or a program of the test."""
    project = find_project(root)

    def find() -> Executable:
        if program is not None:
            return Executable((str(program),), root, dict(os.environ))
        return find_executable(project, None)

    options.setdefault("who", "human")
    return Curator(project, find, **options)


WorldFactory = Callable[..., World]


@pytest.fixture
def world(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> WorldFactory:
    """Make a world: ``world(rows)``."""
    monkeypatch.setenv("PATH", os.defpath)

    def make(rows: Iterable[Mapping[str, Any]], **options: Any) -> World:
        root = project([go_line(each).rstrip("\n") for each in rows], git=False)
        return World(root, make_curator(root, **options))

    return make


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[[str], Path]:
    """Write a ddx that does as a script says and passes on to the embedded tracker with ``passed()``."""

    def write(code: str) -> Path:
        return write_ddx(tmp_path / "scripted-ddx", code)

    return write
