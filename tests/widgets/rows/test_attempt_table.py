"""Attempts in groups with their sums, in any order, without a column that nobody can fill."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.attempts.costs import AgentCall, format_sum, sum_calls
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.widgets.figures import look_of
from helix_tui.widgets.rows.attempt_table import (
    SORTS,
    AttemptGroup,
    arranged,
    ending_of,
    grouped,
    short_model,
)
from helix_tui.widgets.rows.attempts import AttemptList, AttemptOrder, AttemptRows, Board
from helix_tui.widgets.rows.bead import RowContext
from helix_tui.widgets.text.bead import DetailFacts, detail_rows
from tests.core.supervision.conftest import queue_of, row
from tests.widgets.host import Host

NOW = parse_now("2026-08-21T12:00:00Z")
HOUR = 3_600 * NS
DAY = 24 * HOUR


def attempt(number: int, status: str = "success", **fields: object) -> Attempt:
    at = NOW - number * HOUR
    made = Attempt(
        attempt_id=f"a{number:05}",
        bead_id=f"b-{number % 3}",
        status=status,
        status_source="event",
        model=("opus", "haiku")[number % 2],
        started_at=at - HOUR,
        finished_at=at,
        duration_ms=1_000 * (number + 1),
        tokens=Tokens(total=100 * (number + 1)),
        cost_usd=0.5 + number / 100,
    )
    return replace(made, **fields)


MANY = [attempt(n) for n in range(100)]


def test_days_hold_every_attempt_once_and_their_sums_are_those_of_the_one_object() -> None:
    groups = grouped(MANY, SORTS["time"], NOW)
    assert [each for group in groups for each in group.attempts] == MANY
    assert groups[0].name == "Today"
    assert groups[1].name == "Yesterday"
    assert groups[2].name == "Wed 19 Aug"
    for group in groups:
        assert len({(each.finished_at or 0) // DAY for each in group.attempts}) <= 2
        whole = format_sum(sum_calls(call for each in group.attempts for call in each.spent))
        assert group.summed[0] == whole


def test_days_are_days_when_the_oldest_stands_first_too() -> None:
    turned = arranged(MANY, SORTS["time"], turned=True)
    groups = grouped(turned, SORTS["time"], NOW)
    assert [group.name for group in groups] == [group.name for group in grouped(MANY, SORTS["time"], NOW)][::-1]
    assert sum(len(group.attempts) for group in groups) == 100


@pytest.mark.parametrize("name", list(SORTS))
@pytest.mark.parametrize("turned", [False, True])
def test_every_order_holds_every_attempt_once_and_the_unknown_last(name: str, turned: bool) -> None:
    rng = random.Random(3)
    mixed = [
        replace(each, cost_usd=None, tokens=Tokens(), duration_ms=None, model="", bead_id="")
        if rng.random() < 0.3
        else each
        for each in MANY
    ]
    order = arranged(mixed, SORTS[name], turned=turned)
    assert sorted(each.attempt_id for each in order) == sorted(each.attempt_id for each in mixed)
    values = [SORTS[name].value(each) for each in order]
    known = [value for value in values if value is not None]
    assert values[: len(known)] == known
    assert known == sorted(known, reverse=SORTS[name].descending is not turned)  # type: ignore[type-var]
    groups = grouped(order, SORTS[name], NOW)
    assert [each for group in groups for each in group.attempts] == list(order)
    assert len({group.name for group in groups}) == len(groups)


def test_the_list_and_the_bead_say_the_same_tokens_and_cost_of_an_attempt() -> None:
    check = AgentCall("checks", NOW, 0.25, 3_000, "b-0", "a00000")
    work = AgentCall("work", NOW, 0.5, 3_000, "b-0", "a00000")
    tried = attempt(0, cost_usd=0.5, tokens=Tokens(total=3_000), calls=(work, check))
    queue = queue_of([row("b-0")])
    facts = DetailFacts(queue.beads["b-0"], RowContext(queue, {}, NOW), (tried,))
    (beside,) = [each for each in detail_rows(facts, 60) if each.key == "attempt:a00000"]
    group = grouped([tried], SORTS["time"], NOW)[0]
    line = "".join(text for text, _ in AttemptRows(Board(order=AttemptOrder([tried]), now=NOW), 120).paint(1, 120))
    for said in (line, "".join(text for text, _ in (*beside.left, *beside.right)), " · ".join(group.summed)):
        assert "6.0k" in said, said
        assert "$0.75" in said, said


def test_a_column_that_nobody_can_fill_is_not_there() -> None:
    bare = [replace(each, cost_usd=None, tokens=Tokens(), model="", harness="") for each in MANY]
    names = {column.name for column in Board(order=AttemptOrder(bare), now=NOW).columns(160)}
    assert names == {"took", "ended"}
    chosen = Board(order=AttemptOrder(bare, chosen=("cost", "bead")), now=NOW).columns(160)
    assert [column.name for column in chosen] == ["cost", "bead"]
    line = "".join(text for text, _ in AttemptRows(Board(order=AttemptOrder(bare), now=NOW), 120).paint(1, 120))
    assert "n/a" not in line


def test_a_title_has_its_room_before_tokens_have_a_column() -> None:
    beads = {f"b-{n}": Bead(id=f"b-{n}", title="x" * 80) for n in range(3)}
    refused = [replace(each, status="review_block", detail="pre-land review: BLOCK") for each in MANY]
    for width, tokens in ((84, False), (98, True)):
        board = Board(order=AttemptOrder(refused), beads=beads, now=NOW)
        line = "".join(text for text, _ in AttemptRows(board, width).paint(1, width))
        assert line.count("x") >= 35, line
        assert ("tokens" in {column.name for column in board.columns(width)}) is tokens


@pytest.mark.parametrize("width", [46, 58, 62, 80, 100, 120, 160, 218])
def test_at_every_width_outcome_title_duration_age_and_cost_are_there(width: int) -> None:
    rows = AttemptRows(Board(order=AttemptOrder(MANY), now=NOW), width)
    line = "".join(text for text, _ in rows.paint(1, width))
    for part in ("✓", "b-0", "1s", "$0.50"):
        assert part in line, line
    assert ("opus" in line) is (width >= 100)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("success", "landed"),
        ("execution_failed", "failed"),
        ("land_conflict", "conflict"),
        ("post_run_check_failed", "check failed"),
        ("quantum_superposed", "quantum_superposed"),
        ("", "interrupted"),
    ],
)
def test_an_ending_is_ddxs_own_word_where_that_says_more(status: str, said: str) -> None:
    assert ending_of(attempt(1, status)) == said


def test_an_ending_never_names_another_outcome_than_its_own() -> None:
    for status in ("already_satisfied", "no_changes", "execution_failed"):
        kept = replace(attempt(1, status), preserve_ref="refs/ddx/iterations/b-1/x")
        assert (kept.verdict.outcome, ending_of(kept)) == ("kept_aside", "kept aside")


async def test_a_day_folds_to_its_sums_and_unfolds() -> None:
    rows = AttemptList()
    async with Host(rows).run_test(size=(120, 30)):
        rows.show_board(Board(order=AttemptOrder(MANY), now=NOW))
        whole = len(rows.source)
        rows.select(MANY[40].attempt_id)
        assert rows.fold()
        assert rows.selected_attempt is None
        assert (rows.selected_key or "").startswith("group:")
        assert len(rows.source) < whole
        assert rows.source.index(MANY[40].attempt_id) == rows.selected_index, "its group stands for it"
        assert rows.unfold()
        assert len(rows.source) == whole


def test_twenty_thousand_attempts_have_their_rows_where_their_keys_say() -> None:
    many = [attempt(n) for n in range(20_000)]
    rows = AttemptRows(Board(order=AttemptOrder(many), now=NOW, folded=frozenset({"yesterday"})), 100)
    for place in (0, 1, 500, len(rows) - 1):
        assert rows.index(rows.key(place)) == place
    limited = AttemptRows(Board(order=AttemptOrder(many), now=NOW), 100, most=60)
    assert sum(limited.attempt(n) is not None for n in range(len(limited))) == 60


def test_a_model_loses_what_others_begin_with_too_before_its_own_end() -> None:
    names = {"gpt-5.4", "gpt-5.4-mini", "sonnet-4.6"}
    assert short_model("gpt-5.4-mini", names, 12) == "gpt-5.4-mini"
    assert short_model("gpt-5.4-mini", names, 8) == "5.4-mini"
    assert short_model("sonnet-4.6", names, 7) == "sonnet-4.6"  # nobody else begins so: its end is cut
    assert short_model("simulation-medium", names, 8) == "medium"


def test_where_only_glyphs_have_room_each_stands_once_and_a_tick_is_what_landed() -> None:
    made = [attempt(n, status=status) for n, status in enumerate(("success", "already_satisfied", "no_changes"))]
    line = AttemptGroup("today", made).caption(48)
    assert "✓1 ○2" in "".join(text for text, _ in line)


def test_a_glyph_of_the_heading_counts_the_rows_that_begin_with_it() -> None:
    statuses = ("success", "already_satisfied", "no_changes", "execution_failed", "land_conflict", "review_fixable_gap")
    made = [attempt(n, status=status) for n, status in enumerate(statuses)]
    signs = Counter(look_of(one).glyph for one in made)
    said = "".join(text for text, _ in AttemptGroup("today", made).caption(60))
    assert {word for word in said.split() if word[1:].isdigit()} == {f"{sign}{n}" for sign, n in signs.items()}


def test_the_attempts_of_one_model_under_its_name_do_not_repeat_it() -> None:
    def columns(models: list[str], *, heading: bool) -> set[str]:
        order = AttemptOrder([replace(MANY[0], attempt_id=f"a-{n}", model=name) for n, name in enumerate(models)])
        return {column.name for column in Board(order=order, now=NOW, heading=heading).columns(160)}

    assert "model" not in columns(["opus", "opus"], heading=False)
    assert "model" in columns(["opus", "sonnet"], heading=False)
    assert "model" in columns(["opus", "opus"], heading=True), "a day has attempts of any model"
    assert "model" in columns(["opus"], heading=False), "the title line of an attempt is such a list"
