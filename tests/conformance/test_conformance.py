"""Recorded commands of a real ddx against an executable: ``DDX_BIN``, else our own helix-ddx.

``DDX_BIN=/path/to/ddx pytest tests/conformance`` runs the very same cases on a real one; it is asked which of
the two vocabularies it speaks, and the cases of the other are left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.forking import ForkingDdx
from tests.conformance.replay import ERAS, Case, Ddx, Executable, cases, differences, era_of, run

DDX_BIN = os.environ.get("DDX_BIN", "")
EMBEDDED = not DDX_BIN or Path(DDX_BIN).name == "helix-ddx"

NEVER_REWRITES = "reading never writes: ddx drops a line it cannot parse and keeps a .bak, we leave the file alone"
NOT_OURS = {
    "--help": "the list of all of ddx's commands: helix-ddx has bead, work, try, agent and its own",
    "agent run": "a call of a model: helix-ddx calls none",
    "run": "a call of a model: helix-ddx calls none",
    "init": "installs ddx's library and skills into a project",
    "agent list": "the harnesses of ddx itself, none of which is here",
    "agent usage": "ddx's own index of sessions",
    "doc graph": "documents are no beads",
    "doctor": "looks at ddx's own installation",
}
"""What cannot hold for the embedded tracker, by the first words of a command, and why."""

DIFFERENT = {"malformed last line": NEVER_REWRITES}
"""The same, by the recorder's note."""

ALL = [case for era in ERAS for case in cases(era)]


def _params() -> list[object]:
    return [pytest.param(case, id=case.name, marks=_marks(case)) for case in ALL]


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    if not EMBEDDED:
        return []
    named = (NOT_OURS.get(" ".join(case.argv[:length])) for length in (1, 2) if not case.error)
    reason = DIFFERENT.get(case.note) or next(filter(None, named), "")
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


@pytest.fixture(scope="session")
def ddx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ddx]:
    """The executable under test; our own one is loaded once, unless it was asked for by its path."""
    if DDX_BIN:
        yield Executable(DDX_BIN)
        return
    forking = ForkingDdx(tmp_path_factory.mktemp("forking"))
    yield forking
    forking.close()


@pytest.fixture(scope="session")
def spoken(ddx: Ddx) -> tuple[str, ...]:
    """The vocabularies it speaks."""
    return ("head",) if EMBEDDED else (era_of(ddx),)


@pytest.mark.parametrize("case", _params())
def test_a_recorded_command(case: Case, ddx: Ddx, spoken: tuple[str, ...], tmp_path: Path) -> None:
    if case.era not in spoken:
        pytest.skip(f"this ddx speaks {spoken[0]}")
    root = tmp_path / "demo"
    root.mkdir()
    outcome = run(case, ddx, root, dict(os.environ))
    assert not differences(case, outcome)


def test_our_executable_stands_alone(tmp_path: Path) -> None:
    """One recorded command on the program as it is installed, not on the one that is loaded already."""
    case = next(case for case in cases("head") if case.note == "create spec")
    root = tmp_path / "demo"
    root.mkdir()
    program = Executable(sys.executable, "-m", "helix_ddx")
    assert not differences(case, run(case, program, root, dict(os.environ)))
