"""What agents cost: every call once, whatever it was for, on each release's session index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.record import Bead, decode_bead
from helix_tui.core.ddx.attempts.costs import (
    Amount,
    Sums,
    format_sum,
    format_tokens,
    format_whole,
    read_sums,
    sum_calls,
)
from helix_tui.core.ddx.attempts.index import AttemptIndex

FIRST = "20260801T100005-aaaaaaaa"
SECOND = "20260801T110000-bbbbbbbb"
EACH = 0.0421


class Project:
    """A tracker with one bead, its attempts and ddx's session index."""

    def __init__(self, root: Path) -> None:
        self.ddx = root / ".ddx"
        self.sessions = self.ddx / "agent-logs" / "sessions" / "sessions-2026-08.jsonl"
        self.sessions.parent.mkdir(parents=True)
        self.beads: dict[str, Bead] = {"b-1": decode_bead(b'{"id":"b-1","title":"t","status":"open"}')}
        self.index = AttemptIndex(self.ddx)

    def attempt(self, name: str, **result: Any) -> None:
        folder = self.ddx / "executions" / name
        folder.mkdir(parents=True)
        usage = result.pop("usage", None)
        row = {"bead_id": "b-1", "attempt_id": name, "status": "success", **result}
        (folder / "result.json").write_text(json.dumps(row))
        if usage is not None:
            (folder / "usage.json").write_text(json.dumps(usage))

    def call(self, second: int, *, took: int = 1, cost: float | None = EACH, **fields: Any) -> None:
        began = f"2026-08-01T10:{second // 60:02}:{second % 60:02}.5Z"
        end = second + took
        row: dict[str, Any] = {"id": f"as-{second}", "harness": "claude", "startedAt": began}
        row["endedAt"] = f"2026-08-01T10:{end // 60:02}:{end % 60:02}.5Z"
        if cost is not None:
            row |= {"cost": cost, "costPresent": True, "tokens": 3000}
            row |= {"inputTokens": 2850, "outputTokens": 150}
        row |= {"outcome": "success", "exitCode": 0, **fields}
        with self.sessions.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def work(self, second: int, attempt: str = FIRST, **fields: Any) -> None:
        bundle = {"beadID": "b-1", "bundlePath": f".ddx/executions/{attempt}", "baseRev": "abc"}
        self.call(second, **(bundle | fields))

    def sums(self) -> Sums:
        self.index.refresh(self.beads)
        calls = [call for attempt in self.index.attempts for call in attempt.spent]
        return sum_calls([*calls, *self.index.other_calls])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def parts(sums: Sums) -> dict[str, tuple[float, int]]:
    return {part: (round(amount.usd, 4), amount.calls) for part, amount in sums.parts.items()}


def test_a_review_of_april_names_nothing_and_follows_its_attempt(project: Project) -> None:
    project.attempt(FIRST, cost_usd=EACH, tokens=3000, review_verdict="APPROVE")
    project.work(5, id="eb-1")
    project.call(7, model="opus")
    assert parts(project.sums()) == {"work": (EACH, 1), "reviews": (EACH, 1)}
    assert project.sums().tokens == 6000


def test_a_check_and_a_triage_belong_to_the_attempt_between_them(project: Project) -> None:
    project.attempt(FIRST, status="execution_failed", started_at="2026-08-01T10:00:05Z")
    project.call(3, beadID="b-1")
    project.work(5, promptSHA="x", outcome="failure", exitCode=1)
    project.call(7)
    assert parts(project.sums()) == {"work": (EACH, 1), "checks": (EACH, 1), "triage": (EACH, 1)}
    (attempt,) = project.index.attempts
    assert [call.part for call in attempt.calls] == ["checks", "work", "triage"]
    assert project.index.other_calls == ()


