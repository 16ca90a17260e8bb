"""Recorded commands of a real ddx against an executable: ``DDX_BIN``, else our own helix-ddx.

``DDX_BIN=/path/to/ddx pytest tests/conformance`` runs the very same cases on a real one; it is asked which of
the two vocabularies it speaks, and the cases of the other are left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.replay import ERAS, Case, cases, differences, embedded, era_of, run

DDX_BIN = os.environ.get("DDX_BIN", "")

NEVER_REWRITES = (
    "reading never writes: ddx drops a line it cannot parse and keeps a .bak, we leave the file alone"
)
NOT_A_TRACKER = "the embedded tracker answers for beads; this verb belongs to the rest of ddx"

PLANS = (["work", "plan"], ["work", "status"])
"""What else the embedded tracker answers, because it only reads."""

DIFFERENT = {"malformed last line": NEVER_REWRITES}
"""What cannot hold for the embedded tracker, by the recorder's note."""

ALL = [case for era in ERAS for case in cases(era)]


def _params() -> list[object]:
    return [pytest.param(case, id=case.name, marks=_marks(case)) for case in ALL]


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    if DDX_BIN:
        return []
    elsewhere = case.argv[0] != "bead" and case.argv[:2] not in PLANS and not case.error
    reason = DIFFERENT.get(case.note) or (NOT_A_TRACKER if elsewhere else "")
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


@pytest.fixture(scope="session")
def ddx() -> list[str]:
    """The executable under test."""
    return [DDX_BIN] if DDX_BIN else embedded()


@pytest.fixture(scope="session")
def spoken(ddx: list[str]) -> tuple[str, ...]:
    """The vocabularies it speaks."""
    return (era_of(ddx),) if DDX_BIN else ERAS


@pytest.mark.parametrize("case", _params())
def test_a_recorded_command(case: Case, ddx: list[str], spoken: tuple[str, ...], tmp_path: Path) -> None:
    if case.era not in spoken:
        pytest.skip(f"this ddx speaks {spoken[0]}")
    root = tmp_path / "demo"
    root.mkdir()
    outcome = run(case, ddx, root, dict(os.environ))
    assert not differences(case, outcome)
