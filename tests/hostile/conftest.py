"""A clone, and what is outside of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ProjectFactory
from tests.hostile.kinds.registry import BEAD, BUNDLE, MANIFEST, RESULT, make_outside


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the person outside of the clone."""
    home = tmp_path / "home"
    home.mkdir()
    return make_outside(home)


@pytest.fixture
def clone(project: ProjectFactory) -> Path:
    """A repository with a bead, an attempt, a document and a source."""
    root = project([BEAD], git=True)
    (root / "docs").mkdir()
    (root / "docs" / "plan.md").write_text("---\nddx:\n  id: plan\n---\n# The plan\n\nThe boat must float.\n")
    (root / "main.py").write_text("def sail():\n    return 'boat'\n")
    bundle = root / BUNDLE
    bundle.mkdir(parents=True)
    (bundle / "manifest.json").write_text(json.dumps(MANIFEST))
    (bundle / "result.json").write_text(json.dumps(RESULT))
    return root
