"""A tracker that the installed ddx refuses, or that another release wrote: every command says so.

Where it refuses every command, nothing calls it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory
from tests.programs import write_program

pytestmark = pytest.mark.long

GATED = """
import os, sys
open({calls!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
file = ".ddx/beads.jsonl"
if "--help" not in sys.argv and os.path.exists(file) and "needs_human" in open(file).read():
    sys.exit("Error: lifecycle_migration_required: run `ddx bead migrate --lifecycle --apply` first")
from helix_ddx.__main__ import main
sys.exit(main())
"""
ROW = {
    "title": "One",
    "status": "open",
    "priority": 2,
    "schema_version": 1,
    "created_at": "2026-08-01T00:00:00Z",
}


@pytest.fixture
def gated(tmp_path: Path, project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose second bead has the label; the ddx that refuses for it is on DDX_BIN."""
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = tmp_path / "ddx"
    write_program(path, GATED.format(calls=str(tmp_path / "calls")))
    monkeypatch.setenv("DDX_BIN", str(path))
    return project([ROW | {"id": "demo-a1"}, ROW | {"id": "demo-b2", "labels": ["needs_human"]}], git=True)


def test_every_command_that_would_call_ddx_says_beforehand_what_check_says(
    cli: Cli, gated: Path, tmp_path: Path
) -> None:
    assert cli("check", "--json", "-C", gated).document["next_action"] == "GUIDANCE"
    (tmp_path / "calls").write_text("")
    for words in (
        ("run",),
        ("start",),
        ("build",),
        ("build", "demo-a1", "--dry-run"),
        ("set", "demo-a1", "priority=1"),
        ("set", "demo-a1", "priority=1", "--dry-run"),
        ("close", "demo-a1"),
        ("create", "Another one", "--acceptance", "`true` exits 0", "--no-triage"),
        ("label", "demo-b2", "--remove", "needs_human"),
        ("eligible", "demo-a1", "off"),
    ):
        done = cli(*words, "-C", gated)
        assert done.code == 1, words
        for part in ("lifecycle_migration_required", "demo-b2", "ddx bead migrate --lifecycle --apply"):
            assert part in done.err, (words, done.err)
    assert (tmp_path / "calls").read_text() == "", "ddx was not asked"
    (need,) = cli("needs", "--json", "-C", gated).document["needs"]
    assert (need["kind"], need["bead_id"], need["group"]) == ("ddx_refuses", "demo-b2", "stopped")
    assert "run `ddx bead migrate --lifecycle --apply`" in need["reason"]
    assert [each["command"] for each in need["actions"]] == ["ddx bead migrate --lifecycle --apply"]
    row = json.loads((gated / ".ddx" / "beads.jsonl").read_text().splitlines()[0])
    assert "priority" in row
    assert row["priority"] == 2
    assert cli("journal", "--json", "-C", gated).document["operations"] == []


LATER = """
import os, sys
if sys.argv[1] in ("config", "work", "try") and "--help" not in sys.argv and os.path.exists(".ddx/versions.yaml"):
    sys.exit("Error: this project requires DDx v9 or newer (you have v8).")
from helix_ddx.__main__ import main
sys.exit(main())
"""


def test_a_project_that_asks_for_a_later_ddx_is_said_before_a_worker_is_started(
    cli: Cli, project: ProjectFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = tmp_path / "ddx"
    write_program(path, LATER)
    monkeypatch.setenv("DDX_BIN", str(path))
    here = project([ROW | {"id": "demo-a1"}], git=True)
    (here / ".ddx" / "versions.yaml").write_text('ddx_version: "v9"\n')
    for words in (
        ("queue",),
        ("next",),
        ("why", "demo-a1"),
        ("status",),
        ("stuck",),
        ("check",),
        ("needs",),
        ("doctor",),
    ):
        done = cli(*words, "-C", here)
        said = " ".join(f"{done.err}\n{done.out}".split())
        assert "ddx refuses all work" in said, words
    assert cli("next", "-C", here).out == "demo-a1\n", "ddx lists it, too"
    assert "ddx refuses all work" in cli("stuck", "-C", here).out, "what holds everything up is its answer"
    assert cli("queue", "--json", "-C", here).document["ready"] == ["demo-a1"]
    check = cli("check", "--json", "-C", here).document
    assert (check["next_action"], check["reasons"][0]["code"]) == ("GUIDANCE", "ddx_too_old")
    for words in (("run",), ("start",), ("build", "demo-a1")):
        done = cli(*words, "-C", here)
        assert (done.code, "requires DDx v9" in done.err, "ddx upgrade" in done.err) == (1, True, True), words
    (need,) = cli("needs", "--json", "-C", here).document["needs"]
    assert (need["kind"], need["bead_id"]) == ("ddx_refuses", None)
    assert cli("set", "demo-a1", "priority=1", "-C", here).code == 0, "the queue can be changed"
    assert cli("close", "demo-a1", "-C", here).code == 0
    assert cli("check", "--json", "--no-model", "-C", here).document["reasons"][0]["code"] != "ddx_too_old"


PLAYS = """
import os, sys
from helix_ddx.__main__ import main
sys.exit(main())
"""


def test_every_command_says_that_another_release_wrote_the_tracker(
    cli: Cli,
    project: ProjectFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {name: text for name, text in ROW.items() if name != "schema_version"}
    said = "an earlier DDx wrote this tracker"
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = tmp_path / "ddx"
    write_program(path, PLAYS)
    monkeypatch.setenv("DDX_BIN", str(path))
    here = project([row | {"id": "demo-a1"}], git=True)
    for words in (
        ("queue",),
        ("next",),
        ("why", "demo-a1"),
        ("status",),
        ("stuck",),
        ("check", "--no-model"),
        ("run", "--dry-run"),
        ("set", "demo-a1", "priority=1", "--dry-run"),
        ("doctor",),
    ):
        done = cli(*words, "-C", here)
        assert said in f"{done.err}\n{done.out}", words
