"""``doctor --bundle``: what is packed, and what is not."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground import log as logs
from helix_tui.settings import settings_file
from tests.conftest import ProjectFactory

TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def pack(root: Path, target: Path, *words: str) -> int:
    return main(["doctor", "--bundle", str(target), "-C", str(root), *words])


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    root = project(
        ['{"id": "demo-00000001", "title": "Plans of a person", "status": "open"}', "no bead"], git=True
    )
    (root / ".helix").mkdir()
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(f'theme = "helix-paper"\n# token = "{TOKEN}"\n')
    logs.begin(root, process="console")
    logs.logger("x").error("met %s", TOKEN)
    return root


def test_it_holds_what_a_report_needs_and_lists_it(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.zip"
    assert pack(root, target) == 0
    listed = capsys.readouterr().out
    with zipfile.ZipFile(target) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert all(name in listed for name in parts)
    assert {"versions.txt", "checks.json", "sizes.txt", "tracker.json", "settings.toml"} <= parts.keys()
    assert "textual 8.2.8" in parts["versions.txt"]
    assert json.loads(parts["tracker.json"])["statuses"] == {"open": 1}
    assert ".ddx/beads.jsonl" in parts["sizes.txt"]
    assert "met [redacted" in parts["log/helix.log"]
    assert "helix-paper" in parts["settings.toml"]
    whole = "\n".join(parts.values())
    assert TOKEN not in whole
    assert "Plans of a person" not in whole
    assert str(Path.home()) not in whole


def test_as_json(root: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    target = tmp_path / "report.zip"
    assert pack(root, target, "--json") == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert document["schema"] == "doctor/1"
    assert document["bundle"] == str(target)
    assert {part["name"] for part in document["contents"]} == set(zipfile.ZipFile(target).namelist())
    assert document["checks"]


def test_a_file_that_is_there_is_not_overwritten(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.zip"
    target.write_text("mine")
    assert pack(root, target) == 1
    assert "exists already" in capsys.readouterr().err
    assert target.read_text() == "mine"
