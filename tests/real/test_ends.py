"""However a run ends, nothing that it started goes on, and what it did is booked once (R2)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.real.stranger import Stranger

Ending = Callable[[Stranger, "subprocess.Popen[str]"], object]


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so, or fail."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def stop(stranger: Stranger, process: subprocess.Popen[str]) -> None:
    done = stranger.tui("stop")
    assert "stopped" in done.stdout, (done.stdout, done.stderr)


def ctrl_c(stranger: Stranger, process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGINT)


def kill_and_stop(stranger: Stranger, process: subprocess.Popen[str]) -> None:
    """SIGKILL leaves ddx at work, by design; `stop` names it and ends it."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    assert stranger.processes(), "ddx goes on"
    done = stranger.tui_json("stop")
    assert (done["how"], done["alive"]) == ("left", [])


@pytest.mark.parametrize("ending", [stop, ctrl_c, kill_and_stop])
@pytest.mark.parametrize("mode", ["hang", "slow"])
def test_nothing_is_left_at_work(stranger: Stranger, ending: Ending, mode: str) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.mode(mode)
    process = stranger.begin("helix-tui", "run", *stranger.agent_words)
    wait_for(lambda: stranger.calls("work"))
    ending(stranger, process)
    process.wait(60)
    wait_for(lambda: not stranger.processes(), 15)
    status = stranger.tui_json("status")
    assert status["running_bead"] is None
    outcomes = {row["verdict"]["outcome"] for row in stranger.tui_json("attempts")["attempts"]}
    assert outcomes <= {"interrupted"}, "it ended because somebody ended it, and failed nothing"
    assert bead not in stranger.closed()


def test_of_a_worker_that_was_killed_every_face_says_so(stranger: Stranger) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.mode("hang")
    process = stranger.begin("ddx", *stranger.release.drain, *stranger.pins)
    wait_for(lambda: stranger.calls("work"), 120)
    wait_for(lambda: stranger.tui_json("attempts")["attempts"], 30)
    (row,) = stranger.tui_json("attempts")["attempts"]
    assert (row["bead_id"], row["verdict"]["outcome"]) == (bead, "unfinished")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    stranger.clean_up()
    told = stranger.tui_json("attempts")
    (row,) = told["attempts"]
    assert (row["verdict"]["outcome"], row["verdict"]["proof"]) == ("interrupted", "worker")
    assert "its worker is dead" in row["verdict"]["why"]
    assert not told["spent"]["complete"]
    assert stranger.tui_json("status")["running_bead"] is None


def test_an_agent_that_does_not_answer_a_question_is_ended(stranger: Stranger) -> None:
    stranger.bead("Write one")
    stranger.commit("beads")
    stranger.mode("hang")
    done = stranger.tui("frame", "a goal", *stranger.agent_words, "--timeout", "3")
    assert done.returncode != 0
    assert stranger.calls("ask"), done.stderr
    assert not stranger.processes()
