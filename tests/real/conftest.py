"""Tests beside real ddx binaries: ``make real DDX="PATH…" CLAUDE=PATH``; elsewhere they are skipped.

``REAL_DDX`` names the binaries with spaces between them; ``REAL_CLAUDE`` a Claude Code; ``REAL_AGENT``
another scripted agent to stand behind ddx. Each test runs once for each ddx.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real.states import Queue, made_queue
from tests.real.stranger import AGENT, Release, Stranger

DDX = tuple(Path(word) for word in os.environ.get("REAL_DDX", "").split())
CLAUDE = os.environ.get("REAL_CLAUDE", "")
SCRIPTED = Path(os.environ.get("REAL_AGENT") or AGENT)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once for each ddx; once, to be skipped, where there is none."""
    if "release" in metafunc.fixturenames:
        metafunc.parametrize(
            "release", DDX or [None], indirect=True, ids=[path.parent.name for path in DDX] or ["none"]
        )


@pytest.fixture(scope="session")
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One of the real binaries, and whether it gets to a reviewer with nothing but the scripted agent."""
    path: Path | None = request.param
    if path is None:
        pytest.skip('no real ddx here: make real DDX="PATH…"')
    assert os.access(path, os.X_OK), f"{path} is no program"
    found = Release.of(path.absolute())
    first = Stranger(tmp_path_factory.mktemp("first"), found, SCRIPTED).make()
    try:
        first.bead("Write one")
        first.commit("beads")
        first.drained("--once")
        first.tui("queue")
        return replace(found, reviews=bool(first.closed()), known=first.home / "cache")
    finally:
        first.clean_up()


@pytest.fixture
def stranger(release: Release, tmp_path: Path) -> Iterator[Stranger]:
    """A machine with this ddx and a project without beads; whatever it leaves running is ended."""
    made = Stranger(tmp_path, release, SCRIPTED).make()
    try:
        yield made
    finally:
        made.clean_up()


@pytest.fixture(scope="module")
def queue(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A project with one bead of each state, made by this release."""
    place = Stranger(tmp_path_factory.mktemp(f"queue-{release.name}"), release, SCRIPTED).make()
    try:
        yield made_queue(place)
    finally:
        place.clean_up()


@pytest.fixture
def lands(release: Release) -> None:
    """For what can only be seen where something lands."""
    if not release.reviews:
        pytest.skip("this release reviews before it lands, and gets to no reviewer with the scripted agent")


@pytest.fixture(scope="session")
def claude() -> Path:
    """A real Claude Code."""
    if not CLAUDE:
        pytest.skip("no real Claude Code here: make real CLAUDE=PATH")
    return Path(CLAUDE).absolute()
