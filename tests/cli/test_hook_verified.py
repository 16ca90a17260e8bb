"""A session of Claude Code without DDx: what it was shown is counted by the checks that it ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.supervision.agents.report_parser import HookMessage, commands_run
from tests.cli.test_hook import clone, hook, opened, root, say

pytestmark = pytest.mark.long

__all__ = ["clone", "root"]

ASKED = "Mend the circular import when editing src/auth.py"
PASSED = ("Bash", {"command": "pytest -q"}, {"content": "4 passed", "is_error": False})
FAILED = ("Bash", {"command": "pytest -q"}, {"content": "Exit code 1\n1 failed", "is_error": True})
EDITED = ("Edit", {"file_path": "src/auth.py"}, {"content": "The file was updated"})
BEHIND = (
    "Agent",
    {"prompt": "do more", "run_in_background": True},
    {"content": [{"type": "text", "text": "Async agent launched"}]},
)
SPAWNED = ("Agent", {"prompt": "do more"}, {"content": [{"type": "text", "text": "done"}]})
Step = tuple[str, dict[str, Any], dict[str, Any]]


def transcript(path: Path, *steps: Step, sidechain: bool = False) -> str:
    """A transcript as Claude Code 2.1 writes one."""
    lines: list[dict[str, Any]] = [{"type": "user", "message": {"role": "user", "content": ASKED}}]
    for number, (name, asked, result) in enumerate(steps):
        call = f"toolu_{number}"
        use = {"type": "tool_use", "id": call, "name": name, "input": asked}
        back = {"type": "tool_result", "tool_use_id": call, **result}
        lines += [
            {"type": "assistant", "isSidechain": sidechain, "message": {"content": [use]}},
            {"type": "user", "isSidechain": sidechain, "message": {"content": [back]}},
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def counts(root: Path, name: str) -> tuple[float, float]:
    with opened(root) as memory:
        found = memory.get(name)
        assert found is not None
        return found.helped, found.failed


def settled(root: Path) -> dict[str, Any]:
    with opened(root) as memory:
        return dict(memory.settled())


def issues(root: Path) -> list[str]:
    with opened(root) as memory:
        return list(memory.health().issues)


def shown(root: Path) -> str:
    with opened(root) as memory:
        return next(each.name for each in memory.list() if "import" in each.trigger)


@pytest.mark.parametrize(
    ("steps", "counted"),
    [
        ((EDITED, PASSED), (1, 0)),
        ((EDITED, FAILED), (0, 1)),
        ((EDITED, FAILED, EDITED, PASSED), (1, 0)),
        ((PASSED, EDITED), (0, 0)),
        ((PASSED, SPAWNED), (0, 0)),
        ((SPAWNED, PASSED), (1, 0)),
        ((BEHIND, PASSED), (0, 0)),
        ((EDITED,), (0, 0)),
    ],
)
@pytest.mark.parametrize("event", ["stop", "session-end --wait"])
def test_a_session_is_counted_by_its_checks(
    event: str, steps: tuple[Step, ...], counted: tuple[int, int], root: Path, tmp_path: Path
) -> None:
    hook("user-prompt-submit", say(session_id="s", prompt=ASKED), root)
    name = shown(root)
    path = transcript(tmp_path / "s.jsonl", *steps)
    with opened(root) as memory:
        memory.claim("s", [name])
    hook(event, say(session_id="s", transcript_path=path), root)
    if counted == (0, 0) and event != "stop":
        # at its end what it reports as used is entered without an outcome
        assert (counts(root, name), settled(root)) == ((1, 0), {"s": None})
    else:
        assert counts(root, name) == counted


def test_a_subagent_that_ran_no_check_is_entered_as_unverified(root: Path, tmp_path: Path) -> None:
    path = transcript(tmp_path / "s.jsonl", EDITED)
    for number, said in enumerate(("BLOCKED: no access\nUTILIZED: [{}]", "done", "DELIVERED: it\nUTILIZED: [{}]")):
        agent = {"session_id": "s", "agent_id": f"a{number}", "agent_type": "helix:builder", "transcript_path": path}
        transcript(tmp_path / "s" / "subagents" / f"agent-a{number}.jsonl", EDITED, sidechain=True)
        hook("subagent-start", say(**agent), root)
        name = shown(root)
        assert "No feedback recorded - learning loop not closed" in issues(root)
        hook("subagent-stop", say(**agent, last_assistant_message=said.format(name)), root)
    assert (counts(root, name), settled(root)) == ((1, 0), {"a2": None})
    assert issues(root) == [issue for issue in issues(root) if "learning loop" not in issue]


def test_a_subagent_is_counted_by_its_own_checks(root: Path, tmp_path: Path) -> None:
    path = transcript(tmp_path / "s.jsonl", FAILED)
    transcript(tmp_path / "s" / "subagents" / "agent-a1.jsonl", EDITED, PASSED, sidechain=True)
    agent = {"session_id": "s", "agent_id": "a1", "agent_type": "helix:builder", "transcript_path": path}
    hook("subagent-start", say(**agent), root)
    name = shown(root)
    hook("subagent-stop", say(**agent, last_assistant_message=f'UTILIZED: ["{name}"]'), root)
    assert counts(root, name) == (1, 0)


@pytest.mark.parametrize(
    ("step", "said", "counted"),
    [
        (PASSED, "DELIVERED: the types moved", (0, 1)),
        (PASSED, "BLOCKED: no access", (0, 0)),
        (PASSED, "PARTIAL: half of it", (0, 0)),
        (FAILED, "BLOCKED: no access", (0, 0)),
    ],
)
def test_a_check_that_passed_proves_nothing_of_a_task_that_is_not_done(
    step: Step, said: str, counted: tuple[int, int], root: Path, tmp_path: Path
) -> None:
    path = transcript(tmp_path / "s.jsonl", EDITED)
    transcript(tmp_path / "s" / "subagents" / "agent-a1.jsonl", EDITED, step, sidechain=True)
    agent = {"session_id": "s", "agent_id": "a1", "agent_type": "helix:builder", "transcript_path": path}
    hook("subagent-start", say(**agent), root)
    name = shown(root)
    hook("subagent-stop", say(**agent, last_assistant_message=said), root)
    assert counts(root, name) == counted


def test_an_attempt_of_ddx_is_left_to_ddx(clone: Path, tmp_path: Path) -> None:
    hook("session-start", say(session_id="s", cwd=str(clone)), clone)
    path = transcript(tmp_path / "s.jsonl", EDITED, PASSED)
    hook("stop", say(session_id="s", cwd=str(clone), transcript_path=path), clone)
    stores = list(tmp_path.rglob("helix.db"))
    assert stores
    for store in stores:
        with open_memory(store, teacher="person") as memory:
            assert not memory.settled()


@pytest.mark.parametrize(
    ("asked", "result", "code"),
    [
        ({}, {"content": "ok"}, 0),
        ({}, {"content": "Exit code 3\nboom", "is_error": True}, 3),
        ({}, {"content": [{"type": "text", "text": "Exit code 2"}], "is_error": True}, 2),
        ({}, {"content": "Exit code 143\nCommand timed out after 1s", "is_error": True}, None),
        ({}, {"content": "The user doesn't want to proceed", "is_error": True}, None),
        ({"run_in_background": True}, {"content": "Command running in background with ID: b1"}, None),
        ({}, {"content": "Command running in background with ID: b1"}, None),
        ({}, {"content": "Ran 0 tests in 0.000s\n\nOK"}, None),
        ({}, {"content": None, "is_error": "yes"}, 0),
    ],
)
def test_how_a_command_ended(asked: dict[str, Any], result: dict[str, Any], code: int | None, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", ("Bash", {"command": "pytest", **asked}, result))
    assert [check.exit_code for check in commands_run(HookMessage(transcript=path)).checks] == [code]


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("sed -i s/a/b/ x.py", True),
        ("echo x > a.py", True),
        ("git checkout -- .", True),
        ("git commit -m 'x <a@b.c>\n'", False),
        ("ls 2>/dev/null", False),
        ("grep -rn x . 2>&1", False),
    ],
)
def test_commands_that_change_files_are_known(command: str, changes: bool, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", PASSED, ("Bash", {"command": command}, {"content": ""}))
    ran = commands_run(HookMessage(transcript=path))
    assert (ran.last_change is not None) == changes
    assert len(ran.checks) == 2


def test_a_change_that_is_not_back_yet_is_later_than_every_check(tmp_path: Path) -> None:
    path = Path(transcript(tmp_path / "t.jsonl", PASSED, SPAWNED))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    ran = commands_run(HookMessage(transcript=str(path)))
    assert ran.last_change is not None
    assert ran.last_change > ran.checks[-1].position


def test_a_hostile_transcript_is_read_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        b'{"tool_use":' * 5_000 + b'\n\xff tool_result\n{"message": {"content": [{"type": "tool_use"}]}}\n'
    )
    assert commands_run(HookMessage(transcript=str(path))).checks == ()
    assert commands_run(HookMessage(transcript="/dev/zero")).checks == ()
