"""``status`` reports how a run ended, and what of that no longer holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long

CONFLICT = {"results": [{"status": "land_conflict", "fields": {"preserve_ref": "refs/ddx/iterations/a-1/x"}}]}


def test_a_stop_that_an_agent_advised_is_not_stated_of_beads_that_are_ready_again(
    helix: Any, stage: StageFactory
) -> None:
    world = stage([row("a-1"), row("b-1")])
    world.turns(CONFLICT)
    world.answers("NEXT_ACTION: STOP")
    helix(world, "run", "--autonomy", "high", "--no-auto-review")
    said = helix(world, "status").out
    assert "Next action: STOP (decided by prompt) when last asked; 1 bead is ready now" in said


def test_a_run_that_stopped_for_a_question_continues_once_none_waits(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns(CONFLICT)
    helix(world, "run", "--autonomy", "medium")
    assert "no question waits" not in helix(world, "status").out
    (question,) = world.questions
    helix(world, "input", "--answer", question.id, "again")
    assert "no question waits now: `helix-tui run` continues" in helix(world, "status").out
