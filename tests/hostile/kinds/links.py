"""Links and names that lead out of the clone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.hostile.kinds.registry import (
    ATTEMPT,
    BEAD,
    BUNDLE,
    MANIFEST,
    RESULT,
    SECRET,
    add_beads,
    combined,
    evil,
    kind,
    link,
    named,
    victim,
    write,
    write_json,
)


def _links(name: str, *paths: str) -> None:
    """Enter a kind in which each of some paths is a link to the secret file."""

    def make(root: Path, secret: Path) -> None:
        for path in paths:
            link(root / path, secret)

    named(name, make)


_links("lock", ".helix/curation.lock")
_links("journal", ".helix/journal.jsonl")
_links("run_files", ".helix/run.lock", ".helix/run.pid", ".helix/run-state.json", ".helix/loop-request.json")
_links("process_files", ".helix/helix.pid", ".ddx/helix.pid", ".helix/plugin_root", ".helix/context.md")
_links("snapshot_of_drift", ".helix/queue-snapshot.json")
_links("questions_and_snoozed", ".helix/questions.json", ".helix/snoozed.json", ".helix/denied", ".helix/budget.json")
_links("log", ".helix/logs/helix.log", ".helix/logs/helix.log.lock")
_links("older_logs", ".helix/logs/helix.log.1", ".helix/logs/helix.log.2")
_links("logs_of_agents", ".helix-logs/helix-20260821T220000.log", ".helix-logs/start-1.log")
_links("ask_history", ".helix/ask/history/20260821T220000Z-001-0a1b2c3d.json", ".helix/ask/ready.txt")
_links("ask_index", ".helix/ask/index.db", ".helix/ask/index.db-wal", ".helix/ask/index.db-journal")
_links("prompts_of_ours", *(f".helix/prompts/{name}.md" for name in ("build", "review", "plan")))
_links("memory_database", ".helix/helix.db")
_links("memory_log", ".helix/helix.db-wal", ".helix/helix.db-shm")
_links("memory_journal", ".helix/helix.db-journal")
_links("evidence", *(f"{BUNDLE}/{name}" for name in ("prompt.md", "no_changes_rationale.txt", "reviewer-stream.log")))
_links("evidence_checks", f"{BUNDLE}/checks.json", f"{BUNDLE}/checks/lint.json", f"{BUNDLE}/usage.json")
_links("evidence_records", ".ddx/executions/20260822T220000-0a1b2c3d/result.json", ".ddx/metrics/attempts.jsonl")
_links("transcripts", f"{BUNDLE}/embedded/agent-de-1-1.jsonl", ".ddx/agent-logs/agent-loop-1.jsonl")
_links("worker_records", ".ddx/workers/worker-1/status.json", ".ddx/workers/worker-1/worker.log", ".ddx/run-state.json")
_links("configuration", ".ddx/config.yaml", ".ddx/graphs/all.yaml", ".ddx/beads-archive.jsonl")
_links("attachments", ".ddx/attachments/de-1/events.jsonl", ".ddx/attachments/de-1/notes.md")
_links("documents", "docs/plan.md", "docs/a.md", "README.md", "CLAUDE.md")
_links("sources", "main.py", "src/boat.py")
_links("settings", ".claude/settings.json", ".claude/settings.local.json")
_links("texts_for_agents", ".claude/agents/a.md", ".claude/commands/b.md", "AGENTS.md", ".mcp.json")
_links("acceptance", "tests/helix-cli.sh", "lefthook.yml", "Cargo.toml")
_links("git_s_text_files", ".gitignore", ".gitattributes", ".gitmodules", ".mailmap")


def _folder(name: str, path: str) -> None:
    """Enter a kind in which a folder is a link to the one with the secret."""

    def make(root: Path, secret: Path) -> None:
        link(root / path, secret.parent)

    named(name, make, kind)


_folder("folder_of_logs", ".helix/logs")
_folder("folder_of_ask", ".helix/ask")
_folder("folder_of_history", ".helix/ask/history")
_folder("folder_of_markers", ".helix/notified")
_folder("our_folder", ".helix")
_folder("our_logs", ".helix-logs")
_folder("claude_folder", ".claude")
_folder("folder_of_workers", ".ddx/workers")
_folder("folder_of_sources", "lib")
_folder("ddx_hooks_folder", ".ddx/hooks")


@combined
def chain(root: Path, secret: Path) -> None:
    """A link behind another, which is in the clone."""
    link(root / "deep" / "end", secret)
    link(root / ".helix" / "journal.jsonl", "../deep/end")
    link(root / BUNDLE / "prompt.md", "../../../deep/end")


@combined
def relative_links(root: Path, secret: Path) -> None:
    link(root / "docs" / "up.md", os.path.relpath(secret, root / "docs"))
    link(root / ".helix" / "questions.json", "../../home/secret")
    link(root / "docs" / "again.md", f"../../{root.name}/../home/secret")


@combined
def links_by_proc(root: Path, secret: Path) -> None:
    """The kernel's folder of a process leads to the root of all files, and to its memory."""
    link(root / "docs" / "proc.md", f"/proc/self/root{secret}")
    link(root / ".helix" / "logs" / "helix.log.1", f"/proc/self/root{secret}")
    link(root / "docs" / "memory.md", "/proc/self/mem")
    link(root / "docs" / "environment.md", "/proc/self/environ")


