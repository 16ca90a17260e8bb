"""What is said where the disk lets nobody take the gate."""

from __future__ import annotations

import pytest

from helix_tui.core.editing.execute.gate import GateBroken, WriteGate
from helix_tui.core.ground.project import find_project
from tests.conftest import ProjectFactory


def test_a_lock_that_cannot_be_written_says_so_and_what_to_do(project: ProjectFactory) -> None:
    root = project([])
    (root / ".helix" / "curation.lock").mkdir(parents=True)
    with (
        pytest.raises(GateBroken, match="nothing was changed") as caught,
        WriteGate(find_project(root, env={})).open(),
    ):
        pytest.fail("nobody holds it")
    assert "Free space" in caught.value.advice
    assert isinstance(caught.value, OSError), "who deals with a disk deals with this"
