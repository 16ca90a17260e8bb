"""The monitor: what it finds, what it keeps, and that it stays away from what it may not do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.claims import ClaimReader
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.supervision.decide.monitor import MAX_AUTO_UPDATES, MIND_AFTER, BackgroundMonitor, Concerns
from helix_tui.core.supervision.signals.focus import plan_focus, read_focus
from helix_tui.core.supervision.signals.orphans import recover
from tests.core.supervision.conftest import World, WorldFactory, make_curator, row

pytestmark = pytest.mark.realtime

LONG_AGO = "2026-08-01T00:00:00Z"


def monitor(here: World, *, may_write: bool = True) -> BackgroundMonitor:
    return BackgroundMonitor(
        here.curator.project, lambda _: None, curator=here.again(who="helix") if may_write else None
    )


def look(here: World, watch: BackgroundMonitor) -> Concerns:
    return watch.look(here.curator.look(), here.curator.history(), AttemptBook())


@pytest.fixture
def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def claimed(here: World, bead_id: str, pid: int) -> None:
    machine = ClaimReader(here.curator.project).here
    held: dict[str, Any] = {"status": "in_progress", "owner": "bot", "claimed__at": LONG_AGO}
    here.rewrite(bead_id, **held, claimed__pid=str(pid), claimed__machine=machine)


def test_the_first_look_is_the_baseline_and_later_changes_are_drift(world: WorldFactory) -> None:
    here = world([row("a"), row("b")])
    watch = monitor(here)
    assert look(here, watch).drift == ()
    here.rewrite("a", parent="b")
    (drift,) = look(here, watch).drift
    assert (drift.bead_id, drift.field, drift.now) == ("a", "parent", "b")
    assert look(here, monitor(here)).drift == (drift,), "another console sees the same"


def test_what_we_changed_ourselves_is_no_drift(world: WorldFactory) -> None:
    here = world([row("a"), row("b")])
    watch = monitor(here)
    look(here, watch)
    here.curator.run([op.SetParent("a", "b"), op.SetEligible("b", False)])
    assert look(here, watch).drift == ()


def test_a_lookout_that_may_only_look_writes_nothing(world: WorldFactory) -> None:
    here = world([row("a")])
    watch = monitor(here, may_write=False)
    look(here, watch)
    assert not here.curator.project.helix_dir.exists()


def test_while_somebody_else_changes_the_queue_it_waits_for_nothing(world: WorldFactory) -> None:
    here = world([row("a")])
    watch = monitor(here)
    with WriteGate(here.curator.project).open():
        assert look(here, watch).drift == ()
    look(here, watch)
    here.rewrite("a", parent="z")
    assert len(look(here, watch).drift) == 1


def test_an_orphan_is_found_and_let_go_after_another_look(world: WorldFactory, dead_pid: int) -> None:
    here = world([row("a"), row("b")])
    claimed(here, "a", dead_pid)
    claimed(here, "b", os.getpid())
    (orphan,) = look(here, monitor(here)).orphans
    assert orphan.bead_id == "a"
    claimed(here, "a", os.getpid())
    assert recover(here.curator, [orphan]).entry is None, "somebody took it meanwhile"
    claimed(here, "a", dead_pid)
    (orphan,) = look(here, monitor(here)).orphans
    recover(here.curator, [orphan])
    assert here.rows()["a"]["status"] == "open"


def focused(world: WorldFactory) -> World:
    here = world([row("e", issue_type="epic"), row("c", parent="e"), row("out")])
    here.curator.run_steps("focus", "focus on e", lambda writing, _: plan_focus(writing, "e"))
    return here


def test_a_bead_made_during_a_focus_is_held_back_and_given_back_with_the_rest(world: WorldFactory) -> None:
    here = focused(world)
    here.write([*here.rows().values(), row("late")])
    watch = monitor(here)
    found = look(here, watch)
    assert (found.minded, found.unminded, found.trouble) == (("late",), (), "")
    assert here.rows()["late"]["execution-eligible"] is False
    assert look(here, watch).minded == ()
    here.curator.undo()
    assert read_focus(Overlay(here.curator.look().queue)).epic == "", "a person's undo takes the focus itself"
    look(here, watch)
    assert all("helix-focus-suppressed" not in each for each in here.rows().values())
    assert here.rows()["late"].get("execution-eligible") is None


def test_more_than_a_few_beads_wait_on_a_person(world: WorldFactory) -> None:
    here = focused(world)
    here.write([*here.rows().values(), *(row(f"late-{number:02}") for number in range(MAX_AUTO_UPDATES + 1))])
    found = look(here, monitor(here))
    assert (len(found.unminded), found.minded) == (MAX_AUTO_UPDATES + 1, ())
    assert "execution-eligible" not in here.rows()["late-00"]


def test_a_focus_that_may_not_be_kept_is_told(world: WorldFactory) -> None:
    here = focused(world)
    here.write([*here.rows().values(), row("late")])
    assert look(here, monitor(here, may_write=False)).unminded == ("late",)
    assert "execution-eligible" not in here.rows()["late"]


def test_a_ddx_that_fails_is_not_asked_for_ever(
    world: WorldFactory, scripted: Callable[[str], Path], tmp_path: Path
) -> None:
    here = focused(world)
    here.write([*here.rows().values(), row("late")])
    program = scripted("number(); print('Error: no', file=sys.stderr); sys.exit(1)")
    curator: Curator = make_curator(here.root, program=program, who="helix")
    watch = BackgroundMonitor(here.curator.project, lambda _: None, curator=curator)
    told = [look(here, watch) for _ in range(MIND_AFTER + 3)]
    assert told[0].unminded == ("late",)
    assert "could not be kept" in told[0].trouble
    assert (tmp_path / "count").read_text() == str(MIND_AFTER)


def test_its_thread_tells_what_is_new_and_takes_drift_as_seen(world: WorldFactory) -> None:
    here = world([row("a"), row("b")])
    look(here, monitor(here))
    here.rewrite("a", parent="b")
    reported: list[Concerns] = []
    heard = threading.Semaphore(0)

    def tell(found: Concerns) -> None:
        reported.append(found)
        heard.release()

    watch = BackgroundMonitor(here.curator.project, tell, curator=here.again(who="helix"))
    watch.see(here.curator.look(), here.curator.history(), AttemptBook())
    watch.start()
    try:
        assert heard.acquire(timeout=30)
        assert [drift.bead_id for drift in reported[-1].drift] == ["a"]
        watch.acknowledge(["a"])
        assert heard.acquire(timeout=30)
        assert reported[-1].drift == ()
    finally:
        watch.stop()