@combined
def links_in_circles(root: Path, secret: Path) -> None:
    link(root / "docs" / "one.md", "two.md")
    link(root / "docs" / "two.md", "one.md")
    link(root / "docs" / "self", "self")
    link(root / "src" / "up", "..")
    for number in range(60):
        link(root / "chain" / f"{number}.md", f"{number + 1}.md")


@combined
def links_into_git_s_folder(root: Path, secret: Path) -> None:
    """Its configuration may hold credentials."""
    write(root / ".git" / "notes", f"{SECRET}\n")
    link(root / "docs" / "git.md", "../.git/notes")
    link(root / BUNDLE / "prompt.md", "../../../.git/notes")


@combined
def links_to_devices(root: Path, secret: Path) -> None:
    """One that never ends, one that asks the terminal."""
    for path, device in (("docs/zero.md", "zero"), (".helix/queue-snapshot.json", "zero"), ("docs/tty.md", "tty")):
        link(root / path, f"/dev/{device}")


@combined
def folder_of_evidence(root: Path, secret: Path) -> None:
    outside = secret.parent / "evidence"
    write(outside / "prompt.md", SECRET)
    write_json(outside / "manifest.json", {**MANIFEST, "attempt_id": "20260824T220000-0a1b2c3d"})
    link(root / ".ddx" / "executions" / "20260824T220000-0a1b2c3d", outside)


@kind
def all_evidence(root: Path, secret: Path) -> None:
    outside = secret.parent / "executions"
    write(outside / ATTEMPT / "prompt.md", SECRET)
    write_json(outside / ATTEMPT / "result.json", {**RESULT, "detail": SECRET})
    (root / ".ddx" / "executions").rename(root / "elsewhere")
    link(root / ".ddx" / "executions", outside)


@kind
def all_documents(root: Path, secret: Path) -> None:
    write(secret.parent / "docs" / "plan.md", f"---\nddx:\n  id: plan\n---\n# {SECRET}\n")
    (root / "docs").rename(root / "elsewhere")
    link(root / "docs", secret.parent / "docs")


@kind
def tracker(root: Path, secret: Path) -> None:
    link(root / ".ddx" / "beads.jsonl", victim(secret) / ".ddx" / "beads.jsonl")


@kind
def tracker_folder(root: Path, secret: Path) -> None:
    (root / ".ddx").rename(root / "elsewhere")
    link(root / ".ddx", victim(secret) / ".ddx")


@kind
def exclude_file(root: Path, secret: Path) -> None:
    link(root / ".git" / "info" / "exclude", secret)


@kind
def exclude_folder(root: Path, secret: Path) -> None:
    (root / ".git" / "info").rename(root / ".git" / "elsewhere")
    link(root / ".git" / "info", secret.parent)


@kind
def parts_of_git_s_folder(root: Path, secret: Path) -> None:
    for name in ("HEAD", "config", "packed-refs"):
        link(root / ".git" / name, secret)


@kind
def index_of_git(root: Path, secret: Path) -> None:
    link(root / ".git" / "index", victim(secret) / ".git" / "index")


@combined
def hard_links(root: Path, secret: Path) -> None:
    for name in ("curation.lock", "journal.jsonl", "run.lock", "denied", "helix.db", "logs/helix.log", "notified/x"):
        path = root / ".helix" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.link(secret, path)


