"""Ratchets of attempts, runs of DDx's store and metric documents, told as one series a metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ground.project import find_project
from helix_tui.core.insights.cells import table
from helix_tui.core.insights.report import Measure, read_measures
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path
from helix_tui.core.supervision.run_state.budget import with_memories_given
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import row

MET = """---
ddx:
  id: MET-001
metric:
  unit: ms
  direction: lower-is-better
  goal: 100
---
# Start-up time
"""


def ratchet(value: float, *, comparison: str = "lower-is-better", limit: float = 250) -> dict[str, Any]:
    """What DDx of August writes of one measured value."""
    held = value <= limit if comparison == "lower-is-better" else value >= limit
    return {
        "definition_id": "exec.startup",
        "metric_id": "MET-001",
        "comparison": comparison,
        "threshold": limit,
        "observed": value,
        "unit": "ms",
        "decision": "pass" if held else "fail",
        "reason": f"observed {value}",
    }


def attempt(root: Path, number: int, value: float, status: str, *, in_result: bool, limit: float = 250) -> str:
    """An attempt's evidence: DDx puts the values of one that failed into its result, those of others beside it."""
    name = f"20260801T0{number}0000-0000000{number}"
    folder = root / ".ddx" / "executions" / name
    folder.mkdir(parents=True)
    result: dict[str, Any] = {"bead_id": "a-1", "attempt_id": name, "status": status, "base_rev": "a" * 40}
    result |= {"landed_rev": "b" * 40} if status == "success" else {"preserve_ref": "refs/ddx/iterations/x/1"}
    evidence: dict[str, Any] = {"ratchet_evidence": [ratchet(value, limit=limit)]}
    manifest: dict[str, Any] = {
        "bead_id": "a-1",
        "attempt_id": name,
        "requested": {"effort": "high", "prompt": "synthesized"},
    }
    manifest |= {
        "governing": [{"id": "FEAT-1"}],
        "bead": {"description": "<helix-memory>\n- a [75%]: b\n</helix-memory>"},
    }
    (folder / "result.json").write_text(json.dumps(result | (evidence if in_result else {})))
    (folder / "checks.json").write_text(json.dumps({"results": [], **evidence}))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "prompt.md").write_text("x" * 5000)
    return name


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    made = project([row("a-1")])
    attempt(made, 1, 120, "success", in_result=False)
    attempt(made, 2, 310, "repair-cycle-exhausted", in_result=True)
    (made / "docs").mkdir()
    (made / "docs" / "met.md").write_text(MET)
    return made


def attempts_of(root: Path) -> tuple[Attempt, ...]:
    project = find_project(root)
    index = AttemptIndex.of(project)
    index.refresh(read_tracker(project.beads_file).beads)
    return index.attempts


def measure_of(root: Path) -> Measure:
    (found,) = read_measures(find_project(root), attempts_of(root))
    return found


def test_an_attempt_carries_value_baseline_and_direction(root: Path) -> None:
    second, first = attempts_of(root)
    assert [each.ratchets[0].value for each in (first, second)] == [120, 310]
    assert [each.ratchets[0].baseline for each in (first, second)] == [None, 120]
    assert second.ratchets[0].describe() == "MET-001 310 ms, ratchet ≤ 250 ms, before 120 ms: worse"
    assert not second.ratchets[0].passed
    assert first.ratchets[0].passed
    assert interpret(second, 0).follow_up.startswith("MET-001 310 ms")


def gate(**more: Any) -> dict[str, Any]:
    """A required check as ddx of April writes it beside a result that says ``success`` still."""
    return {"definition_id": "EX-1", "required": True, "exit_code": 0, "status": "fail", **more}


@pytest.mark.parametrize(
    ("checks", "status", "detail"),
    [
        (
            {"results": [gate(ratchet=ratchet(310))], "ratchet_summary": "fail"},
            "ratchet_failed",
            "EX-1: observed 310",
        ),
        ({"results": [gate(exit_code=3)]}, "post_run_check_failed", "EX-1: exit code 3"),
        ({"results": [gate(required=False)]}, "success", "success"),
        ({"results": [gate(status="pass")]}, "success", "success"),
        ({"results": ["no gate"]}, "success", "success"),
    ],
)
def test_a_success_whose_required_check_failed_is_the_failure_of_that_check(
    project: ProjectFactory, checks: dict[str, Any], status: str, detail: str
) -> None:
    made = project([row("a-1")])
    name = "20260801T010000-00000001"
    folder = made / ".ddx" / "executions" / name
    folder.mkdir(parents=True)
    result = {"bead_id": "a-1", "attempt_id": name, "status": "success", "detail": "success", "result_rev": "a" * 40}
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "checks.json").write_text(json.dumps({"summary": "fail", **checks}))
    (found,) = attempts_of(made)
    assert (found.status, found.detail) == (status, detail)
    assert (found.verdict.outcome == "kept_aside") == (status != "success") or found.verdict.outcome == "unknown"


