"""Whatever stands in the files and happens to them while we look: nothing raises, nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.record import decode_bead
from helix_tui.core.ddx.attempts.evidence import read_evidence
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.runs.running import RunReader
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS
from tests.core.ddx.replay import Replay
from tests.core.ddx.retellings import Retelling
from tests.core.ddx.runs.test_running import NOW, Place, ago, run_state
from tests.core.ddx.runs.test_running import place as place
from tests.core.ddx.test_other_releases import as_recorded, tell
from tests.core.ddx.test_other_releases import plain as plain
from tests.core.ddx.test_recorded_runs import Record, is_told, timeline

ATTEMPT = "20260801T115000-aaaaaaaa"
ODD: list[Any] = [
    None,
    0,
    -1,
    10**30,
    1.5,
    True,
    "",
    "x",
    "\ud800",
    "9" * 400,
    "9" * 5_000,
    "٣",
    "²",
    "\x1b[31m",
    "..",
    "/",
]
ODD += ["9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z", [], [None], {}, {"a": [None]}]
odd = st.sampled_from(ODD)
BUNDLES = {
    "result.json": "bead_id status outcome detail reason tokens cost_usd exit_code started_at finished_at "
    "cycle_trace verdict no_changes_rationale error duration_ms preserve_ref rationale",
    "manifest.json": "bead_id requested created_at verdict result_rev base_rev worker_id",
    "usage.json": "tokens input_tokens output_tokens cost_usd harness model",
    "checks.json": "results summary",
    "ac-check.json": "items summary",
}
CLAIMS = {
    "run-state.json": "bead_id attempt_id pid started_at refreshed_at expires_at worktree_path candidate_cycle_phase",
    "run-state/x.json": "bead_id attempt_id pid started_at refreshed_at expires_at worktree_path",
    "workers/w/status.json": "worker_id id state current_bead current_attempt pid phase last_activity_at",
}


def documents(files: Mapping[str, str]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    shapes = {
        name: st.fixed_dictionaries({}, optional=dict.fromkeys(keys.split(), odd)) for name, keys in files.items()
    }
    return st.fixed_dictionaries({}, optional=shapes)


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(CLAIMS), st.dictionaries(st.sampled_from(["pid", "machine", "updated_at", "owner"]), odd))
def test_claims_of_any_shape_raise_nothing_and_hide_nothing(
    place: Place, files: dict[str, dict[str, Any]], lease: dict[str, Any]
) -> None:
    for name in CLAIMS:
        (place.ddx / name).unlink(missing_ok=True)
    for name, document in files.items():
        place.write(name, document)
    place.lease("odd-1", **lease)
    place.write("run-state/good.json", run_state("good-1", "good", pid=os.getpid()))
    runs = place.find()
    assert [run.verdict for run in runs if run.bead_id == "good-1"] == ["alive"]
    assert all(run.why and run.facts for run in runs)


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(BUNDLES), odd, odd)
def test_evidence_of_any_shape_raises_nothing_and_hides_nothing(
    place: Place, files: dict[str, dict[str, Any]], summary: object, body: object
) -> None:
    for folder in ("executions", "agent-logs", "metrics"):
        shutil.rmtree(place.ddx / folder, ignore_errors=True)
    for name, document in files.items():
        place.write(f"executions/{ATTEMPT}/{name}", document)
    event = {"kind": "execute-bead", "summary": summary, "body": body, "created_at": summary}
    row = {
        "id": "odd-1",
        "title": "t",
        "events": [event, summary, {"kind": "cost", "body": body}],
        "session_id": body,
    }
    loop = {
        "type": "bead.result",
        "ts": summary,
        "data": {"bead_id": "odd-1", "status": summary, "attempt_id": body},
    }
    place.write("agent-logs/agent-loop-1.jsonl", json.dumps(loop) + "\n")
    metric = {"attempt_id": "m", "bead_id": "odd-1", "outcome": summary, "cost_usd": body, "ts_end": body}
    place.write("metrics/attempts.jsonl", json.dumps(metric) + "\n")
    good = {"bead_id": "good-1", "attempt_id": "g", "status": "success", "outcome": "merged"}
    place.write("executions/20260801T115900-bbbbbbbb/result.json", good)
    index = AttemptIndex(place.ddx)
    index.refresh({"odd-1": decode_bead(json.dumps(row).encode())})
    assert [attempt.status for attempt in index.by_bead("good-1")] == ["success"]
    for attempt in index.attempts:
        assert read_evidence(attempt) is not None
        assert interpret(attempt, NOW) is not None


def _with_more(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Keys and lines that nobody knows yet, in every file of JSON."""
    text = entry.get("text")
    if not text or not entry["path"].endswith((".json", ".jsonl")) or "locks" in entry["path"]:
        return [entry]
    more: dict[str, Any] = {"zz_later": {"a": [1, None]}, "labels_v2": None, "_": []}
    if text.startswith("{\n"):
        return [entry | {"text": json.dumps(json.loads(text) | more)}]
    lines = [json.dumps(json.loads(line) | more) for line in text.split("\n") if line]
    if "/agent-" in entry["path"] or "/svc-" in entry["path"]:
        strange: dict[str, Any] = {"type": "later.thing", "data": None, "seq": None, "metadata": []}
        lines.append(json.dumps(strange | {"ts": None}))
    return [entry | {"text": "\n".join(lines) + "\n"}]


