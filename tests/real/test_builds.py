"""`build` says for each outcome what this release itself says, and what git and the tracker hold (R12)."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.real.stranger import DONE, Stranger


def on_main(stranger: Stranger, bead: str) -> bool:
    """Whether the bead's file stands on main."""
    return f"out-{bead}.txt" in stranger.git("ls-tree", "--name-only", "main").splitlines()


def kept(stranger: Stranger, bead: str) -> set[str]:
    """Refs beside main in which the bead's file stands."""
    refs = [ref for ref in stranger.git("for-each-ref", "--format=%(refname)").splitlines() if "/heads/" not in ref]
    return {ref for ref in refs if f"out-{bead}.txt" in stranger.git("ls-tree", "--name-only", ref).splitlines()}


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [("ok", "APPROVE"), ("ok", "BLOCK"), ("fail", "APPROVE"), ("nochange", "APPROVE")],
    ids=["ok", "refused review", "failing", "no change"],
)
def test_build_tells_how_the_attempt_ended(stranger: Stranger, mode: str, verdict: str) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.mode(mode)
    stranger.verdict(verdict)
    done = stranger.tui("build", bead, *stranger.agent_words, "--json")
    assert done.stdout.startswith("{"), (done.returncode, done.stderr)
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["status"] == said["result"].get("status", said["status"]), "another word than ddx's"
    assert said["status"] != "refused", "it was begun"
    assert said["closed"] == (stranger.rows()[bead]["status"] in DONE)
    assert said["landed"] == on_main(stranger, bead)
    assert said["preserved"] == bool(not said["landed"] and kept(stranger, bead))
    if said["preserved"]:
        assert said["preserve_ref"] in kept(stranger, bead)
    assert (done.returncode == 0) == said["landed"]
    if mode != "ok":
        assert not said["landed"]
        assert said["detail"], said
    assert said["follow_up"] or said["closed"], said
    (attempt,) = stranger.tui_json("attempts")["attempts"]
    assert (attempt["landed"], attempt["preserved"]) == (said["landed"], said["preserved"])


def test_a_build_whose_ddx_is_killed_is_called_interrupted(stranger: Stranger) -> None:
    bead = stranger.bead("Write one [hang]")
    stranger.commit("beads")
    building = stranger.begin("helix-tui", "build", bead, *stranger.agent_words, "--json")
    while not stranger.calls("work"):
        assert building.poll() is None
        time.sleep(0.2)
    (ddx,) = [
        pid
        for pid, command in stranger.processes().items()
        if command.split(" ")[0].endswith("ddx") and bead in command
    ]
    os.kill(ddx, signal.SIGKILL)
    assert building.wait(120) != 0
    printed = (stranger.base / "begun.out").read_text()
    said = json.loads(printed[printed.index("{") :])
    assert said["status"] == "interrupted"
    assert (said["landed"], said["closed"], said["preserved"]) == (False, False, False)
    assert not on_main(stranger, bead)
