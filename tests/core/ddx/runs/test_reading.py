"""Rows and evidence are read as of one moment, whatever DDx writes in between."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.runs.running import READS, QueueReader
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.time import NS, format_instant, now_ns, parse_instant
from helix_tui.core.snapshot.feed import Gatherer

ATTEMPT = "20260801T100000-aaaaaaaa"
BEGAN = parse_instant("2026-08-01T10:00:00Z") or 0
NOW = BEGAN + 5 * NS


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "demo" / ".ddx").mkdir(parents=True)
    write_rows(tmp_path / "demo", {"id": "b-1", "title": "t", "status": "open"})
    return find_project(tmp_path / "demo", env={"HOME": str(tmp_path)})


def write_rows(root: Path, *rows: Mapping[str, Any]) -> None:
    new = root / ".ddx" / "beads.new"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.replace(new, root / ".ddx" / "beads.jsonl")


def begin_attempt(root: Path) -> None:
    """What a worker writes when it begins: its claim, then the evidence folder."""
    claim = {"claimed-at": format_instant(BEGAN), "claimed-pid": str(os.getpid()), "claimed-machine": "here"}
    beat = {"execute-loop-heartbeat-at": format_instant(NOW)}
    write_rows(root, {"id": "b-1", "title": "t", "status": "in_progress", "owner": "ddx", **claim, **beat})
    folder = root / ".ddx" / "executions" / ATTEMPT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"attempt_id": ATTEMPT, "bead_id": "b-1", "base_rev": "aaa"}))


def once(root: Path) -> Callable[[], None]:
    """Begins the attempt the first time only."""

    def begin() -> None:
        if not (root / ".ddx" / "executions").exists():
            begin_attempt(root)

    return begin


class BusyIndex(AttemptIndex):
    """Attempts, just before each reading of which somebody writes."""

    def __init__(self, ddx_dir: Path, busy: Callable[[], None]) -> None:
        super().__init__(ddx_dir)
        self.busy = busy
        self.readings = 0

    def refresh(
        self,
        beads: Mapping[str, Bead],
        changed: Iterable[Path] | None = None,
        *,
        holds: Mapping[str, Hold] | None = None,
    ) -> set[str]:
        self.readings += 1
        self.busy()
        return super().refresh(beads, changed, holds=holds)


def test_an_attempt_that_begins_while_the_queue_is_read_is_not_called_interrupted(project: Project) -> None:
    index = BusyIndex(project.ddx_dir, once(project.root))
    reading = QueueReader(project, env={"DDX_MACHINE_ID": "here"}).read(NOW, records=index)
    (attempt,) = index.attempts
    assert attempt.verdict.outcome == "unfinished"
    assert reading.tracker.beads["b-1"].status == "in_progress"
    assert reading.renewed == {"b-1"}
    assert index.readings == 2


def test_the_console_s_snapshot_has_rows_and_evidence_of_one_moment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = once(project.root)
    monkeypatch.setattr(AttemptIndex, "of", lambda found: BusyIndex(found.ddx_dir, begin))
    snapshot = Gatherer(project, env={"DDX_MACHINE_ID": "here"}, clock=lambda: NOW).gather()
    (attempt,) = snapshot.attempts
    assert attempt.verdict.outcome == "unfinished"
    assert [run.bead_id for run in snapshot.runs] == ["b-1"]


def test_a_queue_that_never_rests_is_read_a_few_times_only(project: Project) -> None:
    def rewrite() -> None:
        write_rows(project.root, {"id": "b-1", "title": f"at {now_ns()}", "status": "open"})

    index = BusyIndex(project.ddx_dir, rewrite)
    reading = QueueReader(project).read(NOW, records=index)
    assert index.readings == READS
    assert reading.tracker.beads["b-1"].title.startswith("at ")
