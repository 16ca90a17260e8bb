"""What can stop somebody else's worker: the softest first, each by its name, and never a server by a signal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import APRIL, AUGUST
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.ddx.runs.running import Fact, Run
from helix_tui.core.supervision.run_state.run_control import is_server, next_picks, ways_to_stop
from tests.core.supervision.conftest import queue_of, row

HERE = "here"
WITH_SERVER = replace(AUGUST, verbs={**AUGUST.verbs, "set_workers": DdxVerb(("worker", "set"))})
APRIL_SERVER = replace(APRIL, verbs={**APRIL.verbs, "stop_worker": DdxVerb(("agent", "workers", "stop"))})


@pytest.fixture
def queue() -> Queue:
    """x-1 is worked on; x-2 is ready; x-3 waits for x-1 alone; x-4 for x-1 and x-2."""
    return queue_of(
        [
            row("x-1"),
            row("x-2"),
            row("x-3", dependencies=deps("x-3", "x-1")),
            row("x-4", dependencies=deps("x-4", "x-1", "x-2")),
        ]
    )


def deps(bead: str, *others: str) -> list[dict[str, str]]:
    return [{"issue_id": bead, "depends_on_id": other, "type": "blocks"} for other in others]


def run(**fields: object) -> Run:
    return Run("x-1", worker_id="agent-loop-1", pid=4242, machine=HERE, **fields)  # type: ignore[arg-type]


def test_what_a_worker_could_pick_next_is_held_with_what_its_bead_makes_ready(queue: Queue) -> None:
    assert next_picks(queue, {"x-1"}) == ("x-2", "x-3")
    soft, hard = ways_to_stop(run(), queue, AUGUST, here=HERE)
    assert (soft.kind, soft.beads) == ("hold", ("x-2", "x-3"))
    assert (hard.kind, hard.pid, hard.name) == ("signal", 4242, "ctrl+c (SIGINT) to process 4242")
    assert "releases the bead" in hard.effect
    assert "leaves the claim" in ways_to_stop(run(), queue, APRIL, here=HERE)[-1].effect


def test_a_worker_of_another_machine_is_never_signalled(queue: Queue) -> None:
    assert [means.kind for means in ways_to_stop(run(), queue, AUGUST, here="elsewhere")] == ["hold"]


def test_a_dead_worker_has_nothing_to_stop(queue: Queue) -> None:
    assert ways_to_stop(run(live=False, verdict="dead"), queue, AUGUST, here=HERE) == ()


def test_a_worker_of_the_server_is_stopped_by_the_servers_command(queue: Queue) -> None:
    managed = run(facts=(Fact("worker", "worker-20261122T184538-1950", "sidecar"),))
    names = [means.name for means in ways_to_stop(managed, queue, WITH_SERVER, here=HERE)]
    assert names[1] == "ddx worker set --count 0"
    (_, command, signal) = ways_to_stop(managed, queue, APRIL_SERVER, here=HERE)
    assert command.words == ("agent", "workers", "stop", "worker-20261122T184538-1950")
    assert signal.pid == 4242
    assert [each.kind for each in ways_to_stop(run(), queue, WITH_SERVER, here=HERE)] == ["hold", "signal"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose second word is ``server``."""
    script = tmp_path / "server"
    script.write_text("import time; print('up', flush=True); time.sleep(600)")
    process = subprocess.Popen([sys.executable, "server"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_a_server_that_works_itself_is_not_signalled(queue: Queue, server: subprocess.Popen[bytes]) -> None:
    assert is_server(server.pid)
    inside = Run("x-1", pid=server.pid, machine=HERE)
    _, command = ways_to_stop(inside, queue, APRIL_SERVER, here=HERE)
    assert command.words == ("agent", "workers", "stop", "--bead", "x-1")
