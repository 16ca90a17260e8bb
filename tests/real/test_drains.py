"""Drains in every mode: what each face says is held against ddx's own answers at that instant."""

from __future__ import annotations

import pytest

from tests.real.stranger import DONE, Stranger


def agrees(stranger: Stranger) -> None:
    """Ready, in order, and closed are what ddx says; where the tracker changed meanwhile, look again."""
    for _ in range(5):
        before = (stranger.project / ".ddx" / "beads.jsonl").read_bytes()
        ready, closed = stranger.ready(), stranger.closed()
        queue = stranger.tui_json("queue")
        if (stranger.project / ".ddx" / "beads.jsonl").read_bytes() == before:
            assert queue["ready"] == ready
            assert {row["id"] for row in queue["beads"] if row["status"] == "closed"} == closed
            return
    raise AssertionError("the tracker did not stand still for one look")


@pytest.mark.parametrize("mode", ["ok", "fail", "nochange"])
def test_ready_and_closed_are_ddxs_after_a_drain(stranger: Stranger, mode: str) -> None:
    first = stranger.bead("Write one", priority=0)
    stranger.bead("Write two", after=(first,))
    stranger.bead("Write three", priority=3)
    stranger.commit("beads")
    stranger.mode(mode)
    agrees(stranger)
    stranger.drained()
    agrees(stranger)
    closed = {bead_id for bead_id, row in stranger.rows().items() if row["status"] in DONE}
    assert bool(closed) == (mode == "ok" and stranger.release.reviews)
