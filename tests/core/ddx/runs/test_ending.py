"""How the last worker ended: from a loop's log, and from the folder of one that a server started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.runs.endings import WorkerEnding, read_ending

LOOP = "agent-loop-1795330349559331004"


def loop(ddx: Path, *entries: tuple[str, dict[str, Any]], name: str = LOOP, second: int = 30) -> None:
    folder = ddx / "agent-logs"
    folder.mkdir(exist_ok=True, parents=True)
    rows = [
        {"type": kind, "data": data, "session_id": name, "ts": f"2026-08-21T10:00:{second}Z"} for kind, data in entries
    ]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def ended(ddx: Path) -> WorkerEnding:
    ending = read_ending(ddx)
    assert ending is not None
    return ending


DIRTY = {
    "reason": "checkpoint_dirty",
    "bead_id": "b-1",
    "dirty_paths": ["src/a.py", 7],
    "message": "commit or clean the listed files: src/a.py",
}


def test_a_loop_that_stopped_for_uncommitted_files_names_them(tmp_path: Path) -> None:
    loop(tmp_path, ("loop.operator_attention", DIRTY), ("loop.end", {"exit_reason": "operator_attention"}))
    found = ended(tmp_path)
    assert (found.reason, found.bead_id, found.paths) == ("checkpoint_dirty", "b-1", ("src/a.py",))
    assert found.message == DIRTY["message"]
    assert found.troubled


def test_a_loop_without_a_route_says_why(tmp_path: Path) -> None:
    why = {"detail": "ResolveRoute: no viable routing candidate", "bead_id": "b-1"}
    loop(tmp_path, ("disruption_detected", why), ("loop.end", {"exit_reason": "routing_unavailable"}))
    assert (ended(tmp_path).reason, ended(tmp_path).message) == ("routing_unavailable", why["detail"])
    assert ended(tmp_path).troubled


@pytest.mark.parametrize("reason", ["drained", "once_complete", "sigterm", ""])
def test_an_end_that_needs_nobody_is_no_trouble(tmp_path: Path, reason: str) -> None:
    loop(tmp_path, ("loop.end", {"exit_reason": reason, "attempts": 2}))
    assert not ended(tmp_path).troubled


def test_the_newest_end_counts_and_a_loop_at_work_has_none(tmp_path: Path) -> None:
    assert read_ending(tmp_path) is None
    loop(tmp_path, ("loop.operator_attention", DIRTY), ("loop.end", {"exit_reason": "operator_attention"}))
    loop(tmp_path, ("loop.start", {}), name="agent-loop-1795330349559331005")
    assert ended(tmp_path).troubled
    loop(tmp_path, ("loop.end", {"exit_reason": "drained"}), name="agent-loop-1795330349559331006", second=40)
    assert not ended(tmp_path).troubled


LOG = """\
06:54:51 readiness thinking ...
operator attention: project worktree /p has uncommitted implementation changes; released b-2.

worker exited: operator attention required

operator attention:
  released bead: b-2
  commit or clean the listed implementation files before restarting ddx work: a.txt, b.txt
  project root: /p
  dirty paths: a.txt, b.txt
"""


def server(ddx: Path, status: dict[str, Any], result: dict[str, Any] | None, log: str = LOG) -> None:
    folder = ddx / "workers" / "worker-20260821T100000-453d"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"pid": 7, **status}))
    (folder / "worker.log").write_text(log)
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))


def test_a_worker_of_the_server_says_it_in_its_own_folder(tmp_path: Path) -> None:
    status = {"state": "exited", "status": "operator_attention", "finished_at": "2026-08-21T10:00:30Z"}
    server(tmp_path, status, {"stop_condition": "OperatorAttention", "operator_attention": True})
    found = ended(tmp_path)
    assert (found.reason, found.bead_id, found.paths) == ("checkpoint_dirty", "b-2", ("a.txt", "b.txt"))
    assert found.message.startswith("commit or clean the listed implementation files")


def test_a_worker_of_the_server_that_drained_is_no_trouble(tmp_path: Path) -> None:
    server(
        tmp_path,
        {"state": "exited", "finished_at": "2026-08-21T10:00:30Z"},
        {"stop_condition": "Drained"},
        "",
    )
    assert (ended(tmp_path).reason, ended(tmp_path).troubled) == ("drained", False)


def test_garbage_is_no_end(tmp_path: Path) -> None:
    server(tmp_path, {"state": "running", "finished_at": "0001-01-01T00:00:00Z"}, None)
    (tmp_path / "agent-logs").mkdir()
    (tmp_path / "agent-logs" / f"{LOOP}.jsonl").write_bytes(b"\xff\n{\n[]\n")
    assert read_ending(tmp_path) is None
