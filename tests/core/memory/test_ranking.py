"""The two rankers as functions of arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.memory import ranking
from helix_tui.core.memory.ranking import Evidence, rank_by_lift, rank_by_seed

COUNT = st.floats(0, 1_000)


def _evidence(**values: float) -> Evidence:
    def column(name: str) -> ranking.Array:
        return np.array([values.get(name, 0.0)])

    return Evidence(
        relevance=column("relevance"),
        helped=column("helped"),
        failed=column("failed"),
        age_days=column("age_days"),
        trials=column("trials"),
        residual=column("residual"),
        injected=column("injected"),
        used=column("used"),
    )


@given(st.floats(0, 1), COUNT, COUNT, st.floats(-1e6, 1e6))
def test_the_seeds_score_is_its_three_terms_and_within_zero_and_one(
    relevance: float, helped: float, failed: float, age: float
) -> None:
    ranked = rank_by_seed(_evidence(relevance=relevance, helped=helped, failed=failed, age_days=age))
    terms = 0.5 * relevance + 0.3 * ranked.effectiveness[0] + 0.2 * ranked.recency[0]
    assert ranked.score[0] == pytest.approx(terms)
    assert 0 <= ranked.score[0] <= 1
    assert 0 <= ranked.recency[0] <= 1


def test_an_unreadable_time_counts_as_half() -> None:
    assert rank_by_seed(_evidence(age_days=float("nan"))).recency[0] == 0.5


@given(st.floats(0, 1), st.integers(0, 200), st.data())
def test_lift_stays_within_zero_and_one(relevance: float, injected: int, data: st.DataObject) -> None:
    used = data.draw(st.integers(0, injected))
    residual = data.draw(st.floats(-injected, injected))
    ranked = rank_by_lift(
        _evidence(relevance=relevance, trials=injected, residual=residual, injected=injected, used=used)
    )
    assert 0 <= ranked.terms["worth"][0] <= 1
    assert ranked.score[0] == pytest.approx(0.6 * relevance + 0.4 * ranked.terms["worth"][0])


def test_what_is_unknown_is_worth_half() -> None:
    ranked = rank_by_lift(_evidence(relevance=0.5))
    assert ranked.terms == {"lift": [0.0], "use": [0.0], "worth": [0.5]}


@given(st.integers(0, 100), st.data())
def test_a_surprise_is_the_difference_from_the_base_rate(tried: int, data: st.DataObject) -> None:
    passes = data.draw(st.integers(0, tried))
    passed, failed = ranking.surprise(1, tried, passes), ranking.surprise(0, tried, passes)
    assert passed - failed == pytest.approx(1)
    assert failed < 0 < passed


def test_a_use_that_nobody_reports_is_part_of_a_trial() -> None:
    assert ranking.exposure(reported=True) == 1
    assert 0 < ranking.exposure(reported=False) < 1
