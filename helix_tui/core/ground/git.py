"""Run git, for reading and for changes, with one time limit, one output cap and one error.

No shell, no prompt, no pager. A git that only reads takes no lock that an agent's git may need, fetches nothing, starts
no program named in the repository's configuration, and is ended at the cap or when the console exits.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.work_tree import git_environment

TIMEOUT_S = 30.0
CAP = 64 << 20
"""Bytes of git's output that are kept."""

# settings of the repository: its fsmonitor and its signature check would start programs that it names
_QUIET = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
# git sets these for its hooks: they would select another index or work tree, or start a program
_OURS_TO_SET = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF")
# do not refresh the index beside an agent's git, prompt, or fetch missing blobs
_READING = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_CHANGING = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}


class GitFailed(HelixError):
    """Git failed. The message states the command, git's own message and what to do."""


def reading_argv(root: Path, *words: str) -> tuple[str, ...]:
    """The command line of a read-only git, for one that is kept running."""
    return ("git", *_QUIET, "-C", os.fspath(root), *words)


def reading_environment(root: Path) -> dict[str, str]:
    """The environment of a read-only git; it finds no repository whose work tree this is not."""
    env = {name: value for name, value in os.environ.items() if name not in _OURS_TO_SET}
    return env | _READING | git_environment(root)


def read_git(
    root: Path, *words: str, timeout: float = TIMEOUT_S, cap: int = CAP, given: bytes = b"", check: bool = True
) -> Finished:
    """Run a git that only reads and return its output; ``truncated`` means that it was ended at the cap.

    Args:
        timeout: seconds that the command may take.
        cap: bytes of output at which the command is ended.
        given: its standard input.
        check: whether an exit code other than 0 is an error.

    Raises:
        GitFailed: git is not installed, took too long, or failed.
    """
    try:
        if given:
            with tempfile.NamedTemporaryFile(prefix="helix-git-") as file:
                file.write(given)
                file.flush()
                done = _read(root, words, timeout, cap, Path(file.name))
        else:
            done = _read(root, words, timeout, cap, None)
    except OSError as error:
        raise _not_started(words[0], error) from None
    if done.timed_out:
        raise GitFailed(f"git {words[0]} took longer than {timeout:g} s: try it by hand")
    # ended at the cap is a success; ended by a signal, as when the console exits, is not
    if not done.truncated and (done.rc < 0 or (check and done.rc)):
        lines = [line for line in done.err.split("\n") if line.strip()]
        said = clean_line(lines[-1], 300) if lines else f"exit code {done.rc}"
        raise GitFailed(f"git {words[0]} failed in {clean_line(str(root))}: {said}")
    return done


def ask_git(root: Path, *words: str, timeout: float = TIMEOUT_S, cap: int = CAP, given: bytes = b"") -> Finished | None:
    """Like `read_git`, but None on any failure."""
    try:
        return read_git(root, *words, timeout=timeout, cap=cap, given=given)
    except GitFailed:
        return None


def change_git(root: Path, *words: str, timeout: float) -> Finished:
    """Run a git that may change something, with the hooks and settings of its repository; no editor opens.

    Raises:
        GitFailed: git cannot be started.
    """
    try:
        return run(
            ("git", "-C", os.fspath(root), *words),
            env={**os.environ, **_CHANGING, **git_environment(root)},
            timeout=timeout,
        )
    except OSError as error:
        raise _not_started(words[0], error) from None


def _read(root: Path, words: tuple[str, ...], timeout: float, cap: int, given: Path | None) -> Finished:
    argv = reading_argv(root, *words)
    return run(argv, env=reading_environment(root), timeout=timeout, cap=cap, stop_at_cap=True, stdin=given)


def _not_started(verb: str, error: OSError) -> GitFailed:
    if isinstance(error, FileNotFoundError):
        return GitFailed("git is not installed here", "Install git.")
    return GitFailed(f"git {verb} cannot run: {error.strerror}")
