"""Each kind of hostile repository opened, asked, indexed, checked and changed: nothing outside changes or is shown.

`tests.drills.strangers` does the same with a console in a terminal, and lists what its processes did.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.attempts.evidence import read_diff, read_evidence
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.project import find_project
from tests.hostile.kinds import COMBINED, KINDS, ROOMS
from tests.hostile.kinds.registry import BUNDLE, SECRET, evil, write

GIT_ITSELF_IS_HARMED = ("git_", "a_damaged", "pipes", "sparse", "devices")
"""Names of kinds in which git by hand runs something, fails or waits."""

SCREENS = ("queue", "loop", "memory", "ask")
LOOK = (
    *(("snapshot", "--screen", screen) for screen in SCREENS),
    ("status", "--json"),
    ("queue", "--json"),
    ("queue",),
    ("attempts", "--json"),
    ("needs",),
    ("next",),
    ("stuck",),
    ("check",),
    ("doctor", "--json"),
    ("journal", "--json"),
    ("doc", "graph"),
    ("doc", "audit"),
    ("doc", "show", "plan"),
    ("insights", "--json"),
    ("why", "de-1"),
    ("memory", "list"),
    ("memory", "recall", "hunter2 of the person"),
    ("input", "--questions"),
    ("trust", "--show"),
    ("run", "--dry-run"),
    ("commit", "--dry-run"),
    ("ask", "hunter2 of the person"),
    ("ask", "what happened to the attempts of de-1?"),
)
"""What a person looks at; no command of these changes the queue."""

CHANGE = (
    ("set", "de-1", "priority=1"),
    ("check", "--apply"),
    ("install-hooks",),
    ("install-hooks", "--claude"),
    ("install-hooks", "--claude", "--remove"),
    ("commit", "de-1"),
    ("run", "--once"),
    ("stop",),
    ("journal", "undo"),
)
"""What writes: each may be refused."""

HOOKS = ("session-start", "user-prompt-submit", "pre-tool-use", "stop")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What must not reach a terminal."""


def witnesses(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder of the person: kind, mode, content."""
    state: dict[str, tuple[object, ...]] = {}
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            status = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            state[str(path.relative_to(folder))] = status.st_mode, status.st_uid, status.st_ino, content
    return state


def run_commands(commands: tuple[tuple[str, ...], ...], folder: Path) -> None:
    """Run commands in this process; each may say that something is wrong, none may end by a defect."""
    for words in commands:
        assert main([*words, "-C", str(folder)]) != 70, words


def call_hooks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Claude Code asks while a person works in the clone."""
    message = {"cwd": str(folder), "session_id": "s", "prompt": "hunter2 of the person", "tool_name": "Bash"}
    for name in HOOKS:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(message).encode())))
        run_commands((("hook", name),), folder)


def evidence_of(folder: Path) -> str:
    """What the details of attempts show."""
    project = find_project(folder)
    attempts = AttemptIndex.of(project)
    attempts.refresh(read_tracker(project.beads_file).beads)
    return "".join(f"{read_evidence(attempt)}{read_diff(project.root, attempt)}" for attempt in attempts.attempts)


def bundle_of(folder: Path, target: Path) -> str:
    """What is packed for a report."""
    assert main(["doctor", "--bundle", str(target), "-C", str(folder)]) == 0
    with zipfile.ZipFile(target) as archive:
        return "".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())


class Stranger:
    """A clone that is used as a person does, with everything that is shown of it."""

    def __init__(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.root, self.packed = root, tmp_path / "report.zip"
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def use(self, *, changing: bool = True) -> str:
        """Open, ask, index, check and, if ``changing``, change; return what was shown and packed."""
        self._monkeypatch.chdir(self.root)
        self._monkeypatch.setenv("PATH", f".{os.pathsep}bin{os.pathsep}{os.environ['PATH']}")
        logs.begin(self.root, process="console")
        logs.logger("x").error("something to log")
        run_commands(LOOK, self.root)
        call_hooks(self.root, self._monkeypatch)
        shown = evidence_of(self.root) + bundle_of(self.root, self.packed)
        if changing:
            run_commands(CHANGE, self.root)
        logs.end()
        printed = self._capfd.readouterr()
        assert not CONTROL.findall(printed.out + printed.err)
        return shown + printed.out + printed.err


@pytest.fixture
def stranger(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Stranger:
    return Stranger(clone, tmp_path, monkeypatch, capfd)


def track(root: Path) -> None:
    """Let git track some of its files, so that Ask reads them; git itself refuses some kinds."""
    for path in (".ddx", "docs", "src", "*.py", "*.md", "deep", "lib"):
        words = ("git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "add", "-A", "--", path)
        subprocess.run(words, cwd=root, check=False, timeout=30, capture_output=True)


def test_there_are_over_a_hundred_kinds() -> None:
    assert len(ROOMS) == 5
    assert len(KINDS) >= 105
    assert set(COMBINED) < set(KINDS)


ALONE = [name for name in KINDS if name not in COMBINED and (not name.startswith("git_") or name == "git_settings")]
"""Kinds that leave no room for another: each has a repository of its own at every change, the others at night."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in ALONE else pytest.mark.nightly) for name in KINDS]
)
def test_nothing_outside_is_shown_or_changed(name: str, stranger: Stranger, secret: Path) -> None:
    if not name.startswith(GIT_ITSELF_IS_HARMED):
        track(stranger.root)
    stranger.root = KINDS[name](stranger.root, secret) or stranger.root
    before = witnesses(secret.parent)
    shown = stranger.use()
    assert witnesses(secret.parent) == before
    assert SECRET not in shown


@pytest.mark.long
def test_many_kinds_in_one_repository(stranger: Stranger, secret: Path) -> None:
    """All that leave room for each other; the last to write a file has it."""
    for name in COMBINED:
        KINDS[name](stranger.root, secret)
    track(stranger.root)
    before = witnesses(secret.parent)
    shown = stranger.use(changing=False)
    assert witnesses(secret.parent) == before
    assert SECRET not in shown


@pytest.mark.long
def test_the_witnesses_see_what_is_in_the_clone_and_what_runs(stranger: Stranger, secret: Path) -> None:
    """That the tests above are able to fail."""
    write(stranger.root / BUNDLE / "prompt.md", f"Use {SECRET}-evidence\n")
    write(
        stranger.root / "docs" / "plan.md",
        f"# The hunter2 of the person\n\nThe hunter2 of the person is {SECRET}-doc.\n",
    )
    track(stranger.root)
    shown = stranger.use(changing=False)
    assert f"{SECRET}-evidence" in shown
    assert f"{SECRET}-doc" in shown
    before = witnesses(secret.parent)
    subprocess.run([evil(secret)], check=True, stdin=subprocess.DEVNULL, timeout=30)
    assert witnesses(secret.parent) != before
