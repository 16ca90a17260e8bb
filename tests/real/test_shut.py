"""A label for which a real ddx refuses every command: we start nothing, and its own way out works here."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger


def test_nothing_starts_and_ddx_s_own_migration_opens_the_tracker_again(stranger: Stranger) -> None:
    first, gate = stranger.bead("Write one"), stranger.bead("Write two")
    stranger.ddx("bead", "update", gate, "--labels", "needs_human", check=True)
    if stranger.ddx("bead", "ready").returncode == 0:
        pytest.skip("this ddx takes such a label")
    stranger.commit("beads")
    refused = (("set", first, "priority=1"), ("close", first), ("label", gate, "--remove", "needs_human"))
    loops = ((word, *stranger.agent_words) for word in ("run", "start", "build"))
    for words in (*loops, ("next",), *refused):
        done = stranger.tui(*words)
        assert done.returncode == 1, words
        assert done.stdout == ""
        for part in ("lifecycle_migration_required", gate, "ddx bead migrate --lifecycle --apply"):
            assert part in done.stderr
    assert stranger.calls() == []
    assert stranger.tui_json("check")["recommended_command"] == "ddx bead migrate --lifecycle --apply"
    done = stranger.tui("tracker", "migrate", "--lifecycle", "--apply")
    assert done.returncode == 0, done.stderr
    assert stranger.tui("next").stdout.strip() == first == stranger.ready()[0]
