"""Question sets: the 81 of the shared data, commits of a repository, and any JSONL of the same form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {"fastapi": "0.128.8", "aiohttp": "3.13.5", "pydantic": "2.12.5", "model2vec": "0.8.2"}
"""What the 81 questions are about (../shared/data/ask/README.txt)."""
_UNREPORTED = re.compile(r"CHANGELOG|\.svg$|(?:^|/)tests/data/")
_MOST_CHANGED = 15


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the tree it is asked of, and the files that answer it."""

    root: Path
    revision: str | None
    category: str
    query: str
    gold: frozenset[str]


def packages_of(questions: Path, cache: Path) -> list[Asked]:
    """The questions over PyPI packages; their wheels are fetched with pip and unpacked, once."""
    rows = [json.loads(line) for line in questions.read_text("utf-8").splitlines() if line.strip()]
    roots = {name: _fetched(name, cache) for name in sorted({row["repo"] for row in rows})}
    return [
        Asked(
            roots[row["repo"]],
            None,
            row["category"],
            row["query"],
            frozenset(row["relevant"] + row["secondary"]),
        )
        for row in rows
    ]


def rows_of(path: Path) -> list[Asked]:
    """Questions of a JSONL: root, query, relevant, and if wanted secondary, revision, set."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [
        Asked(
            Path(row["root"]), row.get("revision"), row.get("set", path.stem), row["query"],
            frozenset(row["relevant"] + row.get("secondary", [])),
        )
        for row in rows
    ]  # fmt: skip


def commits_of(root: Path, most: int) -> list[Asked]:
    """A repository's newest commits: the message asks, the files that it changed answer, at its parent."""
    return list(_commits(root, most))


def _commits(root: Path, most: int) -> Iterator[Asked]:
    for sha in _git(root, "rev-list", "--no-merges", f"--max-count={most}", "HEAD").split():
        changed = _git(root, "diff-tree", "--no-commit-id", "-r", "--name-only", "--diff-filter=MD", sha)
        gold = frozenset(path for path in changed.splitlines() if not _UNREPORTED.search(path))
        if 0 < len(gold) <= _MOST_CHANGED:
            message = _git(root, "log", "-1", "--format=%s%n%n%b", sha).strip()
            yield Asked(root, f"{sha}^", "commit", message, gold)


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, timeout=60, check=True)
    return done.stdout.decode("utf-8", "replace")


def _fetched(name: str, cache: Path) -> Path:
    folder = cache / f"{name}-{PACKAGES[name]}"
    if not folder.is_dir():
        wheels = cache / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        subprocess.run([*pip, f"{name}=={PACKAGES[name]}"], check=True, timeout=600)
        wheel = next(wheels.glob(f"{name}-{PACKAGES[name]}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder
