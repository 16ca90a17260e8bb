"""Every recorded run of a real ddx, step by step: who runs, in which phase and tool, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.record import Bead, decode_bead
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.runs.running import Run, RunReader
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.core.ground.project import find_project
from tests.core.ddx.replay import Replay, Step

COMMITTED = Path(__file__).resolve().parents[2] / "data" / "ddx"
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "ddx" / "loops"
KEPT = sorted(path.stem for path in COMMITTED.glob("*.jsonl"))
GIVEN = sorted(path.stem for path in SHARED.glob("*.jsonl")) if SHARED.is_dir() else []
GONE = 1 << 22
"""No process has this id: the kernel's largest is below it."""

LANDED = {"success", "review_request_changes"}
PRESERVED = {"land_conflict", "repair-cycle-exhausted"}


def timeline(name: str) -> Path:
    """The recording given, else the trimmed one in the repository."""
    return SHARED / f"{name}.jsonl" if name in GIVEN else COMMITTED / f"{name}.jsonl"


def released(state: Mapping[str, Any], beads: Mapping[str, Bead]) -> bool:
    """Whether an April record, which names no process, is of a bead that was opened again after it was written."""
    bead = beads.get(state["bead_id"])
    return bead is not None and bead.status == "open" and "pid" not in state and bead.updated_at > state["started_at"]


@dataclass
class Record:
    """What the files say, read as plainly as can be: the oracle."""

    replay: Replay
    calls: dict[str, list[str]] = field(default_factory=dict)

    def beads(self) -> dict[str, Bead]:
        path = self.replay.project / ".ddx" / "beads.jsonl"
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        return {bead.id: bead for bead in map(decode_bead, filter(None, lines))}

    def run_states(self) -> list[dict[str, Any]]:
        ddx = self.replay.project / ".ddx"
        paths = [*ddx.glob("run-state/*.json"), *ddx.glob("run-state.json")]
        return [json.loads(path.read_text()) for path in paths]

    def running(self, beads: Mapping[str, Bead]) -> set[str]:
        leases = (self.replay.scratch / "tmp").glob("ddx-claim-heartbeats/*/*.json")
        return (
            {path.stem for path in leases}
            | {state["bead_id"] for state in self.run_states() if not released(state, beads)}
            | {bead.id for bead in beads.values() if bead.status == "in_progress"}
        )

    def phase(self, attempt_id: str | None) -> str | None:
        states = [state for state in self.run_states() if state["attempt_id"] == attempt_id]
        told = {state.get("candidate_cycle_phase") or "running" for state in states}
        return told.pop() if len(told) == 1 else None

    def note_tools(self, step: Step) -> None:
        """Gather the tools that the agents' own streams name, by attempt."""
        if not step.path.name.startswith("agent-") or step.path.parent.name != "embedded":
            return
        copied = step.op == "create" and step.path.is_relative_to(self.replay.project)
        if copied and self.calls.get(step.path.parent.parent.name):
            return  # head's copy at the end tells nothing new
        for line in step.text.splitlines():
            entry = json.loads(line)
            if entry["type"] == "tool_call":
                self.calls.setdefault(step.path.parent.parent.name, []).append(entry["data"]["name"])


def is_told(step: Step) -> bool:
    """Steps that can change what runs; DDx's lock files are many and say nothing."""
    text = str(step.path)
    return ".lock/" not in text and "locks.jsonl" not in text and "/git-" not in text


def replayed(name: str, root: Path, pid: int | None = None) -> Iterator[tuple[Step, Record, tuple[Run, ...]]]:
    """Every telling step of a recording with what we find at it."""
    replay = Replay(timeline(name), root, pid=pid)
    record = Record(replay)
    (replay.project / ".ddx").mkdir()
    reader = RunReader(find_project(replay.project, env=replay.env), replay.env)
    for step in replay.steps():
        record.note_tools(step)
        if is_told(step):
            yield step, record, reader.find(record.beads(), replay.now(step.t))
    assert not reader.problems


@pytest.mark.parametrize("name", GIVEN or KEPT)
def test_at_every_step_the_running_beads_phase_and_last_tool_are_the_recorded_ones(name: str, tmp_path: Path) -> None:
    for step, record, runs in replayed(name, tmp_path):
        where = f"{name} at {step.t}: {step.op} {step.path.name}"
        live = {run.bead_id for run in runs if run.bead_id and run.live}
        beads = record.beads()
        # once it is given to a person its lease says nothing more, and goes within the second
        given = {bead.id for bead in beads.values() if bead.status == "proposed"}
        assert live ^ record.running(beads) <= given, where
        assert len(live) == len([run for run in runs if run.bead_id]), where
        for run in runs:
            phase = record.phase(run.attempt_id)
            assert phase is None or run.phase == phase, where
            tools = record.calls.get(run.attempt_id or "", [])
            assert run.last_tool.split(" ")[0] == (tools[-1] if tools else ""), where
            assert run.why, where


