"""What attempts would cost: an interval that holds what comes, from what past attempts cost."""

from __future__ import annotations

import random

import pytest

from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.insights.estimate import ENOUGH, estimate


def attempt(
    number: int, usd: float | None, *, model: str = "sonnet", ms: int = 60_000, status: str = "success"
) -> Attempt:
    return Attempt(
        f"20260821T{number:06}-aaaa0000",
        bead_id="b",
        status=status,
        status_source="event",
        harness="claude",
        model=model,
        duration_ms=ms,
        cost_usd=usd,
        tokens=Tokens(total=1_000),
    )


def test_of_a_past_without_a_cost_no_cost_is_estimated() -> None:
    found = estimate([attempt(n, None) for n in range(20)], 3)
    assert found.usd is None
    assert found.describe_usd() == "no estimate: the cost of past attempts is unknown"
    assert found.seconds is not None
    assert found.seconds.middle == 180
    assert estimate([], 3).describe_usd() == "no estimate: no attempt so far"
    few = estimate([attempt(1, 0.5), attempt(2, None), attempt(3, None)], 3)
    assert few.describe_usd() == "no estimate: what it cost is known for 1 past attempt, and 3 are needed"


def test_the_number_that_is_said_to_be_needed_is_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helix_tui.core.insights.estimate.FEWEST_PRICED", 5)
    few = estimate([attempt(n, 0.5) for n in range(4)], 3)
    assert few.describe_usd() == "no estimate: what it cost is known for 4 past attempts, and 5 are needed"


def test_equal_attempts_cost_what_they_cost() -> None:
    found = estimate([attempt(n, 0.5) for n in range(20)], 4)
    assert found.usd is not None
    assert (found.usd.middle, found.usd.low, found.usd.high) == (2.0, 2.0, 2.0)
    assert found.describe_usd() == "$2.00 ($2.00–$2.00)"
    assert found.describe_time() == "4m 00s (4m 00s–4m 00s)"


def test_the_same_past_says_the_same() -> None:
    rng = random.Random(7)
    past = [attempt(n, rng.lognormvariate(0, 1)) for n in range(50)]
    assert estimate(past, 5) == estimate(past, 5)


def test_nine_in_ten_runs_fall_into_the_interval() -> None:
    rng = random.Random(11)
    inside = 0
    for _ in range(200):
        past = [attempt(n, rng.lognormvariate(0, 0.8)) for n in range(60)]
        found = estimate(past, 8).usd
        assert found is not None
        inside += found.low <= sum(rng.lognormvariate(0, 0.8) for _ in range(8)) <= found.high
    assert 165 <= inside <= 195, inside


def test_attempts_by_the_model_that_is_asked_for_count_alone_where_they_are_enough() -> None:
    dear = [attempt(n, 5.0, model="opus") for n in range(ENOUGH)]
    cheap = [attempt(100 + n, 0.1, model="haiku") for n in range(30)]
    found = estimate([*cheap, *dear], 1, harness="claude", model="opus")
    assert found.of_model
    assert found.usd is not None
    assert found.usd.middle == 5.0
    few = estimate([*cheap, *dear[1:]], 1, harness="claude", model="opus")
    assert not few.of_model
    assert "of any model" in few.basis


def test_what_has_not_ended_or_never_began_says_nothing() -> None:
    running = [attempt(n, 9.0, status="") for n in range(20)]
    never = [attempt(50 + n, None, ms=0, status="execution_failed") for n in range(20)]
    assert estimate([*running, *never], 1).past == 0


def test_an_interval_from_few_attempts_is_no_point_and_is_called_rough() -> None:
    past = [attempt(n, usd) for n, usd in enumerate((0.49, 0.84, 1.11))]
    found = estimate(past, 48)
    assert found.usd is not None
    assert found.usd.high - found.usd.low > 0.1 * found.usd.middle, "48 is sixteen times the whole past"
    assert found.basis.startswith("a rough interval; from 3 past")
    assert estimate([attempt(n, 0.5 + n % 3) for n in range(120)], 5).basis.startswith("9 in 10")
