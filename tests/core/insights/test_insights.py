"""Cost and outcome tables: what counts, what is unknown, what is too small to say."""

from __future__ import annotations

import time
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.costs import AgentCall
from helix_tui.core.ground.shares import share
from helix_tui.core.ground.time import NS, parse_instant
from helix_tui.core.insights.burn import DAY, burn
from helix_tui.core.insights.cells import percentile, shown_values, table
from helix_tui.core.insights.failing import failing
from helix_tui.core.insights.report import batch_of, batches, compare_models

NOW = 1_800_000_000 * NS
_numbers = count()


def attempt(bead: str = "a", status: str = "success", *, age: int = 0, **fields: object) -> Attempt:
    ended = NOW - age
    known: dict[str, object] = {
        "started_at": ended - NS,
        "finished_at": ended,
        "model": "m",
        "harness": "h",
    }
    return Attempt(attempt_id=f"attempt-{next(_numbers)}", bead_id=bead, status=status, **(known | fields))  # type: ignore[arg-type]


BEADS = {
    bead.id: bead
    for bead in (
        Bead(id="a", issue_type="bug", labels=("area:ui",)),
        Bead(id="b", title="tried in vain"),
        Bead(id="c", status="closed"),
    )
}


def test_wilson_gives_the_published_values() -> None:
    found = share(8, 10)  # Newcombe 1998: 0.4902 to 0.9433
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    assert (share(0, 0).rate, share(0, 0).low, share(0, 0).high) == (None, 0.0, 1.0)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share_and_stays_between_0_and_1(drawn: tuple[int, int]) -> None:
    found = share(*drawn)
    assert found.rate is not None
    assert 0.0 <= found.low <= found.rate + 1e-12
    assert found.rate - 1e-12 <= found.high <= 1.0


def test_a_row_stands_for_every_combination_and_what_runs_belongs_to_none() -> None:
    attempts = [attempt(), attempt(status="no_changes"), attempt("b", model=""), attempt("b", status="")]
    rows = table(attempts, BEADS)
    assert [(dict(row.key), row.n, row.landed.count) for row in rows] == [
        ({"harness": "h", "model": "m", "kind": "bug"}, 2, 1),
        ({"harness": "h", "model": "unknown", "kind": "task"}, 1, 1),
    ]
    assert rows[0].small
    with pytest.raises(KeyError):
        table(attempts, BEADS, ("colour",))


def test_every_finished_attempt_is_in_one_row_of_each_table() -> None:
    attempts = [attempt(bead) for bead in ("a", "b", "c", "gone")]
    for by in ("area", "priority", "provider", "status", "day", "parent", "bead"):
        assert sum(row.n for row in table(attempts, BEADS, (by,))) == 4


def test_an_unknown_cost_is_not_nothing() -> None:
    (row,) = table([attempt(cost_usd=2.0), attempt("b"), attempt("b", "no_changes")], BEADS, ("model",))
    assert (row.cost, row.cost_complete, row.cost_per_landed) == (2.0, False, 1.0)
    (row,) = table([attempt()], BEADS, ("model",))
    assert (row.cost, row.cost_per_landed, row.cost_per_attempt) == (None, None, None)
    (row,) = table([attempt(status="no_changes", cost_usd=3.0)], BEADS, ("model",))
    assert row.cost_per_landed is None


def test_percentiles_are_of_what_is_known() -> None:
    ran = [attempt(duration_ms=ms, tokens=Tokens(total=ms)) for ms in range(1, 101)]
    (row,) = table([*ran, attempt(duration_ms=0)], BEADS, ("model",))
    assert (percentile(row.durations, 0.5), percentile(row.durations, 0.95)) == (50, 95)
    assert percentile(row.tokens, 0.5) == 50
    assert percentile([], 0.5) is None


