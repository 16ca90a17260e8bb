"""The two rankers as functions of arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.memory import credit, ranking
from helix_tui.core.memory.credit import Tally, attribute
from helix_tui.core.memory.ranking import RankingEvidence, rank_by_lift, rank_by_seed

COUNT = st.floats(0, 1_000)


def _evidence(**values: float) -> RankingEvidence:
    def column(name: str) -> ranking.Array:
        return np.array([values.get(name, 0.0)])

    return RankingEvidence(
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


_tallies = st.builds(
    lambda trials, residual, share: Tally(trials, residual * trials, trials, share * trials),
    st.floats(0, 50),
    st.floats(-1, 1),
    st.floats(0, 1),
)


@given(st.floats(0.01, 0.99), st.lists(_tallies, min_size=1, max_size=6))
def test_an_outcome_never_speaks_against_itself(rate: float, tallies: list[Tally]) -> None:
    shown = dict(enumerate(tallies))
    passed, bare = attribute(rate, 1.0, shown)
    failed, bare_failed = attribute(rate, 0.0, shown)
    assert passed.keys() == shown.keys()
    assert all(-1 <= failed[each] <= 0 <= passed[each] <= 1 for each in shown)
    assert bare - bare_failed == pytest.approx(1)


def test_what_nobody_knows_is_judged_by_the_rate_of_its_kind() -> None:
    new = Tally(0.0, 0.0, 0.0, 0.0)
    for shown in ({1: new}, {1: new, 2: new}):
        surprises, bare = attribute(0.7, 1.0, shown)
        assert surprises == pytest.approx(dict.fromkeys(shown, 0.3))
        assert bare == 1.0


def test_a_failure_beside_a_harmful_memory_costs_the_others_less() -> None:
    def known(residual: float) -> Tally:
        return Tally(28.0, residual, 28.0, 14.0)  # lift is residual / 40

    alone, _ = attribute(0.5, 0.0, {1: known(0.0), 2: known(0.0)})
    beside, _ = attribute(0.5, 0.0, {1: known(0.0), 2: known(-8.0)})
    assert alone[1] == pytest.approx(-0.5)
    assert beside[1] == pytest.approx(-0.3)
    assert beside[2] == pytest.approx(-0.5)


def test_a_use_that_nobody_reports_is_part_of_a_trial() -> None:
    assert credit.exposure(reported=True) == 1
    assert 0 < credit.exposure(reported=False) < 1
