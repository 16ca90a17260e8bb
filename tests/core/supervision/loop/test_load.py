"""Many cycles with faults put in at random: never a lost bead, a lasting suppression or a wrong count.

A few cycles by default; 200 with ``HELIX_LOAD=full``.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

pytestmark = [pytest.mark.realtime, pytest.mark.long]

CYCLES = 200 if os.environ.get("HELIX_LOAD") == "full" else 10

TURNS: dict[str, dict[str, Any]] = {
    "success": {"results": [{}]},
    "failure": {"results": [{"status": "execution_failed"}]},
    "conflict": {"results": [{"status": "land_conflict", "fields": {"preserve_ref": "refs/ddx/iterations/x/1"}}]},
    "malformed": {"raw": '{"results": [{"bead_id"'},
    "text": {"raw": "panic: runtime error", "rc": 2},
    "killed": {"results": [{}], "kill_parent": True},
    "interrupted": {"results": [{}], "interrupt_parent": True},
    "hang": {"sleep": 30},
    "missing": {"results": [{}], "remove_self": True},
    "nothing": {"results": [], "attempts": 0},
    "checkout": {"results": [{}], "checkout": True},
}
FAULTS = ("stderr", "split", "cut", "hang", "logs", "flood", "become")
"""What becomes of a report; where it is lost, the attempt's evidence is not."""

TURNS |= {fault: {"results": [{"evidence": True}], "fault": fault} for fault in FAULTS}


ENDS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


@pytest.mark.nightly
def test_faults_lose_no_bead_and_no_count(stage: StageFactory) -> None:
    rng = random.Random("faults-head")
    world = stage(list(_beads()))
    kinds = [kind for kind in TURNS if kind != "success"]
    rounds = 0
    while _left(world):
        rounds += 1
        assert rounds < CYCLES * 6, "it never ends"
        script = ["success" if rng.random() < 0.75 else rng.choice(kinds) for _ in range(8)]
        world.turns(*(TURNS[kind] for kind in script))
        _once(world, rng.random())
        gone = world.ddx.with_suffix(".gone")
        if gone.exists():
            gone.rename(world.ddx)
        _settled(world)
    world.turns()
    world.run(autonomy="high")
    _check(world)


def _left(world: Stage) -> list[str]:
    """Beads of ours that are not closed; escalations wait for a person."""
    rows = world.rows().values()
    return [each["id"] for each in rows if each["status"] != "closed" and each["id"][1] == "-"]


def _beads() -> Iterator[dict[str, Any]]:
    for number in range(CYCLES):
        epic = f"e-{number // 20}"
        if number % 20 == 0:
            yield row(epic, issue_type="epic", priority=number % 3)
        under = {"parent": epic} if number % 2 else {}
        waits = [f"b-{number - 3:03}"] if number % 5 == 3 else []
        yield row(f"b-{number:03}", *waits, priority=number % 4, **under)


def _once(world: Stage, chance: float) -> None:
    """One run; now and then with a disk that is full, or with a second run beside it."""
    options = ("--no-auto-review", "--no-auto-align", "--timeout", "1.5", "--autonomy", "high", "-q")
    words = world.words("run", *options, "--max-cycles", "10")
    if chance < 0.05:
        subprocess.run(words, capture_output=True, timeout=120, preexec_fn=_no_room, check=False)
        return
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if chance < 0.15:
        second = subprocess.run(words, capture_output=True, timeout=120, check=False)
        assert second.returncode in (0, 1, 2, 65, 127, 130, -signal.SIGKILL)
    if chance > 0.7:
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.wait(timeout=(chance - 0.7) * 10)
        first.send_signal(ENDS[int(chance * 1000) % len(ENDS)])  # wherever it stands
    first.wait(timeout=300)


def _no_room() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


def _settled(world: Stage) -> None:
    """Whatever ddx a killed run left at work has ended, for the next script is for the next one."""

    def busy() -> bool:
        log = world.folder / "pids.log"
        return any(_lives(int(line)) for line in log.read_text().split()) if log.exists() else False

    _wait(lambda: not busy())


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _check(world: Stage) -> None:
    rows = world.rows()
    wanted = {f"b-{number:03}" for number in range(CYCLES)}
    assert wanted <= rows.keys()
    executed = [line.split() for line in world.executed]
    successes = [bead_id for bead_id, status in executed if status == "success"]
    assert set(successes) >= wanted
    held = [
        bead_id
        for bead_id, each in rows.items()
        if "kind:escalation" not in each.get("labels", ())
        and ("execution-eligible" in each or any(key.startswith("helix-focus") for key in each))
    ]
    assert held == []
    assert world.state["totals"]["completed"] == len(successes)
    assert not world.state["pending"]
