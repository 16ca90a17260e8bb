"""When the queue is drained: from what landed, with an interval, and nothing where nothing can be said."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.record import Bead, Dependency
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.insights.forecast import DAY_S, FARTHEST, Forecast, draw, forecast

NOW = 1_800_000_000 * NS
DAY = DAY_S * NS
_numbers = count()


def landed(bead: str, age: int, **fields: object) -> Attempt:
    known: dict[str, object] = {"finished_at": NOW - age, "duration_ms": 60_000, "landed_rev": "abc"}
    return Attempt(f"a-{next(_numbers)}", bead, "success", **(known | fields))  # type: ignore[arg-type]


def asked(attempts: list[Attempt], left: int, *beads: Bead) -> Forecast:
    known = {bead.id: bead for bead in beads}
    return forecast(attempts, known, Graph(known), NOW, left=left)


def test_a_steady_pace_is_what_is_forecast() -> None:
    """Two a day for eight weeks: ten take five days."""
    steady = [landed(f"b{number}", day * DAY + half * DAY // 2) for number, (day, half) in
              enumerate((day, half) for day in range(56) for half in (0, 1))]  # fmt: skip
    found = asked(steady, 10)
    assert found.middle_s is not None
    assert 4 * DAY_S < found.middle_s < 6.5 * DAY_S
    assert found.low_s < found.middle_s < found.high_s < 12 * DAY_S
    assert round(found.per_day, 1) == 2.0
    assert "10 left: about" in found.describe()
    assert "2.0 done a day" in found.describe()


def test_a_history_of_minutes_is_no_rate_a_day() -> None:
    beads = [Bead(id=f"n{number}", created_at=format_instant(NOW - 60 * NS)) for number in range(3)]
    found = asked([landed(f"b{number}", number * 30 * NS) for number in range(1, 21)], 10, *beads)
    assert found.middle_s is not None
    assert found.over_s < DAY_S
    assert "a day" not in found.describe()
    assert f"{found.done} done, 3 added in the last {format_age(found.over_s)}" in found.describe()


def test_as_much_is_not_more() -> None:
    past = [landed(f"b{number}", number * DAY) for number in range(20)]
    done = asked(past, 5).done

    def said(added: int) -> str:
        return asked(
            past, 5, *(Bead(id=f"n{n}", created_at=format_instant(NOW - DAY)) for n in range(added))
        ).describe()

    assert "is added as" not in said(done - 1)
    assert "more is added" not in said(done - 1)
    assert ": as much is added as done" in said(done)
    assert ": more is added than done" in said(done + 1)


def test_it_is_the_same_twice_and_more_take_longer() -> None:
    past = [landed(f"b{number}", number * DAY) for number in range(40)]
    once, twice, more = asked(past, 5), asked(past, 5), asked(past, 50)
    assert once == twice
    assert more.middle_s is not None
    assert once.middle_s is not None
    assert more.middle_s > once.middle_s


def test_a_bead_that_landed_twice_counts_once_and_what_did_not_land_not_at_all() -> None:
    twice = [landed("b", DAY), landed("b", 2 * DAY), Attempt("x", "c", "no_changes", finished_at=NOW - DAY)]
    assert asked(twice, 5).done == 1


def test_a_bead_that_somebody_closed_is_done_and_an_archived_one_too() -> None:
    shut = Bead(id="s", status="closed", updated_at=format_instant(NOW - DAY))
    away = Bead(id="w", status="closed", updated_at=format_instant(NOW - 2 * DAY))
    open_ = Bead(id="o", status="open", updated_at=format_instant(NOW - DAY))
    known = {bead.id: bead for bead in (shut, open_)}
    assert forecast([landed("s", 3 * DAY)], known, Graph(known), NOW, left=1, archive={"w": away}).done == 2


def test_too_little_past_says_so() -> None:
    found = asked([landed("b", DAY)], 7)
    assert found.middle_s is None
    assert found.describe().startswith("no forecast for 7 left: 1 done in the last")
    assert asked([], 7).record()["drained_in_s"] is None
    assert asked([], 0).describe() == "nothing left to do"


def test_nothing_in_the_last_four_weeks_is_no_pace() -> None:
    old = [landed(f"b{number}", (40 + number) * DAY) for number in range(20)]
    assert asked(old, 5).middle_s is None


def test_a_run_of_minutes_is_forecast_in_minutes() -> None:
    minutes = [landed(f"b{number}", number * 60 * NS) for number in range(14)]
    found = asked(minutes, 5)
    assert found.middle_s is not None
    assert 60 < found.middle_s < 1800


def test_more_is_added_than_lands_is_said() -> None:
    past = [landed(f"b{number}", number * DAY) for number in range(28)]
    new = [Bead(id=f"n{number}", created_at=format_instant(NOW - number * DAY // 4)) for number in range(100)]
    assert "more is added than done" in asked(past, 5, *new).describe()


def test_the_longest_chain_takes_its_time_however_many_workers() -> None:
    past = [landed(f"b{number}", number * NS, duration_ms=3_600_000) for number in range(30)]
    chain = [Bead(id=f"c{n}", dependencies=(Dependency(f"c{n - 1}"),) if n else ()) for n in range(4)]
    found = asked(past, 4, *chain)
    assert (found.chain, found.at_least_s) == (4, 4 * 3600.0)
    assert "longest chain of 4 takes 4h" in found.describe()


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 500))
def test_futures_are_ascending_and_bounded(past: list[int], left: int) -> None:
    drawn = draw(past, left)
    assert drawn == sorted(drawn)
    assert drawn[0] >= 0
    assert drawn[-1] <= FARTHEST
