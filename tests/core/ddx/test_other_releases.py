"""Releases that nobody recorded: the recorded runs, retold as they would have written them.

Whatever the retelling changes, the facts stay: who runs, on which attempt, with which last tool, and how each
attempt ends. What a release does not write, it cannot tell; those steps are named beside each test.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.runs.running import RunReader, holds
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ddx.runs.transcript_events import read_event
from helix_tui.core.ground.project import find_project
from tests.core.ddx.replay import Replay
from tests.core.ddx.retellings import LEASES, RETELLINGS, ROWS, ROWS_STAY_OPEN, WORKTREES, Retelling
from tests.core.ddx.runs.test_running import Place, ago, run_state
from tests.core.ddx.runs.test_running import place as place
from tests.core.ddx.test_recorded_runs import GONE, KEPT, Record, is_told, timeline

pytestmark = pytest.mark.long

SOURCES_GONE = [
    "no leases",
    "claims in the row, no leases",
    "no sidecars",
    "one run record for all",
    "run records of attempts only",
]
"""Retellings that leave out a file which tells for some steps what no other does."""


@dataclass(frozen=True)
class Told:
    """What we said of a recording, step by step and at its end."""

    steps: Mapping[int, Mapping[str, tuple[str | None, str, str]]]
    """Per line of the recording, per bead: attempt, last tool, verdict."""
    attempts: Mapping[int, frozenset[tuple[object, ...]]]
    """Per line of the recording: attempt, status, whether it landed, whether it was preserved."""
    ends: tuple[tuple[object, ...], ...]
    problems: Mapping[Path, str]


def tell(name: str, root: Path, retelling: Retelling | None = None, pid: int | None = None) -> Told:
    replay = Replay(timeline(name), root, pid=pid, retell=retelling)
    record = Record(replay)
    (replay.project / ".ddx").mkdir()
    reader = RunReader(find_project(replay.project, env=replay.env), replay.env)
    index, steps, attempts = AttemptIndex(replay.project / ".ddx"), {}, {}
    for step in replay.steps():
        if is_told(step):
            beads, now = record.beads(), replay.now(step.t)
            found = reader.find(beads, now)
            runs = [run for run in found if run.bead_id]
            index.refresh(beads, [step.path], holds=holds(found))
            attempts[step.index] = frozenset(
                (one.attempt_id, one.status, one.landed, one.preserved) for one in index.attempts
            )
            steps[step.index] = {run.bead_id or "": (run.attempt_id, run.last_tool, run.verdict) for run in runs}
    names = ("attempt_id", "bead_id", "status", "landed", "preserved", "cost_usd", "session_id")
    ends = tuple(tuple(getattr(attempt, name) for name in names) for attempt in index.attempts)
    return Told(steps, attempts, ends, reader.problems)


@functools.cache
def as_recorded(name: str, parent: Path) -> Told:
    return tell(name, parent / name)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("as-recorded")


WHOLE = [title for title in RETELLINGS if title not in SOURCES_GONE and title != "in the project itself"]


@pytest.mark.parametrize("title", WHOLE)
@pytest.mark.parametrize("name", KEPT)
def test_every_fact_of_every_step_stays(name: str, title: str, tmp_path: Path, plain: Path) -> None:
    recorded, retold = as_recorded(name, plain), tell(name, tmp_path, RETELLINGS[title])
    assert {i: recorded.steps[i] for i in retold.steps} == retold.steps
    assert {i: recorded.attempts[i] for i in retold.attempts} == retold.attempts
    assert retold.ends == recorded.ends
    assert not retold.problems


@pytest.mark.parametrize("title", [*SOURCES_GONE, "in the project itself"])
@pytest.mark.parametrize("name", KEPT)
def test_what_a_release_does_not_write_costs_no_more_than_it_told(
    name: str, title: str, tmp_path: Path, plain: Path
) -> None:
    """At most the steps between two files that say the same thing one after the other."""
    recorded, retold = as_recorded(name, plain), tell(name, tmp_path, RETELLINGS[title])
    kept = {index: told for index, told in retold.steps.items() if index in recorded.steps}
    different = [i for i, told in kept.items() if set(told) != set(recorded.steps[i])]
    if "leases" not in title:
        assert not different
    assert len(different) <= 5, "only between the row's end and the lease's"
    statuses = {end[:1] + end[2:5] for end in recorded.ends}
    assert statuses <= {end[:1] + end[2:5] for end in retold.ends}
    assert not retold.problems


@pytest.mark.parametrize("name", [name for name in KEPT if name.startswith("head")])
def test_an_attempt_has_not_landed_while_only_a_lease_tells_that_its_bead_is_held(
    name: str, tmp_path: Path, plain: Path
) -> None:
    recorded, retold = as_recorded(name, plain), tell(name, tmp_path, ROWS_STAY_OPEN)
    assert {i: recorded.attempts[i] for i in retold.attempts} == retold.attempts
    assert retold.ends == recorded.ends


@pytest.mark.parametrize("title", [*LEASES, *WORKTREES, *ROWS])
def test_a_kill_leaves_a_dead_run_in_every_release(title: str, tmp_path: Path) -> None:
    told = tell("head-killed", tmp_path, RETELLINGS[title], pid=GONE)
    ((_, _, verdict),) = told.steps[max(told.steps)].values()
    assert verdict == "dead"


@pytest.mark.parametrize("title", WORKTREES)
def test_no_line_is_lost_or_doubled_wherever_the_work_tree_stands(title: str, tmp_path: Path) -> None:
    replay = Replay(timeline("head-success"), tmp_path, retell=RETELLINGS[title])
    record, shown = Record(replay), []
    (replay.project / ".ddx").mkdir()
    reader = RunReader(find_project(replay.project, env=replay.env), replay.env)
    tail: TranscriptTail | None = None
    for step in replay.steps():
        for run in reader.find(record.beads(), replay.now(step.t)):
            if run.attempt_id and (replay.project / ".ddx/runs" / run.attempt_id).exists():
                tail = tail or TranscriptTail(run.folders)
                tail.watch(run.folders)
        shown += tail.poll() if tail is not None else []
    (folder,) = (replay.project / ".ddx/executions").glob("*/embedded")
    assert sorted(map(repr, shown)) == sorted(map(repr, TranscriptTail([folder]).poll()))
    assert [event.summary for event in shown if event.tool == "Edit" and event.kind == "tool"]


@pytest.mark.parametrize(
    "worktree",
    [
        "/tmp/ddx-exec-wt/.execute-bead-wt-a-1-20260514T084402-708690e7",
        "/home/u/.cache/ddx/exec-wt/.execute-bead-clone-a-1-20260514T084402-708690e7",
        "/home/u/.cache/ddx/exec-wt/.execute-bead-slot-0a1b2c3d4e5f6071/slot-3",
        "/var/tmp/.execute-bead-ephemeral-0a1b2c3d4e5f6071-1234567",
    ],
)
def test_a_path_in_a_work_tree_of_any_release_is_told_as_a_path_in_the_project(worktree: str) -> None:
    call = {"type": "tool_call", "data": {"name": "Edit", "input": {"file_path": f"{worktree}/src/a.py"}}}
    assert read_event(json.dumps(call).encode()).summary == "Edit src/a.py"


def test_the_attempt_of_a_claim_that_does_not_say_when_it_began_is_the_one_at_work(place: Place) -> None:
    attempt, older = "20260801T115000-aaaaaaaa", "20260801T090000-bbbbbbbb"
    for name in (older, attempt):
        place.write(f"executions/{name}/manifest.json", {"attempt_id": name, "bead_id": "a-1"})
    place.write(f"executions/{older}/result.json", {"status": "execution_failed"})
    place.add("a-1", status="in_progress", updated_at=ago(20))
    assert [run.attempt_id for run in place.find()] == [attempt]
    place.write(f"executions/{attempt}/result.json", {"status": "execution_failed"})
    assert [run.attempt_id for run in place.find()] == [None], "a finished one may be of an earlier claim"


def test_an_attempt_is_found_among_very_many_younger_ones(place: Place) -> None:
    attempt = "20260801T113000-aaaaaaaa"
    place.write(f"executions/{attempt}/manifest.json", {"attempt_id": attempt, "bead_id": "a-1"})
    for number in range(120):
        name = f"20260801T1140{number // 2:02}-{number:08x}"
        place.write(f"executions/{name}/manifest.json", {"attempt_id": name, "bead_id": "b-1"})
    place.lease("a-1", pid=os.getpid(), started_at=ago(1801), updated_at=ago(3))
    assert [run.attempt_id for run in place.find()] == [attempt]


def test_a_lease_of_its_first_release_is_judged_with_the_row_beside_it(place: Place) -> None:
    """In the middle of May the row kept the heartbeat of its beginning and only the lease was touched."""
    row: dict[str, Any] = {"claimed-pid": str(GONE), "claimed-machine": "box", "work-heartbeat-at": ago(600)}
    place.add("a-1", status="in_progress", claimed_at=ago(600), **row)
    place.lease("a-1", machine="", pid=GONE, started_at=ago(600), updated_at=ago(10))
    place.write("run-state/x.json", run_state("a-1", "x", pid=GONE, seen=10))
    (run,) = place.find()
    assert (run.verdict, run.attempt_id) == ("dead", "x")
    row["claimed-pid"] = str(os.getpid())
    place.add("a-1", status="in_progress", claimed_at=ago(600), **row)
    place.lease("a-1", machine="", pid=os.getpid(), started_at=ago(600), updated_at=ago(10))
    place.write("run-state/x.json", run_state("a-1", "x", pid=os.getpid(), seen=10, started_at=ago(20)))
    (run,) = place.find()
    assert (run.verdict, run.attempt_id, run.source) == ("alive", "x", "run-state")


def test_a_servers_record_of_april_names_its_bead_at_the_top(place: Place) -> None:
    record = {"id": "worker-20260420T1150-ab12", "kind": "execute-loop", "state": "running"}
    record |= {"current_bead": "a-1", "started_at": ago(60), "harness": "claude"}
    place.write("workers/worker-20260420T1150-ab12/status.json", record)
    (run,) = place.find()
    assert (run.bead_id, run.worker_id, run.verdict) == ("a-1", record["id"], "alive")
    ended = record | {"state": "completed", "finished_at": ago(5)}
    place.write("workers/worker-20260420T1150-ab12/status.json", ended)
    assert place.find() == ()
