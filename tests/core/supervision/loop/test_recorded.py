"""Runs over what a real ddx of either era was recorded doing: the count and the reason are the record's.

The exit code of ddx is no evidence: it is 0 for success, failure, conflict and an empty queue alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.statements.stuck import blockers_of_run
from helix_tui.core.supervision.loop.runner import RunOutcome, supervise
from helix_tui.core.supervision.loop.work import RunOptions
from helix_tui.core.supervision.stages.delegate import Delegate
from tests.conftest import ProjectFactory
from tests.double import REPOSITORY, write_ddx
from tests.helix_ddx.player import Timeline, read_timeline

pytestmark = [pytest.mark.realtime, pytest.mark.long]

COMMITTED = REPOSITORY / "tests" / "data" / "loops"
GONE = ("owner", "claimed-", "execute-loop-", "work-")

RECORDED = {
    "april-success": ({"success": 1}, "no_selectable", 0),
    "april-conflict": ({"land_conflict": 1}, "question", 0),
    "april-failed": ({"execution_failed": 1}, "next_action:WAIT", 0),
    "april-no-changes": ({"no_changes": 1}, "next_action:WAIT", 0),
    "april-review-changes": ({"review_request_changes": 1}, "no_progress", 0),
    "april-empty": ({}, "next_action:STOP", 0),
    "april-killed": ({}, "ddx_failed", 1),
    "head-success": ({"success": 1}, "no_selectable", 0),
    "head-conflict": ({"success": 1}, "no_selectable", 0),
    "head-failed": ({"execution_failed": 1}, "no_progress", 0),
    "head-no-changes": ({"no_evidence_produced": 1}, "next_action:GUIDANCE", 0),
    "head-review-block": ({"repair-cycle-exhausted": 1}, "next_action:GUIDANCE", 0),
    "head-satisfied": ({"no_changes": 1}, "no_progress", 0),
    "head-empty": ({}, "next_action:STOP", 0),
    "head-killed": ({}, "ddx_failed", 1),
}
"""Scenario -> what the results were, why the run ends, its exit code."""


def rows_before(timeline: Timeline) -> list[dict[str, Any]]:
    """The tracker as the worker found it."""
    first = next((step.text for step in timeline.steps if step.path == "$P/.ddx/beads.jsonl"), "")
    after = next((step.stdout for step in timeline.after if step.argv[1:3] == ("bead", "list")), "[]")
    rows = [json.loads(line) for line in first.split("\n") if line] or json.loads(after)
    return [
        {name: value for name, value in row.items() if not name.startswith(GONE)}
        | {"status": "open" if row["status"] == "in_progress" else row["status"]}
        for row in rows
    ]


def run_over(path: Path, project: ProjectFactory) -> tuple[Path, RunOutcome]:
    """A run whose ddx does what stands in the timeline."""
    root = project(rows_before(read_timeline(path)), git=True)
    script = root.parent / "script"
    script.mkdir()
    (script / "turns.json").write_text(json.dumps([{"play": str(path)}, *[{"results": []}] * 9]))
    ddx = write_ddx(root.parent / "ddx", script=script, era=path.name.partition("-")[0])
    found = find_project(root)
    curator = Curator(found, lambda: find_executable(found, str(ddx)), who="human")
    options = RunOptions(auto_review=False, auto_align=False)
    said: list[str] = []
    return root, supervise(
        found, curator, Delegate(found, str(ddx)), options, say=said.append, blockers=blockers_of_run, summary=True
    )


@pytest.mark.parametrize("name", RECORDED)
def test_the_count_and_the_reason_are_those_of_the_record(
    name: str,
    request: pytest.FixtureRequest,
    project: ProjectFactory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    outcomes, reason, code = RECORDED[name]
    path = COMMITTED / f"{name}.jsonl"
    if not path.exists():
        path = request.getfixturevalue("shared") / "data" / "ddx" / "loops" / path.name
    root, outcome = run_over(path, project)
    state = outcome.state
    assert (state.outcomes, outcome.stop.reason, outcome.stop.code) == (outcomes, reason, code)
    assert state.completed_cycles == outcomes.get("success", 0)
    assert state.attempted_cycles == sum(outcomes.values())
    assert state.skipped_count == state.attempted_cycles - state.completed_cycles
    kept = json.loads((root / ".helix" / "run-state.json").read_text())
    assert (kept["stop_reason"], kept["outcomes"], kept["phase"]) == (reason, outcomes, "stopped")
    for result in kept["last_results"]:
        assert result["attempt_id"]
        assert result["tokens"] == 3000
        assert result["cost_usd"] > 0
    assert bool(kept["pending"]) == ("killed" in name), "what a killed ddx did is for the next run to book"
