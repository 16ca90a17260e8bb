"""What a hook hears: fields of any type, transcripts of any shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.supervision.agents.report_parser import (
    HookMessage,
    claim_of,
    open_tasks,
    own_task,
    read_hook_message,
    read_task,
    spawned,
)


@given(st.binary(max_size=300))
def test_any_bytes_are_heard_or_not(raw: bytes) -> None:
    hook_message = read_hook_message(raw)
    assert hook_message is None or isinstance(hook_message, HookMessage)


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"1", b"{", b"\xff", b"[" * 200_000, b'{"a":' * 50_000])
def test_what_is_no_object_is_not_heard(raw: bytes) -> None:
    assert read_hook_message(raw) is None


@given(
    st.dictionaries(
        st.sampled_from(["session_id", "cwd", "tool_name", "tool_input", "agent_id", "transcript_path"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers(), max_size=2),
    )
)
def test_fields_of_any_type_become_text(document: dict[str, object]) -> None:
    hook_message = read_hook_message(json.dumps(document).encode())
    assert hook_message is not None
    for value in (
        hook_message.session,
        hook_message.cwd,
        hook_message.tool,
        hook_message.file,
        hook_message.agent_id,
        hook_message.transcript,
    ):
        assert isinstance(value, str)
        value.encode()
        assert "\0" not in value


def test_both_names_of_a_file_are_known() -> None:
    assert read_hook_message(b'{"tool_input": {"file_path": "a.py"}}') == HookMessage(file="a.py")
    assert read_hook_message(b'{"tool_input": {"notebook_path": "n.ipynb"}}') == HookMessage(file="n.ipynb")
    assert read_hook_message(b'\xef\xbb\xbf{"cwd": "/x", "tool_input": [{}]}') == HookMessage(cwd="/x")


def _transcript(path: Path, *entries: object) -> str:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


def _tool_use(name: str, prompt: str, call: str = "", kind: str = "") -> dict[str, object]:
    part = {
        "type": "tool_use",
        "id": call,
        "name": name,
        "input": {"prompt": prompt, "subagent_type": kind},
    }
    return {"type": "assistant", "message": {"content": [part]}}


@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_the_newest_task_is_found_under_both_names(tmp_path: Path, tool: str) -> None:
    path = _transcript(
        tmp_path / "t.jsonl",
        _tool_use(tool, "OBJECTIVE: the old one"),
        _tool_use(tool, "TASK: 2\nOBJECTIVE: the new one\nDELTA: src/a.py, src/b.py\nVERIFY: pytest"),
        _tool_use("Bash", "ls"),
    )
    task = spawned(path)[-1].task
    assert task.objective == "the new one"
    assert task.files == ("src/a.py", "src/b.py")


def test_an_agent_has_one_of_the_open_tasks_of_its_type(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
    path = _transcript(
        tmp_path / "t.jsonl",
        _tool_use("Task", "OBJECTIVE: the first", "c1", "helix:builder"),
        _tool_use("Task", "OBJECTIVE: the second", "c2", "helix:builder"),
        {"type": "user", "message": {"content": [result]}},
        _tool_use("Task", "OBJECTIVE: look around", "c3", "helix:explorer"),
        _tool_use("Task", "OBJECTIVE: the third", "c4", "helix:builder"),
    )
    every = spawned(path)
    assert [task.call for task in open_tasks(every, "helix:builder")] == ["c2", "c4"]
    assert [task.call for task in open_tasks(every, "explorer")] == ["c3"]
    assert open_tasks(every, "helix:planner") == []


def test_an_agents_own_transcript_tells_its_task(tmp_path: Path) -> None:
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    entry = {"type": "user", "message": {"content": "OBJECTIVE: draw the map\nDELTA: src/map.py"}}
    own = _transcript(folder / "agent-a1.jsonl", entry)
    beside = HookMessage(transcript=str(tmp_path / "s.jsonl"), agent_id="a1")
    for hook_message in (beside, HookMessage(agent_transcript=own)):
        task = own_task(hook_message)
        assert task is not None
        assert (task.objective, task.files) == ("draw the map", ("src/map.py",))
    assert own_task(HookMessage(transcript=str(tmp_path / "s.jsonl"), agent_id="../s/subagents/agent-a1")) is None


def test_a_transcript_that_is_none_has_no_task(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\x00" * 500)
    for path in (
        "",
        "/nonexistent/x",
        str(tmp_path / "folder"),
        str(tmp_path / "binary"),
        "a\0b",
        "~nobody-x/y",
    ):
        assert spawned(path) == []
        assert own_task(HookMessage(agent_transcript=path)) is None


def test_a_prompt_without_headings_is_its_own_objective() -> None:
    task = read_task("Mend the login page")
    assert task is not None
    assert task.objective == "Mend the login page"
    assert read_task("  ") is None


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ('DELIVERED: done\nUTILIZED: ["a", "b"]', ("a", "b")),
        ("**DELIVERED:** done\n**UTILIZED:** [a, `b`]", ("a", "b")),
        ("UTILIZED: a, b", ("a", "b")),
        ("UTILIZED: none", ()),
        ("UTILIZED: []", ()),
        ("UTILIZED: {}", ()),
        ("UTILIZED: [1, 2]", ()),
        ("I UTILIZED: it", ()),
        ('UTILIZED: ["a"]\nlater\nUTILIZED: ["b"]', ("b",)),
        ('Done: x works. UTILIZED: ["a"]', ("a",)),
        ("Done: **UTILIZED:** [a]", ("a",)),
        ("nothing", ()),
    ],
)
def test_claims_are_read_from_their_own_line(said: str, names: tuple[str, ...]) -> None:
    assert claim_of(HookMessage(message=said)).utilized == names


def test_the_last_report_counts_and_prose_does_not() -> None:
    claim = claim_of(HookMessage(message="We delivered: much\nBLOCKED: no access\nUTILIZED: []"))
    assert claim.report == "blocked"
    assert claim.summary == "no access"


def test_the_transcript_speaks_where_there_is_no_message(tmp_path: Path) -> None:
    said = {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "DELIVERED: x\nUTILIZED: [m]"}]},
    }
    path = _transcript(tmp_path / "t.jsonl", said, {"type": "user", "message": {"content": "thanks"}})
    assert claim_of(HookMessage(agent_transcript=path)).utilized == ("m",)
