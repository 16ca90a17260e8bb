"""What an earlier run, or a reader of the tracker, left behind, and what a run says about it."""

from __future__ import annotations

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long


def test_an_epic_whose_last_child_an_earlier_run_closed_is_closed_and_reviewed(stage: StageFactory) -> None:
    rows = [row("e-1", issue_type="epic"), row("a-1", parent="e-1", status="closed")]
    world = stage(rows)
    world.run(auto_review=True)
    after = world.rows()
    assert after["e-1"]["status"] == "closed"
    assert [each["helix-trigger-bead"] for each in after.values() if "helix-trigger-bead" in each] == ["e-1"]


def test_an_epic_that_ddx_closed_with_the_last_bead_of_a_run_is_reviewed(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("a-1", parent="e-1"), row("a-2")])
    world.run(auto_review=True, max_cycles=1, focus="e-1")
    after = world.rows()
    assert (after["e-1"]["status"], after["a-2"]["status"]) == ("closed", "open")
    assert {each["helix-trigger-bead"] for each in after.values() if "helix-trigger-bead" in each} == {"a-1", "e-1"}


def test_an_epic_that_somebody_set_aside_or_that_is_only_cancelled_stays_open(stage: StageFactory) -> None:
    world = stage(
        [
            row("e-1", issue_type="epic", status="blocked"),
            row("a-1", parent="e-1", status="closed"),
            row("e-2", issue_type="epic"),
            row("a-2", parent="e-2", status="cancelled"),
        ]
    )
    world.run()
    assert [world.rows()[each]["status"] for each in ("e-1", "e-2")] == ["blocked", "open"]


def test_a_line_that_cannot_be_read_stops_the_run_before_ddx_sees_it(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    tracker = world.root / ".ddx" / "beads.jsonl"
    tracker.write_text(tracker.read_text() + '{"id": "a-2", "sta\n')
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("unreadable_tracker", 1)
    assert "line 2" in outcome.stop.detail
    assert world.executed == []


def test_a_review_that_is_left_out_says_why(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.run(auto_review=True, review_threshold=100)
    (said,) = [line for line in world.said if "no review of a-1" in line]
    assert "names no base and result revision" in said


@pytest.mark.realtime
def test_an_attempt_that_an_interrupt_cut_short_is_no_failure_of_the_bead(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", priority=3)])
    cut = {"status": "execution_failed", "fields": {"detail": "exit status 130"}}
    world.turns({"results": [cut], "interrupted_with_parent": True})
    done = world.process("run", "--no-auto-review", "--no-auto-align")
    assert done.returncode == 130
    state = world.state
    assert (state["outcomes"], state["attempted_cycles"], state["tried"]) == ({"interrupted": 1}, 1, [])
    assert (state["stop_reason"], state["stop_detail"]) == ("interrupted", "during the attempt on a-1")
    assert "a-1 → interrupted" in done.stderr
    assert "between two beads" not in done.stderr


def test_what_a_killed_run_owed_its_nth_cycle_is_injected_by_the_next(
    stage: StageFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Nothing of the program runs after it."""

    def killed(*_: object) -> None:
        raise Killed

    world = stage([row("a-1")])
    with monkeypatch.context() as during:
        during.setattr("helix_tui.core.supervision.loop.booking.Booking.follow_up", killed)
        with pytest.raises(Killed):
            world.run(review_every=1)
    world.run(review_every=1)
    assert world.executed[0] == "a-1 success"
    made = [each for each in world.rows().values() if each.get("helix-trigger-source") == "periodic-alignment"]
    assert [(each["helix-trigger-bead"], each["helix-trigger-cycle"]) for each in made] == [("a-1", "1")]


@pytest.mark.realtime
def test_a_recovered_attempt_is_no_outcome_of_the_run_that_books_it(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2"), row("a-3")])
    paid = {"fields": {"tokens": 3000, "cost_usd": 0.05}}
    world.turns({"results": [paid], "kill_parent": True}, {"results": [paid]})
    world.process("run", "--no-auto-review", "--no-auto-align")
    world.run()
    state = world.state
    assert state["totals"]["recovered"] == 1
    assert state["outcomes"] == {"success": 2}
    assert state["attempted_cycles"] == 2
    assert (state["total_tokens"], state["cost_usd"]) == (3000, 0.05)
    assert state["totals"]["tokens"] == 6000
    recent = [line for line in world.process("status").stdout.splitlines() if line.startswith("Recent:")]
    assert ["of the run before" in line for line in recent] == [True, False, False]


@pytest.mark.parametrize("results", [[], [{"status": "execution_failed"}]])
def test_a_ddx_that_a_signal_ended_found_nothing_and_failed_at_nothing(
    stage: StageFactory, results: list[dict[str, str]]
) -> None:
    world = stage([row("a-1")])
    world.turns({"results": results, "extra": {"exit_reason": "sigint"}})
    done = world.process("run", "--no-auto-review", "--no-auto-align")
    state = world.state
    assert (done.returncode, state["stop_reason"]) == (130, "interrupted")
    assert state["stop_detail"].startswith("ddx was interrupted (sigint)")
    assert state["outcomes"] == ({"interrupted": 1} if results else {})
    assert "found nothing" not in done.stderr
