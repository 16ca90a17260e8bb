"""Orphaned claims: told by a dead process and an old claim, let go of only after another look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.undo import NotUndoable
from helix_tui.core.ground.project import find_project, lease_roots, machine_name
from helix_tui.core.ground.time import NS, clock_time, format_instant, now_ns
from helix_tui.core.statements.stuck import find_stuck
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.needs import needs_of
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.signals.orphans import (
    find_left,
    find_orphans,
    gone,
    plan_release,
    recover,
    release_title,
)
from tests.core.supervision.conftest import World, WorldFactory, row


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def ago(seconds: float) -> str:
    return format_instant(now_ns() - int(seconds * NS))


def claimed(pid: int, age: float, **fields: Any) -> dict[str, Any]:
    claim = {
        "claimed-at": ago(age),
        "claimed-machine": machine_name(),
        "claimed-pid": str(pid),
        "execute-loop-heartbeat-at": ago(age),
    }
    return row("a", era="april", **{"status": "in_progress", "owner": "ddx", **claim, **fields})


def orphans(here: World):  # type: ignore[no-untyped-def]
    state = here.curator.look()
    return find_orphans(state.runs, state.queue)


def test_a_dead_and_old_claim_is_an_orphan(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)])
    (orphan,) = orphans(here)
    assert (orphan.bead_id, orphan.pid, orphan.owner, orphan.sources) == ("a", dead, "ddx", ("row",))
    assert str(orphan).endswith("is dead; ddx gives it out all the same"), "the bead is ready"
    here.rewrite("a", execution__eligible=False)
    (orphan,) = orphans(here)
    assert str(orphan).endswith("is dead")
    assert "a" not in orphan.reason.split(), "its bead stands beside the reason"


def test_a_release_of_many_claims_is_called_by_their_number(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300), {**claimed(dead, 7300), "id": "b"}])
    both = orphans(here)
    assert release_title(both[:1]) == "release the stale claim on a"
    assert release_title(both) == "release the stale claims on 2 beads"


def test_check_says_once_that_a_worker_is_gone(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300, **{"execution-eligible": False})])
    state = here.curator.look()
    facts = gather_facts(state, orphans=orphans(here))
    assert [orphan.bead_id for orphan in facts.orphans] == ["a"]
    assert facts.stalls == ()
    assert [run.bead_id for run in gather_facts(state).stalls] == ["a"]


@pytest.mark.parametrize(("age", "stands"), [(200, False), (7300, True)])
def test_one_place_says_which_claim_stands(world: WorldFactory, dead: int, age: float, stands: bool) -> None:
    """A bead that is ready again is no stale claim anywhere, until its claim is an orphan, which is one everywhere."""
    here = world([claimed(dead, age)])
    state = here.curator.look()
    assert state.queue.ready == ("a",)
    left = gone(state.runs, state.queue)
    parts = [[run.bead_id for run in part] for part in (left.held, left.free)]
    assert parts == ([["a"], []] if stands else [[], ["a"]])
    assert left.at_large == ("" if stands else ", 1 ready again")
    facts = gather_facts(state, orphans=orphans(here))
    assert (facts.stalls, len(facts.orphans)) == ((), int(stands))
    needs = needs_of(state.queue, state.runs, state.tracker, orphans=orphans(here))
    assert [need.kind for need in needs] == ["orphaned_claim"] * stands
    assert [each.reason for each in find_stuck(state.queue, orphans=orphans(here))] == ["orphaned-claim"] * stands


def test_what_may_live_or_is_young_is_none(world: WorldFactory, dead: int) -> None:
    for claim in (
        claimed(dead, 7100),
        claimed(os.getpid(), 9000),
        claimed(dead, 9000, **{"claimed-machine": "elsewhere"}),
        claimed(dead, 9000, **{"execute-loop-heartbeat-at": ago(10)}),
        claimed(dead, 9000, status="closed"),
        row("a", era="april", status="in_progress", owner="me"),
    ):
        here = world([claim])
        assert orphans(here) == ()
        here.tracker.unlink()
        here.tracker.parent.rmdir()
        here.root.rmdir()


def test_the_threshold_is_a_setting(world: WorldFactory, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world([claimed(dead, 200)])
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "100")
    assert len(orphans(here)) == 1
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "soon")
    assert orphans(here) == ()


@pytest.mark.parametrize(("age", "orphaned"), [(100, True), (20, False)])
def test_a_short_threshold_counts_where_nobody_renewed_the_claim(
    world: WorldFactory, dead: int, monkeypatch: pytest.MonkeyPatch, age: int, orphaned: bool
) -> None:
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "1")
    here = world([claimed(dead, 100, **{"execute-loop-heartbeat-at": ago(age)})])
    assert bool(orphans(here)) == orphaned


def test_a_lease_without_its_worker_is_an_orphan_though_the_row_is_open(world: WorldFactory, dead: int) -> None:
    here = world([row("a")])
    folder = lease_roots(find_project(here.root))[0]
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(
        f'{{"bead_id":"a","owner":"w","machine":"{machine_name()}","pid":{dead},'
        f'"started_at":"{ago(9000)}","updated_at":"{ago(8000)}"}}'
    )
    (orphan,) = orphans(here)
    assert orphan.sources == ("lease",)
    planned = here.curator.plan_steps("unclaim", "release", plan_release([orphan]))
    assert not planned.undoable
    entry = recover(here.curator, [orphan]).entry
    assert entry is not None
    assert (entry.undoable, entry.why_not) == (False, "; ".join(planned.back.lost))
    assert here.curator.plan_undo([entry])[0].turns[0].problem == entry.why_not
    with pytest.raises(NotUndoable, match="the lease of a"):
        here.curator.undo()


def test_recovery_lets_go_and_can_be_taken_back(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300), row("b", era="april")])
    before = here.settled()
    done = recover(here.curator, orphans(here))
    assert done.error is None
    after = here.rows()["a"]
    assert after["status"] == "open"
    assert not {"owner", "claimed-at", "claimed-pid"} & after.keys()
    assert orphans(here) == ()
    assert here.curator.undo() is not None
    assert here.settled() == before


def test_recovery_looks_again_first(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)])
    seen = orphans(here)
    here.rewrite("a", **{"claimed__pid": str(os.getpid()), "claimed__at": ago(5)})
    before = here.tracker.read_bytes()
    done = recover(here.curator, seen)
    assert "no longer an orphan" in done.plan.notes[0]
    assert done.entry is None
    assert here.tracker.read_bytes() == before


def test_read_only_recovers_nothing(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)], read_only=True)
    with pytest.raises(WritesForbidden):
        recover(here.curator, orphans(here))
    assert Path(here.tracker).exists()


def test_a_dead_claim_that_ddx_still_honours_says_until_when(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 50, **{"execute-loop-heartbeat-at": ago(20)})])
    assert not orphans(here)
    queue_state = here.curator.look()
    (claim,) = find_left(queue_state.runs, queue_state.queue).honoured
    assert 60 * NS < claim.freed_at - now_ns() < 72 * NS
    assert f"ddx gives it out again at {clock_time(claim.freed_at)}" in str(claim)
    (stuck,) = find_stuck(queue_state.queue, orphans=[claim])
    assert (stuck.reason, stuck.next_eligible_at) == ("dead-claim", format_instant(claim.freed_at))
    verdict = decide(gather_facts(queue_state, dead=[claim]))
    assert verdict.next_action == "WAIT"
    assert "stuck --recover a" in verdict.would_change_if
    assert "a worker finishes" not in verdict.would_change_if
    run = Run("a", verdict="dead", live=False, why="gone")
    (need,) = needs_of(queue_state.queue, [run], queue_state.tracker, dead=[claim])
    assert (need.kind, "gives it out again" in need.reason) == ("dead_run", True)
    done = recover(here.curator, [claim])
    assert done.error is None
    assert here.curator.look().queue.ready == ("a",)


def test_a_dead_worker_leaves_needs_me_when_ddx_has_its_bead_again(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 200)])
    queue_state = here.curator.look()
    assert queue_state.queue.ready == ("a",)
    assert not find_left(queue_state.runs, queue_state.queue).honoured
    run = Run("a", verdict="dead", live=False, why="gone")
    assert needs_of(queue_state.queue, [run], queue_state.tracker) == ()


def test_a_living_or_foreign_process_holds_no_dead_claim(world: WorldFactory, dead: int) -> None:
    elsewhere = claimed(dead, 20, **{"claimed-machine": "elsewhere", "id": "b"})
    here = world([claimed(os.getpid(), 20), elsewhere])
    queue_state = here.curator.look()
    assert not find_left(queue_state.runs, queue_state.queue).honoured


def test_what_ddx_asks_a_person_is_said_in_its_words(world: WorldFactory) -> None:
    said = {"needs-human-reason": "repair-cycle-exhausted", "needs-human-summary": "two reviews refused it"}
    asked = row("a", status="proposed", **said, **{"needs-human-suggested-action": "split it"})
    queue_state = world([asked, row("b", status="proposed")]).curator.look()
    reasons = {need.bead_id: need.reason for need in needs_of(queue_state.queue, (), queue_state.tracker)}
    assert reasons["a"] == "repair-cycle-exhausted: two reviews refused it; suggested: split it"
    assert reasons["b"] == "no worker picks it until it is accepted"
