"""A run drains as ddx drains: what fails is tried once, the others are done, and it is named (R6)."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger


@pytest.mark.usefixtures("lands")
@pytest.mark.parametrize("mode", ["fail", "nochange"])
def test_one_failing_bead_keeps_nothing_from_the_others(stranger: Stranger, mode: str) -> None:
    bad = stranger.bead(f"Write one [{mode}]", priority=0)
    good = {stranger.bead("Write two", priority=1), stranger.bead("Write three", priority=2)}
    stranger.commit("beads")
    done = stranger.supervised("--no-auto-review")
    assert done.returncode == 0, done.stderr
    assert stranger.closed() == good, done.stderr
    assert "execution-eligible" not in stranger.rows()[bad]
    assert not any(key.startswith("helix-held") for key in stranger.rows()[bad])
    titles = [call["title"] for call in stranger.calls("work")]
    assert titles.count("Write two") == titles.count("Write three") == 1
    assert bad in stranger.tui("stuck").stdout
    assert not stranger.processes()