@combined
def a_hook_that_is_a_link(root: Path, secret: Path) -> None:
    link(root / ".ddx" / "hooks" / "validate-bead-update", evil(secret))
    link(root / ".ddx" / "hooks" / "validate-bead-create", evil(secret))


@combined
def names_in_configuration(root: Path, secret: Path) -> None:
    write(secret.parent / "plan.md", f"---\nddx:\n  id: theirs\n---\n# {SECRET}\n")
    roots = f"roots: [../home, {secret.parent}]\n"
    write(
        root / ".ddx" / "graphs" / "all.yaml",
        f"{roots}id_to_path:\n  a: ../home/plan.md\n  b: {secret.parent}/plan.md\n",
    )


@combined
def names_in_documents(root: Path, secret: Path) -> None:
    """Frontmatter and links of a document that name files outside."""
    head = f"---\nddx:\n  id: far\n  path: {secret}\n  depends_on: [../../home/secret, '{secret}']\n---\n"
    write(
        root / "docs" / "far.md",
        f"{head}# Far\n\n[read]({secret}) ![see](../../home/secret) <!-- include {secret} -->\n",
    )


@combined
def names_in_records(root: Path, secret: Path) -> None:
    add_beads(
        root,
        {"id": "de-2", "status": "closed", "events_attachment": "../../../home/secret"},
        {"id": "de-3", "status": "closed", "events_attachment": str(secret)},
        {"id": "../../../home/secret", "spec-id": "../home/secret"},
        {"id": "de-4", "spec-id": str(secret)},
        {"id": "de-5", "spec-id": "docs/../../home/secret", "labels": ["spec:../home/secret"]},
    )
    question = {"id": "q-1", "key": "k", "kind": "conflict", "text": "?", "about": [["../home/secret", SECRET[:4]]]}
    write_json(root / ".helix" / "questions.json", {"schema": "questions/1", "questions": [question]})


@combined
def names_in_evidence(root: Path, secret: Path) -> None:
    """Results, manifests and records of workers that name their files and folders outside."""
    fields = (
        "session_log",
        "native_log_ref",
        "transcript",
        "prompt_file",
        "worktree",
        "worktree_path",
        "execution_dir",
    )
    places = dict.fromkeys(fields, str(secret)) | {
        "project_root": str(victim(secret)),
        "evidence": ["../../../../home/secret"],
    }
    write_json(root / BUNDLE / "result.json", {**RESULT, **places})
    write_json(root / BUNDLE / "manifest.json", {**MANIFEST, **places})
    worker = {"id": "worker-1", "state": "running", "log_path": str(secret), "worktree": str(secret.parent), **places}
    write_json(root / ".ddx" / "workers" / "worker-1" / "status.json", worker)
    write_json(root / ".ddx" / "run-state.json", {"bead_id": "de-1", "attempt_id": ATTEMPT, **places})


@combined
def names_of_sessions(root: Path, secret: Path) -> None:
    """An attempt whose id would be a path outside."""
    for number, name in enumerate(("../../../home", str(secret.parent), "..")):
        path = root / ".ddx" / "executions" / f"20260823T22000{number}-0a1b2c3d"
        write_json(path / "manifest.json", {**MANIFEST, "attempt_id": name})
        write_json(path / "result.json", {**RESULT, "attempt_id": name, "bead_id": f"../{name}"})


@combined
def names_with_other_slashes(root: Path, secret: Path) -> None:
    """What only looks like one, and what ends a name for a program in C."""
    names = (
        "..\\..\\home\\secret",
        "..\u2044home\u2044secret",
        "docs/plan.md\0/../../home/secret",
        "file:///etc/passwd",
    )
    add_beads(root, *({"id": f"sl-{number}", "spec-id": name} for number, name in enumerate(names)))


@combined
def a_worktree_root_outside(root: Path, secret: Path) -> None:
    """The configuration names where attempts work: the person's own folder."""
    config = f"executions:\n  temp_worktree_root: {secret.parent}\n"
    write(root / ".ddx" / "config.yaml", config)
    write(secret.parent / "ddx-claim-heartbeats" / "note.json", json.dumps({"owner": SECRET, **BEAD}))
