"""What a command does about an exception that nobody expected, and about those raised on purpose."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from helix_tui.cli.call import Call
from helix_tui.cli.commands import COMMANDS, CONSOLE, MODULES
from helix_tui.cli.program import CommandParser, main
from helix_tui.cli.show import queue
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import HelixError
from tests.conftest import ProjectFactory
from tests.sources import nodes_of

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
PACKAGE = Path(__file__).resolve().parents[2] / "helix_tui"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, project: ProjectFactory) -> Path:
    def run(call: Call) -> int:
        raise ZeroDivisionError(f"planted with\n{TOKEN}")

    monkeypatch.setattr(queue, "run", run)
    return project(['{"id": "demo-1", "title": "t"}'])


def test_a_defect_is_one_line_and_its_trace_is_in_the_log(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "-C", str(broken)]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "ZeroDivisionError: planted" in line
    assert logs.shown_file() in line
    text = logs.log_file().read_text()
    assert "Traceback" in text
    assert "in run" in text
    assert TOKEN not in text
    assert TOKEN not in err


def test_debug_shows_the_trace(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "--debug", "-C", str(broken)]) == 70
    assert "Traceback" in capsys.readouterr().err
    assert "Traceback" in logs.log_file().read_text()


@pytest.mark.parametrize("name", [*COMMANDS, None])
def test_a_defect_in_any_command_is_told_alike(
    name: str | None, monkeypatch: pytest.MonkeyPatch, project: ProjectFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(CONSOLE if name is None else MODULES[name])

    def run(call: Call) -> int:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(CommandParser, "error", lambda self, message: None)  # words that are missing
    words = [name] if name else []
    root = str(project(['{"id": "demo-1", "title": "t"}']))
    assert main([*words, "-C", root]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "ZeroDivisionError: planted" in line
    assert logs.shown_file() in line
    assert "Traceback" in logs.log_file().read_text()
    logs.end()
    assert main([*words, "--debug", "-C", root]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_error_on_purpose_says_what_to_do_and_exits_as_it_says(
    monkeypatch: pytest.MonkeyPatch, project: ProjectFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(call: Call) -> int:
        raise HelixError("it cannot be done", "do another thing.", 69)

    monkeypatch.setattr(queue, "run", run)
    assert main(["queue", "--json", "-C", str(project())]) == 69
    out, err = capsys.readouterr()
    assert err == "helix-tui: it cannot be done\n  Do another thing.\n"
    assert '"code":69' in out


_INTERNAL = {"Stopped", "Retry", "WaitCancelled", "Leaving", "RefusedFileError"}
"""Raised to go somewhere else in the program, for the barrier to log, or as one more way in which a file or program is
not there; never to tell anybody.
"""


def test_every_error_class_of_ours_has_the_one_root() -> None:
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for path in sorted(PACKAGE.rglob("*.py"))
        if "tracker" not in path.relative_to(PACKAGE).parts[:2]  # helix-ddx answers with ddx's own errors
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
    }

    def raised(name: str) -> bool:
        return name.endswith(("Error", "Exception")) or any(map(raised, bases.get(name, ())))

    def rooted(name: str) -> bool:
        return name == "HelixError" or any(map(rooted, bases.get(name, ())))

    ours = {name for name in bases if raised(name)}
    assert len(ours) > 20
    assert {name for name in ours if not rooted(name)} == _INTERNAL