def _half_first(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Each file first cut off somewhere, as a reader sees it that comes while it is written."""
    text = entry.get("text")
    whole = entry["op"] in ("create", "replace", "write") and text and entry["path"].endswith(".json")
    if not whole or not text:
        return [entry]
    cut = sum(map(ord, text)) % len(text)
    return [entry | {"op": "write", "text": text[:cut]}, entry]


MISHAPS: dict[str, Retelling] = {
    "keys and lines of later releases": _with_more,
    "half-written files": _half_first,
}


@pytest.mark.parametrize("title", MISHAPS)
@pytest.mark.parametrize("name", ["head-success", "april-two-workers"])
def test_facts_stay_through_mishaps(name: str, title: str, tmp_path: Path, plain: Path) -> None:
    recorded, retold = as_recorded(name, plain), tell(name, tmp_path, MISHAPS[title])
    assert {index: recorded.steps[index] for index in retold.steps} == retold.steps
    assert retold.ends == recorded.ends


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("name", ["head-success", "april-two-workers"])
def test_a_clock_that_is_an_hour_off_loses_no_work_of_this_machine(name: str, hours: int, tmp_path: Path) -> None:
    """Ahead, everything is from the future and counts; behind, a process that lives holds its lease."""
    replay = Replay(timeline(name), tmp_path)
    record = Record(replay)
    (replay.project / ".ddx").mkdir()
    reader = RunReader(find_project(replay.project, env=replay.env), replay.env)
    for step in replay.steps():
        if is_told(step):
            runs = reader.find(record.beads(), replay.now(step.t) + hours * 3600 * NS)
            found = {run.bead_id for run in runs if run.bead_id}
            assert found >= record.running(record.beads())
            assert all((run.age_s(replay.now(step.t)) or 0) >= 0 and run.why for run in runs)
            if hours < 0:
                assert all(run.live for run in runs)


def test_two_workers_on_one_bead_are_two_runs(place: Place) -> None:
    for number, pid in enumerate((os.getpid(), os.getppid())):
        place.write(f"run-state/a{number}.json", run_state("b-1", f"a{number}", pid=pid))
        worker = {"worker_id": f"w{number}", "current_bead": "b-1", "pid": pid, "last_activity_at": ago(3)}
        place.write(f"workers/w{number}/status.json", worker)
    place.lease("b-1", pid=os.getpid(), started_at=ago(61), updated_at=ago(2))
    runs = place.find()
    assert sorted((run.attempt_id, run.worker_id, run.live) for run in runs) == [
        ("a0", "w0", True),
        ("a1", "w1", True),
    ]


def test_the_next_attempt_in_the_same_work_tree_has_transcripts_of_its_own(place: Place) -> None:
    tree, attempts = place.root / "slot-0", [ATTEMPT, "20260801T115500-bbbbbbbb"]
    reader = RunReader(place.project, place.env)
    for attempt, tool in zip(attempts, ("First", "Second"), strict=True):
        folder = tree / ".ddx" / "executions" / attempt / "embedded"
        folder.mkdir(parents=True)
        call = {"type": "tool_call", "time": ago(10), "data": {"name": tool, "input": {}}}
        (folder / "agent-claude-1.jsonl").write_text(json.dumps(call) + "\n")
        state = run_state("a-1", attempt, pid=os.getpid(), worktree_path=str(tree))
        place.write("run-state.json", state)
        assert [(run.attempt_id, run.last_tool) for run in reader.find({}, NOW)] == [(attempt, tool)]


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "secret"])
@pytest.mark.parametrize("name", ["run-state.json", "workers/w/status.json", "metrics/attempts.jsonl", "config.yaml"])
def test_what_is_no_file_is_passed_over_and_nobody_waits_for_it(place: Place, name: str, kind: str) -> None:
    path = place.ddx / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.write_text("{}")
        path.chmod(0)
    assert place.find() == ()
    index = AttemptIndex(place.ddx)
    index.refresh({})
    assert index.attempts == ()


def test_a_review_in_a_folder_without_a_time_is_no_stumbling_block(place: Place) -> None:
    place.write(f"executions/{ATTEMPT}/manifest.json", {"bead_id": "a-1", "created_at": ago(60)})
    prompt = '<bead-review>\n<bead id="a-1" iter=1>\n'
    place.write("executions/copied-by-hand/prompt.md", prompt)
    place.write("executions/copied-by-hand/result.json", {"verdict": "APPROVE"})
    index = AttemptIndex(place.ddx)
    index.refresh({})
    (attempt,) = index.attempts
    assert attempt.review is not None
    assert attempt.review.verdict == "APPROVE"


lines = st.integers(0, 5).map(lambda number: json.dumps({"type": "text_delta", "data": {"text": f"line {number}"}}))
deeds = st.lists(st.one_of(lines, st.sampled_from(["look", "move", "rename", "copy over"])), max_size=40)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds)
def test_every_line_is_shown_as_often_as_it_was_written_however_the_file_moves(
    tmp_path: Path, deeds: list[str]
) -> None:
    folders = [tmp_path / "clone", tmp_path / "project"]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    path, number, written = folders[0] / "agent-claude-1.jsonl", 1, []
    path.touch()
    tail, shown = TranscriptTail(folders), []
    for deed in [*deeds, "look"]:
        if deed == "look":
            shown += [event.summary for event in tail.poll()]
        elif deed == "move":
            target = folders[folders[0] == path.parent] / path.name
            shutil.copyfile(path, target)
            path.unlink()
            path = target
        elif deed == "rename":
            number += 1
            path = path.rename(path.with_name(f"agent-claude-{number}.jsonl"))
        elif deed == "copy over":
            fresh = path.with_name("fresh")
            shutil.copyfile(path, fresh)
            fresh.replace(path)
        else:
            written.append(json.loads(deed)["data"]["text"])
            with path.open("a") as file:
                file.write(deed + "\n")
    assert shown == written
