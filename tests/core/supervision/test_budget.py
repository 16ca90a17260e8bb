"""A budget is written in one grammar, kept in a file, and says how much of it is spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ddx.attempts.costs import AgentCall, sum_calls
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.run_state.budget import (
    NO_BUDGET,
    Budget,
    Limits,
    Spending,
    budget_file,
    budget_uses,
    parse_limits,
    read_budget,
    write_budget,
)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("$5", Limits(usd=5.0)),
        ("5 usd", Limits(usd=5.0)),
        ("2.50 dollars", Limits(usd=2.5)),
        ("$1,250.50", Limits(usd=1250.5)),
        ("2M tokens", Limits(tokens=2_000_000)),
        ("250k tok", Limits(tokens=250_000)),
        ("10 attempts", Limits(attempts=10)),
        ("1 attempt", Limits(attempts=1)),
        ("$5, 2M tokens, 10 attempts", Limits(5.0, 2_000_000, 10)),
        ("10 attempts, $5", Limits(usd=5.0, attempts=10)),
        ("none", Limits()),
        ("  ", Limits()),
        ("No limit", Limits()),
    ],
)
def test_one_grammar_says_what_a_run_may_cost(text: str, limits: Limits) -> None:
    assert parse_limits(text) == limits


@pytest.mark.parametrize(
    "text", ["5", "five dollars", "$0", "-$3", "$5 $6", "$5, $6", "1.5 attempts", "$5 tokens", "∞"]
)
def test_what_is_no_budget_is_refused_and_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        parse_limits(text)


amounts = st.builds(
    Limits,
    st.none() | st.integers(1, 99_999_999).map(lambda cents: cents / 100),
    st.none() | st.integers(1, 10**9),
    st.none() | st.integers(1, 10**6),
)


@given(amounts)
def test_what_is_written_is_read_back(limits: Limits) -> None:
    read = parse_limits(str(limits))
    assert read == limits


def test_a_projects_budget_outlives_the_process(tmp_path: Path) -> None:
    (tmp_path / ".ddx").mkdir()
    project = find_project(tmp_path)
    assert read_budget(project) == NO_BUDGET
    budget = Budget(Limits(5.0, attempts=10), Limits(usd=20.0, tokens=3_000_000))
    write_budget(project, budget)
    assert read_budget(project) == budget


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"\xff", b'{"run": 3}', b'{"run": {"usd": true, "tokens": -1, "attempts": 2.5}}', b"[" * 4000],
)
def test_a_file_that_holds_no_budget_is_none(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / ".ddx").mkdir()
    project = find_project(tmp_path)
    project.helix_dir.mkdir()
    budget_file(project).write_bytes(raw)
    assert read_budget(project) == NO_BUDGET


def test_what_a_person_says_comes_before_what_is_kept() -> None:
    budget = Budget(Limits(5.0, attempts=10), Limits(usd=20.0))
    assert Budget(Limits(usd=1.0)).over(budget) == Budget(Limits(1.0, attempts=10), Limits(usd=20.0))


def spent(*usd: float | None, tokens: int | None = 1_000) -> Spending:
    calls = [AgentCall("work", at, amount, tokens) for at, amount in enumerate(usd)]
    return Spending(sum_calls(calls), len(usd))


def test_a_budget_is_reached_when_nothing_is_left_of_it() -> None:
    budget = Budget(Limits(usd=5.0), Limits(usd=20.0))
    (near, far) = budget_uses(budget, run=spent(2.0, 2.5), day=spent(2.0, 2.5, 1.0))
    assert (near.span, near.amount, near.reached) == ("run", "$4.50 of $5.00", False)
    assert (far.span, far.reached) == ("day", False)
    (run, _) = budget_uses(budget, run=spent(2.0, 3.0), day=spent(5.0))
    assert run.reached
    assert run.describe() == "budget reached: $5.00 of $5.00 this run"


def test_a_cost_that_nobody_recorded_spends_nothing_and_is_said() -> None:
    (use,) = budget_uses(Budget(Limits(usd=5.0)), run=spent(2.0, None, None), day=Spending())
    assert (use.spent, use.complete, use.reached) == (2.0, False, False)
    assert use.describe() == "budget in force: ≥$2.00 of $5.00 this run; 2 calls did not say"
    (blind,) = budget_uses(Budget(Limits(usd=5.0)), run=spent(None), day=Spending())
    assert "n/a of $5.00" in blind.amount


def test_tokens_and_attempts_are_budgets_too() -> None:
    budget = Budget(day=Limits(tokens=2_000, attempts=3))
    tokens, attempts = budget_uses(budget, run=None, day=spent(1.0, 1.0))
    assert (tokens.part, tokens.reached, tokens.amount) == ("tokens", True, "2k of 2k tokens")
    assert (attempts.part, attempts.reached, attempts.amount) == ("attempts", False, "2 of 3 attempts")


def test_where_nothing_runs_a_runs_budget_is_not_told() -> None:
    assert budget_uses(Budget(Limits(usd=5.0)), run=None, day=Spending()) == ()
