"""ddx → a real Claude Code with our plugin from its marketplace file → a scripted model.

By block, hook or both a memory reaches the prompt once, is entered once under the attempt, and is settled by
the attempt's landing (R0b, R33); without ddx what can be verified is counted (R30); the plugin and
``install-hooks --claude`` beside each other tell nothing twice (R31).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import helix_tui
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.records import Injection, Memory
from tests.real.model import Model, Script, serving
from tests.real.stranger import Stranger

PLUGIN = Path(helix_tui.__file__).parent / "plugin"
TRIGGER = "Writing greeting.txt leaves no newline at its end"
ADVICE = "Print the greeting with echo so that a newline ends it"
TASK = "Write greeting.txt"
REVIEW = {
    "schema_version": 1,
    "verdict": "APPROVE",
    "summary": "scripted",
    "per_ac": [{"number": 1, "item": "the file", "grade": "pass", "evidence": "greeting.txt:1"}],
    "findings": [],
}
READY = {
    "classification": "ready",
    "tractability": "tractable",
    "score": 0.9,
    "rationale": "one file",
    "difficulty": {"estimated_difficulty": "easy", "reason": "one file"},
    **{name: [] for name in ("readiness_checks", "suggested_fixes", "suggested_child_beads", "waivers_applied")},
}
COMMIT = "echo hello > greeting.txt && git add -A && git commit -qm 'feat: greeting'"
CHECK = "python3 -B -m unittest -q test_greeting"
TEST = """import pathlib, unittest

class Greeting(unittest.TestCase):
    def test_greeting(self):
        self.assertEqual(pathlib.Path("greeting.txt").read_text(), "hello\\n")
"""


def script(used: str) -> Script:
    """What the model does: checks and reviews pass, work is committed with everything that is there."""
    done = {"text": f'Done: greeting.txt is written. UTILIZED: ["{used}"]'}
    return {
        "MODE: intake": [{"text": json.dumps(READY)}],
        "<bead-review>": [{"text": f"```json\n{json.dumps(REVIEW)}\n```\n\n### Verdict: APPROVE\n"}],
        "": [
            {"tool": "Bash", "input": {"command": COMMIT, "description": "write it"}},
            {"tool": "Bash", "input": {"command": CHECK, "description": "check it"}},
            done,
        ],
    }


@pytest.fixture
def stack(stranger: Stranger, claude: Path) -> Iterator[tuple[Stranger, Model, str]]:
    """The stranger with a real client in the agent's place, one memory, and the model behind the client."""
    link = stranger.base / "bin" / "claude"
    link.unlink()
    link.symlink_to(os.path.realpath(claude))
    # some releases start the client without its permissions bypassed
    settings = stranger.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))
    (stranger.project / "test_greeting.py").write_text(TEST)
    stranger.commit("a test")
    made = stranger.tui("memory", "store", "--trigger", TRIGGER, "--resolution", ADVICE, "--json")
    assert made.returncode == 0, made.stderr
    name = memories(stranger)[0].name
    with serving(script(name)) as model:
        extra = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}",
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }
        yield replace(stranger, extra=extra), model, name


def install(place: Stranger) -> None:
    """The plugin, as a person installs it."""
    for words in (("marketplace", "add", str(PLUGIN)), ("install", "helix-tui@helix-tui")):
        done = place.run("claude", "plugin", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def memories(place: Stranger) -> list[Memory]:
    with open_memory(place.project / ".helix" / "helix.db", teacher="person") as memory:
        return list(memory.list())


def ledger(place: Stranger) -> list[Injection]:
    with open_memory(place.project / ".helix" / "helix.db", teacher="person") as memory:
        return list(memory.injections())


@pytest.mark.parametrize("ways", [("block",), ("hook",), ("block", "hook")], ids="+".join)
def test_a_memory_reaches_an_attempt_once_and_is_settled_by_its_landing(
    stack: tuple[Stranger, Model, str], ways: tuple[str, ...]
) -> None:
    place, model, name = stack
    if "hook" in ways:
        install(place)
    bead = place.bead(TASK)
    if "block" in ways:
        assert place.tui("memory", "inject", "--bead", bead).returncode == 0
    place.commit("beads")
    done = place.drained("--once")
    assert bead in place.closed(), (done.stdout, done.stderr)
    assert model.conversation("<execute-bead>").count(ADVICE) == 1
    assert ".helix" not in place.git("log", "--name-only", "--format=", "main")
    (attempt,) = place.tui_json("attempts")["attempts"]
    assert attempt["landed"]
    learnt = place.tui("memory", "learn", "--apply", "--json")
    assert learnt.returncode == 0, learnt.stderr
    (entered,) = ledger(place)
    assert [each.name for each in entered.shown] == [name]
    assert entered.attempt == attempt["attempt_id"]
    assert entered.bead == bead
    (kept,) = [memory for memory in memories(place) if memory.name == name]
    assert (kept.helped, kept.failed) == (1, 0)


@pytest.mark.parametrize("beside", [False, True], ids=["plugin", "plugin and install-hooks"])
def test_without_ddx_a_session_is_told_once_and_counted_by_its_checks(
    stack: tuple[Stranger, Model, str], beside: bool
) -> None:
    place, model, name = stack
    install(place)
    if beside:
        assert place.tui("install-hooks", "--claude").returncode == 0
    done = place.run("claude", "-p", f"{TASK}, please", "--allowedTools", "Bash")
    assert done.returncode == 0, (done.stdout, done.stderr)
    asked = model.conversation(TASK)
    assert asked.count(ADVICE) == 1
    assert asked.count("helix memory of project") == 1
    (kept,) = [memory for memory in memories(place) if memory.name == name]
    assert (kept.helped, kept.failed) == (1, 0)
    assert [[each.name for each in told.shown] for told in ledger(place)] == [[name]]
