"""What goes wrong while a run is at work: killed, interrupted, hung, garbled, doubled, out of space."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.statements.run import explain_run
from helix_tui.core.supervision.run_state.run_control import left_at_work, stop_run
from helix_tui.core.supervision.run_state.run_status import run_status
from helix_tui.core.supervision.run_state.state import (
    AlreadyRunning,
    RunState,
    load_state,
    read_holder,
    save_state,
    sole_run,
)
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

pytestmark = [pytest.mark.realtime, pytest.mark.long]

QUIET = ("run", "--no-auto-review", "--no-auto-align")


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Until something holds; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def started(world: Stage, *more: str) -> subprocess.Popen[str]:
    """A run in a process of its own, whose ddx is at work."""
    process = subprocess.Popen(
        world.words(*QUIET, *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: (world.folder / "pids.log").exists() or process.poll() is not None)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_ddx_too_and_leaves_a_state_that_status_explains(
    stage: StageFactory, number: signal.Signals
) -> None:
    world = stage([row("a-1")])
    world.turns({"sleep": 60})
    process = started(world)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in err
    pid = int((world.folder / "pids.log").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    status = run_status(find_project(world.root))
    assert (status.condition, status.state.stop_reason) == ("stopped", "interrupted")
    assert "interrupted" in explain_run(status)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"run_id": ""}, "number of cycles unknown"),
        ({}, "no cycle begun"),
        ({"attempted_cycles": 1}, "0 of 1 cycle completed"),
        ({"attempted_cycles": 4, "completed_cycles": 3}, "3 of 4 cycles completed"),
        (
            {"attempted_cycles": 4, "completed_cycles": 2, "supervisory_cycles": 2},
            "2 of 4 cycles completed, 2 supervisory",
        ),
        ({"completed_cycles": 3}, "3 cycles completed"),
    ],
)
def test_only_the_cycles_that_are_known_are_told(counts: dict[str, Any], said: str) -> None:
    assert RunState(**{"run_id": "r", **counts}).progress == said


def test_an_interrupted_ddx_that_reports_is_booked(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"results": [{}], "interrupt_parent": True})
    done = world.process(*QUIET)
    assert done.returncode == 130
    assert world.state["completed_cycles"] == len(world.executed)


def test_a_killed_run_is_explained_and_its_turn_is_booked_once_by_the_next(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"results": [{}], "kill_parent": True})
    assert world.process(*QUIET).returncode == -signal.SIGKILL
    wait_for(lambda: world.executed)
    status = run_status(find_project(world.root))
    assert status.condition == "died"
    assert "ddx was executing" in explain_run(status)
    assert status.state.completed_cycles == 0
    wait_for(lambda: _dead(int((world.folder / "pids.log").read_text().split()[0])))
    world.run()
    state = world.state
    assert world.executed == ["a-1 success", "a-2 success"]
    assert (state["completed_cycles"], state["totals"]["completed"], state["totals"]["recovered"]) == (
        1,
        2,
        1,
    )
    world.run()
    assert world.state["totals"]["completed"] == 2


def test_a_killed_run_gives_its_focus_back_with_the_next(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1", priority=1), row("t-1")])
    world.turns({"results": [{"close": False, "status": "execution_failed"}], "kill_parent": True})
    world.process(*QUIET)
    assert world.rows()["t-1"]["execution-eligible"] is False
    assert "focus on e-1" in explain_run(run_status(find_project(world.root)))
    wait_for(lambda: _dead(int((world.folder / "pids.log").read_text().split()[0])))
    world.run()
    assert "execution-eligible" not in world.rows()["t-1"]
    assert sorted(line.split()[0] for line in world.executed) == ["c-1", "c-1", "t-1"]


def test_a_stop_by_force_ends_ddx_as_well(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"sleep": 60})
    process = started(world)
    project = find_project(world.root)
    wait_for(lambda: load_state(project).pending.get("pid"))
    process.send_signal(signal.SIGSTOP)  # it will not hear
    assert stop_run(project, patience=0.05).how == "killed"
    process.communicate(timeout=10)
    wait_for(lambda: _dead(int((world.folder / "pids.log").read_text().split()[0])))
    world.turns()
    world.run()
    assert world.executed == ["a-1 success"]


def test_a_stop_after_the_bead_cuts_nothing_that_an_ended_run_left_at_work(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}], "sleep": 60})
    process = started(world)
    project = find_project(world.root)
    wait_for(lambda: load_state(project).pending.get("pid"))
    process.kill()
    process.communicate(timeout=10)
    pid = load_state(project).pending["pid"]
    soft = world.process("stop", "--after-bead")
    assert (soft.returncode, f"(pid {pid}) is still at work" in soft.stdout) == (0, True)
    assert "it ends after its bead" in soft.stdout
    assert not _dead(pid)
    assert "would end it" in world.process("stop", "--dry-run").stdout
    assert at_a_terminal(world, "n", "stop") == (1, True)
    assert not _dead(pid), "it was not to be ended"
    assert at_a_terminal(world, "y", "stop") == (0, True)
    assert left_at_work(project) == ()
    wait_for(lambda: _dead(pid))


def at_a_terminal(world: Stage, answer: str, *words: str) -> tuple[int, bool]:
    """A command whose question is answered at a terminal: its exit code, and whether it asked."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())  # the terminal keeps it until the command reads
        done = subprocess.run(
            world.words(*words), stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False
        )
        said = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, "[y/N]" in said


