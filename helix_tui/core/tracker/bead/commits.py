"""What goes with every write: head's tracker-wide lock, and a commit where the settings want one.

Rules: reference/ddx.md §2 (``git.auto_commit``), §3 (``.git-tracker.lock``). The user's own git identity
signs; only the tracker's files are committed, never what else is staged.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helix_tui.core.tracker.bead.call import Call, Refused
from helix_tui.core.tracker.bead.store import Beads
from helix_tui.core.tracker.lock import FolderLock, LockTimeout

TIMEOUT_S = 30


@contextmanager
def writing(call: Call, deed: str) -> Iterator[Beads]:
    """Change the tracker as one command does: alone, and all of it or nothing.

    Args:
        deed: what the commit says, ``close demo-1234abcd``.

    Raises:
        Refused: as `BeadStore.change`; at head also, that a commit failed.
    """
    with _alone(call):
        with call.store.change() as beads:
            yield beads
        if beads.changed:
            commit(call, deed)


@contextmanager
def _alone(call: Call) -> Iterator[None]:
    """Head serialises writes and commits of one project."""
    if not call.head:
        yield
        return
    complaint = "tracker lock timeout (max elapsed, lock: .ddx/.git-tracker.lock, owner: {owner})"
    folder = call.workspace.ddx / ".git-tracker.lock"
    lock = FolderLock(folder, call.era, clock=call.clock, guard=True, complaint=complaint)
    held = lock.held()
    try:
        held.__enter__()
    except LockTimeout as problem:
        raise Refused(str(problem)) from None
    except OSError as error:
        raise Refused(f"bead: lock dir: {error}") from None
    try:
        yield
    finally:
        held.__exit__(None, None, None)


def commit(call: Call, deed: str) -> None:
    """Commit the tracker where ``git.auto_commit`` is ``always``; a folder that is no repository has none.

    Raises:
        Refused: git would not, at head; April keeps quiet about it.
    """
    if call.workspace.setting("git", "auto_commit") != "always" or call.workspace.project.git_dir is None:
        return
    prefix = call.workspace.setting("git", "commit_prefix") or "docs"
    ddx = call.workspace.ddx
    paths = [path for path in (ddx / "beads.jsonl", ddx / "lifecycle-schema.json") if path.exists()]
    try:
        _git(ddx, "add", "--", *map(os.fspath, paths))
        if _git(ddx, "status", "--porcelain", "--", *map(os.fspath, paths)):
            message = f"{prefix}(beads): {deed} [ddx: doc-stamp]"
            _git(ddx, "commit", "--no-verify", "-q", "-m", message, "--", *map(os.fspath, paths))
    except GitError as problem:
        if call.head:
            raise Refused(f"auto-commit beads tracker after {deed}: {problem}") from None


class GitError(Exception):
    """Git refused, is missing or took too long."""


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {words[0]} failed: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise GitError(f"git {words[0]} failed: exit status {done.returncode}\n{said}")
    return done.stdout.decode("utf-8", "replace").strip()


def resolve_commit(call: Call, name: str) -> str:
    """The full id of a commit.

    Raises:
        Refused: git knows no such commit.
    """
    full = len(name) == 40 and all(letter in "0123456789abcdefABCDEF" for letter in name)
    if full and call.workspace.project.git_dir is None:
        return name
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", f"{name}^{{commit}}"],
            cwd=call.workspace.root,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"git rev-parse {name}: {error}") from None
    if done.returncode:
        raise Refused(f"git rev-parse {name}: exit status {done.returncode}")
    return done.stdout.decode("utf-8", "replace").strip()
