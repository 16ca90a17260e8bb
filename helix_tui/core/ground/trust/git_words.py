"""Words and environment of a git that only reads: it starts nothing that a repository names (docs/security.md)."""

from __future__ import annotations

import os
from pathlib import Path

from helix_tui.core.ground.trust.work_tree import environment_of, work_tree_above

# what a repository's configuration may name and reading must neither start nor open; `-c` outranks it
_HELD = (
    "core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.sshCommand=false", "core.askPass=",
    "core.alternateRefsCommand=", "credential.helper=", "gpg.program=false", "protocol.allow=never",
    "diff.submodule=short", "status.submoduleSummary=false", "submodule.recurse=false", "log.showSignature=false",
    "log.mailmap=false", f"mailmap.file={os.devnull}", f"diff.orderFile={os.devnull}",
    f"core.attributesFile={os.devnull}", "core.quotePath=false",
)  # fmt: skip
_QUIET = ("--no-pager", *(word for setting in _HELD for word in ("-c", setting)))
_DIFFS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
_FLAGS = {
    **dict.fromkeys(("diff", "log", "show", "diff-tree", "diff-index", "diff-files"), _DIFFS),
    "status": _DIFFS[2:],  # git would run in each submodule, by the submodule's own configuration
    "blame": _DIFFS[1:2],
    "grep": _DIFFS[1:2],
}
"""Verb -> options without which it runs programs that the configuration names."""
# git sets these for its hooks: they would select another index or work tree, or start a program
_OURS_TO_SET = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF")
# do not refresh the index beside an agent's git, prompt, or reach another repository for missing blobs: git before 2.45
# knows no GIT_NO_LAZY_FETCH, but asks nobody where no protocol is allowed
_READING = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


def git_in(root: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """The beginning of a git's command line in a folder, and what its environment needs there.

    A folder in a work tree that only looks like a git folder is none; a bare repository is asked.
    """
    tree = work_tree_above(Path(os.path.abspath(root)))
    without_bare = () if tree is None else ("-c", "safe.bareRepository=explicit")
    return ("git", *without_bare, "-C", os.fspath(root)), environment_of(tree)


def reading_git(root: Path, *words: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command line and the environment of a git that only reads; it finds no repository of another work tree."""
    (git, *where), held = git_in(root)
    argv = (git, *_QUIET, *where, words[0], *_FLAGS.get(words[0], ()), *words[1:])
    env = {name: value for name, value in os.environ.items() if name not in _OURS_TO_SET}
    env |= _READING | held
    return argv, env | {"PATH": os.pathsep.join(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))}
