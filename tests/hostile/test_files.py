"""Clones that bring links, pipes and names to reach files of the person: nothing outside changes, and none is shown."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.attempts.evidence import read_evidence
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.files import text_of
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.writes import make_folder
from tests.conftest import ProjectFactory

SECRET = "hunter2-of-the-person"
ATTEMPT = "20260821T220000-0a1b2c3d"
BEAD = {
    "id": "de-1",
    "title": "Sail the boat",
    "status": "open",
    "issue_type": "task",
    "priority": 2,
    "created_at": "2026-08-20T10:00:00Z",
    "updated_at": "2026-08-21T10:00:00Z",
    "spec-id": "docs/plan.md",
}
MANIFEST = {"attempt_id": ATTEMPT, "bead_id": "de-1", "harness": "claude", "started_at": "2026-08-21T22:00:00Z"}
RESULT = {**MANIFEST, "status": "execution_failed", "outcome": "task_failed", "detail": "it failed"}
LOOK = (
    ("snapshot",),
    ("status", "--json"),
    ("queue", "--json"),
    ("attempts", "--json"),
    ("check",),
    ("doctor", "--json"),
    ("journal", "--json"),
    ("doc", "graph"),
    ("doc", "audit"),
    ("insights", "--json"),
    ("why", "de-1"),
    ("memory", "list"),
    ("ask", "hunter2 of the person"),
    ("ask", "what happened to the attempts of de-1?"),
)
"""What a person looks at; no command of these changes the queue."""

Make = Callable[[Path, Path], None]
KINDS: dict[str, Make] = {}


def kind(make: Make) -> Make:
    """Enter a way to do harm."""
    KINDS[make.__name__] = make
    return make


def link(path: Path, target: Path | str) -> None:
    """Bring a link, whatever was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _links(name: str, *paths: str) -> None:
    """Enter a kind in which each of some paths is a link to the secret file."""

    def make(root: Path, secret: Path) -> None:
        for path in paths:
            link(root / path, secret)

    make.__name__ = name
    kind(make)


BUNDLE = f".ddx/executions/{ATTEMPT}"
_links("lock", ".helix/curation.lock")
_links("journal", ".helix/journal.jsonl")
_links("run_files", ".helix/run.lock", ".helix/run.pid", ".helix/run-state.json", ".helix/loop-request.json")
_links("snapshot_of_drift", ".helix/queue-snapshot.json")
_links("questions_and_snoozed", ".helix/questions.json", ".helix/snoozed.json", ".helix/denied")
_links("log", ".helix/logs/helix.log", ".helix/logs/helix.log.lock")
_links("older_logs", ".helix/logs/helix.log.1", ".helix/logs/helix.log.2")
_links("logs_of_agents", ".helix-logs/helix-20260821T220000.log", ".helix-logs/start-1.log")
_links("ask_history", ".helix/ask/history/20260821T220000Z-001-0a1b2c3d.json", ".helix/ask/ready.txt")
_links("evidence", *(f"{BUNDLE}/{name}" for name in ("prompt.md", "no_changes_rationale.txt", "reviewer-stream.log")))
_links("evidence_checks", f"{BUNDLE}/checks.json", f"{BUNDLE}/checks/lint.json", f"{BUNDLE}/usage.json")
_links("transcripts", f"{BUNDLE}/embedded/agent-de-1-1.jsonl", ".ddx/agent-logs/agent-loop-1.jsonl")
_links("worker_records", ".ddx/workers/worker-1/status.json", ".ddx/workers/worker-1/worker.log", ".ddx/run-state.json")
_links("configuration", ".ddx/config.yaml", ".ddx/graphs/all.yaml", ".ddx/beads-archive.jsonl")
_links("documents", "docs/plan.md", "docs/a.md", "README.md", "CLAUDE.md")
_links("sources", "main.py", "src/boat.py")
_links("settings", ".claude/settings.json", ".claude/settings.local.json")
_links("acceptance", "tests/helix-cli.sh", "lefthook.yml", "Cargo.toml")


@kind
def chain(root: Path, secret: Path) -> None:
    """A link behind another, which lies in the clone."""
    link(root / "deep" / "end", secret)
    link(root / ".helix" / "journal.jsonl", "../deep/end")
    link(root / BUNDLE / "prompt.md", "../../../deep/end")


@kind
def folder_of_evidence(root: Path, secret: Path) -> None:
    (secret.parent / "prompt.md").symlink_to(secret)
    link(root / ".ddx" / "executions" / "20260822T220000-0a1b2c3d", secret.parent)