def test_a_check_whose_answer_ddx_threw_away_has_an_unknown_cost(project: Project) -> None:
    """May, July, August, in a work tree that changed meanwhile: the agent was paid, and no row says so."""
    detail = "readiness route unavailable: lifecycle dispatch: project root mutation rejected for bead b-1"
    at = "2026-08-01T10:00:03Z"
    rows = [
        {"type": "pre_claim_intake.start", "ts": at, "data": {"bead_id": "b-1"}},
        {"type": "pre_claim_intake.warn", "ts": at, "data": {"bead_id": "b-1", "detail": detail}},
        {
            "type": "pre_claim_intake.warn",
            "ts": at,
            "data": {"bead_id": "b-1", "detail": "no viable routing candidate"},
        },
    ]
    log = project.ddx / "agent-logs" / "agent-loop-1.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (project.sums().usd, project.sums().complete, parts(project.sums())) == (None, False, {"checks": (0.0, 1)})
    project.attempt(FIRST, cost_usd=EACH, tokens=3000)
    project.work(5)
    assert (project.sums().usd, project.sums().complete) == (EACH, False)
    assert parts(project.sums()) == {"work": (EACH, 1), "checks": (0.0, 1)}


def test_a_triage_follows_work_whose_row_begins_with_its_end(project: Project) -> None:
    """April to June: ten minutes of work are written as ten minutes from the instant at which they ended."""
    project.attempt(FIRST, status="execution_failed")
    project.attempt(SECOND, status="execution_failed")
    written: dict[str, Any] = {"promptSHA": "x", "outcome": "failure", "surface": "claude", "durationMs": 600_000}
    project.work(605, took=600, **written)
    project.call(607)
    project.work(1215, SECOND, took=600, **written)
    project.call(1217)
    assert parts(project.sums()) == {"work": (2 * EACH, 2), "triage": (2 * EACH, 2)}
    assert [[call.part for call in attempt.calls] for attempt in project.index.attempts] == [["work", "triage"]] * 2


def test_a_triage_follows_a_review_that_reached_nobody(project: Project) -> None:
    """July, where its router finds no reviewer: the work was good, and ddx asks what to make of the rest."""
    project.attempt(FIRST, cost_usd=EACH, tokens=3000)
    project.work(5, id="eb-1", promptSHA="s")
    lost = "ResolveRoute: no viable routing candidate for pins min_power"
    bundle = {"beadID": "b-1", "bundlePath": f".ddx/executions/{FIRST}"}
    project.call(6, took=0, cost=None, id="eb-1", outcome="failure", detail=lost, **bundle)
    project.call(7)
    project.call(9)
    told = {name: part for name, part in parts(project.sums()).items() if part[1]}
    assert told == {"work": (EACH, 1), "triage": (EACH, 1), "other": (EACH, 1)}, "one triage an attempt"


def test_a_repaired_attempt_has_the_tokens_of_both_cycles(project: Project) -> None:
    project.attempt(FIRST, cost_usd=2 * EACH, tokens=3000, session_id="eb-1", review_verdict="BLOCK")
    for second in (5, 9):
        project.work(second, promptSHA="x", id="eb-1")
        project.call(second + 2, id="eb-1", beadID="b-1", bundlePath=f".ddx/executions/{FIRST}")
    sums = project.sums()
    assert parts(sums) == {"work": (2 * EACH, 2), "reviews": (2 * EACH, 2)}
    (attempt,) = project.index.attempts
    assert (attempt.tokens.total, attempt.tokens.input, attempt.cost_usd) == (6000, 5700, 2 * EACH)


def test_an_attempt_without_a_row_counts_by_its_own_record(project: Project) -> None:
    project.attempt(SECOND, cost_usd=1.0, tokens=500)
    assert parts(project.sums()) == {"work": (1.0, 1)}
    project.attempt(FIRST, cost_usd=EACH)
    project.work(5)
    assert parts(project.sums()) == {"work": (1.0 + EACH, 2)}


def test_an_unknown_cost_makes_the_sum_a_least_one(project: Project) -> None:
    project.attempt(FIRST, status="execution_failed")
    project.work(5, cost=None, tokens=940, outcome="failure")
    project.call(7)
    sums = project.sums()
    assert not sums.complete
    assert format_whole(sums) == "≥$0.04 (work n/a · triage $0.04)"
    assert sums.tokens == 3940


def test_a_review_that_nobody_counted_is_unknown_and_not_nothing(project: Project) -> None:
    project.attempt(FIRST, cost_usd=0.25, review_verdict="APPROVE")
    assert format_whole(project.sums()) == "≥$0.25 (work $0.25 · reviews n/a)"


