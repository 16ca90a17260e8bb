"""The minute after ``ddx init``: a folder without a tracker is an empty queue."""

from __future__ import annotations

import pytest

from helix_tui.cli.program import main
from tests.conftest import ProjectFactory


@pytest.mark.parametrize(
    "words", [["queue"], ["queue", "--json"], ["check", "--no-model"], ["next"], ["stuck"], ["status"]]
)
def test_every_command_works_on_an_empty_queue(
    words: list[str], project: ProjectFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(git=True)
    (root / ".ddx" / "beads.jsonl").unlink()
    assert main([words[0], "-C", str(root), *words[1:]]) == 0
    printed = capsys.readouterr()
    assert "ddx init" not in printed.out + printed.err
