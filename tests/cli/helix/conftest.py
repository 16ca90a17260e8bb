"""The scripted ddx of the loop's tests, for whole commands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Cli, Ran
from tests.core.supervision.loop.conftest import Stage, StageFactory, stage

__all__ = ["BUILDABLE", "helix", "stage"]

BUILDABLE = {"acceptance": "`pytest -q` passes", "labels": ["helix", "phase:build"], "spec-id": "SD-1"}


@pytest.fixture
def helix(cli: Cli, stage: StageFactory) -> Any:
    """Call the program on a scripted project: ``helix(world, "check", "--json")``."""

    def call(world: Stage, *words: object) -> Ran:
        return cli(*words[:1], "-C", world.root, "--ddx", world.ddx, *words[1:])

    return call
