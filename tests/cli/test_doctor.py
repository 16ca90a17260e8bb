"""``helix-tui doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_queue import ROWS, bead
from tests.conftest import ProjectFactory


@pytest.fixture(autouse=True)
def _no_ddx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ddx this machine has is not the one that these tests speak of."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The checks of a document by their names."""
    return {check["name"]: check for check in document["checks"]}


def test_every_check_has_its_four_parts(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("doctor", "--json", "-C", project(ROWS, git=True))
    assert ran.document["schema"] == "doctor/1"
    assert all(set(check) == {"name", "ok", "detail", "fix"} for check in ran.document["checks"])
    checks = by_name(ran.document)
    assert checks["tracker"]["ok"] is False
    assert "1 line unread" in checks["tracker"]["detail"]
    assert checks["dependencies"]["ok"] is False
    assert checks["cycles"]["ok"] is False
    assert all(check["fix"] for check in checks.values() if check["ok"] is False)
    assert ran.code == 1


def test_what_is_not_there_yet_is_said_and_not_judged(cli: Cli, project: ProjectFactory) -> None:
    checks = by_name(cli("doctor", "--json", "-C", project([bead("demo-a1")])).document)
    assert checks["database"]["ok"] is None
    assert checks["embedder"]["ok"] is None
    assert "not part of this release" in checks["embedder"]["detail"]


def test_without_ddx_it_says_how_to_name_one(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1")])
    check = by_name(cli("doctor", "--json", "-C", root).document)["ddx"]
    assert check["ok"] is False
    assert "--ddx" in check["fix"]
    check = by_name(cli("doctor", "--json", "-C", root, "--ddx", "/nowhere/ddx").document)["ddx"]
    assert "/nowhere/ddx" in check["detail"]


def test_a_folder_without_records_is_the_first_thing_to_mend(cli: Cli, tmp_path: Path) -> None:
    ran = cli("doctor", "-C", tmp_path)
    assert ran.code == 1
    assert "helix-tui demo" in ran.out
