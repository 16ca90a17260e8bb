"""One table says what HELIX does with a result; help prints it, the loop asks it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import STATUSES
from helix_tui.core.supervision.signals.responses import (
    LEVELS,
    RESPONSES,
    RULES,
    SHORT,
    UNKNOWN_STATUS,
    level_of,
    response_to,
    table,
)


def test_every_status_has_a_row_and_a_response_in_words() -> None:
    rows = {word: response for word, _, response, _ in table()}
    assert list(rows) == [*STATUSES, UNKNOWN_STATUS]
    assert set(rows.values()) == set(RESPONSES)
    assert rows["success"] == "count"
    assert rows[UNKNOWN_STATUS] == "ask"


@pytest.mark.parametrize("status", list(STATUSES))
def test_the_table_says_what_is_done_with_an_attempt_of_that_status(status: str) -> None:
    row = next(row for row in table() if row[0] == status)
    attempt = Attempt(attempt_id="x", bead_id="a-1", status=status, status_source="event")
    assert response_to(attempt) == row[2]


def test_a_success_that_git_does_not_find_is_asked_about() -> None:
    attempt = Attempt(attempt_id="x", status="success", status_source="event", result_rev="a" * 40, on_branch=False)
    assert response_to(attempt) == "ask"
    assert response_to(replace(attempt, on_branch=True)) == "count"


def test_only_success_counts_and_a_word_that_nobody_knows_is_asked_about() -> None:
    landed = Attempt(attempt_id="x", status="success", status_source="event", landed_rev="a" * 40)
    assert response_to(landed) == "count"
    assert response_to(replace(landed, status="preserved_needs_review")) == "nothing"
    assert response_to(replace(landed, status="a_word_of_next_year")) == "ask"
    assert response_to(replace(landed, status="land_retry", recovered=True)) == "nothing", "nothing is left to retry"


def test_each_level_has_a_rule_for_everything() -> None:
    assert [level_of(word) for word in ("low", "high", "other")] == ["low", "high", None]
    assert set(SHORT) == set(LEVELS)
    assert all(len(row) == 1 + len(LEVELS) and all(row) for row in RULES)
