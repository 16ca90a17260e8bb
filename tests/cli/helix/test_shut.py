"""A tracker on which the ddx at hand refuses every command: nothing is started, and nothing called next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helix_tui.core.ddx.dialect import AUGUST, Gate
from tests.cli.helix.conftest import BUILDABLE
from tests.core.supervision.run.conftest import Stage, StageFactory

COMMAND = "ddx bead migrate --lifecycle --apply"
CODE = "lifecycle_migration_required"
GATED = replace(AUGUST, gates=(Gate("label", "needs_human", CODE, COMMAND),))


@pytest.fixture
def gated(stage: StageFactory, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """One bead that would be ready, and one with the label that shuts the tracker."""
    monkeypatch.setattr("helix_tui.cli.loading.at_hand", lambda *_, **__: GATED)
    monkeypatch.setattr("helix_tui.core.ddx.dialect._kept", lambda *_: GATED)
    beads = ({"id": "d-1", "title": "First", **BUILDABLE}, {"id": "d-2", "labels": ["needs_human"]})
    return stage(beads)


@pytest.mark.parametrize("words", [("run",), ("run", "--dry-run"), ("start",)])
def test_nothing_is_started_where_ddx_would_refuse(gated: Stage, helix: Any, words: tuple[str, ...]) -> None:
    ran = helix(gated, *words)
    assert ran.code == 1
    for part in (CODE, "d-2", COMMAND):
        assert part in ran.err
    assert gated.calls == []


def test_a_run_stops_before_it_asks_ddx_for_anything(gated: Stage) -> None:
    outcome = gated.run()
    assert outcome.stop.reason == "ddx_refuses"
    assert outcome.stop.command == COMMAND
    assert outcome.stop.code == 1
    assert CODE in outcome.stop.detail
    assert "d-2" in outcome.stop.detail
    assert gated.calls == []


def test_no_bead_is_next_where_ddx_refuses(gated: Stage, helix: Any) -> None:
    ran = helix(gated, "next")
    assert ran.code == 1
    assert ran.out == ""
    assert CODE in ran.err
    assert COMMAND in ran.err
    document = helix(gated, "next", "--json").document
    assert document["id"] is None
    assert document["ready"] == 0
    assert document["refused"] == {"code": CODE, "ids": ["d-2"], "command": COMMAND}


@pytest.mark.parametrize("words", [("queue",), ("why", "d-1"), ("status",)])
def test_each_line_that_calls_a_bead_ready_says_that_ddx_refuses(
    gated: Stage, helix: Any, words: tuple[str, ...]
) -> None:
    said = [line for line in helix(gated, *words).out.splitlines() if "ready" in line.split("unblocks")[0]]
    assert said
    assert all(CODE in line for line in said)
    assert helix(gated, *words, "--json").document["refused"]["command"] == COMMAND


def test_nothing_is_called_free_to_move_where_ddx_refuses(gated: Stage, helix: Any) -> None:
    ran = helix(gated, "stuck")
    assert "nothing is stuck" not in ran.out
    assert CODE in ran.err
