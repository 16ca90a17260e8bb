"""A project with a scripted ddx, and runs on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import Executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.statements.stuck import blockers_of_run
from helix_tui.core.supervision.loop.runner import RunOutcome, supervise
from helix_tui.core.supervision.loop.work import RunOptions
from helix_tui.core.supervision.run_state.run_control import Control
from helix_tui.core.supervision.signals.questions import OpenQuestion, OpenQuestions
from helix_tui.core.supervision.stages.delegate import Delegate
from tests.conftest import ProjectFactory
from tests.double import write_ddx


@dataclass
class Stage:
    """One project, its scripted ddx, and what was said."""

    root: Path
    era: str
    folder: Path
    ddx: Path
    said: list[str] = field(default_factory=list)

    def turns(self, *turns: Mapping[str, Any]) -> None:
        """What the next calls of the loop do; after them it executes whatever is ready, with success."""
        (self.folder / "turns.json").write_text(json.dumps(turns))

    def answers(self, *answers: str | Mapping[str, Any]) -> None:
        """What the next agents say; after them ``NEXT_ACTION: STOP``."""
        (self.folder / "answers.json").write_text(json.dumps(answers))

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @property
    def calls(self) -> list[str]:
        """Every command but those on beads."""
        return self._lines("calls.log")

    @property
    def asked(self) -> list[str]:
        """The stages whose prompts went to an agent."""
        return self._lines("asked.log")

    @property
    def executed(self) -> list[str]:
        """``<bead> <status>`` of every execution."""
        return self._lines("executed.log")

    def prompt(self, stage: str) -> str:
        """The last prompt of a stage."""
        return (self.folder / f"prompt-{stage}.md").read_text("utf-8")

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows as they stand."""
        lines = (self.root / ".ddx" / "beads.jsonl").read_text("utf-8").split("\n")
        return {row["id"]: row for row in (json.loads(line) for line in lines if line)}

    def rewrite(self, bead_id: str, **fields: Any) -> None:
        """Somebody changes a row behind our back."""
        rows = self.rows()
        rows[bead_id] |= {name.replace("__", "-"): value for name, value in fields.items()}
        path = self.root / ".ddx" / "beads.jsonl"
        other = path.with_suffix(".new")
        lines = (json.dumps(row, sort_keys=True, separators=(",", ":")) for row in rows.values())
        other.write_text("".join(f"{line}\n" for line in lines))
        other.replace(path)

    @property
    def state(self) -> dict[str, Any]:
        """The run's state on disk."""
        document = json.loads((self.root / ".helix" / "run-state.json").read_text("utf-8"))
        assert isinstance(document, dict)
        return document

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What was asked and not answered."""
        return self.store.open()

    @property
    def store(self) -> OpenQuestions:
        """The questions of the project."""
        return OpenQuestions(find_project(self.root), self.curator().gate)

    def curator(self) -> Curator:
        """A curator that speaks to the scripted ddx."""
        project = find_project(self.root)
        program = Executable((str(self.ddx),), self.root, dict(os.environ))
        return Curator(project, lambda: program, who="human")

    def delegate(self, **about: Any) -> Delegate:
        """The scripted ddx as a delegate."""
        about.setdefault("grace", 2.0)
        return Delegate(find_project(self.root), str(self.ddx), **about)

    def run(self, *, control: Control | None = None, timeout: float = 60.0, **options: Any) -> RunOutcome:
        """One run."""
        curator = self.curator()
        options.setdefault("auto_review", False)
        return supervise(
            curator.project,
            curator,
            self.delegate(timeout=timeout),
            RunOptions(**options),
            say=self.said.append,
            blockers=blockers_of_run,
            control=control,
        )

    def process(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """The command line as a process of its own."""
        command = self.words(*words)
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)

    def words(self, *words: str) -> list[str]:
        """The words that start the command line."""
        return [sys.executable, "-m", "helix_tui", *words, "-C", str(self.root), "--ddx", str(self.ddx)]


StageFactory = Callable[..., Stage]


@pytest.fixture
def stage(project: ProjectFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StageFactory:
    """Make a project with a scripted ddx: ``stage(rows, era="april")``."""

    def make(rows: Iterable[Mapping[str, Any]] = (), era: str = "head", *, git: bool = False) -> Stage:
        root = project(rows, git=git)
        folder = tmp_path / "script"
        folder.mkdir()
        ddx = write_ddx(tmp_path / "bin" / "ddx", script=folder, era=era)
        return Stage(root, era, folder, ddx)

    return make
