"""A bead whose parent changed is kept from workers by ``check --apply`` and given back exactly as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long


@pytest.mark.parametrize("before", [{}, {"execution-eligible": True}, {"execution-eligible": "yes"}])
def test_drift_keeps_a_bead_from_workers_until_it_is_seen(
    helix: Any, stage: StageFactory, before: dict[str, Any]
) -> None:
    world = stage([row("a-1", parent="e-1", **before), row("e-1"), row("e-2")])
    helix(world, "check", "--no-model")
    world.rewrite("a-1", parent="e-2")
    helix(world, "check", "--no-model")
    assert world.rows()["a-1"].get("execution-eligible") == before.get("execution-eligible")
    ran = helix(world, "check", "--no-model", "--apply")
    assert "kept from workers: a-1" in ran.err
    assert world.rows()["a-1"]["execution-eligible"] is False
    assert helix(world, "next").out.strip() != "a-1"
    helix(world, "check", "--no-model", "--acknowledge")
    after = world.rows()["a-1"]
    assert after.get("execution-eligible") == before.get("execution-eligible")
    assert not [name for name in after if name.startswith("helix-drift")]
