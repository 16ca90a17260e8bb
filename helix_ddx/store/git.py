"""The git of helix-ddx: a few commands for simulations, and the commit that goes with a write.

Simulations run it with a fixed identity, no hooks, no prompt and a timeout. A write has head's tracker-wide lock around
it, and a commit where the settings want one (docs/formats/ddx.md §2 ``git.auto_commit``, §3 ``.git-tracker.lock``): the
user's own git identity signs, and only the tracker's files are committed, never what else is staged.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from helix_ddx.flags import Refused
from helix_ddx.store.lock import FolderLock, held
from helix_ddx.store.tracker import Beads
from helix_ddx.store.workspace import VerbCall
from helix_tui.core.ground.time import NS

TIMEOUT_S = 60
NAME, EMAIL = "simulation", "simulation@localhost"
_BUSY = ("index.lock", "cannot lock ref", "Another git process", "unable to stat", "unable to index file")
"""Messages of git that mean that another process is at work: a lock, or a file that vanished."""
_TRIES = 40


class GitError(RuntimeError):
    """Git is missing, failed or took too long; the message ends with git's own."""


def git(folder: Path, *words: str, at: int | None = None, author: str = NAME) -> str:
    """Run one git command in a folder; its output without the final newline.

    A person may be at work there too: a command that meets git's own lock is tried again for two seconds.

    Args:
        at: instant in nanoseconds that commits are dated with.
        author: who commits.

    Raises:
        GitError: it did not succeed.
    """
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "core.autocrlf=false", *words]
    from helix_tui.core.ground.process import run  # most verbs start no git

    env = _environment(at, author)
    for left in range(_TRIES, 0, -1):
        try:
            done = run(command, cwd=folder, env=env, timeout=TIMEOUT_S)
        except OSError as error:
            raise GitError(f"git {words[0]} in {folder}: {error}") from None
        if not done.rc:
            return done.out.rstrip("\n")
        if left == 1 or not any(sign in done.err for sign in _BUSY):
            break
        time.sleep(0.05)
    said = (done.err or done.out).strip().splitlines()
    raise GitError(f"git {words[0]} in {folder}: {said[-1] if said else f'exit code {done.rc}'}")


def _environment(at: int | None, author: str) -> dict[str, str]:
    # started from a hook, GIT_DIR would lead into the repository of the caller
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    # `_BUSY` knows git's words in English
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    for role in ("AUTHOR", "COMMITTER"):
        env[f"GIT_{role}_NAME"] = author
        env[f"GIT_{role}_EMAIL"] = EMAIL if author == NAME else f"{author}@localhost"
        if at is not None:
            env[f"GIT_{role}_DATE"] = datetime.fromtimestamp(at // NS, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")
    return env


@contextmanager
def alone(project: Path) -> Iterator[None]:
    """Keep other simulations out of a repository for some commands that belong together.

    April's DDx has no such lock, and its workers interfere with each other; ours must not.
    """
    with open(project / ".git" / "helix-ddx.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def init(folder: Path) -> None:
    """A new repository whose branch is main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")


def commit(folder: Path, message: str, *paths: str, at: int | None = None, author: str = NAME) -> str:
    """Commit these paths, or everything; the new commit's id. Nothing to commit is no error: HEAD's id."""
    where = paths or (".",)
    with alone(folder) if (folder / ".git").is_dir() else nullcontext():
        git(folder, "add", "-A", "--", *where)
        if git(folder, "diff", "--cached", "--name-only", "--", *where):
            git(folder, "commit", "-q", "-m", message, "--", *where, at=at, author=author)
        return head(folder)


def head(folder: Path) -> str:
    """The commit that is checked out."""
    return git(folder, "rev-parse", "HEAD")


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
            commit_write(call, subject)


@contextmanager
def _alone(call: VerbCall) -> Iterator[None]:
    """Head serialises writes and commits of one project."""
    complaint = "tracker lock timeout (max elapsed, lock: .ddx/.git-tracker.lock, owner: {owner})"
    folder = call.workspace.ddx / ".git-tracker.lock"
    lock = FolderLock(folder, clock=call.clock, guard=True, complaint=complaint)
    with held(lock):
        yield


def commit_write(call: VerbCall, subject: str) -> None:
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
