"""What 0.1.0 wrote is read by each later program, and what a later program writes is read by 0.1.0.

``tests/data/stores/0.1.0.tar.xz`` was written by that program: the demo drained, changes by command and their undo, a
run that stopped at a question, memories stored and corrected, an answer of Ask, a view and a layout of the console.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.programs import helix_ddx_file
from helix_tui.core.ask.sessions.history import AskHistory
from helix_tui.core.ground.trust import person
from helix_tui.settings.file import load_settings, settings_file
from helix_tui.settings.layout import Layout, layout_file
from helix_tui.settings.views import ViewBook
from tests.cli.conftest import Cli

REPOSITORY = Path(__file__).resolve().parents[2]
STORES = REPOSITORY / "tests" / "data" / "stores" / "0.1.0.tar.xz"
RELEASE = "93d398f0"
"""The commit of 0.1.0."""

BEAD = "ferry-880f584e"
NOW = "2026-11-28T12:30:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project of that program; the person's settings and state are where this test has them."""
    with tarfile.open(STORES) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    home = tmp_path / "old" / "home"
    shutil.copytree(home / ".config", os.environ["XDG_CONFIG_HOME"], dirs_exist_ok=True)
    shutil.copytree(home / ".local" / "state", os.environ["XDG_STATE_HOME"], dirs_exist_ok=True)
    return tmp_path / "old" / "project"


def test_its_memories_are_there_with_their_history(root: Path, cli: Cli) -> None:
    memories = cli("memory", "list", "-C", root, "--json").document["memories"]
    assert len(memories) == 12
    assert {memory["name"]: (memory["helped"], memory["failed"]) for memory in memories}[
        "reporting-a-wrong-line-of-a-timetable"
    ] == (0, 3)
    corrected = cli("memory", "get", "1", "-C", root, "--json").document
    assert [wording["revision"] for wording in corrected["revisions"]] == [1]
    assert corrected["resolution"] == "Run the slow check alone"
    assert cli("memory", "edges", "-C", root, "--json").document["edges"]
    found = cli("memory", "recall", "lines that end in a tab", "-C", root, "--json").document["memories"]
    assert "strip only the newline" in {memory["resolution"] for memory in found}


def test_its_changes_are_listed_and_the_last_one_is_undone(root: Path, cli: Cli) -> None:
    operations = cli("journal", "-C", root, "--json").document["operations"]
    assert [operation["journal_id"] for operation in operations] == ["op-7", "op-5", "op-3", "op-1"]
    undone = cli("undo", "-C", root, "--ddx", helix_ddx_file(), "--json")
    assert undone.code == 0, undone.err
    assert cli("why", BEAD, "-C", root, "--json").code == 0
    row = next(bead for bead in cli("queue", "-C", root, "--json").document["beads"] if bead["id"] == BEAD)
    assert row["priority"] == 1


def test_its_run_its_question_and_what_was_snoozed_are_told(root: Path, cli: Cli) -> None:
    status = cli("status", "-C", root, "--now", NOW, "--json").document
    assert status["last_stop_reason"] == "approval"
    assert [asked["id"] for asked in cli("input", "--questions", "-C", root, "--json").document["questions"]] == ["q-1"]
    needs = cli("needs", "-C", root, "--now", NOW, "--json").document
    assert [need["key"] for need in needs["snoozed"]] == ["proposed:ferry-f4d291ff"]
    assert "approval:q-1" in {need["key"] for need in needs["needs"]}


def test_its_answer_settings_views_and_ledger_are_read(root: Path) -> None:
    assert [entry.question for entry in AskHistory(root / ".helix").list()] == ["where is a line parsed?"]
    settings = load_settings()
    assert settings.problems == ()
    assert (settings.theme, settings.autonomy, settings.stall_after_s) == ("helix-paper", "low", 900)
    book = ViewBook(settings.views, settings_file().with_name("views.toml"))
    assert {"bugs by age", "open ones"} <= {view.name for view in book.views}
    layout = Layout(layout_file())
    assert (layout.columns("queue"), layout.order("queue"), layout.split("queue")) == (
        ("labels", "age"),
        ("age", True),
        40,
    )
    assert len(person.load()) == 3


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of 0.1.0, where this clone has its history."""
    folder = tmp_path_factory.mktemp("0.1.0")
    words = ["git", "-C", str(REPOSITORY), "archive", "--output", str(folder / "it.tar"), RELEASE, "helix_tui"]
    if subprocess.run(words, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("this clone has no history down to 0.1.0")
    with tarfile.open(folder / "it.tar") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.long
def test_what_is_written_now_is_read_by_that_program(root: Path, release: Path, cli: Cli) -> None:
    common = ("-C", root, "--now", NOW, "--json")
    ddx = ("--ddx", helix_ddx_file())
    for words in (
        ("memory", "store", "--trigger", "a lock is left", "--resolution", "look at its owner", "--type", "failure"),
        ("memory", "edit", "2", "--resolution", "compare as numbers"),
        ("set", BEAD, "priority=3", *ddx),
        ("undo", *ddx),
        ("needs", "--snooze", "approval:q-1", "--for", "1h"),
        ("run", *ddx, "--autonomy", "low"),
        ("ask", "what does the readme say?"),
    ):
        ran = cli(*words, *common)
        assert ran.out.startswith("{"), ran.err

    def earlier(*words: str) -> Any:
        argv = [sys.executable, "-P", "-m", "helix_tui", *words, *map(str, common)]
        env = os.environ | {"PYTHONPATH": str(release)}
        done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    earlier("trust", "--yes")
    for asked in (("memory", "list"), ("journal",), ("needs",), ("status",), ("memory", "get", "2"), ("attempts",)):
        assert earlier(*asked).keys() <= cli(*asked, *common).document.keys()
    names = [memory["name"] for memory in earlier("memory", "list")["memories"]]
    assert names == [memory["name"] for memory in cli("memory", "list", *common).document["memories"]]
    assert earlier("journal")["operations"] == cli("journal", *common).document["operations"]
