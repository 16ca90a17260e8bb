"""``memory edit``, ``remove`` and ``supersede``: shown, done, taken back, for scripts and for people."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory
from tests.programs import state

ROOT = Path(__file__).resolve().parents[2]
TRIGGER = "Celery worker loses tasks on restart"
NAME = "celery-worker-loses-tasks-on-restart"


@pytest.fixture
def root(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HELIX_EMBEDDER", "off")
    return project([], git=True)


def _run(cli: Cli, root: Path, *words: str) -> dict[str, Any]:
    ran = cli("memory", *words, "-C", root)
    assert ran.code == 0, ran.err
    return ran.document


def _store(cli: Cli, root: Path, trigger: str, resolution: str) -> dict[str, Any]:
    return _run(cli, root, "store", "--trigger", trigger, "--resolution", resolution)


def test_an_edit_is_shown_done_and_undone(cli: Cli, root: Path) -> None:
    _store(cli, root, TRIGGER, "set max_retries=100")
    words = ("edit", NAME, "--resolution", "set acks_late")
    looked = _run(cli, root, *words, "--dry-run")
    assert (looked["status"], looked["applied"], looked["done"]) == ("revised", False, None)
    assert _run(cli, root, "get", NAME)["resolution"] == "set max_retries=100"
    done = _run(cli, root, *words)
    assert (done["applied"], done["done"]["kind"], done["revision"]) == (True, "edit", 2)
    found = _run(cli, root, "get", NAME)
    assert found["resolution"] == "set acks_late"
    assert [each["resolution"] for each in found["revisions"]] == ["set max_retries=100"]
    assert _run(cli, root, "undo")["undone"]["kind"] == "edit"
    assert _run(cli, root, "get", NAME)["resolution"] == "set max_retries=100"


def test_another_resolution_is_told_as_a_revision(cli: Cli, root: Path) -> None:
    _store(cli, root, TRIGGER, "set max_retries=100")
    stored = _store(cli, root, TRIGGER, "set acks_late")
    assert (stored["status"], stored["revision"], stored["replaced"]) == ("revised", 2, 1)


def test_one_memory_supersedes_another(cli: Cli, root: Path) -> None:
    _store(cli, root, TRIGGER, "set max_retries=100")
    new = _store(cli, root, "Tasks vanish when the broker goes away", "make the queue durable")["name"]
    assert _run(cli, root, "supersede", NAME, "--by", new, "--dry-run")["applied"] is False
    assert _run(cli, root, "supersede", NAME, "--by", new)["status"] == "superseded"
    found = _run(cli, root, "get", NAME)
    assert (found["name"], found["supersedes"], found["revisions"][0]["name"]) == (new, NAME, NAME)
    assert [each["name"] for each in _run(cli, root, "list")["memories"]] == [new]
    refused = cli("memory", "edit", NAME, "--type", "pattern", "-C", root)
    assert (refused.code, new in refused.err) == (1, True)
    _run(cli, root, "undo")
    assert _run(cli, root, "get", NAME)["name"] == NAME


def test_what_is_removed_comes_back(cli: Cli, root: Path) -> None:
    _store(cli, root, TRIGGER, "set max_retries=100")
    assert _run(cli, root, "remove", NAME, "--dry-run")["removed"] == []
    assert _run(cli, root, "remove", "1")["removed"] == [NAME]
    assert _run(cli, root, "list")["total"] == 0
    _run(cli, root, "undo")
    assert _run(cli, root, "list")["total"] == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("edit", NAME), 2),
        (("edit", "nobody", "--type", "pattern"), 1),
        (("remove", NAME, "nobody"), 1),
        (("supersede", NAME, "--by", NAME), 1),
        (("edit", NAME, "--resolution", "x", "--read-only"), 0),
    ],
)
def test_what_cannot_be_done_changes_nothing(cli: Cli, root: Path, words: tuple[str, ...], code: int) -> None:
    _store(cli, root, TRIGGER, "set max_retries=100")
    assert cli("memory", *words, "-C", root).code == code
    found = _run(cli, root, "get", NAME)
    assert (found["resolution"], found["revisions"]) == ("set max_retries=100", [])


FULL = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
sys.argv = ["helix-tui", *sys.argv[1:]]
runpy.run_module("helix_tui", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("memory", "recall", "celery tasks"), ""),
        (
            ("hook", "pre-tool-use"),
            '{"session_id": "s", "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}',
        ),
    ],
)
def test_a_full_disk_can_still_be_read_from(cli: Cli, root: Path, words: tuple[str, ...], stdin: str) -> None:
    _store(cli, root, f"{TRIGGER} in a.py", "set acks_late")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "HELIX_EMBEDDER": "off", **state(), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", FULL, *words],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=root,
        env=env,
        timeout=60,
    )
    assert "set acks_late" in ran.stdout, ran.stderr
