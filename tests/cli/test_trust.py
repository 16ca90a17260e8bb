"""Nothing that a repository brings runs at a change before the person allowed it once; what changed is asked again."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.editing.execute.trust import OWN_HOOK, brought_by, not_allowed
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.agents.hooks import hook_text

HOOK = ".ddx/hooks/validate-bead-update"


def git(root: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-C", str(root), *words]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one bead and a hook of ddx that leaves a mark."""
    root = tmp_path / "clone"
    (root / ".ddx" / "hooks").mkdir(parents=True)
    row = '{"id":"x-1","title":"One","status":"open","priority":2,"issue_type":"task"}\n'
    (root / ".ddx" / "beads.jsonl").write_text(row)
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    write_hook(root, f"echo ran >> '{tmp_path / 'ran'}'\n")
    monkeypatch.delenv("DDX_BIN", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return root


def write_hook(root: Path, text: str) -> None:
    (root / HOOK).write_text(f"#!/bin/sh\n{text}")
    (root / HOOK).chmod(0o755)


def run(root: Path, *words: str) -> int:
    return main([*words, "-C", str(root)])


def test_a_change_waits_until_its_hook_is_allowed(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mark = clone.parent / "ran"
    before = (clone / ".ddx" / "beads.jsonl").read_bytes()
    assert run(clone, "set", "x-1", "priority=1") == 77
    refused = capfd.readouterr().err
    assert HOOK in refused
    assert "helix-tui trust" in refused
    assert not mark.exists()
    assert (clone / ".ddx" / "beads.jsonl").read_bytes() == before
    assert run(clone, "trust", "--show") == 0
    assert f"not allowed  {HOOK}" in capfd.readouterr().out
    assert run(clone, "trust") == 77, "nobody is at a terminal"
    assert run(clone, "trust", "--yes") == 0
    assert run(clone, "set", "x-1", "priority=1") == 0
    assert mark.exists()


def test_a_hook_that_changed_is_asked_about_again(clone: Path) -> None:
    assert run(clone, "trust", "--yes") == 0
    assert run(clone, "set", "x-1", "priority=1") == 0
    write_hook(clone, "exit 1\n")
    assert run(clone, "set", "x-1", "priority=0") == 77
    assert run(clone, "trust", "--yes") == 0
    assert run(clone, "trust", "--revoke") == 0
    assert run(clone, "set", "x-1", "priority=0") == 77


def test_the_first_lines_of_a_hook_are_shown_and_how_many_follow(
    clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_hook(clone, "if true; then\n  echo \x1b[2Jsafe\nfi\necho 4\n\necho 5\nrm -rf /\n")
    assert run(clone, "trust", "--show") == 0
    shown = capfd.readouterr().out.splitlines()[1:]
    assert shown == [
        "    #!/bin/sh",
        "    if true; then",
        "      echo safe",
        "    fi",
        "    echo 4",
        "    … 2 more lines",
    ]


@pytest.mark.parametrize(
    "words", [("run",), ("start",), ("commit", "x-1"), ("close", "x-1"), ("eligible", "x-1", "off")]
)
def test_no_command_that_would_run_it_goes_on(clone: Path, words: tuple[str, ...]) -> None:
    (clone / "new.txt").write_text("new\n")
    git(clone, "add", "new.txt")
    assert run(clone, *words) == 77
    assert not (clone.parent / "ran").exists()


@pytest.mark.parametrize(
    "words", [("queue",), ("why", "x-1"), ("check",), ("doctor",), ("set", "x-1", "priority=1", "--dry-run")]
)
def test_looking_asks_nothing(clone: Path, words: tuple[str, ...]) -> None:
    assert run(clone, *words) != 77
    assert not (clone.parent / "ran").exists()


def test_everything_that_would_run_is_found(clone: Path) -> None:
    texts = {
        "lefthook.yml": "pre-commit:\n  commands:\n    a:\n      run: evil\n",
        "Cargo.toml": "",
        "package.json": "{}",
        ".ddx/config.yaml": "git:\n  post_land_command: evil --now\n",
        ".ddx/checks/a.yaml": "command: evil\n",
    }
    for name, text in texts.items():
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text(text)
    (clone / "elsewhere").mkdir()
    for path in (clone / ".git" / "hooks" / "pre-commit", clone / "elsewhere" / "pre-push"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    git(clone, "config", "core.hooksPath", "elsewhere")
    git(clone, "config", "filter.evil.clean", "evil")
    subjects = {brought.subject for brought in brought_by(find_project(clone))}
    files = {"lefthook.yml", ".ddx/config.yaml", ".ddx/checks/a.yaml", ".git/config", "elsewhere/pre-push", HOOK}
    assert subjects == {*files, ".git/hooks/pre-commit", "cargo check", "npm test"}
    assert run(clone, "trust", "--yes") == 0
    assert not_allowed(find_project(clone)) == ()


def test_our_own_hook_is_known_and_a_repository_without_any_asks_nothing(clone: Path) -> None:
    assert hashlib.sha256(hook_text().encode()).hexdigest() == OWN_HOOK
    (clone / HOOK).write_text(hook_text())
    assert brought_by(find_project(clone)) == ()
    (clone / HOOK).unlink()
    assert run(clone, "set", "x-1", "priority=1") == 0
