"""The authoring rules and the hook that asks them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.editing import operations as op
from helix_tui.core.editing.authoring import acceptance_items, deterministic, judge, judge_text
from helix_tui.core.editing.execute.gate import WriteGate, WritesForbidden
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.agents.hooks import ForeignHook, hook_path, install, judge_stdin
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import WorldFactory, row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cargo test -p x passes", True),
        ("pytest", True),
        ("status field is closed", True),
        ("docs/a/b.md exists", True),
        ("`true` passes", True),
        ("TestX in cli/cmd/x_test.go fails without the change", True),
        ("`grep -q hello out.txt` exits 0", True),
        ("TestLockMetrics asserts that both durations are equal", True),
        ("test_the_clock proves that sailings are sorted", True),
        ("make check succeeds", True),
        ("grep -q hello greeting.txt passes", True),
        ("grep 'agent/legacy' cli returns zero hits", True),
        ("test -f README.md", True),
        ("jq .name plugin.json prints helix", True),
        ("jq queries, etc. keep to it", False),
        ("the diff shows it, grep it", False),
        ("make it nicer", False),
        ("the best test verifies it all", False),
        ("the worker exits", False),
        ("tests pass", False),
        ("done", False),
        ("file exists", False),
        ("login returns 200", False),
        ("npm test works correctly", False),
        ("Agent finds 0 new drift violations", False),
        ("No governance drift detected", False),
        ("", False),
    ],
)
def test_what_a_machine_can_check(text: str, expected: bool) -> None:
    assert deterministic(text) is expected


GOOD: dict[str, Any] = {
    "title": "t",
    "issue_type": "task",
    "labels": ["helix", "phase:build", "kind:x"],
    "spec-id": "FEAT-1",
    "acceptance": "`pytest` passes",
}


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ({}, 0, ""),
        ({"labels": ["helix", "activity:build", "kind:x"]}, 0, ""),
        ({"labels": ["helix", "phase:build"]}, 2, "consider adding a kind label"),
        ({"labels": ["phase:build", "kind:x"]}, 1, 'missing required label "helix"'),
        ({"labels": ["helix", "kind:x"]}, 1, "missing phase label"),
        ({"labels": ["helix", "phase:dream", "kind:x"]}, 1, "missing phase label"),
        ({"labels": ["helix", "phase:nonsense", "kind:x"]}, 1, "missing phase label"),
        ({"labels": None}, 1, 'missing required label "helix"'),
        ({"spec-id": ""}, 1, "spec-id required for a task"),
        ({"spec-id": "", "issue_type": "epic"}, 0, ""),
        ({"spec-id": None, "issue_type": "epic"}, 0, ""),
        ({"acceptance": ""}, 1, "acceptance required for type task"),
        ({"acceptance": " "}, 1, "acceptance required for type task"),
        ({"acceptance": "", "issue_type": "epic"}, 1, "acceptance required for type epic"),
        ({"acceptance": "", "spec-id": "", "issue_type": "bug"}, 0, ""),
        ({"acceptance": "", "spec-id": "", "issue_type": "chore"}, 0, ""),
        ({"acceptance": None, "spec-id": None, "issue_type": "bug"}, 0, ""),
        ({"acceptance": None, "spec-id": None, "issue_type": "chore"}, 0, ""),
        ({"acceptance": "it works"}, 2, "no machine can check"),
        ({"acceptance": "works correctly"}, 2, "no machine can check"),
        ({"title": " "}, 1, "title required"),
        ({"dependencies": [{"depends_on_id": "gone"}]}, 1, "dependency gone does not exist"),
        ({"dependencies": [{"depends_on_id": "here"}]}, 0, ""),
        ({"dependencies": "nonsense", "labels": "helix"}, 1, "helix"),
    ],
)
def test_every_rule(change: dict[str, Any], code: int, told: str) -> None:
    verdict = judge({**GOOD, **change}, {"here"})
    assert verdict.exit_code == code
    assert told in "; ".join(map(str, verdict.findings))


def test_all_errors_are_told_at_once_and_creation_is_stricter() -> None:
    assert len(judge({}).errors) == 5
    vague = {**GOOD, "acceptance": "done"}
    assert judge(vague).exit_code == 2
    assert judge(vague, strict=True).exit_code == 1
    assert judge({**GOOD, "dependencies": [{"depends_on_id": "gone"}]}, None).exit_code == 0


def test_items_are_judged_one_by_one_while_typing() -> None:
    text = "1. `go test ./...` passes\n2. it is nice\n   and works\n- docs/x.md exists\n"
    assert acceptance_items(text) == ("`go test ./...` passes", "it is nice and works", "docs/x.md exists")
    (finding,) = judge_text(text).findings
    assert "it is nice and works" in finding.message


def ask_hook(path: Path, bead: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [path],
        input=json.dumps(bead),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
        cwd=path.parent,
    )


@pytest.mark.long
def test_the_hook_answers_as_ddx_asks(project: ProjectFactory) -> None:
    root = project([json.dumps(row("here"))], git=True)
    here = find_project(root)
    assert install(here, WriteGate(here), [sys.executable, "-m", "helix_tui"]).changed
    assert not install(here, WriteGate(here), [sys.executable, "-m", "helix_tui"]).changed
    path = hook_path(here)
    assert ask_hook(path, GOOD).returncode == 0
    refused = ask_hook(path, {**GOOD, "labels": [], "dependencies": [{"depends_on_id": "gone"}]})
    assert refused.returncode == 1
    assert "[triage] error: missing required label" in refused.stderr
    assert "gone does not exist" in refused.stderr
    warned = ask_hook(path, {**GOOD, "acceptance": "done"})
    assert (warned.returncode, "[triage] warning" in warned.stderr) == (2, True)
    assert ask_hook(path, {}, HELIX_SKIP_TRIAGE="1").returncode == 0
    assert ask_hook(path, "no bead").returncode == 1


def test_a_hook_whose_program_is_gone_lets_every_bead_pass(project: ProjectFactory, tmp_path: Path) -> None:
    here = find_project(project([], git=True))
    install(here, WriteGate(here), [str(tmp_path / "gone" / "helix-tui")])
    assert ask_hook(hook_path(here), {}).returncode == 0


def test_a_hook_of_somebody_else_stays(project: ProjectFactory) -> None:
    here = find_project(project([], git=True))
    path = hook_path(here)
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(ForeignHook):
        install(here, WriteGate(here), ["helix-tui"])
    assert path.read_text() == "#!/bin/sh\nexit 0\n"
    path.unlink()
    with pytest.raises(WritesForbidden):
        install(here, WriteGate(here, read_only=True), ["helix-tui"])
    assert not path.exists()


@pytest.mark.parametrize("raw", [b"", b"[]", b"\xff", b"[" * 100_000, b'"' + b"x" * (5 << 20) + b'"'])
def test_what_is_no_bead_is_refused(project: ProjectFactory, raw: bytes) -> None:
    assert judge_stdin(raw, find_project(project([])), {}).exit_code == 1


def test_the_embedded_tracker_asks_the_hook(world: WorldFactory) -> None:
    here = world([row("a")])
    project = here.curator.project
    install(project, WriteGate(project), [sys.executable, "-m", "helix_tui"])
    done = here.curator.run([op.CreateBead(title="Bare")])
    assert done.error is not None
    assert "missing required label" in done.error.message
    assert len(here.rows()) == 1
    shutil.rmtree(hook_path(project).parent)
