"""``doctor --bundle``: what is packed, and what is not."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ground import log as logs
from helix_tui.settings.file import settings_file
from tests.conftest import ProjectFactory

TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def pack(root: Path, target: Path, *words: str) -> int:
    return main(["doctor", "--bundle", str(target), "-C", str(root), *words])


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    root = project(['{"id": "demo-00000001", "title": "Plans of a person", "status": "open"}', "no bead"], git=True)
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
    assert [line.split()[-1] for line in parts["contents.txt"].splitlines()] == [
        name for name in parts if name != "contents.txt"
    ]
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


SECRETS = (
    "ghp_" + "a1B2c3D4e5" * 4,
    "github_pat_" + "11ABCDEFG0a1B2c3D4e5F6" * 2,
    "sk-ant-api03-" + "Zx9_kQ2-vB7n" * 7,
    "sk-proj-" + "T3BlbkFJq8Zr5Wm2" * 3,
    "AKIA" + "IOSFODNN7QZ3XW2K",
    "glpat-" + "xY7zQ2wE4rT6uI8oP0aS",
    "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "npm_" + "q7Wd3Kx9Zr2Tb5Vn8Mj4Lh6Gf1Cs0YpAeUiO",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
)
"""Made up, each in the form of its kind."""

FORMS = ("SECRET", "token=SECRET", '{"auth": "SECRET"}', "https://me:SECRET@example.com/x.git")


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:6])
def test_no_secret_is_in_it_from_wherever_it_came(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    secret: str,
) -> None:
    """Settings, log (ours, a program's, a trace's, one written by hand), the environment, what ddx says."""
    forms = [form.replace("SECRET", secret) for form in FORMS]
    said = "\n".join(forms)
    settings_file().write_text(
        'theme = "helix-paper"\n' + "".join(f"# {form}\n" for form in forms) + f'[keymap]\n"go.ask" = "{secret}"\n'
    )
    log, written = logs.logger("x"), logs.log_file()
    for form in forms:
        log.error("met %s", form)
        logs.program(["git", "push", form], "rc 1", 0.1)
    try:
        raise ValueError(said)
    except ValueError:
        log.exception("it failed")
    logs.program(["ddx", "work", "--token", secret], "rc 1", 0.1)
    logs.end()
    with written.open("a") as file:
        file.writelines(f"2026-08-21T22:00:28.123Z INFO old[1] x: {form}\n" for form in forms)
    monkeypatch.setenv("DDX_TOKEN", secret)
    monkeypatch.setenv("HELIX_KEY", said)
    monkeypatch.setenv("EDITOR", f"vi --token={secret}")
    ddx = tmp_path / "bin" / "ddx"
    ddx.parent.mkdir()
    ddx.write_text(f"#!/bin/sh\necho '{said}'\necho '{said}' >&2\nexit 3\n")
    ddx.chmod(0o755)
    target = tmp_path / "report.zip"
    assert pack(root, target, "--ddx", str(ddx)) in (0, 1)
    listed = capsys.readouterr().out
    with zipfile.ZipFile(target) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "it failed" in parts["log/helix.log"]
    for name, text in parts.items():
        assert secret not in text, name
        assert secret[-12:] not in text, name
        assert name in listed
    assert secret not in listed
    assert "DDX_TOKEN is set" in parts["environment.txt"]