@pytest.mark.parametrize("noted", [True, False], ids=["pid-noted", "killed-before-the-pid-was-noted"])
def test_a_ddx_that_outlives_its_run_is_waited_for(stage: StageFactory, noted: bool) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}], "sleep": 4})
    process = started(world)
    process.kill()
    process.communicate(timeout=10)
    if not noted:
        state = world.state
        state["pending"] |= {"pid": 0, "born": 0}
        (world.root / ".helix" / "run-state.json").write_text(json.dumps(state))
    world.run()
    assert world.executed == ["a-1 success"]
    assert world.state["totals"]["completed"] == 1
    assert any("still running" in line for line in world.said)


def test_a_second_run_is_refused_at_once_and_changes_nothing(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"sleep": 30})
    process = started(world)
    before = (world.root / ".ddx" / "beads.jsonl").read_bytes()
    state = (world.root / ".helix" / "run-state.json").read_bytes()
    second = world.process(*QUIET)
    assert second.returncode == 2
    assert f"already running (pid={process.pid}, started=" in second.stderr
    assert (world.root / ".ddx" / "beads.jsonl").read_bytes() == before
    assert (world.root / ".helix" / "run-state.json").read_bytes() == state
    process.terminate()
    process.communicate(timeout=20)
    world.run()
    assert world.state["parallel_run_denied_count"] == 1


def test_a_pid_file_of_a_dead_or_another_process_is_stale(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    for text in (
        f"{dead.pid} 2026-01-01T00:00:00Z\n",
        f"{os.getppid()} 2020-01-01T00:00:00Z\n",
        "nonsense\n",
    ):
        (world.root / ".helix").mkdir(exist_ok=True)
        (world.root / ".helix" / "helix.pid").write_text(text)
        world.run()
        assert not (world.root / ".helix" / "helix.pid").exists()
    assert world.executed == ["a-1 success"]


def test_a_pid_file_is_believed_only_as_far_as_the_lock_bears_it_out(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    project = find_project(world.root)
    (project.helix_dir).mkdir(exist_ok=True)
    pid_file = project.helix_dir / "helix.pid"
    pid_file.write_text(f"{os.getpid()}\n")
    assert "has not yet written what it does" in explain_run(run_status(project))
    os.utime(pid_file, (0, 0))  # written before this process began: another process had its number
    assert run_status(project).condition == "never"
    with sole_run(project):
        assert run_status(project).condition == "active"
    pid_file.write_text(f"{os.getpid()} {format_instant(now_ns())}\n")  # it lives, and holds no lock
    assert run_status(project).condition == "never"
    looked = world.process("status", "--read-only")
    assert pid_file.exists(), looked.stderr
    told = world.process("status")
    assert f"removed the pid file of a run that has ended (pid {os.getpid()})" in told.stderr
    assert not pid_file.exists()


def test_a_clock_that_was_set_does_not_make_a_live_run_stale(stage: StageFactory) -> None:
    project = find_project(stage([row("a-1")]).root)
    with sole_run(project):
        (project.helix_dir / "helix.pid").write_text(f"{os.getpid()} 2020-01-01T00:00:00Z\n")
        holder = read_holder(project)
        assert holder is not None
        assert holder.live
        assert run_status(project).condition == "active"
    assert read_holder(project) is None


def attempt(world: Stage, attempt_id: str, bead_id: str, started_at: int) -> None:
    """Evidence of an attempt that landed, as ddx leaves it."""
    folder = world.root / ".ddx" / "executions" / attempt_id
    folder.mkdir(parents=True)
    result = {"bead_id": bead_id, "attempt_id": attempt_id, "status": "success", "outcome": "merged"}
    times = {"started_at": format_instant(started_at), "finished_at": format_instant(started_at + 1)}
    revs = {"base_rev": "a" * 40, "result_rev": "b" * 40}
    (folder / "result.json").write_text(json.dumps(result | times | revs))


def test_without_a_report_one_turn_is_booked_from_evidence_and_none_of_another_worker(
    stage: StageFactory,
) -> None:
    world = stage([row("a-1", status="closed"), row("a-2", status="closed"), row("a-3", status="closed")])
    now = now_ns()
    ids = [f"20261121T08000{n}-0000000{n}" for n in range(3)]
    for number, attempt_id in enumerate(ids):
        attempt(world, attempt_id, f"a-{number + 1}", now + number * 10**9)
    pending = {"command": ["ddx"], "out": "", "pid": 0, "started_at": format_instant(now), "booked": ids[:1]}
    state = {"run_id": "r", "pid": 1, "phase": "dispatching", "pending": pending, "totals": {"completed": 5}}
    (world.root / ".helix").mkdir(exist_ok=True)
    (world.root / ".helix" / "run-state.json").write_text(json.dumps(state))
    world.run()
    assert world.state["totals"]["completed"] == 6
    assert world.state["cycles"][0]["results"] == [["a-2", "success"]]


def test_a_ddx_that_is_killed_is_named_so(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}], "kill_self": True})
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("ddx_failed", 1)
    assert "ended by SIGKILL" in outcome.stop.detail
    assert world.rows()["a-1"]["status"] == "open"


def test_a_live_holder_of_the_shell_of_old_counts_too(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    (world.root / ".ddx" / "helix.pid").write_text(f"{os.getppid()} {format_instant(now_ns())}\n")
    with pytest.raises(AlreadyRunning):
        world.run()
    assert not world.executed


def test_a_hang_is_ended_and_named(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"sleep": 60})
    outcome = world.run(timeout=1.0)
    assert (outcome.stop.reason, outcome.stop.code) == ("timeout", 1)
    assert world.state["ddx_delegation_failure_count"] == {"timeout": 1}
    assert _dead(int((world.folder / "pids.log").read_text().split()[0]))


def test_ddx_that_goes_missing_half_way_is_127(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"results": [{}], "remove_self": True})
    done = world.process(*QUIET)
    assert done.returncode == 127
    assert "install ddx, or name it with --ddx or DDX_BIN" in done.stderr
    assert (world.state["completed_cycles"], world.state["stop_reason"]) == (1, "missing_binary")


