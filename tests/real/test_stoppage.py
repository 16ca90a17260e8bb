"""A worker that stops for uncommitted files: every face says so in ddx's words until they are committed."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger


def test_what_stopped_the_worker_is_on_every_face(stranger: Stranger) -> None:
    stranger.bead("Write it", acceptance="1. `test -f README.md` passes")
    stranger.commit("beads")
    (stranger.project / "stray.txt").write_text("x\n")
    stranger.drained()
    if stranger.calls("work"):
        pytest.skip("this ddx works beside uncommitted files")
    told = stranger.tui_json("status")["last_worker"]
    assert (told["reason"], told["dirty_paths"], told["cause_present"]) == (
        "checkpoint_dirty",
        ["stray.txt"],
        True,
    )
    assert "stray.txt" in told["message"]
    check = stranger.tui_json("check")
    assert check["next_action"] == "GUIDANCE"
    assert check["reasons"][0]["code"] == "worker_stopped"
    assert [each["reason"] for each in stranger.tui_json("stuck")["stuck"]] == ["worker-stopped"]
    assert "last worker" in stranger.tui("doctor").stdout
    stranger.commit("stray")
    assert stranger.tui_json("status")["last_worker"]["cause_present"] is False
    assert stranger.tui_json("check")["next_action"] == "BUILD"
    assert stranger.tui_json("stuck")["stuck"] == []
