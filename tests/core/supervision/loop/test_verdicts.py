"""What a run says of an attempt is the one verdict on it, from its records; ddx's printed line is a hint."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

pytestmark = pytest.mark.long

ATTEMPT = "20991231T100000-aaaaaaaa"


def record(world: Stage, outcome: str, **more: object) -> None:
    """The attempt as ddx's metrics have it, and its evidence folder."""
    line = {"schema_version": 1, "attempt_id": ATTEMPT, "bead_id": "a-1", "outcome": outcome, **more}
    path = world.root / ".ddx" / "metrics" / "attempts.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(line) + "\n")


def test_a_success_that_its_record_calls_a_conflict_completes_no_cycle(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    record(world, "land_conflict")
    world.turns({"results": [{"bead_id": "a-1", "status": "success", "fields": {"attempt_id": ATTEMPT}}]})
    world.run()
    state = world.state
    assert (state["completed_cycles"], state["outcomes"]) == (0, {"land_conflict": 1})
    assert state["verdicts"] == {"kept_aside": 1}
    assert {"Outcomes: 1 kept aside; n/a", "a-1 land_conflict (kept aside)"} <= {
        line.split("  ")[-1] for line in world.process("status").stdout.splitlines()
    }
    assert any("land_conflict, not landed" in line for line in world.said)
    assert not any("COMPLETE" in line for line in world.said)
    assert {(question.kind, question.bead_id) for question in world.questions} == {("conflict", "a-1")}


def test_a_failure_that_its_record_calls_a_success_completes_one(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    record(world, "success")
    told = {"bead_id": "a-1", "status": "land_conflict", "close": True, "fields": {"attempt_id": ATTEMPT}}
    world.turns({"results": [told]})
    world.run()
    assert (world.state["completed_cycles"], world.state["outcomes"]) == (1, {"success": 1})
    assert not world.questions


def test_git_is_asked_what_landed_where_only_the_report_tells_of_it(stage: StageFactory) -> None:
    world = stage([row("a-1", era="head")], git=True)

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(world.root), *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    base = git("rev-parse", "HEAD")
    git("checkout", "-qb", "aside")
    git("commit", "-q", "--allow-empty", "-m", "work")
    made = git("rev-parse", "HEAD")
    git("checkout", "-q", "-")
    revisions = {"attempt_id": ATTEMPT, "base_rev": base, "result_rev": made}
    world.turns({"results": [{"bead_id": "a-1", "status": "success", "fields": revisions}]})
    world.run()
    assert world.state["completed_cycles"] == 0
    assert any("not landed" in line for line in world.said), world.said
