"""Run git, for reading and for changes, with one time limit, one output cap and one error.

No shell, no prompt, no pager. A git that only reads takes no lock that an agent's git may need, fetches nothing, starts
no program named in the repository's configuration (docs/security.md), and is ended at the cap or when the console
exits.
"""

from __future__ import annotations

import os
from pathlib import Path

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.trust.git_words import git_in, reading_git

TIMEOUT_S = 30.0
CAP = 64 << 20
"""Bytes of git's output that are kept."""

_NO_DRIVERS = ("config", "rev-parse", "rev-list", "cat-file", "ls-tree", "for-each-ref", "merge-base")
"""Verbs that read no file of the work tree and merge none, so that no filter and no merge driver is asked."""
_DRIVERS = r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$"
_OWN_MERGE = "git merge-file --marker-size=%L %A %O %B"
_CHANGING = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}


class GitFailed(HelixError):
    """Git failed. The message states the command, git's own message and what to do."""


def _hold_drivers(root: Path, env: dict[str, str], timeout: float) -> None:
    """Extend an environment so that no filter and no merge driver of the repository's own configuration runs."""
    names = {name for name, _ in own_settings(root, _DRIVERS, timeout)}
    # by the environment, as `-c` takes no name that contains "="
    count = int(env.get("GIT_CONFIG_COUNT") or 0)
    for place, name in enumerate(sorted(names), count):
        env[f"GIT_CONFIG_KEY_{place}"] = name
        value = _OWN_MERGE if name.startswith("merge.") else "false" if name.endswith(".required") else ""
        env[f"GIT_CONFIG_VALUE_{place}"] = value
    env["GIT_CONFIG_COUNT"] = str(count + len(names))


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
        argv, env = reading_git(root, *words)
        if words[0] not in _NO_DRIVERS:
            _hold_drivers(root, env, timeout)
        done = run(argv, env=env, timeout=timeout, cap=cap, stop_at_cap=True, given=given)
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


def own_settings(root: Path, pattern: str, timeout: float = TIMEOUT_S) -> list[tuple[str, str]]:
    """Names, as git compares them, and values of settings that a repository brings; none where git cannot be asked."""
    done = ask_git(root, "config", "--show-scope", "-z", "--get-regexp", pattern, timeout=timeout)
    words = ("" if done is None else os.fsdecode(done.stdout)).split("\0")
    settings = zip(words[::2], (word.partition("\n") for word in words[1::2]), strict=False)
    return [(name, value) for scope, (name, _, value) in settings if scope in ("local", "worktree")]


def change_git(root: Path, *words: str, timeout: float) -> Finished:
    """Run a git that may change something, with the hooks and settings of its repository; no editor opens.

    Raises:
        GitFailed: git cannot be started.
    """
    git, held = git_in(root)
    try:
        return run((*git, *words), env={**os.environ, **_CHANGING, **held}, timeout=timeout)
    except OSError as error:
        raise _not_started(words[0], error) from None


def _not_started(verb: str, error: OSError) -> GitFailed:
    if isinstance(error, FileNotFoundError):
        return GitFailed("git is not installed here", "Install git.")
    return GitFailed(f"git {verb} cannot run: {error.strerror}")
