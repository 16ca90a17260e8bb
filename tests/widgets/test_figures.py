"""Figures: short, honest about what is unknown, and steady while one looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ground.time import clock_time, midnight, parse_now
from helix_tui.widgets import figures


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "n/a"),
        (0, "0"),
        (999, "999"),
        (1_234, "1.2k"),
        (9_960, "10k"),
        (38_400, "38k"),
        (1_200_000, "1.2M"),
    ],
)
def test_tokens(count: int | None, shown: str) -> None:
    assert figures.tokens(count) == shown


@given(st.integers(0, 99_000_000))
def test_tokens_stay_short(count: int) -> None:
    assert len(figures.tokens(count)) <= 5


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(None, "n/a"), (0.0, "$0.00"), (0.001, "<$0.01"), (1.1, "$1.10"), (12_345.6, "$12,346")],
)
def test_money(usd: float | None, shown: str) -> None:
    assert figures.money(usd) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"), [(None, ""), (-1, ""), (40, "40ms"), (3_210, "3.2s"), (126_000, "2m 06s")]
)
def test_how_long_a_step_took(milliseconds: int | None, shown: str) -> None:
    assert figures.took(milliseconds) == shown


def test_when_is_a_time_today_and_a_day_before_that() -> None:
    now = parse_now("2026-08-21T12:00:00Z")
    hour = 3_600 * 1_000_000_000
    assert ":" in figures.day_or_time(now - hour, now)
    assert figures.day_or_time(now - 72 * hour, now).endswith("Aug")
    assert figures.day_or_time(now - 24 * 900 * hour, now) == "03/2024"
    assert figures.day_or_time(None, now) == "—"


def test_a_time_that_no_calendar_holds_is_none() -> None:
    assert clock_time(10**30).strip() == ""
    assert figures.day_or_time(10**30, 0) == "—"


def test_midnight_is_not_after_now_and_less_than_25_hours_before() -> None:
    now = parse_now("2026-08-21T12:00:00Z")
    assert 0 <= now - midnight(now) < 25 * 3_600 * 1_000_000_000


def test_since_start() -> None:
    second = 1_000_000_000
    assert figures.since_start(72 * second, 60 * second) == "+12s"
    assert figures.since_start(50 * second, 60 * second) == ""
    assert figures.since_start(None, 1) == ""