@kind
def folder_of_logs(root: Path, secret: Path) -> None:
    link(root / ".helix" / "logs", secret.parent)


@kind
def folder_of_ask(root: Path, secret: Path) -> None:
    link(root / ".helix" / "ask", secret.parent)


@kind
def folder_of_markers(root: Path, secret: Path) -> None:
    link(root / ".helix" / "notified", secret.parent)


@kind
def our_folder(root: Path, secret: Path) -> None:
    link(root / ".helix", secret.parent)


@kind
def our_logs(root: Path, secret: Path) -> None:
    link(root / ".helix-logs", secret.parent)


@kind
def claude_folder(root: Path, secret: Path) -> None:
    link(root / ".claude", secret.parent)


@kind
def exclude_file(root: Path, secret: Path) -> None:
    link(root / ".git" / "info" / "exclude", secret)


@kind
def hard_links(root: Path, secret: Path) -> None:
    for name in ("curation.lock", "journal.jsonl", "run.lock", "denied"):
        (root / ".helix").mkdir(exist_ok=True)
        os.link(secret, root / ".helix" / name)


@kind
def pipes(root: Path, secret: Path) -> None:
    for path in (
        *(".helix/queue-snapshot.json", ".helix/journal.jsonl", ".helix/logs/helix.log", ".helix/curation.lock"),
        *(".helix/ask/ready.txt", ".ddx/config.yaml", ".ddx/graphs/all.yaml", f"{BUNDLE}/prompt.md", "docs/pipe.md"),
        *(".ddx/workers/worker-1/status.json", ".ddx/agent-logs/agent-loop-1.jsonl", "pipe.py", "lefthook.yml"),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)