def test_attempts_are_told_apart_by_what_they_were_given(root: Path) -> None:
    (cell,) = table(attempts_of(root), {}, ("prompt", "effort", "context", "memories"))
    assert [value for _, value in cell.key] == ["4 to 8 KB", "high", "1 document", "1 to 3"]
    by_ratchet = {dict(each.key)["ratchet"]: each.n for each in table(attempts_of(root), {}, ("ratchet",))}
    assert by_ratchet == {"held": 1, "got worse": 1}


def test_memories_that_a_hook_gave_count_as_those_of_the_bead(root: Path) -> None:
    project = find_project(root)
    names = [each.attempt_id for each in attempts_of(root)]
    with open_memory(database_path(project), teacher="person") as memory:
        for number in range(5):
            memory.store(f"parser {number} fails on an empty line {number * 37}", f"skip line {number}", "failure")
        shown = memory.inject("parser fails on an empty line", attempt=names[0], limit=8).shown
        for _ in range(2):  # shown twice is given once
            memory.inject("parser fails on an empty line", attempt=names[1], limit=3)
    assert len(shown) >= 4
    given = {each.attempt_id: each.memories for each in with_memories_given(project, attempts_of(root))}
    assert given == {names[0]: "4 and more", names[1]: "1 to 3"}
    database_path(project).write_bytes(b"no database")
    assert {each.memories for each in with_memories_given(project, attempts_of(root))} == {"1 to 3"}


def test_a_metric_is_one_series_with_what_it_is_held_against(root: Path) -> None:
    measure = measure_of(root)
    assert (measure.title, measure.goal, measure.ratchet) == ("Start-up time", 100, 250)
    assert (measure.value, measure.baseline, measure.trend, measure.holds) == (310, 120, "worse", False)


def test_the_ratchet_is_the_one_that_the_newest_attempt_was_held_to(root: Path) -> None:
    attempt(root, 3, 90, "success", in_result=False, limit=200)
    measure = measure_of(root)
    assert (measure.ratchet, measure.holds) == (200, True)


def test_what_the_store_observed_counts_as_well(root: Path) -> None:
    ddx = root / ".ddx"
    run = "exec-startup@1@2026-08-02T00:00:00Z-1"
    manifest: dict[str, Any] = {
        "run_id": run,
        "definition_id": "d",
        "artifact_ids": ["MET-001"],
        "started_at": "2026-08-02T00:00:00Z",
    }
    manifest |= {"status": "success", "attachments": {"result": f"exec-runs.d/{run}/result.json"}}
    (ddx / "exec-runs.jsonl").write_text(json.dumps({"id": run, "manifest": manifest}) + "\nno json\n")
    (ddx / "exec-runs.d" / run).mkdir(parents=True)
    value = {"metric": {"value": 90, "unit": "ms", "comparison": {"baseline": 90, "direction": "lower-is-better"}}}
    (ddx / "exec-runs.d" / run / "result.json").write_text(json.dumps(value))
    measure = measure_of(root)
    assert (measure.value, measure.trend, measure.holds, len(measure.samples)) == (90, "better", True, 3)
    assert measure.document()["last_attempt_id"] is None


def test_a_result_outside_the_store_is_not_read(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"metric": {"value": 1}}')
    manifest: dict[str, Any] = {"run_id": "r", "artifact_ids": ["MET-001"]}
    manifest["attachments"] = {"result": "exec-runs.d/../../secret.json"}
    (root / ".ddx" / "exec-runs.jsonl").write_text(json.dumps({"id": "r", "manifest": manifest}))
    assert len(measure_of(root).samples) == 2


@pytest.mark.parametrize(("value", "holds"), [(0.8, True), (0.5, False)])
def test_higher_may_be_better(project: ProjectFactory, value: float, holds: bool) -> None:
    root = project([row("a-1")])
    name = attempt(root, 1, value, "success", in_result=False)
    path = root / ".ddx" / "executions" / name / "checks.json"
    path.write_text(json.dumps({"ratchet_evidence": [ratchet(value, comparison="higher-is-better", limit=0.7)]}))
    assert measure_of(root).holds is holds
