"""What an index of attempts holds at most, and that nothing is lost by it that can be read again."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from helix_tui.core.beads.tracker import TrackerReader
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.sources.from_events import BeadEvents
from helix_tui.core.ddx.attempts.sources.from_metrics import MetricsFile
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopLogs
from helix_tui.core.ddx.files import LineTail

MODULE = "helix_tui.core.ddx.attempts"


def _bundle(ddx: Path, number: int, bead_id: str = "b-1", folder: str = "executions") -> Path:
    bundle = ddx / folder / f"20260820T1010{number:02d}-{number:08x}"
    bundle.mkdir(parents=True)
    result = {"bead_id": bead_id, "attempt_id": bundle.name, "status": "success"}
    (bundle / "result.json").write_text(json.dumps(result))
    return bundle


def _ids(index: AttemptIndex) -> list[str]:
    return sorted(attempt.attempt_id for attempt in index.attempts)


def test_of_more_evidence_than_is_held_the_newest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.sources.from_bundles.MAX_BUNDLES", 3)
    bundles = [_bundle(tmp_path, number) for number in range(5)]
    index = AttemptIndex(tmp_path)
    index.refresh({})
    assert _ids(index) == [bundle.name for bundle in bundles[2:]]
    assert index.left_out == 2
    newest = _bundle(tmp_path, 5)
    index.refresh({}, [])
    assert _ids(index) == [*(bundle.name for bundle in bundles[3:]), newest.name]
    assert index.left_out == 3


def test_evidence_that_was_put_away_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.sources.from_bundles.MAX_BUNDLES", 2)
    _bundle(tmp_path, 0, folder="executions-archive/2026/08")
    kept = [_bundle(tmp_path, 1), _bundle(tmp_path, 2, folder="executions-archive/2026/08")]
    index = AttemptIndex(tmp_path)
    index.refresh({})
    assert _ids(index) == [bundle.name for bundle in kept]


def _metric(ddx: Path, attempt_id: str) -> None:
    (ddx / "metrics").mkdir(exist_ok=True)
    with (ddx / "metrics" / "attempts.jsonl").open("a") as file:
        file.write(json.dumps({"attempt_id": attempt_id, "bead_id": "b-1", "outcome": "merged"}) + "\n")


def test_the_rows_of_metrics_that_were_written_last_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.sources.from_metrics.MAX_ROWS", 3)
    index = AttemptIndex(tmp_path)
    for name in ("a", "b", "c", "a", "d"):
        _metric(tmp_path, name)
    index.refresh({})
    assert _ids(index) == ["a", "c", "d"]
    _metric(tmp_path, "e")
    index.refresh({})
    assert _ids(index) == ["a", "d", "e"]


def _loop(ddx: Path, name: str, *attempts: str) -> Path:
    path = ddx / "agent-logs" / f"agent-loop-{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        for attempt_id in attempts:
            data = {"bead_id": "b-1", "attempt_id": attempt_id, "status": "success"}
            file.write(json.dumps({"type": "bead.result", "data": data}) + "\n")
    return path


def test_the_results_that_loops_told_last_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.index.MAX_LOOP_RESULTS", 2)
    index = AttemptIndex(tmp_path)
    _loop(tmp_path, "1", "a", "b", "a", "c")
    index.refresh({})
    assert _ids(index) == ["a", "c"]


def test_the_beginnings_that_loops_told_last_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.sources.begun.MAX_BEGUN", 2)
    log = tmp_path / "agent-logs" / "agent-loop-1.jsonl"
    log.parent.mkdir()
    lines = [
        {
            "type": "worker.heartbeat",
            "ts": f"2026-08-01T1{place}:00:00Z",
            "session_id": "l",
            "data": {"bead_id": bead, "attempt_id": name},
        }
        for place, (name, bead) in enumerate((("a", "b-1"), ("b", "b-2"), ("a", "b-1"), ("c", "b-2")))
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    index = AttemptIndex(tmp_path)
    index.refresh({})
    assert _ids(index) == ["b", "c"]


def test_a_loop_log_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    logs = LoopLogs(tmp_path)
    gone, kept = _loop(tmp_path, "1", "a"), _loop(tmp_path, "2", "b")
    assert len(logs.poll()) == 2
    gone.unlink()
    assert not logs.poll()
    assert list(logs._tails) == [kept]
    _loop(tmp_path, "1", "c")
    assert [entry.text("attempt_id") for entry in logs.poll()] == ["c"]


def test_the_texts_of_events_are_not_held(tmp_path: Path) -> None:
    row = {"id": "b-1", "title": "t", "events": [{"kind": "execute-bead", "body": "x" * 2_000_000}]}
    tracker = tmp_path / "beads.jsonl"
    tracker.write_text(json.dumps(row) + "\n")
    beads = TrackerReader(tracker).read().beads
    events = BeadEvents(tmp_path)
    tracemalloc.start()
    try:
        assert events.refresh(beads) == {"b-1"}
        assert len(events.of("b-1")[0].body) == 2_000_000
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000


def test_metrics_replaced_between_two_polls_keep_no_row_of_the_old_file(tmp_path: Path) -> None:
    def lines(*names: str) -> str:
        return "".join(json.dumps({"attempt_id": name, "bead_id": f"b-{name}"}) + "\n" for name in names)

    class Replaced(LineTail):
        """Another file stands there once the first part was read."""

        def poll(self) -> list[bytes]:
            found = super().poll()
            if any(b'"old-1"' in line for line in found):
                self.path.write_text("\n" + lines("new-1", "new-2"))
            return found

    metrics = MetricsFile(tmp_path)
    file = tmp_path / "metrics" / "attempts.jsonl"
    file.parent.mkdir()
    file.write_text(lines("old-1", "old-2"))
    metrics._tail = Replaced(file, cap=len(lines("old-1")) + 4)
    assert metrics.refresh() == {"b-old-1", "b-new-1", "b-new-2"}
    assert [*metrics.rows] == ["new-1", "new-2"]
