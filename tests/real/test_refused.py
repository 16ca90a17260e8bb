"""`ddx try` lands what a review refused: the console says so, asks once more, then says landed (R1)."""

from __future__ import annotations

import time

import pytest

from tests.real.stranger import Stranger
from tests.screens.conftest import Console, HandFeed


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
        assert app.sees(f"ddx may land {before['result_rev'][:12]} as it is")
        await pilot.press("o")
        await pilot.pause()
        assert app.sees(f"land the kept change of {bead}?")
        assert not app.loop_controls._carried
        await pilot.press("y")
        await app.workers.wait_for_complete()
        ((_, process),) = app.loop_controls._carried
        process.wait(120)
    assert stranger.git("rev-parse", "main") != head
    (after,) = stranger.tui_json("attempts")["attempts"]
    assert (after["landed"], after["preserved"], after["verdict"]["outcome"]) == (True, False, "landed")
    assert bead in stranger.closed()
    assert len(stranger.calls("work")) == worked, "no agent ran"
