"""A run stops once its budget is spent, after the current bead, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.ground.project import find_project
from helix_tui.core.statements.run import explain_run
from helix_tui.core.supervision.run_state.budget import Budget, Limits, parse_limits, write_budget
from helix_tui.core.supervision.run_state.run_status import run_status
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

pytestmark = pytest.mark.long

COSTS = {"results": [{"fields": {"cost_usd": 2.0, "tokens": 40_000}}]}


def five(stage: StageFactory) -> Stage:
    world = stage([row(f"a-{n}") for n in range(5)])
    world.turns(*[COSTS] * 5)
    return world


@pytest.mark.parametrize(
    ("text", "ran", "said"),
    [
        ("$3", 2, "$4.00 of $3.00 this run"),
        ("100k tokens", 3, "120k of 100k tokens this run"),
        ("1 attempt", 1, "1 of 1 attempts this run"),
    ],
)
def test_a_run_stops_after_the_bead_that_spends_its_budget(stage: StageFactory, text: str, ran: int, said: str) -> None:
    world = five(stage)
    outcome = world.run(budget=Budget(parse_limits(text)))
    assert len(world.executed) == ran
    assert (outcome.stop.reason, outcome.stop.code) == ("budget", 0)
    assert outcome.stop.detail == said
    assert said in explain_run(run_status(find_project(world.root)))


def test_the_projects_budget_holds_where_nobody_says_another(stage: StageFactory) -> None:
    world = five(stage)
    write_budget(find_project(world.root), Budget(Limits(attempts=2)))
    assert world.run().stop.reason == "budget"
    assert len(world.executed) == 2
    assert world.state["budget"]["run"]["attempts"] == 2
    assert world.run(budget=Budget(Limits(attempts=10))).stop.reason != "budget"


def test_a_budget_without_a_known_cost_is_never_reached_by_dollars(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    outcome = world.run(budget=Budget(Limits(usd=0.01)))
    assert outcome.stop.reason != "budget"
    assert len(world.executed) == 2


def spent_today(root: Path, usd: float) -> None:
    """An attempt of somebody else that ended a moment ago."""
    from helix_tui.core.ground.time import format_instant, now_ns

    at = format_instant(now_ns() - 10**9)
    stamp = at.replace("-", "").replace(":", "").rstrip("Z")
    metrics = root / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir(parents=True, exist_ok=True)
    line = {"attempt_id": f"{stamp}-aaaa0001", "bead_id": "a-0", "ts_start": at, "ts_end": at, "outcome": "success"}
    metrics.write_text(json.dumps(line | {"cost_usd": usd}) + "\n")


def test_what_anybody_spent_today_counts_in_the_budget_of_the_day(stage: StageFactory) -> None:
    world = five(stage)
    spent_today(world.root, 21.5)
    outcome = world.run(budget=Budget(day=Limits(usd=20.0)))
    assert world.executed == []
    assert (outcome.stop.reason, outcome.stop.detail) == (
        "budget",
        "$21.50 of $20.00 today, and this run has started nothing",
    )
    assert world.run(budget=Budget(day=Limits(usd=100.0))).stop.reason != "budget"
    assert world.executed


def test_the_command_line_takes_a_budget_and_refuses_what_is_none(stage: StageFactory) -> None:
    world = five(stage)
    done = world.process("run", "--budget", "1 attempt", "--no-auto-review", "--json")
    assert json.loads(done.stdout)["stop_reason"] == "budget", done.stderr
    refused = world.process("run", "--budget", "five")
    assert refused.returncode == 2
    assert "$5, 2M tokens, 10 attempts" in refused.stderr
