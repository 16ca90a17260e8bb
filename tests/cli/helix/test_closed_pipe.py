"""What a command does once nobody reads its output any more, as in ``… | head -1``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from helix_tui.core.ground.errors import READER_GONE
from tests.cli.helix.conftest import BUILDABLE
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long


@contextmanager
def nobody() -> Iterator[int]:
    """A pipe that is written to and no longer read."""
    read, write = os.pipe()
    os.close(read)
    try:
        yield write
    finally:
        os.close(write)


@pytest.mark.parametrize(
    "command",
    [("queue",), ("queue", "--json"), ("needs", "--watch", "--json"), ("doctor", "--json"), ("ask", "what is a-1?")],
)
def test_it_ends_without_a_word(stage: StageFactory, command: tuple[str, ...]) -> None:
    world = stage([row("a-1", **BUILDABLE), row("a-2", status="proposed")])
    with nobody() as out:
        ran = subprocess.run(world.words(*command), stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (READER_GONE, "")


def test_an_error_that_nobody_reads_keeps_its_exit_code(stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    with nobody() as out:
        assert subprocess.run(world.words("queue", "--nonsense"), stdout=out, stderr=out, timeout=60).returncode == 2


def test_a_watch_ends_where_nothing_more_is_to_be_told(stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    argv = world.words("needs", "--watch", "--every", "0.2")
    watch = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watch.stdout is not None
    watch.stdout.close()
    try:
        _, said = watch.communicate(timeout=60)
    finally:
        watch.kill()
    assert (watch.returncode, said) == (READER_GONE, b"")


def test_a_run_ends_in_good_order(stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE), row("a-2", **BUILDABLE)])
    with nobody() as out:
        code = subprocess.run(world.words("run"), stdout=out, stderr=out, timeout=60).returncode
    state = world.state
    assert (code, state["stop_reason"], state["phase"], state["problems"]) == (130, "interrupted", "stopped", [])
    assert not any("helix-context" in str(each) or "helix-suppressed" in str(each) for each in world.rows().values())