def test_a_day_is_the_local_one_in_which_an_attempt_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = parse_instant("2026-08-20T20:50:00Z"), parse_instant("2026-08-20T23:10:00Z")
    late = [Attempt("x", "a", status="success", started_at=begun, finished_at=ended)]
    try:
        for zone, day in (("UTC", "2026-08-20"), ("CET-1", "2026-08-21"), ("EST5", "2026-08-20")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert [cell.key for cell in table(late, {}, ("day",))] == [(("day", day),)]
            assert [each.key for each in burn(late, {}, (ended or 0) + NS, left=0).days] == [(("day", day),)]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_review_after_midnight_is_of_its_day_as_on_line_1() -> None:
    work = AgentCall("work", NOW - DAY, 1.0, 10)
    review = AgentCall("reviews", NOW - NS, 0.5, 5)
    book = AttemptBook([attempt("c", cost_usd=2.0), attempt("c", age=DAY, calls=(work, review))])
    today, before = burn(book, BEADS, NOW, left=0).days
    assert (today.cost, before.cost) == (2.5, 1.0)
    assert today.cost == book.spent_since(NOW - DAY // 2).usd


def test_burn_is_by_day_and_forecasts_from_the_last_week() -> None:
    attempts = [
        attempt("c", cost_usd=7.0, age=NS),
        attempt("c", cost_usd=7.0, age=3 * DAY),
        attempt("c", cost_usd=99.0, age=30 * DAY),
    ]
    spent = burn(attempts, BEADS, NOW, left=2)
    assert [day.cost for day in spent.days] == [7.0, 7.0, 99.0]
    assert (spent.last_day.cost, spent.recent.cost, spent.per_day) == (7.0, 14.0, 2.0)
    assert (spent.open_beads, spent.left) == (2, 28.0)
    assert burn([], BEADS, NOW, left=2).left is None


def test_a_bead_keeps_failing_from_its_second_loss_since_it_landed() -> None:
    lost = [attempt("b", "execution_failed", age=age, cost_usd=1.0) for age in (2, 3)]
    assert failing(lost[:1], BEADS) == ()
    (found,) = failing([*lost, attempt("b", age=9)], BEADS)
    assert (found.bead_id, found.cell.n, found.cell.cost, found.last) == ("b", 2, 2.0, lost[0])
    assert failing([*lost, attempt("b", age=1)], BEADS) == ()
    closed = [attempt(bead, "no_changes") for bead in ("c", "c", "gone", "gone")]
    assert failing(closed, BEADS) == ()


def runs(model: str, landed: int, lost: int, cost: float) -> list[Attempt]:
    beads = [f"bead-{place}" for place in range(landed + lost)]
    return [
        attempt(bead, "success" if place < landed else "no_changes", model=model, cost_usd=cost)
        for place, bead in enumerate(beads)
    ]


def test_a_cheaper_model_is_as_good_only_where_enough_attempts_say_so() -> None:
    beads = {f"bead-{place}": Bead(id=f"bead-{place}") for place in range(200)}
    (same,) = compare_models([*runs("dear", 70, 30, 2.0), *runs("cheap", 69, 31, 0.2)], beads)
    assert (same.verdict, dict(same.cheaper.key)["model"]) == ("as good", "cheap")
    assert same.saved == pytest.approx(2.0 / 0.7 - 0.2 / 0.69)
    (worse,) = compare_models([*runs("dear", 90, 10, 2.0), *runs("cheap", 20, 80, 0.2)], beads)
    assert worse.verdict == "worse"
    (few,) = compare_models([*runs("dear", 3, 1, 2.0), *runs("cheap", 3, 1, 0.2)], beads)
    assert few.verdict == "unclear"
    assert compare_models(runs("one", 9, 9, 1.0), beads) == ()


def test_a_rescue_is_a_bead_that_the_cheaper_one_lost_before() -> None:
    beads = {"a": Bead(id="a")}
    lost = attempt("a", "no_changes", model="cheap", cost_usd=0.1, age=10 * NS)
    landed = attempt("a", model="dear", cost_usd=2.0)
    (found,) = compare_models([lost, landed], beads)
    assert found.rescued == 1
    (found,) = compare_models(
        [
            attempt("a", "no_changes", model="cheap", cost_usd=0.1),
            attempt("a", model="dear", cost_usd=2.0, age=10 * NS),
        ],
        beads,
    )
    assert found.rescued == 0


@pytest.mark.parametrize(
    ("bead", "batch"),
    [
        (Bead(labels=("experiment:prompts",)), "prompts"),
        (Bead(issue_type="experiment", parent="epic-1"), "epic-1"),
        (Bead(labels=("kind:experiment",)), "no batch"),
        (Bead(labels=("experiments",)), None),
    ],
)
def test_experiment_beads_name_their_batch(bead: Bead, batch: str | None) -> None:
    assert batch_of(bead) == batch


def test_experiments_stand_side_by_side_what_landed_cheapest_first() -> None:
    beads = {name: Bead(id=name, labels=("experiment:x",)) for name in ("none", "dear", "cheap", "lost")}
    (batch,) = batches(
        [attempt("dear", cost_usd=2.0), attempt("cheap", cost_usd=1.0), attempt("lost", "no_changes")], beads
    )
    assert [(trial.bead.id, trial.outcome) for trial in batch.trials] == [
        ("cheap", "landed"),
        ("dear", "landed"),
        ("lost", "no_changes"),
        ("none", "not run"),
    ]
    assert batch.best is batch.trials[0]
    assert batches([attempt("a")], BEADS) == ()


def test_a_row_of_unrecorded_models_does_not_read_as_the_sum_of_its_kind() -> None:
    assert shown_values([("model", "sonnet"), ("kind", "task"), ("harness", "unknown")]) == ("sonnet", "task")
    assert shown_values([("model", "unknown"), ("kind", "task"), ("harness", "unknown")]) == ("model unknown", "task")
    assert shown_values([("model", "unknown"), ("kind", "unknown")]) == ("model, kind unknown",)
