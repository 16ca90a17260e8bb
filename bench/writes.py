"""What ddx and its workers write beside the tracker, in the shape of 21 August, one record a call."""

from __future__ import annotations

import json
from pathlib import Path


def attempt_id(number: int) -> str:
    """The id of an attempt, as ddx makes them: when it began, and eight hex digits."""
    return f"20260820T{number % 240_000:06d}-{number:08x}"


def bundle(ddx: Path, bead_id: str, attempt: str) -> Path:
    """An evidence folder of an attempt that has ended; the folder."""
    folder = ddx / "executions" / attempt
    (folder / "embedded").mkdir(parents=True, exist_ok=True)
    (folder / "prompt.md").write_text(f'<execute-bead><bead id="{bead_id}"></execute-bead>')
    (folder / "manifest.json").write_text(json.dumps({"attempt_id": attempt, "bead_id": bead_id}))
    result = {"bead_id": bead_id, "attempt_id": attempt, "status": "success", "cost_usd": 0.4}
    (folder / "result.json").write_text(json.dumps(result | {"detail": "x" * 4_000}))
    return folder


def metric(ddx: Path, bead_id: str, attempt: str) -> Path:
    """A row about an attempt; the file."""
    row = {"attempt_id": attempt, "bead_id": bead_id, "cost_usd": 0.1, "outcome": "merged"}
    return append(ddx / "metrics" / "attempts.jsonl", row)


def loop_result(ddx: Path, loop: int, bead_id: str, attempt: str) -> Path:
    """A loop tells how an attempt ended; its log."""
    path = ddx / "agent-logs" / f"agent-loop-{loop:08d}.jsonl"
    data = {"bead_id": bead_id, "attempt_id": attempt, "status": "success", "detail": "y" * 300}
    return append(path, {"type": "bead.result", "session_id": path.stem, "data": data})


def model_call(ddx: Path, number: int) -> Path:
    """A model call beside the attempts goes on by a line; its transcript."""
    path = ddx / "agent-logs" / f"agent-{1_780_000_000_000_000_000 + number * 10**9}.jsonl"
    data = {"name": "Bash", "input": "z" * 200}
    return append(path, {"type": "tool_call", "ts": "2026-08-20T10:00:00Z", "data": data})


def append(path: Path, row: object) -> Path:
    """A row more in a file of rows; the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    return path


def replace(path: Path, content: bytes) -> None:
    """Write a whole file by rename, as ddx does."""
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content)
    draft.rename(path)
