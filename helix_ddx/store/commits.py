"""What goes with every write: head's tracker-wide lock, and a commit where the settings want one.

Rules: docs/formats/ddx.md §2 (``git.auto_commit``), §3 (``.git-tracker.lock``). The user's own git identity
signs; only the tracker's files are committed, never what else is staged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from helix_ddx.flags import Refused
from helix_ddx.store.lock import FolderLock, held
from helix_ddx.store.tracker import Beads
from helix_ddx.store.workspace import VerbCall


@contextmanager
def writing(call: VerbCall, subject: str) -> Iterator[Beads]:
    """Change the tracker as one command does: alone, and all of it or nothing.

    Args:
        subject: what the commit says, ``close demo-1234abcd``.

    Raises:
        Refused: as `BeadStore.change`; at head also, that a commit failed.
    """
    with _alone(call):
        with call.store.change() as beads:
            yield beads
        if beads.changed:
            commit(call, subject)


@contextmanager
def _alone(call: VerbCall) -> Iterator[None]:
    """Head serialises writes and commits of one project."""
    if not call.head:
        yield
        return
    complaint = "tracker lock timeout (max elapsed, lock: .ddx/.git-tracker.lock, owner: {owner})"
    folder = call.workspace.ddx / ".git-tracker.lock"
    lock = FolderLock(folder, call.era, clock=call.clock, guard=True, complaint=complaint)
    with held(lock):
        yield


def commit(call: VerbCall, subject: str) -> None:
    """Commit the tracker where ``git.auto_commit`` is ``always``; a folder that is no repository has none.

    Raises:
        Refused: git would not, at head; April keeps quiet about it.
    """
    if call.workspace.setting("git", "auto_commit") != "always" or call.workspace.project.git_dir is None:
        return
    prefix = call.workspace.setting("git", "commit_prefix") or "docs"
    ddx = call.workspace.ddx
    paths = [path for path in (ddx / "beads.jsonl", ddx / "lifecycle-schema.json") if path.exists()]
    from helix_ddx.files import OtherError, git  # only where commits are wanted

    try:
        git(ddx, "add", "--", *map(os.fspath, paths))
        # git calls a commit without changes a failure
        if git(ddx, "status", "--porcelain", "--", *map(os.fspath, paths)):
            message = f"{prefix}(beads): {subject} [ddx: doc-stamp]"
            git(ddx, "commit", "--no-verify", "-q", "-m", message, "--", *map(os.fspath, paths))
    except OtherError as problem:
        if call.head:
            raise Refused(f"auto-commit beads tracker after {subject}: {problem}") from None


def resolve_commit(call: VerbCall, name: str) -> str:
    """The full id of a commit.

    Raises:
        Refused: git knows no such commit.
    """
    full = len(name) == 40 and all(letter in "0123456789abcdefABCDEF" for letter in name)
    if full and call.workspace.project.git_dir is None:
        return name
    from helix_ddx.files import OtherError, ask  # only where a commit is named

    try:
        argv = ["git", "rev-parse", "--verify", f"{name}^{{commit}}"]
        code, out, _ = ask(argv, call.workspace.root, timeout=5)
    except OtherError as problem:
        raise Refused(f"git rev-parse {name}: {problem}") from None
    if code:
        raise Refused(f"git rev-parse {name}: exit status {code}")
    return out.decode("utf-8", "replace").strip()
