"""A clone, and what is outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.kinds.registry import make_clone, make_outside


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the person outside of the clone."""
    home = tmp_path / "home"
    home.mkdir()
    return make_outside(home)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a bead, an attempt, a document and a source."""
    return make_clone(tmp_path / "demo")
