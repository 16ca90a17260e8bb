"""The few git commands that helix-ddx runs, with a fixed identity, no hooks, no prompt and a timeout."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from helix_tui.core.clock import NS

TIMEOUT_S = 60
NAME, EMAIL = "rehearsal", "rehearsal@localhost"


class GitError(RuntimeError):
    """Git is missing, refused or took too long; the message has git's own last words."""


def git(
    folder: Path, *words: str, at: int | None = None, author: str = NAME, stdin: str | None = None
) -> str:
    """Run one git command in a folder; its output without the final newline.

    Args:
        at: instant in nanoseconds that commits are dated with.
        author: who commits.

    Raises:
        GitError: it did not succeed.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    for role in ("AUTHOR", "COMMITTER"):
        env |= {
            f"GIT_{role}_NAME": author,
            f"GIT_{role}_EMAIL": EMAIL if author == NAME else f"{author}@localhost",
        }
        if at is not None:
            env[f"GIT_{role}_DATE"] = datetime.fromtimestamp(at // NS, UTC).strftime(
                "%Y-%m-%dT%H:%M:%S+00:00"
            )
    command = [
        "git",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "gc.auto=0",
        "-c",
        "core.autocrlf=false",
        *words,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {words[0]} in {folder}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise GitError(f"git {words[0]} in {folder}: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout.rstrip("\n")


def init(folder: Path) -> None:
    """A new repository whose branch is main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")


def commit(folder: Path, message: str, *paths: str, at: int | None = None, author: str = NAME) -> str:
    """Commit these paths, or everything; the new commit's id. Nothing to commit is no error: HEAD's id."""
    git(folder, "add", "-A", "--", *(paths or (".",)))
    if git(folder, "diff", "--cached", "--name-only", "--", *paths):
        git(folder, "commit", "-q", "-m", message, "--", *(paths or (".",)), at=at, author=author)
    return head(folder)


def head(folder: Path) -> str:
    """The commit that is checked out."""
    return git(folder, "rev-parse", "HEAD")
