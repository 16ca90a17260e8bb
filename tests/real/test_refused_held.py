"""What a review refused lands only by a person's decision, whoever left it and whatever starts the next worker."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger

ASKED = "a review refused its change"


def refused_bead(stranger: Stranger) -> tuple[str, str]:
    """A bead that another worker left open with a refused change, beside one to do; the commit of that change."""
    if "--reject-preserved" not in stranger.ddx("bead", "update", "--help").stdout:
        pytest.skip("this release lands no kept change by itself")
    bead = stranger.bead("Write one")
    stranger.bead("Write two", priority=3)
    stranger.commit("beads")
    stranger.verdict("BLOCK")
    stranger.drained("--once")
    stranger.verdict("APPROVE")
    (made,) = stranger.tui_json("attempts")["attempts"]
    assert made["verdict"]["outcome"] == "refused"
    if stranger.rows()[bead]["status"] != "open":
        pytest.skip("this release parks a refused bead by itself")
    return bead, made["result_rev"]


def on_main(stranger: Stranger, rev: str) -> bool:
    return not stranger.run("git", "merge-base", "--is-ancestor", rev, "main").returncode


def test_a_run_holds_it_and_does_the_others(stranger: Stranger) -> None:
    bead, rev = refused_bead(stranger)
    before = stranger.rows()[bead]
    assert stranger.tui_json("check", "--no-model")["next_action"] == "GUIDANCE"
    assert "the next worker would land it" in stranger.tui("next").stderr
    assert "the next worker would land it" in stranger.tui("why", bead).stdout
    foretold = stranger.tui("run", "--dry-run", *stranger.agent_words)
    assert f"the run keeps workers from {bead}" in foretold.stderr
    assert stranger.rows()[bead] == before, "reading changes nothing"
    ran = stranger.supervised("--no-auto-review")
    assert f"keeping workers from {bead}" in ran.stderr, ran.stderr
    assert not on_main(stranger, rev)
    assert stranger.closed() == set(stranger.rows()) - {bead}
    stranger.drained("--once")
    assert not on_main(stranger, rev), "ddx typed by hand"
    assert bead in {each["bead_id"] for each in stranger.tui_json("needs")["needs"]}


def test_the_hold_ends_with_a_decision_to_land(stranger: Stranger) -> None:
    bead, rev = refused_bead(stranger)
    stranger.tui("check", "--no-model", "--apply")
    assert stranger.rows()[bead]["execution-eligible"] is False
    refused = stranger.tui("build", bead, *stranger.agent_words)
    assert refused.returncode == 1
    landed = stranger.tui("build", bead, "--land-kept", *stranger.agent_words)
    assert landed.returncode == 0, landed.stderr
    assert on_main(stranger, rev)
    assert bead in stranger.closed()


def test_the_hold_ends_with_a_decision_to_start_over(stranger: Stranger) -> None:
    bead, rev = refused_bead(stranger)
    before = {name: stranger.rows()[bead].get(name) for name in ("execution-eligible", "status")}
    stranger.tui("check", "--no-model", "--apply")
    done = stranger.tui("tracker", "update", bead, "--reject-preserved", rev)
    assert done.returncode == 0, done.stderr
    assert {name: stranger.rows()[bead].get(name) for name in before} == before
    stranger.supervised("--no-auto-review")
    assert bead in stranger.closed()
    assert not on_main(stranger, rev)
