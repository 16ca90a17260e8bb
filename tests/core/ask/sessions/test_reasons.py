"""Why a line is as it is: the message of the commit that wrote it is evidence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.git import Git
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.document import document_of
from tests.core.ask.sessions.solar import document, run_of, write

FILES = {
    "README.md": "# Pump\n\nMoves water from one tank to the other.\n",
    "pump/valve.py": "def open_valve(valve):\n    valve.turn(90)\n\n\ndef close_valve(valve):\n    valve.turn(0)\n",
}
REASON = "The old handle broke in frost because its brass shrinks faster than the steel around it."


@pytest.fixture(scope="module")
def pump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write(tmp_path_factory.mktemp("why") / "pump", FILES)
    (root / "pump/valve.py").write_text(FILES["pump/valve.py"].replace("turn(0)", "turn(-5)"))
    _git(root, "commit", "-qam", f"Close the valve beyond zero\n\n{REASON}")
    (root / "README.md").write_text(FILES["README.md"] + "\nIt is blue.\n")
    _git(root, "commit", "-qam", "Say what colour the pump has\n\nSomebody asked because nobody could tell.")
    return root


def _git(root: Path, *words: str) -> str:
    said = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(root), *said, *words], check=True, timeout=30, capture_output=True)
    return done.stdout.decode().strip()


def test_a_reason_is_quoted_from_the_commit_of_the_lines_concerned(pump: Path) -> None:
    asked = document(pump, "Why does close_valve turn the valve below zero?")
    sha = _git(pump, "rev-parse", "HEAD~1")[:12]
    assert REASON in asked["answer"]
    assert f"commit:{sha}" in {one["file"] for one in asked["citations"]}
    assert "nobody could tell" not in asked["answer"]


def test_what_is_no_question_for_a_reason_is_answered_without_history(pump: Path) -> None:
    asked = document(pump, "Where is the valve closed?")
    assert not any(one["file"].startswith("commit:") for one in asked["evidence"])


def test_a_revision_is_asked_for_its_own_history(pump: Path) -> None:
    run = run_of(pump, "Why does close_valve turn the valve below zero?", revision="HEAD~2")
    assert REASON not in document_of(run)["answer"]


def test_lines_that_are_not_committed_have_no_reason_yet(pump: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(pump), str(other)], check=True, timeout=30)
    (other / "pump/valve.py").write_text(FILES["pump/valve.py"].replace("turn(0)", "turn(-9)"))
    assert set(Git(other).blame("pump/valve.py", 6, 6, revision=None)) == {"0" * 40}
    assert REASON not in document(other, "Why does close_valve turn the valve below zero?")["answer"]
    assert Git(other).blame("pump/valve.py", 600, 610, revision=None) == []
    assert Git(other).blame("no such file", 1, 1, revision=None) == []


def test_no_program_of_the_repositorys_configuration_runs(pump: Path, tmp_path: Path) -> None:
    other, ran = tmp_path / "other", tmp_path / "ran"
    subprocess.run(["git", "clone", "-q", str(pump), str(other)], check=True, timeout=30)
    (other / ".git/info/attributes").write_text("*.py diff=odd\n")
    _git(other, "config", "diff.odd.textconv", f"touch {ran}; cat")
    assert len(Git(other).blame("pump/valve.py", 1, 6, revision=None)) == 6
    assert not ran.exists()


def test_the_commits_of_lines_are_asked_for_once(pump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = RepositoryIndex(pump, None)
    index.refresh()
    first = index.origins("pump/valve.py", 5, 6)
    monkeypatch.setenv("PATH", "")
    assert index.origins("pump/valve.py", 5, 6) == first != []
    assert index.origins("pump/valve.py", 1, 2) == []
    index.close()
