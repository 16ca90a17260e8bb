"""The loop on a scripted ddx of both vocabularies."""

from __future__ import annotations

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long

LOOP = {"april": "agent execute-loop --once --json --local", "head": "work --once --json"}


def test_a_queue_is_drained_one_bead_a_turn_and_then_a_check_is_made(stage: StageFactory) -> None:
    world = stage([row("a-1", priority=1), row("a-2", "a-1")])
    outcome = world.run()
    assert world.calls[:2] == [LOOP["head"]] * 2
    assert world.executed == ["a-1 success", "a-2 success"]
    assert world.asked == ["check"]
    assert (outcome.stop.reason, outcome.stop.code) == ("next_action:STOP", 0)
    assert (world.state["attempted_cycles"], world.state["completed_cycles"]) == (2, 2)
    assert world.state["phase"] == "stopped"
    assert not world.state["pending"]


def test_no_selector_is_ever_given_to_the_loop(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.run()
    assert all("a-" not in call for call in world.calls if "execute-loop" in call or call.startswith("work"))


def test_only_success_counts_a_cycle_and_an_unknown_status_is_kept_verbatim(stage: StageFactory) -> None:
    world = stage([row(f"a-{n}") for n in range(1, 8)])
    later = {"retry_after": "2099-01-01T00:00:00Z"}
    statuses = [
        "no_changes",
        "execution_failed",
        "post_run_check_failed",
        "structural_validation_failed",
        "weird",
    ]
    world.turns(*({"results": [{"status": word, "fields": later}]} for word in statuses))
    world.run()
    state = world.state
    assert (state["attempted_cycles"], state["completed_cycles"], state["skipped_count"]) == (7, 2, 5)
    assert state["outcomes"]["weird"] == 1
    assert {question.bead_id for question in world.questions} == {"a-3", "a-5"}


def test_a_success_whose_bead_stays_open_completes_no_cycle(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1", priority=3)])
    world.turns({"results": [{"bead_id": "a-1", "status": "success", "close": False}]})
    world.run()
    state = world.state
    assert world.executed == ["a-1 success", "b-1 success"]
    assert (state["attempted_cycles"], state["completed_cycles"], state["skipped_count"]) == (2, 1, 1)
    assert state["totals"]["completed"] == 1
    assert any("a-1 → success, but the bead is still open" in line for line in world.said)


@pytest.mark.parametrize("code", ["WAIT", "GUIDANCE", "STOP"])
def test_run_does_not_attempt_implementation_after(stage: StageFactory, code: str) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers({"output": f"**NEXT_ACTION:** {code}\nall is done", "cost_usd": 0.5})
    outcome = world.run()
    assert (outcome.stop.detail, outcome.state.cost_usd) == ("all is done", 0.5)
    assert (outcome.stop.reason, outcome.stop.code) == (f"next_action:{code}", 0)
    assert not world.executed
    assert len(world.calls) == 1


def test_backfill_stops_and_names_the_exact_command(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers("NEXT_ACTION: BACKFILL\nRecommended Command: `helix backfill docs/auth`")
    outcome = world.run()
    assert outcome.stop.reason == "next_action:BACKFILL"
    assert outcome.stop.command == "helix-tui backfill docs/auth"
    assert any("helix-tui backfill docs/auth" in line for line in world.said)
    assert world.asked == ["check"]


@pytest.mark.parametrize("code", ["DESIGN", "POLISH", "ALIGN"])
def test_a_planning_pass_is_made_once_and_not_again_on_an_unchanged_queue(stage: StageFactory, code: str) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers(f"NEXT_ACTION: {code}", "done", f"NEXT_ACTION: {code}")
    outcome = world.run()
    assert world.asked == ["check", code.lower(), "check"]
    assert (outcome.stop.reason, outcome.stop.code) == (f"next_action:{code}", 0)


def test_two_build_answers_with_nothing_selectable_stop(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers("NEXT_ACTION: BUILD", "NEXT_ACTION: BUILD", "NEXT_ACTION: BUILD")
    outcome = world.run()
    assert world.asked == ["check", "check"]
    assert (outcome.stop.reason, outcome.stop.code) == ("no_selectable", 0)


def test_malformed_output_is_kept_and_not_tried_again(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"raw": '{"results": [{"status": "success"}]}'})
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("malformed_output", 65)
    assert "results[0].bead_id" in outcome.stop.detail
    assert len(world.calls) == 1
    assert world.state["ddx_delegation_failure_count"] == {"malformed_json": 1}
    (kept,) = (world.root / ".helix-logs").glob("malformed-*.json")
    assert kept.read_text() == '{"results": [{"status": "success"}]}'


def test_what_a_turn_printed_stands_in_the_log_alone_unless_it_is_too_long(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"results": [{}]}, {"results": [{}], "fault": "flood"})
    outcome = world.run()
    assert outcome.state.completed_cycles == 2
    logs = world.root / ".helix-logs"
    (kept,) = logs.glob("run-*turn*.out")
    assert kept.stat().st_size > 2_000_000
    (log,) = logs.glob("helix-*.log")
    text = log.read_text()
    assert text.count('"project_root"') == 2
    assert "characters left out here" in text
    assert len(text) < 500_000


def test_tokens_count_even_from_stderr(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}], "stderr": "tokens used\n1,234\n"})
    assert world.run().state.total_tokens == 1234


def test_focus_stays_on_an_epic_until_it_is_done_and_gives_everything_back(stage: StageFactory) -> None:
    world = stage(
        [
            row("e-1", issue_type="epic"),
            row("c-1", parent="e-1", priority=1),
            row("c-2", parent="e-1", priority=3),
            row("t-1", priority=2, created_at="2026-07-01T00:00:00Z"),
        ],
    )
    world.run()
    assert [line.split()[0] for line in world.executed] == ["c-1", "c-2", "t-1"]
    rows = world.rows()
    assert rows["e-1"]["status"] == "closed"
    assert "execution-eligible" not in rows["t-1"]
    assert not any(key.startswith("helix-focus") for each in rows.values() for key in each)
    assert world.state["completed_cycles"] == 3


def test_a_ddx_that_can_ask_nobody_ends_a_drained_queue_by_the_facts(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    (world.folder / "no-agent").touch()
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("next_action:STOP", 0)
    assert "no agent has checked the documents" in outcome.stop.detail
    assert outcome.state.completed_cycles == 1
