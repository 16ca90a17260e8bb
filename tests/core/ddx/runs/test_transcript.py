"""Transcripts: every line once, whatever happens to the file; every shape as an event that can be shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ddx.files import LineTail
from helix_tui.core.ddx.runs.transcript import TranscriptTail, last_tool, phase, transcript_folders
from helix_tui.core.ddx.runs.transcript_events import read_event, target


def line(kind: str, seq: int, **data: Any) -> str:
    at = f"2026-08-01T12:{seq // 60:02d}:{seq % 60:02d}Z"
    return json.dumps({"type": kind, "seq": seq, "ts": at, "data": data}) + "\n"


def said(seq: int) -> str:
    return line("text_delta", seq, text=f"word {seq}")


def test_lines_come_once_and_an_unfinished_one_waits(tmp_path: Path) -> None:
    file = tmp_path / "agent-claude-1.jsonl"
    tail = TranscriptTail([tmp_path])
    assert tail.poll() == []
    file.write_text(said(1) + said(2)[:20])
    assert [event.summary for event in tail.poll()] == ["word 1"]
    assert tail.poll() == []
    with file.open("a") as more:
        more.write(said(2)[20:] + said(3))
    assert [event.summary for event in tail.poll()] == ["word 2", "word 3"]
    assert tail.path == file


@pytest.mark.parametrize("new_name", ["svc-1.jsonl", "renamed-9.jsonl"])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_file_that_moves_is_followed(tmp_path: Path, new_name: str, overlap: bool) -> None:
    old, new = tmp_path / "clone", tmp_path / "project"
    old.mkdir()
    tail = TranscriptTail([old, new])
    (old / "svc-1.jsonl").write_text(said(1) + said(2))
    shown = tail.poll()
    with (old / "svc-1.jsonl").open("a") as more:
        more.write(said(3)[:30])
    shown += tail.poll()
    new.mkdir()
    whole = said(1) + said(2) + said(3) + said(4)
    if overlap:
        (new / new_name).write_text(whole)
        shown += tail.poll()
        (old / "svc-1.jsonl").unlink()
    else:
        (old / "svc-1.jsonl").unlink()
        shown += tail.poll()
        (new / new_name).write_text(whole)
    shown += tail.poll()
    with (new / new_name).open("a") as more:
        more.write(said(5))
    shown += tail.poll()
    assert [event.summary for event in shown] == [f"word {n}" for n in range(1, 6)]


def test_a_file_that_is_cut_or_replaced_brings_only_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "svc-1.jsonl"
    tail = TranscriptTail([tmp_path])
    file.write_text(said(1) + said(2) + said(3))
    tail.poll()
    file.write_text(said(1))
    assert tail.poll() == []
    file.write_text(said(1) + said(4) + said(5) + said(6) + said(7))
    assert [event.summary for event in tail.poll()] == ["word 4", "word 5", "word 6", "word 7"]


def test_a_poll_is_capped_and_says_that_there_is_more(tmp_path: Path) -> None:
    file = tmp_path / "svc-1.jsonl"
    file.write_text("".join(said(n) for n in range(100)))
    tail = TranscriptTail([tmp_path], cap=1000)
    events = tail.poll()
    assert 0 < len(events) < 100
    while tail.behind:
        events += tail.poll()
    assert [event.summary for event in events] == [f"word {n}" for n in range(100)]


def test_a_tool_that_two_files_tell_is_shown_once(tmp_path: Path) -> None:
    (tmp_path / "agent-claude-2.jsonl").write_text(
        said(2)
        + line("tool_call", 3, id="t1", name="Edit", input={"file_path": "/x/.execute-bead-wt-a-b/src/main.go"})
        + line("tool_result", 5, id="t1", output="ok")
    )
    (tmp_path / "svc-1.jsonl").write_text(
        line("session.start", 0, resolved_harness="claude", resolved_model="sonnet", prompt="do it")
        + line("progress", 1, phase="thinking", state="start", message="thinking ...")
        + line("progress", 6, phase="tool", state="complete", tool_name="Edit", tool_call_id="t1", command="{}")
        + line("progress", 7, phase="tool", state="complete", tool_name="Bash", tool_call_id="t9", command="{}")
        + line("session.end", 8, status="success", tokens={"total": 3000}, cost_usd=0.04)
    )
    events = TranscriptTail([tmp_path]).poll()
    assert [event.kind for event in events] == [
        "session", "thinking", "text", "tool", "result", "result", "session",
    ]  # fmt: skip
    assert events[3].summary == "Edit src/main.go"
    assert (events[4].tool, events[4].summary, events[4].duration_ms) == ("Edit", "ok", 2000)
    assert events[5].tool == "Bash"
    assert (events[6].tokens, events[6].cost_usd) == (3000, 0.04)
    assert (last_tool(events[:5]), phase(events[:4]), phase(events)) == ("Edit src/main.go", "tool", "done")


def test_a_service_log_alone_is_shown_whole(tmp_path: Path) -> None:
    command = '{command="/bin/zsh -lc \\"pwd\\""}'
    (tmp_path / "svc-1.jsonl").write_text(
        line("progress", 1, phase="tool", state="start", tool_name="command_execution", command=command)
        + line("progress", 2, phase="tool", state="complete", tool_name="command_execution", command=command,
               output_summary="out=2B 1 line", duration_ms=7)
    )  # fmt: skip
    events = TranscriptTail([tmp_path]).poll()
    assert [event.kind for event in events] == ["tool", "result"]
    assert events[0].summary == 'command_execution /bin/zsh -lc "pwd"'
    assert last_tool(events).startswith("command_execution /bin/zsh")


def test_the_end_of_a_session_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "svc-1.jsonl"
    done = {"phase": "response", "state": "complete", "message": "done 3000tok", "total_tokens": 3_000}
    end = line("session.end", 1, status="success", tokens={"total": 3_000})
    file.write_text(end + line("progress", 2, **done))
    again = line("session.start", 3) + line("progress", 4, **done)
    tail = TranscriptTail([tmp_path])
    assert [event.summary for event in tail.poll()] == ["session ended: success, 3,000 tok"]
    with file.open("a") as more:
        more.write(again + line("session.end", 5, status="success") + line("progress", 6, **done))
    said = [event.summary for event in tail.poll() if event.phase == "done"]
    assert said == ["done 3,000 tok", "session ended: success", "done 3,000 tok"], "where nothing else tells the tokens"


def test_folders_of_an_attempt_are_the_living_one_first(tmp_path: Path) -> None:
    live, kept = transcript_folders(tmp_path / ".ddx", "a", tmp_path / "clone")
    assert live == tmp_path / "clone" / ".ddx" / "executions" / "a" / "embedded"
    assert kept == tmp_path / ".ddx" / "executions" / "a" / "embedded"


CALL = {"tool": "bash", "input": {"command": "ls"}, "output": "x"}
ROUTE = {"phase": "route", "message": "a-1 route x/y", "task_id": "a-1"}


@pytest.mark.parametrize(
    ("text", "kind", "tool", "summary"),
    [
        (b"{", "error", "", "unreadable line"),
        (b"[1]", "error", "", "unreadable line"),
        (b'{"type":"never.seen"}', "other", "", ""),
        (b'{"data":7}', "other", "", ""),
        (b'{"type":"llm.delta","data":null}', "other", "", ""),
        (line("never.seen", 1, a=1), "other", "", '{"a":1}'),
        (line("tool.call", 1, **CALL), "result", "bash", "bash ls"),
        (line("llm.response", 1, error="no model", latency_ms=9), "error", "", "no model"),
        (line("error", 1, message="boom"), "error", "", "boom"),
        (line("progress", 1, **ROUTE), "route", "", "route x/y"),
        (
            line("progress", 1, phase="response", state="complete", message="done 3000tok"),
            "session",
            "",
            "done 3,000 tok",
        ),
        (line("session.end", 1, status="success", tokens={"total": 0}), "session", "", "session ended: success"),
        (line("final", 1, status="failed", error="\x1b[2Jgone"), "error", "", "session ended: failed, gone"),
    ],
)
def test_every_shape_becomes_an_event(text: bytes | str, kind: str, tool: str, summary: str) -> None:
    event = read_event(text if isinstance(text, bytes) else text.strip().encode())
    assert (event.kind, event.tool) == (kind, tool)
    assert event.summary.startswith(summary)


@pytest.mark.parametrize(
    ("given_input", "shown"),
    [
        ({"command": "go test", "description": "run"}, "go test"),
        ({"pattern": "x", "path": "/r/.execute-bead-clone-a-b/docs"}, "docs"),
        ({"command": ["ls", "-l"]}, "ls -l"),
        ({"odd": 1}, '{"odd":1}'),
        ('{file_path="a/b.go", new_string="x"}', "a/b.go"),
        ("plain words", "plain words"),
        (None, ""),
        ({}, ""),
    ],
)
def test_the_telling_part_of_a_tools_input(given_input: object, shown: str) -> None:
    assert target(given_input) == shown


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
KINDS = st.sampled_from(
    [
        "progress",
        "tool_call",
        "tool_result",
        "session.end",
        "session.start",
        "text_delta",
        "llm.response",
        "x",
    ]
)
FIELDS = st.sampled_from(
    ["phase", "state", "name", "input", "output", "tokens", "cost_usd", "text", "error", "id", "command"]
)


@given(KINDS, st.dictionaries(FIELDS, json_values, max_size=6))
def test_no_line_raises_and_no_text_can_harm(kind: str, data: dict[str, Any]) -> None:
    event = read_event(json.dumps({"type": kind, "data": data}).encode())
    for text in (event.summary, event.tool, event.type):
        assert "\x1b" not in text
        assert "\n" not in text
    assert "\x1b" not in event.detail


@pytest.mark.long
@given(st.lists(st.binary(max_size=40).filter(lambda part: b"\n" not in part), max_size=30), st.data())
def test_a_tail_gives_every_line_of_a_growing_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("tail") / "f.jsonl"
    raw = b"".join(part + b"\n" for part in lines)
    tail, got, at = LineTail(file), [], 0
    while at < len(raw):
        step = data.draw(st.integers(1, len(raw) - at))
        with file.open("ab") as more:
            more.write(raw[at : at + step])
        at += step
        got += tail.poll()
        assert not tail.replaced
    assert got == lines