@kind
def sparse_files(root: Path, secret: Path) -> None:
    """Files of 12 GB that take no room."""
    for path in (".helix/journal.jsonl", ".helix/queue-snapshot.json", f"{BUNDLE}/result.json"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with open(root / path, "wb") as file:
            file.truncate(12 << 30)


@kind
def names_in_configuration(root: Path, secret: Path) -> None:
    graphs = root / ".ddx" / "graphs"
    graphs.mkdir(parents=True, exist_ok=True)
    (secret.parent / "plan.md").write_text(f"---\nddx:\n  id: theirs\n---\n# {SECRET}\n")
    text = (
        f"roots: [../home, {secret.parent}]\nid_to_path:\n  theirs: ../home/plan.md\n  other: {secret.parent}/plan.md\n"
    )
    (graphs / "all.yaml").write_text(text)


@kind
def names_in_records(root: Path, secret: Path) -> None:
    rows = [
        {**BEAD, "id": "de-2", "status": "closed", "events_attachment": "../../../home/secret"},
        {**BEAD, "id": "de-3", "status": "closed", "events_attachment": str(secret)},
        {**BEAD, "id": "../../../home/secret", "spec-id": "../home/secret"},
        {**BEAD, "id": "de-4", "spec-id": str(secret)},
    ]
    with open(root / ".ddx" / "beads.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (root / ".helix").mkdir(exist_ok=True)
    question = {"id": "q-1", "key": "k", "kind": "conflict", "text": "?", "about": [["../home/secret", SECRET[:4]]]}
    (root / ".helix" / "questions.json").write_text(json.dumps({"schema": "questions/1", "questions": [question]}))


ALL_AT_ONCE = [name for name in KINDS if name.startswith(("evidence", "log", "older", "docum", "sources", "names"))]
"""Kinds that do not stand in each other's place."""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "secret"
    path.parent.mkdir()
    path.write_text(f'{{"hooks": {{}}, "text": "{SECRET}"}}\n')
    return path


@pytest.fixture
def clone(project: ProjectFactory) -> Path:
    root = project([BEAD], git=True)
    (root / "docs").mkdir()
    (root / "docs" / "plan.md").write_text("---\nddx:\n  id: plan\n---\n# The plan\n\nThe boat must float.\n")
    (root / "main.py").write_text("def sail():\n    return 'boat'\n")
    bundle = root / BUNDLE
    bundle.mkdir(parents=True)
    (bundle / "manifest.json").write_text(json.dumps(MANIFEST))
    (bundle / "result.json").write_text(json.dumps(RESULT))
    return root


def track(root: Path) -> None:
    """Let git track all of its files but those of `.helix`, which would not be used then."""
    for path in (".ddx", "docs", "src", "*.py", "*.md", "deep"):
        subprocess.run(["git", "-C", str(root), "add", "-A", "--", path], check=False, timeout=30, capture_output=True)


def look(root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Everything that is shown of a clone, and packed of it."""
    logs.begin(root, process="console")
    logs.logger("x").error("something to log")
    for words in LOOK:
        # it may say that something is wrong; 70 is a defect
        assert main([*words, "-C", str(root)]) != 70, words
    attempts = AttemptIndex.of(find_project(root))
    attempts.refresh(read_tracker(find_project(root).beads_file).beads)
    evidence = [read_evidence(attempt) for attempt in attempts.attempts]
    target = tmp_path / "report.zip"
    assert main(["doctor", "--bundle", str(target), "-C", str(root)]) == 0
    logs.end()
    shown = capfd.readouterr()
    with zipfile.ZipFile(target) as archive:
        packed = "".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())
    return f"{shown.out}{shown.err}{packed}{evidence}"


def change(root: Path) -> None:
    """What writes: each may be refused."""
    for words in (
        ("set", "de-1", "priority=1"),
        ("check", "--apply"),
        ("install-hooks",),
        ("install-hooks", "--claude"),
        ("install-hooks", "--claude", "--remove"),
        ("stop",),
        ("journal", "undo"),
    ):
        assert main([*words, "-C", str(root)]) != 70, words


def state(home: Path) -> dict[str, tuple[bytes, int, int]]:
    """What lies in the person's folder, links aside."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in sorted(home.iterdir())
        if not path.is_symlink()
    }


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_nothing_outside_is_shown_or_changed(
    name: str, clone: Path, secret: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    KINDS[name](clone, secret)
    if name not in ("pipes", "sparse_files"):  # git itself waits for them
        track(clone)
    before = state(secret.parent)
    shown = look(clone, tmp_path, capfd)
    change(clone)
    assert state(secret.parent) == before
    said = capfd.readouterr()
    assert SECRET not in shown + said.out + said.err


def test_nothing_outside_is_shown_or_changed_by_all_links_at_once(
    clone: Path, secret: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ALL_AT_ONCE:
        KINDS[name](clone, secret)
    track(clone)
    before = state(secret.parent)
    shown = look(clone, tmp_path, capfd)
    assert state(secret.parent) == before
    assert SECRET not in shown


def test_the_tests_above_would_see_a_secret_that_lies_in_the_clone(
    clone: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone / BUNDLE / "prompt.md").write_text(f"Use {SECRET}-evidence\n")
    (clone / "docs" / "plan.md").write_text(
        f"# The hunter2 of the person\n\nThe hunter2 of the person is {SECRET}-doc.\n"
    )
    track(clone)
    shown = look(clone, tmp_path, capfd)
    assert f"{SECRET}-evidence" in shown
    assert f"{SECRET}-doc" in shown


def test_pipes_in_git_s_own_folder_keep_nobody_waiting(clone: Path) -> None:
    for name in ("packed-refs", "config", "index", "info/exclude", "HEAD"):
        (clone / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(clone / ".git" / name)
    found = find_project(clone)
    assert found.branch() is None
    assert found.ref("refs/heads/other") is None
    make_folder(found.helix_dir)
    assert (clone / ".helix" / ".gitignore").is_file()


@pytest.mark.parametrize("reached", ["as it is", "by a link", "from a folder in it", "as a linked folder of a parent"])
def test_what_people_really_have_works(
    reached: str, clone: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone / "Überblick").mkdir()
    (clone / "Überblick" / "Größe.md").write_text("---\nddx:\n  id: size\n---\n# The size of the boat\n\n12 m.\n")
    (clone / "AGENTS.md").write_text("# For agents\n\nSail with the compass.\n")
    (clone / "CLAUDE.md").symlink_to("AGENTS.md")
    (clone / "docs" / "linked.md").symlink_to("../Überblick/Größe.md")
    subprocess.run(["git", "-C", str(clone), "add", "-A"], check=True, timeout=30)
    root = clone
    if reached == "by a link":
        root = tmp_path / "link"
        root.symlink_to(clone)
    elif reached == "from a folder in it":
        root = clone / "Überblick"
    elif reached == "as a linked folder of a parent":
        (tmp_path / "disk").symlink_to(tmp_path)
        root = tmp_path / "disk" / "demo"
    found = find_project(root)
    assert text_of(found.root / "CLAUDE.md").startswith("# For agents")
    assert text_of(found.root / "docs" / "linked.md").endswith("12 m.\n")
    for words in (("set", "de-1", "priority=1"), ("doc", "show", "size"), ("ask", "compass"), ("journal",)):
        assert main([*words, "-C", str(root)]) == 0, words
    shown = capfd.readouterr().out
    assert "Sail with the compass" in shown
    assert "The size of the boat" in shown
    assert "set priority" in shown