def test_where_ddx_found_no_agent_nothing_was_spent(project: Project) -> None:
    project.call(3, cost=None, outcome="failure", exitCode=1, detail="ResolveRoute: no viable routing candidate")
    project.call(4, took=3)
    sums = project.sums()
    assert (sums.complete, sums.whole.calls, sums.usd) == (True, 1, EACH)


def test_where_no_agent_was_called_the_cost_is_known_to_be_nothing(project: Project) -> None:
    project.call(3, cost=None, outcome="failure", exitCode=1, detail="ResolveRoute: no viable routing candidate")
    assert format_whole(project.sums()) == "$0.00"
    assert format_tokens(project.sums()) == "0 tokens"
    assert format_whole(Sums()) == "$0.00", "a run in which nothing was attempted"


def test_tokens_that_nobody_counted_are_not_none() -> None:
    known, unknown = Amount(0.1, 1940, 1), Amount(0.2, 0, 1, 0, 1)
    assert format_tokens(Sums({"work": known})) == "1,940 tokens"
    assert format_tokens(Sums({"work": known, "reviews": unknown})) == "≥1,940 tokens"
    assert format_tokens(Sums({"work": unknown})) == "tokens n/a"


def test_a_total_below_its_parts_is_no_fact(project: Project) -> None:
    usage = {"tokens": 0, "input_tokens": 2850, "output_tokens": 150}
    project.attempt(FIRST, cost_usd=EACH, usage=usage)
    assert project.sums().tokens == 3000


def test_what_belongs_to_no_attempt_is_counted_once_and_the_same_row_never_twice(project: Project) -> None:
    project.call(100)
    text = project.sessions.read_text()
    project.sessions.write_text(text + text + "no row\n")
    assert parts(project.sums()) == {"other": (EACH, 1)}
    project.call(200, beadID="b-1")  # a check that led to no attempt
    assert parts(project.sums()) == {"other": (EACH, 1), "checks": (EACH, 1)}


def test_an_index_that_was_replaced_is_read_again(project: Project) -> None:
    project.attempt(FIRST, cost_usd=EACH)
    project.work(5)
    assert project.sums().usd == EACH
    project.sessions.unlink()
    project.work(5, cost=1.0)
    assert project.sums().usd == 1.0
    project.sessions.unlink()
    assert project.sums().usd == EACH


def test_two_workers_each_have_their_own_review(project: Project) -> None:
    project.attempt(FIRST, review_verdict="APPROVE")
    project.attempt(SECOND, review_verdict="APPROVE")
    project.work(5)
    project.work(5, SECOND, id="eb-2")
    project.call(8)
    project.call(9)
    project.sums()
    assert [[call.part for call in attempt.calls] for attempt in project.index.attempts] == [
        ["work", "reviews"],
        ["work", "reviews"],
    ]


def test_a_review_is_of_the_attempt_that_ended_last(project: Project) -> None:
    project.attempt(FIRST, status="no_changes")
    project.attempt(SECOND, review_verdict="APPROVE")
    project.work(5)
    project.work(7, SECOND, id="eb-2")
    project.call(9)
    assert parts(project.sums()) == {"work": (EACH * 2, 2), "reviews": (EACH, 1)}
    assert project.sums().complete
    assert [len(attempt.calls) for attempt in project.index.attempts] == [2, 1]


def test_a_sum_outlives_its_file(project: Project) -> None:
    project.attempt(FIRST, status="execution_failed")
    project.work(5, cost=None)
    project.call(40, cost=2.5)
    sums = project.sums()
    assert read_sums(json.loads(json.dumps(sums.record()))) == sums
    assert read_sums({"parts": {"work": "much"}}) == Sums() == read_sums(None)


def test_a_zero_beside_an_unknown_cost_is_no_sum() -> None:
    free, unknown = Amount(0.0, 940, 1), Amount(0.0, 0, 1, 1, 1)
    assert format_sum(Sums({"checks": free})) == "$0.00"
    assert format_sum(Sums({"checks": free, "work": unknown})) == "n/a"
    assert format_sum(Sums({"checks": Amount(0.25, 0, 1), "work": unknown})) == "≥$0.25"
    # not "at least less than a cent"
    assert format_sum(Sums({"checks": Amount(0.001, 0, 1), "work": unknown})) == ">$0"
