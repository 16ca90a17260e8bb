"""The messages of commits are evidence beside files, those of the revision that is asked about."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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


def test_a_revision_is_asked_for_its_own_history(pump: Path) -> None:
    run = run_of(pump, "Why does close_valve turn the valve below zero?", revision="HEAD~2")
    assert REASON not in document_of(run)["answer"]
