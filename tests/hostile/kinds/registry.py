"""Kinds of repository made to do harm: each is one function that writes into a clone. `test_kinds` runs them all.

A kind gets the folder of the clone and a file outside of it, which holds `SECRET`. Beside that file are `evil`, a
program that leaves a mark there, and `victim`, another repository of the person.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECRET = "hunter2-of-the-person"
ATTEMPT = "20260821T220000-0a1b2c3d"
BUNDLE = f".ddx/executions/{ATTEMPT}"
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

Kind = Callable[[Path, Path], Path | None]
"""Writes into a clone; returns the folder in it to open, None for the clone itself."""

KINDS: dict[str, Kind] = {}
COMBINED: list[str] = []
"""Kinds that can be in one repository together."""


def kind(make: Kind) -> Kind:
    """Enter a kind that has a repository of its own."""
    assert make.__name__ not in KINDS
    KINDS[make.__name__] = make
    return make


def combined(make: Kind) -> Kind:
    """Enter a kind that leaves room for others."""
    COMBINED.append(make.__name__)
    return kind(make)


def named(name: str, make: Kind, enter: Callable[[Kind], Kind] = combined) -> None:
    """Enter a function under a name, as one of many that differ by a value."""
    make.__name__ = name
    enter(make)


def write(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write a file with its folders, in place of whatever has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    path.chmod(mode)


def write_json(path: Path, document: Any) -> None:
    """Write a document."""
    write(path, json.dumps(document))


def add_beads(root: Path, *rows: dict[str, Any]) -> None:
    """Add rows to the tracker."""
    with open(root / ".ddx" / "beads.jsonl", "a") as file:
        file.writelines(json.dumps({**BEAD, **row}) + "\n" for row in rows)


def link(path: Path, target: Path | str) -> None:
    """Make a link in place of whatever has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def git(folder: Path, *words: str) -> str:
    """Run git, as the stranger who makes the repository."""
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


def evil(secret: Path) -> Path:
    """The program that leaves a mark."""
    return secret.parent / "evil"


def victim(secret: Path) -> Path:
    """Another repository of the person."""
    return secret.parent / "victim"


def payload(secret: Path) -> str:
    """A Python module that leaves a mark."""
    return f"open({str(secret.parent / 'ran')!r}, 'a').write(__name__)\n"


def make_clone(root: Path) -> Path:
    """Make a repository with a bead, an attempt, a document and a source; only the bead is committed."""
    write(root / ".ddx" / "beads.jsonl", json.dumps(BEAD) + "\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    write(root / "docs" / "plan.md", "---\nddx:\n  id: plan\n---\n# The plan\n\nThe boat must float.\n")
    write(root / "main.py", "def sail():\n    return 'boat'\n")
    write_json(root / BUNDLE / "manifest.json", MANIFEST)
    write_json(root / BUNDLE / "result.json", RESULT)
    return root


def make_outside(home: Path) -> Path:
    """Make what no clone may reach, in an empty folder; return the file with the secret."""
    secret = home / "secret"
    write(secret, f'{{"hooks": {{}}, "text": "{SECRET}"}}\n')
    write(evil(secret), f"#!/bin/sh\necho \"$0 $*\" >> '{home / 'ran'}'\ncat\n", 0o755)
    other = victim(secret)
    write_json(other / ".ddx" / "beads.jsonl", {**BEAD, "id": "private-1", "title": SECRET})
    write(other / "private.md", f"# {SECRET}\n")
    git(home, "init", "-q", "-b", "main", str(other))
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", SECRET)
    return secret
