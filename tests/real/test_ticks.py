"""Drains of twelve beads in each mode, look by look: every face says what ddx itself says at that instant.

At the end the sums are the agent's own count, and nothing is left at work. What was compared goes to the
file that ``REAL_COUNTS`` names.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.answers import Ticks
from tests.real.stranger import Stranger

MODES = ("ok", "fail", "nochange", "block", "mute", "conflict", "ratelimit", "killed")
BEADS = 12
CHECKED = "1. `test -f README.md` passes"
PARTS = {"intake": "checks", "work": "work", "repair": "work", "review": "reviews", "triage": "triage", "mode": "other"}
DRAIN_S = 900.0


def twelve(stranger: Stranger, mode: str) -> list[str]:
    """Twelve beads of which every third is of a mode; each fourth waits for the one before it."""
    word = "hang" if mode == "killed" else mode
    made: list[str] = []
    for number in range(BEADS):
        last = number in (1, 4, 7) if mode != "killed" else number == 4
        title = f"Write {number} [{word if last else 'ok'}]"
        after = (made[-1],) if number % 4 == 3 else ()
        made.append(stranger.bead(title, priority=number % 3, after=after, acceptance=CHECKED))
    stranger.commit("beads")
    return made


def drain(stranger: Stranger, ticks: Ticks, process: subprocess.Popen[str]) -> None:
    """Look until the drain is over."""
    deadline = time.monotonic() + DRAIN_S
    while process.poll() is None and time.monotonic() < deadline:
        ticks.look()
    assert process.poll() is not None, "the drain takes too long"


def kill_in_the_middle(stranger: Stranger, ticks: Ticks) -> None:
    """SIGKILL a ddx whose agent is on a bead, and go on looking at what it left."""
    process = stranger.begin("ddx", *stranger.release.drain, *stranger.pins)
    deadline = time.monotonic() + DRAIN_S
    while not any("[hang]" in call["title"] for call in stranger.calls("work")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        ticks.look()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    (stranger.home / "awake").touch()  # ddx may give the bead out again, and then it is done
    stranger.clean_up()  # the agent of a ddx that was killed goes on: it was ddx that started it
    for _ in range(3):
        ticks.look()


@pytest.mark.parametrize("mode", MODES)
def test_every_face_says_what_ddx_says_all_through_a_drain(stranger: Stranger, mode: str) -> None:
    twelve(stranger, mode)
    (stranger.home / "pace").write_text("2")
    ticks = Ticks(stranger, killed=mode == "killed")
    ticks.look()
    if mode == "killed":
        kill_in_the_middle(stranger, ticks)
    waits = "--rate-limit-max-wait" in stranger.ddx("work", "--help").stdout
    more = ("--rate-limit-max-wait", "1s") if mode == "ratelimit" and waits else ()
    drain(stranger, ticks, stranger.begin("ddx", *stranger.release.drain, *stranger.pins, *more))
    ticks.look()
    agree(stranger, complete=mode not in ("ratelimit", "killed"))
    counted(stranger, mode, ticks)
    assert not stranger.processes()
    assert not ticks.differing, "\n".join(ticks.differing[:20])
    assert not ticks.changed_their_minds()


def agree(stranger: Stranger, *, complete: bool) -> None:
    """Dollars and tokens, whole and in parts, are the agent's own count.

    Args:
        stranger: whose agent counted.
        complete: whether every cost is known.
    """
    calls = stranger.calls()
    spent = stranger.tui_json("attempts")["spent"]
    assert (round(spent["usd"], 4), spent["tokens"], spent["complete"]) == (
        round(sum(call["cost_usd"] for call in calls), 4),
        sum(call["tokens"] for call in calls),
        complete,
    ), (spent, calls)
    for part in set(PARTS.values()):
        wanted = [call for call in calls if PARTS[call["kind"]] == part]
        usd = (spent["parts"].get(part) or {}).get("usd") or 0.0
        assert round(usd, 4) == round(sum(call["cost_usd"] for call in wanted), 4), (part, spent, calls)


def counted(stranger: Stranger, mode: str, ticks: Ticks) -> None:
    """Write down what was compared, for a closing note."""
    path = os.environ.get("REAL_COUNTS")
    row: dict[str, object] = {"release": stranger.release.name, "mode": mode, "ticks": ticks.ticks}
    row |= {
        "compared": ticks.compared,
        "differing": ticks.differing,
        "passing": ticks.passing,
        "changed": ticks.changed_their_minds(),
    }
    row |= {"closed": len(stranger.closed())}
    row |= {"calls": len(stranger.calls()), "usd": round(sum(c["cost_usd"] for c in stranger.calls()), 4)}
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")