def test_no_ddx_at_all_is_127(stage: StageFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    world = stage([row("a-1")])
    monkeypatch.setenv("PATH", os.defpath)
    done = subprocess.run(
        [sys.executable, "-m", "helix_tui", "run", "-C", str(world.root)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 127
    assert "ddx binary not found on PATH; install ddx, or name it with --ddx or DDX_BIN" in done.stderr
    assert load_state(find_project(world.root)).ddx_delegation_failure_count == {"missing_binary": 1}


def test_a_ddx_without_json_is_69(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    (world.folder / "no-json").touch()
    done = world.process(*QUIET)
    assert done.returncode == 69
    assert "has no --json" in done.stderr
    assert not world.calls


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "empty payload"),
        ("[1, 2]", "top-level value is not a JSON object"),
        ('{"results": {}}', "results field is not an array"),
        ('{"results": [{"bead_id": "a-1"}]}', "results[0].status"),
        ('{"results": [{"bead_id": "a-1", "status": "success"', "does not parse"),
        ("something went wrong", "no JSON object"),
    ],
)
def test_malformed_output_is_65_with_the_raw_text_kept(stage: StageFactory, raw: str, why: str) -> None:
    world = stage([row("a-1")])
    world.turns({"raw": raw})
    done = world.process(*QUIET)
    assert done.returncode == 65
    assert why in done.stderr
    (kept,) = (world.root / ".helix-logs").glob("malformed-*.json")
    assert kept.read_text() == raw
    assert world.state["completed_cycles"] == 0


def test_advisory_lines_before_the_object_are_passed_over(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed"), row("a-2")])
    report = {"attempts": 1, "results": [{"bead_id": "a-1", "status": "success", "new": 1}]}
    raw = f"💡 DDx 9.9 is available\n{json.dumps(report)}\n"
    world.turns({"raw": raw})
    world.run(max_cycles=1)
    assert world.state["completed_cycles"] == 1


def test_a_full_disk_stops_before_anything_is_dispatched(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.run(max_cycles=1)
    before = (world.root / ".helix" / "run-state.json").read_bytes()

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = world.process(*QUIET, preexec_fn=no_room)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert (world.root / ".helix" / "run-state.json").read_bytes() == before
    assert len(world.executed) == 1


def test_what_a_run_writes_does_not_dirty_the_work_tree(stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / ".helix" / "prompts").mkdir(parents=True)
    (world.root / ".helix" / "prompts" / "design.md").write_text("mine\n")
    world.run()
    words = ["git", "-C", str(world.root), "status", "--short", "--untracked-files=all"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout
    assert [line[3:] for line in shown.splitlines() if ".helix" in line] == [".helix/prompts/design.md"]


def test_a_torn_state_file_does_not_stop_a_run(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    (world.root / ".helix").mkdir()
    (world.root / ".helix" / "run-state.json").write_text('{"run_id": "x", "completed_')
    world.run()
    assert world.state["completed_cycles"] == 1


def test_fields_of_a_wrong_type_in_the_state_cost_only_themselves(stage: StageFactory) -> None:
    world = stage()
    path = world.root / ".helix" / "run-state.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"run_id": 7, "completed_cycles": "x", "stop_reason": "max_cycles", "newer": [1]}))
    state = load_state(find_project(world.root))
    assert (state.run_id, state.completed_cycles, state.stop_reason) == ("", 0, "max_cycles")
    assert state.rest == {"newer": [1]}


def _dead(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_paused_run_is_said_to_be_paused(stage: StageFactory) -> None:
    project = find_project(stage([row("a-1")]).root)
    with sole_run(project, now="2026-11-28T10:00:00Z"):
        save_state(project, RunState(run_id="r", pid=os.getpid(), phase="paused", attempted_cycles=2))
        explanation = explain_run(run_status(project))
    assert explanation == f"paused (pid {os.getpid()}, started at 2026-11-28T10:00:00Z); 0 of 2 cycles completed"


def test_what_was_changed_while_it_ran_and_would_run_is_listed_at_its_end(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    (world.root / "Cargo.toml").write_text("[package]\n")
    changed = {"lefthook.yml": "pre-commit:\n", "package.json": "{}"}
    world.turns({"results": [{"files": changed}]}, {"results": [{}]})
    outcome = world.run()
    assert (outcome.state.completed_cycles, outcome.stop.code) == (2, 0), "it is not refused in its middle"
    waits = "changed during this run and waits for your permission: helix-tui trust"
    assert [line for line in world.said if waits in line] == [
        f"helix: lefthook.yml {waits}",
        f"helix: npm test {waits}",
    ]
