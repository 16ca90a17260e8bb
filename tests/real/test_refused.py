"""`ddx try` lands what a review refused: the console says so, asks once more, then says landed (R1).

Where a person answers instead, the refused change stays off the branch and an agent reads the answer.
"""

from __future__ import annotations

import time

import pytest

from tests.real.stranger import Stranger
from tests.screens.conftest import Console, HandFeed


def parked_again(stranger: Stranger, bead: str) -> bool:
    """Whether ddx kept the change for a person and parked the bead by itself, as July does; it lands nothing then."""
    events = stranger.rows()[bead].get("events", ())  # August keeps them elsewhere
    return any(event["kind"] == "dangling-success-preserved" for event in events)


@pytest.mark.usefixtures("lands")
async def test_o_lands_what_a_review_refused_only_after_a_second_yes(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.verdict("BLOCK")
    stranger.drained("--once")
    (before,) = stranger.tui_json("attempts")["attempts"]
    if not before["preserved"]:
        pytest.skip("this release keeps nothing aside after a BLOCK")
    assert before["verdict"]["outcome"] == "refused"
    head, worked = stranger.git("rev-parse", "main"), len(stranger.calls("work"))
    for name, value in stranger.env.items():
        monkeypatch.setenv(name, value)
    app = Console(lambda tell: HandFeed(stranger.project, tell), look_out="once", clock=time.time_ns)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        app.go_to_bead(bead)
        await pilot.press("L")
        await pilot.pause()
        if stranger.rows()[bead]["status"] == "proposed":  # parked by ddx itself, as early in August
            assert app.sees("ddx runs no bead that is proposed")
            return
        assert app.sees(f"ddx may land {before['result_rev'][:12]} as it is")
        await pilot.press("o")
        await pilot.pause()
        assert app.sees(f"{before['result_rev'][:12]} may land on main as it is, without running an agent")
        assert not app.loop_controls._carried
        await pilot.press("y")
        await app.workers.wait_for_complete()
        ((_, process),) = app.loop_controls._carried
        process.wait(120)
    assert stranger.git("rev-parse", "main") != head
    (after,) = stranger.tui_json("attempts")["attempts"]
    landed = not parked_again(stranger, bead)
    outcome = "landed" if landed else "refused"
    assert (after["landed"], after["preserved"], after["verdict"]["outcome"]) == (landed, not landed, outcome)
    assert (bead in stranger.closed()) == landed
    assert len(stranger.calls("work")) == worked, "no agent ran"


@pytest.mark.usefixtures("lands")
def test_an_answer_is_for_the_next_agent_and_lands_nothing(stranger: Stranger) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.verdict("BLOCK")
    stranger.supervised()
    asked = [each for each in stranger.tui_json("needs")["needs"] if each["question_id"] and each["bead_id"] == bead]
    made = stranger.tui_json("attempts")["attempts"][0]
    if not asked or not made["preserved"]:
        pytest.skip("this release keeps nothing aside after a BLOCK")
    stranger.verdict("APPROVE")
    worked = len(stranger.calls("work"))
    answered = stranger.tui("input", "--answer", asked[0]["question_id"], "one line is enough")
    assert answered.returncode == 0, answered.stderr
    assert f"the kept change {made['result_rev'][:12]} is given up" in answered.stdout
    assert bead not in {each["bead_id"] for each in stranger.tui_json("needs")["needs"] if each["kind"] != "lesson"}
    stranger.drained("--once")
    if parked_again(stranger, bead):
        assert bead in {each["bead_id"] for each in stranger.tui_json("needs")["needs"] if each["kind"] != "lesson"}
    else:
        assert bead in stranger.closed()
        assert len(stranger.calls("work")) > worked, "no agent read the answer"
    landed = stranger.run("git", "merge-base", "--is-ancestor", made["result_rev"], "main").returncode
    assert landed == 1, "what a review refused is on the branch"