@pytest.mark.parametrize("name", GIVEN or KEPT)
def test_when_it_is_over_attempts_ended_as_the_loop_says(name: str, tmp_path: Path) -> None:
    replay = Replay(timeline(name), tmp_path)
    (replay.project / ".ddx").mkdir()
    record, index = Record(replay), AttemptIndex(replay.project / ".ddx")
    for step in replay.steps():
        if is_told(step):
            index.refresh(record.beads(), [step.path])
    logs = (replay.project / ".ddx" / "agent-logs").glob("agent-loop-*.jsonl")
    told = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    results = [entry["data"] for entry in told if entry["type"] == "bead.result"]
    ended = {result["session_id"]: result["status"] for result in results}
    by_session = {attempt.session_id: attempt for attempt in index.attempts if attempt.finished}
    for session, status in ended.items():
        attempt = by_session[session]
        assert attempt.status == status
        assert attempt.landed == (status in LANDED)
        assert attempt.preserved == (status in PRESERVED)
        assert bool(attempt.preserve_ref) >= attempt.preserved
        assert attempt.cost_usd is None or attempt.cost_usd > 0
    assert all(attempt.bead_id.startswith("demo-") for attempt in index.attempts)
    folders = {f.name for f in (replay.project / ".ddx" / "executions").glob("*/manifest.json")}
    assert len(index.attempts) >= len(ended), folders
    again = AttemptIndex(replay.project / ".ddx")
    again.refresh(record.beads())
    assert again.attempts == index.attempts, "looking at everything and following hints must agree"


@pytest.mark.parametrize("name", [name for name in GIVEN or KEPT if "killed" in name])
def test_a_killed_worker_leaves_a_dead_run(name: str, tmp_path: Path) -> None:
    *_, (_, record, runs) = replayed(name, tmp_path, pid=GONE)
    (run,) = runs
    assert (run.live, run.verdict) == (False, "dead")
    assert "dead" in run.why
    assert {run.bead_id} == record.running(record.beads())
    assert run.attempt_id is not None
    assert {fact.source for fact in run.facts} >= {"run-state", "lease" if "head" in name else "row"}


@pytest.mark.parametrize("name", [name for name in GIVEN or KEPT if "killed" in name])
def test_expiry_alone_tells_of_a_death_on_another_machine(name: str, tmp_path: Path) -> None:
    replay = Replay(timeline(name), tmp_path)
    last = replay.run()
    env = replay.env | {"DDX_MACHINE_ID": "elsewhere"}
    reader, beads = RunReader(find_project(replay.project, env=env), env), Record(replay).beads()
    (run,) = reader.find(beads, replay.now(last))
    assert (run.live, run.verdict) == (True, "alive")
    (run,) = reader.find(beads, replay.now(last + 3600))
    assert (run.live, run.verdict) == (False, "dead")
    assert "ran out" in run.why


def test_a_worker_that_does_nothing_is_silent_while_its_lease_is_held(tmp_path: Path) -> None:
    replay = Replay(timeline("head-killed"), tmp_path)
    last = replay.run()
    reader, beads = (
        RunReader(find_project(replay.project, env=replay.env), replay.env),
        Record(replay).beads(),
    )
    (run,) = reader.find(beads, replay.now(last + 600))
    assert (run.live, run.verdict) == (True, "silent")
    assert "10m" in run.why
    (run,) = reader.find(beads, replay.now(last + 600), stall_after_s=3600)
    assert run.verdict == "alive"
    (run,) = reader.find(beads, replay.now(last + 3 * 3600))
    assert run.verdict == "dead"


@pytest.mark.parametrize("name", KEPT)
def test_a_first_look_finds_what_many_looks_have_found(name: str, tmp_path: Path) -> None:
    def told(runs: tuple[Run, ...]) -> list[tuple[object, ...]]:
        names = ("bead_id", "attempt_id", "source", "phase", "last_tool", "tokens", "verdict", "transcript")
        return [tuple(getattr(run, name) for name in names) for run in runs]

    for count, (step, record, runs) in enumerate(replayed(name, tmp_path)):
        if count % 5 == 0:
            replay = record.replay
            reader = RunReader(find_project(replay.project, env=replay.env), replay.env)
            first = reader.find(record.beads(), replay.now(step.t))
            assert told(first) == told(runs), step


def test_both_workers_of_april_are_known_though_one_run_record_holds_only_one(tmp_path: Path) -> None:
    together = [
        runs for _, _, runs in replayed("april-two-workers", tmp_path) if len([r for r in runs if r.attempt_id]) == 2
    ]
    assert together
    for runs in together:
        assert len({run.bead_id for run in runs}) == len({run.attempt_id for run in runs}) == 2
        assert all(run.transcript is not None for run in runs if run.last_tool)


@pytest.mark.parametrize("name", [name for name in GIVEN or KEPT if "chat" not in name])
def test_no_line_of_a_transcript_is_lost_or_shown_twice(name: str, tmp_path: Path) -> None:
    tails: dict[str, TranscriptTail] = {}
    shown: dict[str, list[Event]] = {}
    project = tmp_path / "project"
    for _, _, runs in replayed(name, tmp_path):
        for run in runs:
            if run.attempt_id and run.folders:
                tail = tails.setdefault(run.attempt_id, TranscriptTail(run.folders))
                tail.watch(run.folders)
        for attempt_id, tail in tails.items():
            shown.setdefault(attempt_id, []).extend(tail.poll())
    for attempt_id, events in shown.items():
        folder = project / ".ddx" / "executions" / attempt_id / "embedded"
        if not folder.is_dir():
            continue  # a sidecar's own id, or killed before the copy
        told = TranscriptTail([folder]).poll()
        assert sorted(map(repr, events)) == sorted(map(repr, told))
        texts = [path.read_text() for path in folder.glob("agent-*.jsonl")]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        calls = [event for event in events if event.kind == "tool"]
        assert len(calls) == len([line for line in lines if line["type"] == "tool_call"])
        answers = [line for line in lines if line["type"] == "tool_result"]
        assert len([e for e in events if e.kind == "result"]) == len(answers)
        assert len([e for e in events if e.type == "text_delta"]) == len(
            [line for line in lines if line["type"] == "text_delta"]
        )
