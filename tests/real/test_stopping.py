"""What stops a worker that somebody else started does so on a real ddx, and costs what its words say."""

from __future__ import annotations

import os

import pytest

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.project import find_project, machine_name
from helix_tui.core.snapshot.feed import Gatherer
from helix_tui.core.supervision.run_state.run_control import StopMeans, interrupt_worker, ways_to_stop
from tests.real.stranger import Stranger
from tests.real.test_ends import wait_for


def means_of(stranger: Stranger) -> tuple[Run, dict[str, StopMeans]]:
    """The worker at work, and what can stop it."""
    project = find_project(stranger.project, env=stranger.env)
    snapshot = Gatherer(project, env=stranger.env).gather()
    (run,) = [run for run in snapshot.runs if run.live]
    queue: Queue = snapshot.queue
    dialect: Dialect = dialect_of(stranger.release.path, stranger.project, env=stranger.env)
    return run, {means.kind: means for means in ways_to_stop(run, queue, dialect, here=machine_name())}


def begun(stranger: Stranger) -> None:
    """Three beads, of which a worker takes some seconds each; what this ddx is has been asked before one works."""
    for number in range(3):
        stranger.bead(f"Write {number}")
    stranger.commit("beads")
    (stranger.home / "pace").write_text("8")
    stranger.mode("slow")
    dialect_of(stranger.release.path, stranger.project, env=stranger.env)


@pytest.mark.usefixtures("lands")
def test_a_hold_ends_a_worker_after_the_bead_in_hand(stranger: Stranger) -> None:
    begun(stranger)
    process = stranger.begin("ddx", *stranger.release.drain, *stranger.pins)
    wait_for(lambda: stranger.calls("work"), 120)
    run, means = means_of(stranger)
    assert set(means["hold"].beads) == set(stranger.rows()) - {run.bead_id}
    for bead in means["hold"].beads:
        assert stranger.tui("eligible", bead, "off").returncode == 0
    assert process.wait(120) == 0
    assert [call["kind"] for call in stranger.calls()].count("work") == 1
    assert stranger.closed() == {run.bead_id}


def test_a_signal_cuts_the_attempt_short_and_leaves_nothing_at_work(stranger: Stranger) -> None:
    begun(stranger)
    (stranger.home / "pace").write_text("300")  # it is cut short: on a machine with much else to do, too
    process = stranger.begin("ddx", *stranger.release.drain, *stranger.pins)
    wait_for(lambda: stranger.calls("work"), 120)
    run, means = means_of(stranger)
    assert means["signal"].pid == process.pid
    project = find_project(stranger.project, env=stranger.env)
    assert interrupt_worker(project, means["signal"], os.fspath(stranger.release.path)) == ()
    process.wait(30)
    assert not stranger.processes()
    row = stranger.rows()[run.bead_id or ""]
    held = row["status"] == "in_progress"
    assert held == ("leaves the claim" in means["signal"].effect)
