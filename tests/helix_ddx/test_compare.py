"""The comparison itself: it notices what is missing, added, changed or out of order.

In a recording it forgives only what a look every 15 ms cannot see.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helix_ddx import recordings
from tests.helix_ddx.compare import differences
from tests.helix_ddx.shapes import Seen, Token, tokens_of

RUN = [
    Seen(0.1, "$P/.ddx/agent-logs/agent-loop-1795248266811292870.jsonl", "create", '{"type":"loop.start"}\n'),
    Seen(0.2, "$P/.ddx/run-state.json", "create", '{"bead_id":"demo-00000001"}'),
    Seen(0.3, "$P/.ddx/run-state.json", "replace", '{"bead_id":"demo-00000001","session_id":"eb"}'),
    Seen(0.4, "$P/.ddx/executions/20261121T080426-a14c6c52/result.json", "create", '{"status":"success"}'),
    Seen(0.5, "$P/.ddx/run-state.json", "delete", ""),
    Seen(0.6, "$P/.ddx/agent-logs/agent-loop-1795248266811292870.jsonl", "append", '{"type":"loop.end"}\n'),
]


def facts(run: list[Seen]) -> list[Token]:
    return tokens_of(run, {})


def test_a_run_equals_itself_whatever_its_ids_and_times() -> None:
    other = [
        Seen(
            change.at * 3,
            change.path.replace("20261121T080426-a14c6c52", "20270101T000000-00000000"),
            change.op,
            change.text.replace("00000001", "0000000f"),
        )
        for change in RUN
    ]
    assert differences(facts(RUN), facts(other)) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda run: run[:3] + run[4:], "not simulated"),
        (lambda run: run[:-1], "not simulated"),
        (lambda run: [*run, Seen(0.7, "$P/.ddx/new.json", "create", "{}")], "not recorded"),
        (lambda run: [run[0], run[2], *run[3:]], "not simulated"),
        (lambda run: [*run[:3], run[4], run[3], run[5]], "comes before"),
        (
            lambda run: [*run[:3], Seen(0.4, run[3].path, "create", '{"state":"success"}'), *run[4:]],
            "not simulated",
        ),
    ],
)
def test_a_difference_is_noticed(change: Callable[[list[Seen]], list[Seen]], why: str) -> None:
    assert any(why in wrong for wrong in differences(facts(RUN), facts(change(RUN))))


def test_a_look_may_miss_a_state_that_was_replaced() -> None:
    assert differences(facts([*RUN[:1], *RUN[2:]]), facts(RUN)) == []


def test_the_order_within_one_moment_is_open() -> None:
    at_once = [Seen(0.5 + place / 1000, change.path, change.op, change.text) for place, change in enumerate(RUN)]
    moved = [*RUN[:1], RUN[3], *RUN[1:3], *RUN[4:]]
    assert differences(facts(at_once), facts(moved)) == []


@pytest.mark.skipif(not recordings.GIVEN.is_dir(), reason="the recordings are not on this machine")
@pytest.mark.parametrize("name", recordings.NAMES)
def test_what_is_committed_is_what_was_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = recordings.facts(name), recordings.rows_before(name), recordings.printed(name)
    monkeypatch.setattr(recordings, "GIVEN", recordings.COMMITTED / "absent")
    lines, document = recordings.printed(name)
    assert (recordings.facts(name), recordings.rows_before(name), (lines, document)) == given
